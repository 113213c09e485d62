"""The scope of one pass: everything read, and what was decided and changed so far.

A pass is a straight line of steps. Each reads the scope, asks a pure function, acts, and leaves its findings here; the
conclusion at the end turns them into status.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

import msgspec
from msgspec.structs import replace

from clusterwright.api.controlplane import (
    KubeadmControlPlane,
    KubeadmControlPlaneDeprecatedStatus,
    KubeadmControlPlaneV1Beta1DeprecatedStatus,
)
from clusterwright.api.core import Cluster, Machine
from clusterwright.api.core.machine import MachineDeprecatedStatus, MachineV1Beta1DeprecatedStatus
from clusterwright.api.meta import Condition, GroupVersionKind, Json, ObjectKey, Unstructured, V1Beta1Condition
from clusterwright.conditions import set_condition, v1beta1
from clusterwright.conditions.limits import fit, fit_v1beta1
from clusterwright.controllers.kit.passing import PassFailed
from clusterwright.controllers.kubeadmcontrolplane import names
from clusterwright.controllers.kubeadmcontrolplane.desired import Owner
from clusterwright.controllers.kubeadmcontrolplane.machines import ControlPlaneMachine
from clusterwright.controllers.kubeadmcontrolplane.scale import Blockers, PreflightFacts
from clusterwright.controllers.kubeadmcontrolplane.snapshot import ControlPlaneSnapshot, Inspection
from clusterwright.controllers.wiring import Dependencies
from clusterwright.kubeadm.presence import is_defined
from clusterwright.runtime.client import Original
from clusterwright.runtime.errors import NotFound
from clusterwright.runtime.models import decode
from clusterwright.runtime.patch import Patcher
from clusterwright.tables.table import Outcome

SECRET = GroupVersionKind("", "v1", "Secret")
CONFIG_MAP = GroupVersionKind("", "v1", "ConfigMap")
NODE = GroupVersionKind("", "v1", "Node")
POD = GroupVersionKind("", "v1", "Pod")
KUBEADM_CONFIG = GroupVersionKind("bootstrap.cluster.x-k8s.io", "v1beta2", "KubeadmConfig")
KUBE_SYSTEM = "kube-system"


class EndOfPass(Exception):
    """Not a failure: nothing more is to be done in this pass. `vote` asks to look again after that time."""

    def __init__(self, vote: timedelta | None = None) -> None:
        super().__init__()
        self.vote = vote


@dataclass(slots=True, kw_only=True)
class Scope:
    """One pass over one control plane. `machines` hold this pass's findings; `originals` are what patches are made against."""

    dependencies: Dependencies
    patcher: Patcher
    original: Original[KubeadmControlPlane]
    control_plane: KubeadmControlPlane
    json: Json
    cluster: Cluster
    now: datetime
    machines: dict[str, ControlPlaneMachine] = field(default_factory=dict)
    originals: dict[str, Original[Machine]] = field(default_factory=dict)
    conditions: tuple[Condition, ...] = ()
    v1beta1_conditions: tuple[V1Beta1Condition, ...] = ()
    annotations: dict[str, str] = field(default_factory=dict)
    finalizers: tuple[str, ...] = ()
    inspection: Inspection = field(default_factory=Inspection)
    blockers: Blockers = field(default_factory=Blockers)
    template: Unstructured | None = None
    template_missing: bool = False
    deleting_reason: str = ""
    deleting_message: str = ""
    renewal: datetime | None = None
    """When the kubeconfig will have to be renewed."""
    rows: dict[str, str] = field(default_factory=dict)
    applied: dict[tuple[str, str], str] = field(default_factory=dict)
    """What this process last saw in force, by (uid, manager): a digest of the intent. Outlives the pass."""

    @staticmethod
    def begin(
        dependencies: Dependencies,
        patcher: Patcher,
        original: Original[KubeadmControlPlane],
        control_plane: KubeadmControlPlane,
        cluster: Cluster,
        applied: dict[tuple[str, str], str] | None = None,
    ) -> Scope:
        """A scope without Machines."""
        return Scope(
            applied={} if applied is None else applied,
            dependencies=dependencies,
            patcher=patcher,
            original=original,
            control_plane=control_plane,
            json=msgspec.json.decode(original.raw),
            cluster=cluster,
            now=dependencies.clock.now(),
            conditions=control_plane.status.conditions,
            v1beta1_conditions=_v1beta1_of(control_plane.status.deprecated),
            annotations=dict(control_plane.metadata.annotations),
            finalizers=control_plane.metadata.finalizers,
        )

    # ------------------------------------------------------------------------------------------ reading

    @property
    def key(self) -> ObjectKey:
        """The control plane's key."""
        return self.control_plane.key

    @property
    def cluster_key(self) -> ObjectKey:
        """The Cluster's key."""
        return self.cluster.key

    @property
    def deleting(self) -> bool:
        """Whether the control plane is to go."""
        return self.control_plane.metadata.deletion_timestamp is not None

    @property
    def managed_etcd(self) -> bool:
        """Whether etcd runs on our Machines."""
        config = self.control_plane.spec.kubeadm_config_spec
        cluster = config.cluster_configuration if config is not None else None
        etcd = cluster.etcd if cluster is not None else None
        return not is_defined(etcd.external if etcd is not None else None)

    @property
    def initialized(self) -> bool:
        """Whether kubeadm init has succeeded once."""
        found = self.control_plane.status.initialization
        return found is not None and found.control_plane_initialized is True

    @property
    def infrastructure_provisioned(self) -> bool:
        """Whether the Cluster's infrastructure is there."""
        found = self.cluster.status.initialization
        return found is not None and found.infrastructure_provisioned is True

    @property
    def endpoint_valid(self) -> bool:
        """Whether the Cluster knows where its API server will be."""
        endpoint = self.cluster.spec.control_plane_endpoint
        return endpoint is not None and bool(endpoint.host) and bool(endpoint.port)

    @property
    def owner(self) -> Owner:
        """The control plane as its objects see it."""
        metadata = self.control_plane.metadata
        return Owner(
            name=metadata.name,
            namespace=metadata.namespace,
            uid=metadata.uid,
            cluster=self.cluster.metadata.name,
            api_version=self.control_plane.api_version,
            managed_etcd=self.managed_etcd,
            spec=self.json.get("spec") or {},
            remediation_in_progress=self.annotations.get(names.REMEDIATION_IN_PROGRESS),
        )

    @property
    def all_machines(self) -> tuple[ControlPlaneMachine, ...]:
        """Every owned Machine, by name."""
        return tuple(self.machines[name] for name in sorted(self.machines))

    @property
    def desired(self) -> int:
        """How many Machines are wanted."""
        return self.control_plane.spec.replicas or 0

    @property
    def failure_domains(self) -> tuple[str, ...]:
        """The domains that control plane Machines may be put in."""
        return tuple(d.name for d in self.cluster.status.failure_domains if d.control_plane)

    def feature(self, name: str) -> bool:
        """Whether a feature gate is on."""
        return bool(self.dependencies.features.get(name, False))

    @property
    def topology_version(self) -> str:
        """The version that a managed topology wants; empty without one."""
        topology = self.cluster.spec.topology
        return topology.version if topology is not None and self.feature("ClusterTopology") else ""

    @property
    def upgrade_step(self) -> str:
        """The intermediate version of a chained upgrade."""
        return self.cluster.metadata.annotations.get(names.UPGRADE_STEP, "")

    @property
    def preflight_facts(self) -> PreflightFacts:
        """What the preflight checks look at."""
        version, wanted = self.control_plane.spec.version, self.topology_version
        certificates = self.condition(names.CERTIFICATES_AVAILABLE)
        return PreflightFacts(
            machines=self.all_machines,
            managed_etcd=self.managed_etcd,
            members=self.inspection.members,
            certificates_available=certificates is not None and certificates.status == "True",
            waits_for_topology_version=bool(wanted) and version not in {wanted, self.upgrade_step},
            remediation_in_progress=names.REMEDIATION_IN_PROGRESS in self.annotations,
        )

    @property
    def snapshot(self) -> ControlPlaneSnapshot:
        """The scope as the condition tables see it."""
        return ControlPlaneSnapshot(
            now=self.now,
            deleting=self.deleting,
            deleting_reason=self.deleting_reason,
            deleting_message=self.deleting_message,
            initialized=self.initialized,
            managed_etcd=self.managed_etcd,
            desired=self.control_plane.spec.replicas,
            machines=self.all_machines,
            inspection=self.inspection,
            blockers=self.blockers,
            pending_version=self.upgrade_step or self.topology_version,
            template_kind=self.control_plane.spec.machine_template.spec.infrastructure_ref.kind,
            template_missing=self.template_missing,
            conditions=self.conditions,
        )

    # ------------------------------------------------------------------------------------- own conditions

    def condition(self, type: str) -> Condition | None:
        """The control plane's condition, as set so far."""
        return next((c for c in self.conditions if c.type == type), None)

    def set(self, type: str, status: str, reason: str, message: str = "") -> None:
        """Set a condition of the control plane."""
        condition = Condition(type=type, status=status, reason=reason, message=message)
        self.conditions = set_condition(self.conditions, fit(condition), generation=self.control_plane.metadata.generation, now=self.now)

    def set_outcome(self, type: str, outcome: Outcome | None) -> None:
        """Set what a table decided; None keeps the condition."""
        if outcome is not None:
            self.set(type, outcome.status, outcome.reason, outcome.message)

    def set_v1beta1(self, type: str, status: str, severity: str = "", reason: str = "", message: str = "") -> None:
        """Set a deprecated condition of the control plane."""
        condition = V1Beta1Condition(type=type, status=status, severity=severity, reason=reason, message=message)
        self.v1beta1_conditions = v1beta1.set_condition(self.v1beta1_conditions, fit_v1beta1(condition), now=self.now)

    # -------------------------------------------------------------------------------- Machines' conditions

    def set_on_machine(self, name: str, type: str, status: str, reason: str, message: str = "") -> None:
        """Set a condition of a Machine, to be patched by `patch_machines`."""
        machine = self.machines[name]
        condition = Condition(type=type, status=status, reason=reason, message=message)
        changed = set_condition(machine.conditions, fit(condition), generation=machine.generation, now=self.now)
        self.machines[name] = machine.with_(conditions=changed)

    def set_v1beta1_on_machine(self, name: str, type: str, legacy: tuple[str, str, str, str] | None) -> None:
        """Set a deprecated condition of a Machine; None keeps it."""
        if legacy is None:
            return
        status, severity, reason, message = legacy
        machine = self.machines[name]
        condition = V1Beta1Condition(type=type, status=status, severity=severity, reason=reason, message=message)
        self.machines[name] = machine.with_(
            v1beta1_conditions=v1beta1.set_condition(machine.v1beta1_conditions, fit_v1beta1(condition), now=self.now)
        )

    async def patch_machines(self, which: Iterable[str], owned: tuple[str, ...]) -> None:
        """Write the Machines' conditions; all are attempted, failures are raised together. One that is gone is no failure."""
        failures: list[str] = []
        for name in which:
            original, machine = self.originals[name], self.machines[name]
            after = with_machine_conditions(original.object, machine.conditions, machine.v1beta1_conditions)
            if after == original.object:
                continue
            try:
                answer = await self.patcher.patch(original, after, owned_conditions=owned, owned_v1beta1_conditions=owned)
            except NotFound:
                continue
            except Exception as error:
                if not _all_not_found(error):
                    failures.append(f"failed to patch Machine {name}: {error}")
                continue
            if answer is not None:
                self.refresh(name, answer)
        if failures:
            raise PassFailed("; ".join(failures))

    def refresh(self, name: str, answer: Unstructured) -> None:
        """Take over a Machine as the API server answered it; this pass's findings on it stay."""
        raw = msgspec.json.encode(answer.json)
        original: Original[Machine] = Original(decode(Machine, raw), raw)
        self.originals[name] = original
        known = self.machines[name]
        self.machines[name] = machine_view(original).with_(
            infrastructure=known.infrastructure,
            config=known.config,
            up_to_date=known.up_to_date,
            conditions=known.conditions,
            v1beta1_conditions=known.v1beta1_conditions,
        )


def _all_not_found(error: Exception) -> bool:
    return isinstance(error, ExceptionGroup) and error.split(NotFound)[1] is None


def _v1beta1_of(deprecated: Any) -> tuple[V1Beta1Condition, ...]:
    found = deprecated.v1beta1 if deprecated is not None else None
    return tuple(found.conditions) if found is not None else ()


def with_machine_conditions(machine: Machine, conditions: tuple[Condition, ...], legacy: tuple[V1Beta1Condition, ...]) -> Machine:
    """The Machine with these conditions in both forms."""
    deprecated = machine.status.deprecated
    old = deprecated.v1beta1 if deprecated is not None else None
    if legacy != (old.conditions if old is not None else ()):
        old = replace(old or MachineV1Beta1DeprecatedStatus(), conditions=legacy)
        deprecated = replace(deprecated or MachineDeprecatedStatus(), v1beta1=old)
    return replace(machine, status=replace(machine.status, conditions=conditions, deprecated=deprecated))


def with_control_plane_status(scope: Scope, status: Any, *, counters: Mapping[str, int]) -> KubeadmControlPlane:
    """The control plane as it is to be written: conditions, deprecated status, annotations, finalizers."""
    deprecated = status.deprecated or KubeadmControlPlaneDeprecatedStatus()
    old = deprecated.v1beta1 or KubeadmControlPlaneV1Beta1DeprecatedStatus()
    legacy = replace(old, conditions=scope.v1beta1_conditions, **counters)
    status = replace(status, conditions=scope.conditions, deprecated=replace(deprecated, v1beta1=legacy))
    metadata = replace(scope.control_plane.metadata, annotations=scope.annotations, finalizers=scope.finalizers)
    return replace(scope.control_plane, metadata=metadata, status=status)


def machine_view(original: Original[Machine]) -> ControlPlaneMachine:
    """A Machine as decisions see it; its neighbours are filled in by `observe`."""
    machine = original.object
    json = msgspec.json.decode(original.raw)
    deletion = machine.status.deletion
    node = machine.status.node_ref
    return ControlPlaneMachine(
        name=machine.metadata.name,
        namespace=machine.metadata.namespace,
        uid=machine.metadata.uid,
        generation=machine.metadata.generation,
        created=machine.metadata.creation_timestamp,
        deletion_timestamp=machine.metadata.deletion_timestamp,
        labels=machine.metadata.labels,
        annotations=machine.metadata.annotations,
        node=node.name if node is not None else "",
        provider_id=machine.spec.provider_id,
        version=machine.spec.version,
        failure_domain=machine.spec.failure_domain,
        certificates_expiry=machine.status.certificates_expiry_date,
        drain_started=deletion.node_drain_start_time if deletion is not None else None,
        spec=json.get("spec") or {},
        conditions=machine.status.conditions,
        v1beta1_conditions=_v1beta1_of(machine.status.deprecated),
    )
