"""What a pass knows before it acts: the config, its owner and its Cluster, frozen."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import Enum
from typing import Any

from clusterwright.api.bootstrap import BootstrapTokenDiscovery, KubeadmConfig
from clusterwright.api.core import Cluster, Machine, MachinePool, MachineSet
from clusterwright.api.meta import GroupVersionKind, ObjectKey
from clusterwright.api.wellknown import CONTROL_PLANE_LABEL, CORE_GROUP
from clusterwright.conditions import is_true
from clusterwright.controllers.kit.passing import PassFailed
from clusterwright.kubeadm.addresses import host_port
from clusterwright.kubeadm.presence import defined, is_defined
from clusterwright.runtime.client import Reader


class BadOwnerReference(PassFailed):
    """An owner reference whose apiVersion cannot be read."""


# --------------------------------------------------------------------------------- what a pass has found


class Data(Enum):
    """How far the pass came with the bootstrap data."""

    UNTOUCHED = "untouched"
    INFRASTRUCTURE_NOT_PROVISIONED = "infrastructure-not-provisioned"
    CONTROL_PLANE_NOT_INITIALIZED = "control-plane-not-initialized"
    FILES_UNRESOLVED = "files-unresolved"
    USERS_UNRESOLVED = "users-unresolved"
    KUBECONFIG_FAILED = "kubeconfig-failed"
    SECRET_IN_THE_WAY = "secret-in-the-way"  # noqa: S105
    AVAILABLE = "available"


class Certificates(Enum):
    """How far the pass came with the certificates."""

    UNTOUCHED = "untouched"
    GENERATION_FAILED = "generation-failed"
    LOOKUP_FAILED = "lookup-failed"
    AVAILABLE = "available"


@dataclass(frozen=True, slots=True, kw_only=True)
class Findings:
    """What a pass has found, for the tables. `detail` is the text of a failure for conditions; the pass ends in the error `cause`."""

    data: Data = Data.UNTOUCHED
    certificates: Certificates = Certificates.UNTOUCHED
    detail: str = ""
    cause: Exception | None = None
    reported: bool = False
    """Whether DataSecretAvailable was reported before this pass."""


@dataclass(frozen=True, slots=True)
class Owner:
    """The Machine or MachinePool that a config belongs to, seen through the same questions."""

    object: Machine | MachinePool

    @staticmethod
    def facts(obj: Machine | MachinePool) -> tuple[Any, ...]:
        """Return all facts that answer the questions below: everything but conditions and other status."""
        joined: Any = obj.status.node_ref if isinstance(obj, Machine) else obj.status.node_refs
        return obj.spec, obj.metadata.labels, joined

    @property
    def is_machine_pool(self) -> bool:
        """Whether many nodes come up with the same data."""
        return isinstance(self.object, MachinePool)

    @property
    def is_control_plane(self) -> bool:
        """Whether the node is part of the control plane; a pool never is, whatever its labels."""
        return isinstance(self.object, Machine) and CONTROL_PLANE_LABEL in self.object.metadata.labels

    @property
    def cluster(self) -> ObjectKey:
        """The Cluster that the owner names."""
        return ObjectKey(self.object.metadata.namespace, self.object.spec.cluster_name)

    @property
    def version(self) -> str:
        """The Kubernetes version of the node, as written."""
        if isinstance(self.object, Machine):
            return self.object.spec.version
        return self.object.spec.template.spec.version if self.object.spec.template.spec else ""

    @property
    def data_secret_name(self) -> str:
        """The Secret that a Machine has taken its data from; empty for pools, which keep it elsewhere."""
        return (self.object.spec.bootstrap.data_secret_name or "") if isinstance(self.object, Machine) else ""

    @property
    def has_node_refs(self) -> bool:
        """Whether every node that the data is for has joined."""
        if isinstance(self.object, Machine):
            return is_defined(self.object.status.node_ref)
        replicas = 1 if self.object.spec.replicas is None else self.object.spec.replicas
        return len(self.object.status.node_refs) == replicas

    @property
    def has_consumed_data(self) -> bool:
        """Whether the infrastructure of a Machine exists already: it was made with the data of that time."""
        return isinstance(self.object, Machine) and bool(self.object.spec.provider_id)


@dataclass(frozen=True, slots=True)
class Presence:
    """Which of the objects that a pass needs exist, before anything is decided."""

    owner: Owner | None
    cluster: Cluster | None
    deleting: bool = False


@dataclass(frozen=True, slots=True)
class ClusterFacts:
    """What a config may be waiting for on its Cluster."""

    paused: bool
    endpoint: str
    """`host:port` of the control plane, or empty while it is not known."""
    provisioned: bool
    initialized: bool

    @staticmethod
    def of(cluster: Cluster) -> ClusterFacts:
        """Return the facts of a Cluster."""
        endpoint, flags = cluster.spec.control_plane_endpoint, cluster.status.initialization
        return ClusterFacts(
            bool(cluster.spec.paused),
            host_port(endpoint.host, endpoint.port) if endpoint is not None and endpoint.host and endpoint.port else "",
            flags is not None and flags.infrastructure_provisioned is True,
            is_initialized(cluster),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """A config that is neither paused nor being deleted, with all that decides what to do about it."""

    object: KubeadmConfig
    owner: Owner
    cluster: Cluster
    now: datetime
    chain: tuple[str, ...] = ()
    """What the owner belongs to, for the log."""
    findings: Findings = Findings()  # frozen

    @property
    def config(self) -> KubeadmConfig:
        """The config as this pass would leave it so far."""
        return self.object

    @property
    def facts(self) -> ClusterFacts:
        """What the tables go by of the Cluster."""
        return ClusterFacts.of(self.cluster)

    @property
    def infrastructure_provisioned(self) -> bool:
        """Whether the Cluster's infrastructure is there."""
        return self.facts.provisioned

    @property
    def control_plane_initialized(self) -> bool:
        """Whether the first control-plane node is up; only the condition says so."""
        return self.facts.initialized

    @property
    def data_secret_created(self) -> bool:
        """Whether the data was generated already."""
        initialization = self.config.status.initialization
        return initialization is not None and initialization.data_secret_created is True

    @property
    def token_discovery(self) -> BootstrapTokenDiscovery | None:
        """Discovery by token, if the spec says anything about it."""
        return token_discovery(self.config)

    @property
    def endpoint(self) -> str:
        """`host:port` of the control plane, or empty while it is not known."""
        return self.facts.endpoint

    @property
    def has_control_plane_provider(self) -> bool:
        """Whether a control-plane object makes the certificates."""
        return is_defined(self.cluster.spec.control_plane_ref)


def is_initialized(cluster: Cluster) -> bool:
    """Return whether the Cluster's first control-plane node is up."""
    return is_true(cluster.status.conditions, "ControlPlaneInitialized")


def token_discovery(config: KubeadmConfig) -> BootstrapTokenDiscovery | None:
    """Return the section on discovery by token, or None if the spec says nothing about it."""
    join = config.spec.join_configuration
    return defined(join.discovery.bootstrap_token) if join is not None and join.discovery is not None else None


async def find_owner(reader: Reader, config: KubeadmConfig, features: Mapping[str, bool]) -> Owner | None:
    """Return the first owner that is a Machine or (behind its gate) a MachinePool; None if it does not exist.

    The version in the reference does not matter. Raises BadOwnerReference, and errors other than NotFound.
    """
    for reference in config.metadata.owner_references:
        if reference.api_version.count("/") > 1:
            raise BadOwnerReference(f"unexpected GroupVersion string: {reference.api_version}")
        if GroupVersionKind.of(reference.api_version, reference.kind).group != CORE_GROUP:
            continue
        key = ObjectKey(config.metadata.namespace, reference.name)
        if reference.kind == "Machine":
            machine = await reader.find(Machine, key)
            return None if machine is None else Owner(machine)
        if reference.kind == "MachinePool" and features.get("MachinePool", True):
            pool = await reader.find(MachinePool, key)
            return None if pool is None else Owner(pool)
    return None


async def owner_chain(reader: Reader, owner: Owner) -> tuple[str, ...]:
    """Return the owners of a Machine and of its MachineSet, for the log. Raises errors other than NotFound."""
    if not isinstance(owner.object, Machine):
        return ()
    namespace = owner.object.metadata.namespace
    chain: list[str] = []
    for reference in owner.object.metadata.owner_references:
        chain.append(f"{reference.kind}/{reference.name}")
        if reference.kind == "MachineSet":
            machine_set = await reader.find(MachineSet, ObjectKey(namespace, reference.name))
            chain += [f"{r.kind}/{r.name}" for r in (machine_set.metadata.owner_references if machine_set else ())]
    return tuple(chain)
