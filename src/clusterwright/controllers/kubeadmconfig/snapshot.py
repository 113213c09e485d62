"""The snapshot of a KubeadmConfig with its owner and its Cluster, and the outcome of a pass."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum

from clusterwright.api.bootstrap import BootstrapTokenDiscovery, KubeadmConfig
from clusterwright.api.core import Cluster, ClusterNetwork, ContractVersionedObjectReference, Machine, MachinePool, MachineSet
from clusterwright.api.meta import GroupVersionKind, ObjectKey
from clusterwright.api.wellknown import CONTROL_PLANE_LABEL, CORE_GROUP
from clusterwright.conditions import is_true
from clusterwright.controllers.kit import owners
from clusterwright.controllers.kit.adopt import owner_reference
from clusterwright.controllers.kit.passing import PassFailed
from clusterwright.controllers.kit.snapshots import Snapshot
from clusterwright.kubeadm.addresses import host_port
from clusterwright.kubeadm.presence import defined, is_defined
from clusterwright.runtime.client import Reader


class BadOwnerReference(PassFailed):
    """An owner reference whose apiVersion cannot be read."""


class Data(Enum):
    """The progress with the bootstrap data."""

    UNTOUCHED = "untouched"
    INFRASTRUCTURE_NOT_PROVISIONED = "infrastructure-not-provisioned"
    CONTROL_PLANE_NOT_INITIALIZED = "control-plane-not-initialized"
    FILES_UNRESOLVED = "files-unresolved"
    USERS_UNRESOLVED = "users-unresolved"
    KUBECONFIG_FAILED = "kubeconfig-failed"
    SECRET_IN_THE_WAY = "secret-in-the-way"  # noqa: S105
    AVAILABLE = "available"


class Certificates(Enum):
    """The progress with the certificates."""

    UNTOUCHED = "untouched"
    GENERATION_FAILED = "generation-failed"
    LOOKUP_FAILED = "lookup-failed"
    AVAILABLE = "available"


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnerFacts:
    """The facts of the Machine or MachinePool that a config belongs to."""

    kind: str
    key: ObjectKey
    cluster: ObjectKey
    """The Cluster that the owner names."""
    version: str
    """The Kubernetes version of the node, as written."""
    is_control_plane: bool
    """Whether the node is part of the control plane; a pool never is, whatever its labels."""
    data_secret_name: str
    """The Secret from which a Machine has taken its data; empty for pools, which store it elsewhere."""
    has_node_refs: bool
    """Whether every node for which the data is meant has joined."""
    has_consumed_data: bool
    """Whether the infrastructure of a Machine exists already: it was created with the data of that time."""

    @staticmethod
    def of(obj: Machine | MachinePool) -> OwnerFacts:
        """Return the facts of a Machine or MachinePool."""
        cluster = ObjectKey(obj.metadata.namespace, obj.spec.cluster_name)
        if isinstance(obj, Machine):
            return OwnerFacts(
                kind=obj.kind,
                key=obj.key,
                cluster=cluster,
                version=obj.spec.version,
                is_control_plane=CONTROL_PLANE_LABEL in obj.metadata.labels,
                data_secret_name=obj.spec.bootstrap.data_secret_name or "",
                has_node_refs=is_defined(obj.status.node_ref),
                has_consumed_data=bool(obj.spec.provider_id),
            )
        replicas = 1 if obj.spec.replicas is None else obj.spec.replicas
        return OwnerFacts(
            kind=obj.kind,
            key=obj.key,
            cluster=cluster,
            version=obj.spec.template.spec.version if obj.spec.template.spec else "",
            is_control_plane=False,
            data_secret_name="",
            has_node_refs=len(obj.status.node_refs) == replicas,
            has_consumed_data=False,
        )

    @property
    def is_machine_pool(self) -> bool:
        """Whether several nodes use the same data."""
        return self.kind == "MachinePool"


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterFacts(owners.ClusterFacts):
    """The facts of its Cluster that a config waits for or writes into bootstrap data."""

    endpoint: str
    """`host:port` of the control plane, or empty while it is unknown."""
    provisioned: bool
    initialized: bool
    """Whether the first control-plane node is up; only the condition shows this."""
    control_plane_ref: ContractVersionedObjectReference | None
    """The control-plane object; its controller creates the certificates."""
    network: ClusterNetwork | None

    @staticmethod
    def of(cluster: Cluster) -> ClusterFacts:
        """Return the facts of a Cluster."""
        endpoint, flags = cluster.spec.control_plane_endpoint, cluster.status.initialization
        return ClusterFacts(
            reference=owner_reference(cluster, controller=False),
            namespace=cluster.metadata.namespace,
            paused=bool(cluster.spec.paused),
            endpoint=host_port(endpoint.host, endpoint.port) if endpoint is not None and endpoint.host and endpoint.port else "",
            provisioned=flags is not None and flags.infrastructure_provisioned is True,
            initialized=is_true(cluster.status.conditions, "ControlPlaneInitialized"),
            control_plane_ref=defined(cluster.spec.control_plane_ref),
            network=cluster.spec.cluster_network,
        )


@dataclass(frozen=True, slots=True)
class Presence:
    """The existence of the objects that a pass needs."""

    owner: OwnerFacts | None
    cluster: ClusterFacts | None
    deleting: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfigSnapshot(Snapshot[KubeadmConfig]):
    """A config that is neither paused nor being deleted, with its owner and its Cluster."""

    owner: OwnerFacts
    cluster: ClusterFacts
    chain: tuple[str, ...] = ()
    """The owners of the owner, for the log."""
    reported: bool = False
    """Whether DataSecretAvailable was reported before this pass."""

    @property
    def config(self) -> KubeadmConfig:
        """The config."""
        return self.object

    @property
    def data_secret_created(self) -> bool:
        """Whether the data already exists."""
        initialization = self.config.status.initialization
        return initialization is not None and initialization.data_secret_created is True

    @property
    def token_discovery(self) -> BootstrapTokenDiscovery | None:
        """Discovery by token, if the spec sets any of it."""
        return token_discovery(self.config)


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfigDone(ConfigSnapshot):
    """The config at the end of the pass, and the progress of the pass.

    `detail` is the text of a failure for conditions; the pass ends in the error `cause`.
    """

    data: Data = Data.UNTOUCHED
    certificates: Certificates = Certificates.UNTOUCHED
    detail: str = ""
    cause: Exception | None = None


def token_discovery(config: KubeadmConfig) -> BootstrapTokenDiscovery | None:
    """Return the section on discovery by token, or None if the spec has none."""
    join = config.spec.join_configuration
    return defined(join.discovery.bootstrap_token) if join is not None and join.discovery is not None else None


async def find_owner(reader: Reader, config: KubeadmConfig, features: Mapping[str, bool]) -> Machine | MachinePool | None:
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
            return await reader.find(Machine, key)
        if reference.kind == "MachinePool" and features.get("MachinePool", True):
            return await reader.find(MachinePool, key)
    return None


async def owner_chain(reader: Reader, owner: Machine | MachinePool) -> tuple[str, ...]:
    """Return the owners of a Machine and of its MachineSet, for the log. Raises errors other than NotFound."""
    if not isinstance(owner, Machine):
        return ()
    namespace = owner.metadata.namespace
    chain: list[str] = []
    for reference in owner.metadata.owner_references:
        chain.append(f"{reference.kind}/{reference.name}")
        if reference.kind == "MachineSet":
            machine_set = await reader.find(MachineSet, ObjectKey(namespace, reference.name))
            chain += [f"{r.kind}/{r.name}" for r in (machine_set.metadata.owner_references if machine_set else ())]
    return tuple(chain)
