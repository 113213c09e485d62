"""The snapshot of a control plane, the outcome of a pass, and the counts of both. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import cached_property
from typing import Any

from clusterwright.api.controlplane import KubeadmControlPlane
from clusterwright.api.copying import replace
from clusterwright.api.core import Cluster, Machine
from clusterwright.api.kubernetes import Node
from clusterwright.api.wellknown import REMEDIATION_IN_PROGRESS_ANNOTATION, UPGRADE_STEP_ANNOTATION
from clusterwright.controllers.kit import owners
from clusterwright.controllers.kit.adopt import owner_reference
from clusterwright.controllers.kit.lookup import NOT_REFERENCED, Lookup, Missing, Unreadable
from clusterwright.controllers.kit.snapshots import ScaledSnapshot
from clusterwright.controllers.kubeadmcontrolplane import names
from clusterwright.controllers.kubeadmcontrolplane.etcd.quorum import quorum
from clusterwright.controllers.kubeadmcontrolplane.machines.desired import Owner
from clusterwright.controllers.kubeadmcontrolplane.machines.machine import ControlPlaneMachine
from clusterwright.controllers.owned_machines import stale_text
from clusterwright.kubeadm.presence import is_defined
from clusterwright.workload.access import EtcdMember


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterFacts(owners.ClusterFacts):
    """The facts of its Cluster that a control plane depends on."""

    infrastructure_provisioned: bool = False
    host: str = ""
    port: int = 0
    topology_version: str = ""
    upgrade_step: str = ""
    """The intermediate version of a chained upgrade."""
    failure_domains: tuple[str, ...] = ()
    """The failure domains for control plane Machines."""

    @staticmethod
    def of(cluster: Cluster) -> ClusterFacts:
        """Return the facts of a Cluster."""
        initialization, endpoint, topology = cluster.status.initialization, cluster.spec.control_plane_endpoint, cluster.spec.topology
        return ClusterFacts(
            reference=owner_reference(cluster, controller=False),
            namespace=cluster.metadata.namespace,
            paused=cluster.spec.paused is True,
            infrastructure_provisioned=initialization is not None and initialization.infrastructure_provisioned is True,
            host=endpoint.host if endpoint is not None else "",
            port=endpoint.port if endpoint is not None else 0,
            topology_version=topology.version if topology is not None else "",
            upgrade_step=cluster.metadata.annotations.get(UPGRADE_STEP_ANNOTATION, ""),
            failure_domains=tuple(d.name for d in cluster.status.failure_domains if d.control_plane),
        )

    @property
    def has_endpoint(self) -> bool:
        """Whether the endpoint of the API server is known."""
        return bool(self.host and self.port)


@dataclass(frozen=True, slots=True, kw_only=True)
class Inspection:
    """The state of the workload cluster. The default: nothing is known.

    `nodes` are those of owned Machines; `nodes_error` says why Nodes could not be listed. `members` is None if etcd did not list them;
    `members_match` says whether members and Machines are the same set. `errors` concern no Machine of ours.
    """

    nodes: Mapping[str, Node] = field(default_factory=dict)
    nodes_error: str | None = None
    members: tuple[EtcdMember, ...] | None = None
    members_match: bool = False
    component_errors: tuple[str, ...] = ()
    etcd_errors: tuple[str, ...] = ()

    @property
    def leader(self) -> EtcdMember | None:
        """The member that leads etcd; None if unknown."""
        return next((m for m in self.members or () if m.is_leader), None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Blockers:
    """The reasons why the control plane cannot scale; the ScalingUp and ScalingDown conditions quote them."""

    topology_version_mismatch: bool = False
    has_deleting_machine: bool = False
    certificates_missing: bool = False
    components_unhealthy: bool = False
    etcd_unhealthy: bool = False


NO_BLOCKERS = Blockers()


@dataclass(frozen=True, slots=True, kw_only=True)
class Descendants:
    """The objects that must be gone before the control plane may go."""

    pools: tuple[str, ...] = ()
    workers: tuple[str, ...] = ()
    machines: int = 0
    """All Machines of the Cluster, workers and others."""


NO_DESCENDANTS = Descendants()


@dataclass(frozen=True, slots=True)
class Tally:
    """The numbers of healthy components, of those unhealthy long enough to report, and of those unhealthy only recently (`pending`)."""

    healthy: int = 0
    surfaced: int = 0
    pending: int = 0


@dataclass(frozen=True, slots=True)
class EtcdTally:
    """The same numbers for etcd members; `total` counts every member, `voting` and `learners` split it."""

    total: int = 0
    voting: int = 0
    learners: int = 0
    tally: Tally = Tally()

    @property
    def quorum(self) -> int:
        """The number of healthy members that the cluster needs."""
        return quorum(self.voting)


@dataclass(frozen=True, kw_only=True)
class ControlPlaneSnapshot(ScaledSnapshot[KubeadmControlPlane]):
    """A control plane, its Cluster and its Machines. `spec` is its spec as stored, with unknown fields."""

    spec: Mapping[str, Any] = field(default_factory=dict)
    cluster: ClusterFacts
    owned: tuple[ControlPlaneMachine, ...] = ()
    template: Lookup = NOT_REFERENCED
    """The infrastructure template; NotReferenced: it was not needed and not read."""
    descendants: Descendants | Unreadable = NO_DESCENDANTS
    """The objects that must be gone before a control plane that is being deleted may delete its Machines."""
    features: Mapping[str, bool] = field(default_factory=dict)

    # --------------------------------------------------------------------------------------- the control plane

    @property
    def initialized(self) -> bool:
        """Whether kubeadm init has ever succeeded."""
        found = self.object.status.initialization
        return found is not None and found.control_plane_initialized is True

    @cached_property
    def managed_etcd(self) -> bool:
        """Whether etcd runs on our Machines."""
        config = self.object.spec.kubeadm_config_spec
        cluster = config.cluster_configuration if config is not None else None
        etcd = cluster.etcd if cluster is not None else None
        return not is_defined(etcd.external if etcd is not None else None)

    @property
    def remediation_in_progress(self) -> str | None:
        """The content of the remediation lock; None if there is none."""
        return self.object.metadata.annotations.get(REMEDIATION_IN_PROGRESS_ANNOTATION)

    @property
    def topology_version(self) -> str:
        """The version that a managed topology wants; empty without one."""
        return self.cluster.topology_version if self.features.get("ClusterTopology") else ""

    @property
    def awaited_version(self) -> str:
        """The version that the topology sets next; empty if `spec.version` is that of the topology or of the present upgrade step."""
        step = self.cluster.upgrade_step
        waits = bool(self.topology_version) and self.object.spec.version not in {self.topology_version, step}
        return (step or self.topology_version) if waits else ""

    @property
    def template_missing(self) -> bool:
        """Whether the infrastructure template does not exist; a control plane under deletion does not need it."""
        return isinstance(self.template, Missing) and not self.deleting

    @cached_property
    def owner(self) -> Owner:
        """The control plane as the owner of its objects."""
        metadata = self.object.metadata
        return Owner(
            name=metadata.name,
            namespace=metadata.namespace,
            uid=metadata.uid,
            cluster=self.cluster.key.name,
            api_version=self.object.api_version,
            managed_etcd=self.managed_etcd,
            spec=self.spec,
            remediation_in_progress=self.remediation_in_progress,
        )

    # --------------------------------------------------------------------------------------------- its Machines

    @property
    def machines(self) -> tuple[Machine, ...]:
        """Its Machines, without their dependent objects."""
        return tuple(m.object for m in self.owned)

    def machine(self, name: str) -> ControlPlaneMachine:
        """Return the owned Machine of this name."""
        return next(m for m in self.owned if m.name == name)

    @property
    def outdated(self) -> tuple[ControlPlaneMachine, ...]:
        """Machines that must be replaced or updated."""
        return tuple(m for m in self.owned if m.is_outdated)

    @property
    def up_to_date(self) -> int:
        """The number of Machines that match the spec."""
        return sum(not m.differences.any for m in self.owned)

    # ------------------------------------------------------------------------------------------------- counting

    @cached_property
    def components(self) -> Tally:
        """The health of the Kubernetes components over Machines that have a providerID."""
        types = names.health_conditions(managed_etcd=self.managed_etcd)
        return _sum([_tally(m, types, self.now) for m in self.owned if m.provider_id])

    @cached_property
    def stale(self) -> str:
        """The Machines whose deletion takes too long."""
        return stale_text(self.machines, self.now)


@dataclass(frozen=True, kw_only=True)
class ControlPlaneDone(ControlPlaneSnapshot):
    """The control plane at the end of the pass, with the state of the workload cluster and the outcome of the pass.

    `owned` are its Machines as this pass changed them.
    """

    inspection: Inspection = field(default_factory=Inspection)
    """The state of the workload cluster. It is part of the outcome, because the pass first creates the certificates that it needs."""
    blockers: Blockers = NO_BLOCKERS
    deletion_failed: bool = False
    """Whether some deletion failed."""
    renewal: datetime | None = None
    """When the kubeconfig must be renewed; None if unknown."""

    def registered(self, machine: ControlPlaneMachine) -> datetime | None:
        """Return when the Machine's Node was created; None without a Node or a time."""
        node = self.inspection.nodes.get(machine.node) if machine.has_node else None
        return node.metadata.creation_timestamp if node is not None else None

    def with_machine(self, machine: ControlPlaneMachine) -> ControlPlaneDone:
        """Replace the Machine of the same name."""
        return replace(self, owned=tuple(machine if m.name == machine.name else m for m in self.owned))

    @cached_property
    def etcd(self) -> EtcdTally:
        """The members' health, from the Machines' conditions."""
        return tally_members(self.inspection.members or (), self.owned, self.now)


def grace_period(options: Mapping[str, Any]) -> timedelta:
    """Return how long remote conditions keep their last value without a connection."""
    configured = options.get("remote-conditions-grace-period")
    return configured if isinstance(configured, timedelta) else names.REMOTE_CONDITIONS_GRACE


def _tally(machine: ControlPlaneMachine, types: Sequence[str], now: datetime) -> Tally:
    if not machine.lacks_any(types):
        return Tally(healthy=1)
    since = machine.failing_since(types)
    return Tally(surfaced=1) if since is not None and now - since > names.SURFACE_AFTER else Tally(pending=1)


def _sum(tallies: Sequence[Tally]) -> Tally:
    return Tally(sum(t.healthy for t in tallies), sum(t.surfaced for t in tallies), sum(t.pending for t in tallies))


def tally_members(members: Sequence[EtcdMember], machines: Sequence[ControlPlaneMachine], now: datetime) -> EtcdTally:
    """Count members by the health of their Machines.

    A member without a name is starting: a healthy learner. A named member without a Machine belongs to the provisioning Machine, if there
    is exactly one without a member; else it counts as unhealthy at once.
    """
    by_node = {m.node: m for m in machines if m.has_node}
    provisioning = [m for m in machines if not m.has_node]
    spare = provisioning[0] if len(provisioning) == 1 else None
    voting = learners = 0
    tallies: list[Tally] = []
    for member in members:
        if not member.name:
            learners += 1
            tallies.append(Tally(healthy=1))
            continue
        if member.is_learner:
            learners += 1
        else:
            voting += 1
        machine = by_node.get(member.name)
        if machine is None:
            machine, spare = spare, None
        tallies.append(Tally(surfaced=1) if machine is None else _tally(machine, (names.ETCD_MEMBER,), now))
    return EtcdTally(len(members), voting, learners, _sum(tallies))
