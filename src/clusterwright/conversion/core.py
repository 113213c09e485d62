"""The kinds of the core group, row by row."""

from __future__ import annotations

from typing import Any, Final

from clusterwright.api.copying import replace
from clusterwright.conversion.pairs import Context, Row, by, by_equal_position
from clusterwright.conversion.shapes import (
    FAILURE,
    FAILURE_DOMAINS,
    NODE_REFERENCE,
    REFERENCE,
    TEMPLATE_REFERENCE,
    TIMEOUTS,
    counters,
    status,
)
from clusterwright.conversion.types import NESTED, Go

# -------------------------------------------------------------------------------- health checks and rollouts


_CONDITION: Final = (Row("timeout", "timeoutSeconds", plain=True),)
HEALTH: Final = (
    Row("unhealthyConditions", "checks.unhealthyNodeConditions", rows=_CONDITION, rebuilt=True),
    Row("unhealthyMachineConditions", "checks.unhealthyMachineConditions", rows=_CONDITION, rebuilt=True),
    Row("nodeStartupTimeout", "checks.nodeStartupTimeoutSeconds"),
    Row("maxUnhealthy", "remediation.triggerIf.unhealthyLessThanOrEqualTo"),
    Row("unhealthyRange", "remediation.triggerIf.unhealthyInRange"),
    Row("remediationTemplate", "remediation.templateRef", TEMPLATE_REFERENCE),
)
CLASS_HEALTH: Final = Row("machineHealthCheck", "healthCheck", rows=HEALTH)
TOPOLOGY_HEALTH: Final = Row("machineHealthCheck", "healthCheck", rows=(*HEALTH, Row("enable", "enabled")))


def _without_in_flight(hub: Go, spoke: Go, context: Context) -> None:
    """Drop a health check that only limits concurrent remediations: the limit is part of the old strategy."""
    remediation = hub.get("healthCheck", {}).get("remediation", {})
    if spoke.get("machineHealthCheck") == {} and set(hub["healthCheck"]) == {"remediation"} and set(remediation) == {"maxInFlight"}:
        del spoke["machineHealthCheck"]


_STRATEGY: Final = (
    Row("strategy.type", "rollout.strategy.type"),
    Row("strategy.rollingUpdate.maxSurge", "rollout.strategy.rollingUpdate.maxSurge"),
    Row("strategy.rollingUpdate.maxUnavailable", "rollout.strategy.rollingUpdate.maxUnavailable"),
    Row("strategy.rollingUpdate.deletePolicy", "deletion.order"),
)
WORKER_STRATEGY: Final = (*_STRATEGY, Row("strategy.remediation.maxInFlight", "healthCheck.remediation.maxInFlight"))

# ------------------------------------------------------------------------------------------------ Cluster

_VARIABLES: Final = (Row("variables.overrides", rows=(Row("definitionFrom", lost=True),)),)
CLUSTER: Final = (
    Row("spec.infrastructureRef", how=REFERENCE),
    Row("spec.controlPlaneRef", how=REFERENCE),
    Row("spec.paused", intent=True),
    Row("spec.topology.class", "spec.topology.classRef.name"),
    Row("spec.topology.classNamespace", "spec.topology.classRef.namespace"),
    Row("spec.topology.rolloutAfter", lost=True),
    Row("spec.topology.variables", rows=(Row("definitionFrom", lost=True),)),
    Row("spec.topology.controlPlane", rows=(*TIMEOUTS, TOPOLOGY_HEALTH, *_VARIABLES)),
    Row(
        "spec.topology.workers.machineDeployments",
        rows=(*TIMEOUTS, TOPOLOGY_HEALTH, *WORKER_STRATEGY, *_VARIABLES),
        down=_without_in_flight,
    ),
    Row("spec.topology.workers.machinePools", rows=(*TIMEOUTS, *_VARIABLES)),
    status(
        *FAILURE,
        Row("infrastructureReady", "initialization.infrastructureProvisioned", intent=True),
        Row("controlPlaneReady", "initialization.controlPlaneInitialized", intent=True),
        Row("failureDomains", how=FAILURE_DOMAINS),
        Row("v1beta2.controlPlane", "controlPlane"),
        Row("v1beta2.workers", "workers"),
    ),
)

# ------------------------------------------------------------------------------------------- ClusterClass

_FLAGS: Final = (
    "uniqueItems",
    "exclusiveMaximum",
    "exclusiveMinimum",
    "x-kubernetes-preserve-unknown-fields",
    "x-kubernetes-int-or-string",
)


def _flags_below(spoke: Go, hub: Go, restored: Go | None, context: Context) -> None:
    """Restore the flags of nested schemas; each finds its own in the annotation by key or position."""
    if restored is None:
        return
    for name, shape in NESTED.items():
        mine, theirs = hub.get(name), restored.get(name)
        if mine is None or theirs is None:
            continue
        for one, other in _counterparts(shape, mine, theirs):
            for flag in _FLAGS:
                if other.get(flag) is False and flag not in one:
                    one[flag] = False
            _flags_below({}, one, other, context)


def _counterparts(shape: str, mine: Any, theirs: Any) -> list[tuple[Go, Go]]:
    if shape == "one":
        return [(mine, theirs)]
    if shape == "list":
        return list(zip(mine, theirs, strict=False))
    return [(mine[key], theirs[key]) for key in mine if key in theirs]


_VARIABLE: Final = (
    Row("metadata", "deprecatedV1Beta1Metadata"),
    Row("required", plain=True),
    Row("schema.openAPIV3Schema", rows=tuple(Row(name, intent=True) for name in _FLAGS), up=_flags_below),
)
_NAMING: Final = Row("namingStrategy.template", "naming.template")
_TEMPLATE: Final = (
    Row("template.metadata", "metadata"),
    Row("template.bootstrap.ref", "bootstrap.templateRef", TEMPLATE_REFERENCE),
    Row("template.infrastructure.ref", "infrastructure.templateRef", TEMPLATE_REFERENCE),
)


def class_down(hub: Go, spoke: Go, context: Context) -> None:
    """Print some references always, and then with their namespace."""
    if not context.namespace:
        return
    nowhere = {"namespace": context.namespace}
    spec: Go = spoke.setdefault("spec", {})
    for part in ("infrastructure", "controlPlane"):
        spec.setdefault(part, {}).setdefault("ref", dict(nowhere))
    workers: Go = spec.get("workers", {})
    for pool in (*workers.get("machineDeployments", ()), *workers.get("machinePools", ())):
        for part in ("bootstrap", "infrastructure"):
            pool.setdefault("template", {}).setdefault(part, {}).setdefault("ref", dict(nowhere))
    infrastructure = spec["controlPlane"].get("machineInfrastructure")
    if infrastructure is not None:
        infrastructure.setdefault("ref", dict(nowhere))


CLUSTER_CLASS: Final = (
    Row("spec.infrastructure.ref", "spec.infrastructure.templateRef", TEMPLATE_REFERENCE),
    Row("spec.infrastructureNamingStrategy.template", "spec.infrastructure.naming.template"),
    Row(
        "spec.controlPlane",
        rows=(
            Row("ref", "templateRef", TEMPLATE_REFERENCE),
            Row("machineInfrastructure.ref", "machineInfrastructure.templateRef", TEMPLATE_REFERENCE),
            CLASS_HEALTH,
            _NAMING,
            *TIMEOUTS,
        ),
    ),
    Row(
        "spec.workers.machineDeployments",
        rows=(*_TEMPLATE, CLASS_HEALTH, _NAMING, *WORKER_STRATEGY, *TIMEOUTS),
        down=_without_in_flight,
    ),
    Row("spec.workers.machinePools", rows=(*_TEMPLATE, _NAMING, *TIMEOUTS)),
    Row(
        "spec.patches",
        match=by("name"),
        rows=(
            Row("external.generateExtension", "external.generatePatchesExtension"),
            Row("external.validateExtension", "external.validateTopologyExtension"),
            Row(
                "definitions",
                match=by_equal_position,
                rows=(
                    Row("selector.matchResources.controlPlane", intent=True),
                    Row("selector.matchResources.infrastructureCluster", intent=True),
                ),
            ),
        ),
    ),
    Row("spec.variables", match=by("name"), rows=_VARIABLE),
    status(
        Row(
            "variables",
            match=by("name"),
            rows=(Row("definitionsConflict", intent=True), Row("definitions", match=by("from"), rows=_VARIABLE)),
        ),
    ),
)

# -------------------------------------------------------------------- Machine, MachineSet, MachineDeployment

_MACHINE: Final = (
    Row("infrastructureRef", how=REFERENCE),
    Row("bootstrap.configRef", how=REFERENCE),
    *TIMEOUTS,
)
_MACHINES: Final = Row("spec.template.spec", rows=_MACHINE)
_MIN_READY: Final = Row("spec.minReadySeconds", "spec.template.spec.minReadySeconds")
_MACHINE_NAMING: Final = Row("spec.machineNamingStrategy.template", "spec.machineNaming.template")
_READY: Final = (
    Row("bootstrapReady", "initialization.bootstrapDataSecretCreated", intent=True),
    Row("infrastructureReady", "initialization.infrastructureProvisioned", intent=True),
)


def machine_up(spoke: Go, hub: Go, restored: Go | None, context: Context) -> None:
    """Restore the fields that v1beta1 lacks from the annotation, also if it is empty."""
    if restored is None:
        return
    for part, name in (("spec", "minReadySeconds"), ("status", "phase"), ("status", "failureDomain")):
        value = restored.get(part, {}).get(name)
        if value is not None:
            hub.setdefault(part, {})[name] = value
        else:
            hub.get(part, {}).pop(name, None)


def machine_down(hub: Go, spoke: Go, context: Context) -> None:
    """Replace the phase Updating, which v1beta1 lacks."""
    if spoke.get("status", {}).get("phase") == "Updating":
        spoke["status"]["phase"] = "Running"


MACHINE: Final = (
    Row("spec", rows=_MACHINE),
    status(*FAILURE, *_READY, Row("nodeRef", how=NODE_REFERENCE)),
)
MACHINE_SET: Final = (
    _MACHINES,
    _MIN_READY,
    _MACHINE_NAMING,
    Row("spec.deletePolicy", "spec.deletion.order"),
    status(*FAILURE, *counters("readyReplicas", "availableReplicas", "fullyLabeledReplicas"), always=True),
)
MACHINE_DEPLOYMENT: Final = (
    _MACHINES,
    _MIN_READY,
    _MACHINE_NAMING,
    Row("spec.paused", intent=True),
    Row("spec.rolloutAfter", "spec.rollout.after"),
    Row("spec.progressDeadlineSeconds", lost=True),
    Row("spec.revisionHistoryLimit", lost=True),
    *(replace(row, spoke=f"spec.{row.spoke}", hub=f"spec.{row.hub}") for row in _STRATEGY),
    Row("spec.strategy.remediation.maxInFlight", "spec.remediation.maxInFlight"),
    status(*counters("readyReplicas", "availableReplicas", "unavailableReplicas", "updatedReplicas"), always=True),
)
MACHINE_POOL: Final = (
    _MACHINES,
    _MIN_READY,
    status(*FAILURE, *_READY, *counters("readyReplicas", "availableReplicas", "unavailableReplicas"), always=True),
)
MACHINE_HEALTH_CHECK: Final = (
    Row("spec", rows=HEALTH),
    status(*(Row(name, intent=True) for name in ("expectedMachines", "currentHealthy", "remediationsAllowed"))),
)
