"""KubeadmConfig, KubeadmControlPlane and their templates, row by row."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from clusterwright.conversion import values
from clusterwright.conversion.pairs import Context, Row, by, by_position
from clusterwright.conversion.shapes import ARGUMENTS, FAILURE, REFERENCE, TIMEOUTS, counters, status
from clusterwright.conversion.types import Go

HEALTH_CHECK: Final = "controlPlaneComponentHealthCheckSeconds"
TLS_BOOTSTRAP: Final = "tlsBootstrapSeconds"


def by_name_or_position(items: Sequence[Any], restored: Sequence[Any]) -> Sequence[Go | None]:
    """Match items by name, if names are unique; else by position."""
    for key in ("name", "path"):
        names = [[item.get(key, "") for item in some] for some in (items, restored)]
        if all(some and all(some) and len(set(some)) == len(some) for some in names):
            return by(key)(items, restored)
    return by_position(items, restored)


def _timeouts_up(spoke: Go, hub: Go, restored: Go | None, context: Context) -> None:
    """Take timeouts that v1beta1 lacks from the annotation; its own timeouts take precedence."""
    for configuration in ("initConfiguration", "joinConfiguration"):
        kept = (restored or {}).get(configuration, {}).get("timeouts")
        if kept:
            hub.setdefault(configuration, {})["timeouts"] = dict(kept)
    control_plane = spoke.get("clusterConfiguration", {}).get("apiServer", {}).get("timeoutForControlPlane")
    join = spoke.get("joinConfiguration", {}).get("discovery", {}).get("timeout")
    was = (restored or {}).get("initConfiguration", {}).get("timeouts", {}).get(HEALTH_CHECK)
    if control_plane is not None:
        seconds = values.seconds(control_plane)
        hub.setdefault("initConfiguration", {}).setdefault("timeouts", {})[HEALTH_CHECK] = seconds
        timeouts = hub.setdefault("joinConfiguration", {}).setdefault("timeouts", {})
        if was != seconds or HEALTH_CHECK not in timeouts:  # the annotation's own value for joining stays while that for init does
            timeouts[HEALTH_CHECK] = seconds
    if join is not None:
        timeouts = hub.setdefault("joinConfiguration", {}).setdefault("timeouts", {})
        timeouts[TLS_BOOTSTRAP] = values.seconds(join)
        if control_plane is None and was is not None:
            timeouts.pop(HEALTH_CHECK, None)


def _timeouts_down(hub: Go, spoke: Go, context: Context) -> None:
    """Keep the two timeouts of v1beta1; drop configurations without other values."""
    seconds = hub.get("initConfiguration", {}).get("timeouts", {}).get(HEALTH_CHECK)
    if seconds is not None:
        spoke.setdefault("clusterConfiguration", {}).setdefault("apiServer", {})["timeoutForControlPlane"] = seconds * values.SECOND
    seconds = hub.get("joinConfiguration", {}).get("timeouts", {}).get(TLS_BOOTSTRAP)
    if seconds is not None:
        spoke.setdefault("joinConfiguration", {}).setdefault("discovery", {})["timeout"] = seconds * values.SECOND
    for configuration in ("initConfiguration", "joinConfiguration"):
        if spoke.get(configuration) == {}:
            del spoke[configuration]


_VOLUMES: Final = Row("extraVolumes", rows=(Row("readOnly", intent=True),), match=by_name_or_position, rebuilt=True)
_COMPONENT: Final = (Row("extraArgs", how=ARGUMENTS), _VOLUMES)
_REGISTRATION: Final = (Row("kubeletExtraArgs", how=ARGUMENTS),)
SPEC: Final = (
    Row("useExperimentalRetryJoin", lost=True),
    *(Row(f"clusterConfiguration.{name}", lost=True) for name in ("clusterName", "kubernetesVersion", "networking")),
    Row("clusterConfiguration.apiServer", rows=_COMPONENT),
    Row("clusterConfiguration.controllerManager", rows=_COMPONENT),
    Row("clusterConfiguration.scheduler", rows=_COMPONENT),
    Row("clusterConfiguration.etcd.local.extraArgs", how=ARGUMENTS),
    Row("initConfiguration.nodeRegistration", rows=_REGISTRATION),
    Row("initConfiguration.bootstrapTokens", rows=(Row("ttl", "ttlSeconds"),)),
    Row("joinConfiguration.nodeRegistration", rows=_REGISTRATION),
    Row("joinConfiguration.discovery.bootstrapToken.unsafeSkipCAVerification", intent=True),
    Row("joinConfiguration.discovery.file.kubeConfig.cluster.insecureSkipTLSVerify", intent=True),
    Row("joinConfiguration.discovery.file.kubeConfig.user.exec.provideClusterInfo", intent=True),
    Row("files", rows=(Row("append", intent=True),), match=by_name_or_position),
    Row("ignition.containerLinuxConfig.strict", intent=True),
    Row("diskSetup.partitions", rows=(Row("layout", plain=True),)),
)


def _spec(path: str) -> Row:
    return Row(path, rows=SPEC, up=_timeouts_up, down=_timeouts_down)


KUBEADM_CONFIG: Final = (
    _spec("spec"),
    status(*FAILURE, Row("ready", "initialization.dataSecretCreated", intent=True), always=True),
)
KUBEADM_CONFIG_TEMPLATE: Final = (_spec("spec.template.spec"),)

_MACHINE_TIMEOUTS: Final = tuple(Row(row.spoke, f"spec.{row.hub}") for row in TIMEOUTS)
_TAINTS: Final = Row("taints", "spec.taints", rebuilt=True)
_REMEDIATION: Final = Row(
    "remediationStrategy",
    "remediation",
    rows=(Row("retryPeriod", "retryPeriodSeconds", intent=True), Row("minHealthyPeriod", "minHealthyPeriodSeconds")),
)
_ROLLOUT: Final = (
    Row("rolloutBefore.certificatesExpiryDays", "rollout.before.certificatesExpiryDays"),
    Row("rolloutAfter", "rollout.after"),
    Row("rolloutStrategy", "rollout.strategy"),
    Row("machineNamingStrategy.template", "machineNaming.template"),
    _REMEDIATION,
    _spec("kubeadmConfigSpec"),
)


def _ready(hub: Go, spoke: Go, context: Context) -> None:
    """Set ready in an old control plane once one replica was ready."""
    if hub.get("deprecated", {}).get("v1beta1", {}).get("readyReplicas", 0) > 0:
        spoke["ready"] = True


_STATUS: Final = status(
    *FAILURE,
    *counters("readyReplicas", "unavailableReplicas", "updatedReplicas"),
    Row("initialized", "initialization.controlPlaneInitialized", intent=True),
    Row("ready", lost=True),
    Row("lastRemediation", rows=(Row("timestamp", "time"), Row("retryCount", plain=True))),
    always=True,
)
KUBEADM_CONTROL_PLANE: Final = (
    Row(
        "spec",
        rows=(
            *_ROLLOUT,
            Row(
                "machineTemplate",
                rows=(
                    Row("infrastructureRef", "spec.infrastructureRef", REFERENCE),
                    Row("readinessGates", "spec.readinessGates"),
                    _TAINTS,
                    *_MACHINE_TIMEOUTS,
                ),
            ),
        ),
    ),
    Row("status", rows=_STATUS.rows, up=_STATUS.up, down=_ready),
)


def _template_up(spoke: Go, hub: Go, restored: Go | None, context: Context) -> None:
    """Set the only type of a strategy without one; drop the schema's default if the annotation has no strategy."""
    strategy = spoke.get("rolloutStrategy")
    if strategy is None:
        return
    if restored is not None and "strategy" not in restored.get("rollout", {}) and strategy == DEFAULT_STRATEGY:
        del hub["rollout"]["strategy"]
        if not hub["rollout"]:
            del hub["rollout"]
    else:
        hub.setdefault("rollout", {}).setdefault("strategy", {}).setdefault("type", "RollingUpdate")


DEFAULT_STRATEGY: Final = {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1}}
"""The value that the old schema writes into an empty control plane template."""


def template_down(hub: Go, spoke: Go, context: Context) -> None:
    """Print the Machine template always."""
    spoke.setdefault("spec", {}).setdefault("template", {}).setdefault("spec", {}).setdefault("machineTemplate", {})


KUBEADM_CONTROL_PLANE_TEMPLATE: Final = (
    Row(
        "spec.template.spec",
        rows=(*_ROLLOUT, Row("machineTemplate", rows=(_TAINTS, *_MACHINE_TIMEOUTS))),
        up=_template_up,
    ),
)
