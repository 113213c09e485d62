"""Wire the KubeadmConfig controller: its watches, and the configs that each change reconciles.

Everything that a pass waits for is watched: the Cluster's infrastructure, endpoint and first control-plane node, the init lock, the
certificates, Secrets that files and passwords come from, the connection to the workload cluster. The requeues of the tables are only needed
if an event is lost.
"""

from __future__ import annotations

from collections.abc import Sequence

from clusterwright.api.bootstrap import KubeadmConfig
from clusterwright.api.core import Cluster, Machine, MachinePool
from clusterwright.api.kubernetes import ConfigMap, Secret
from clusterwright.api.meta import ObjectKey
from clusterwright.api.wellknown import BOOTSTRAP_GROUP, CLUSTER_NAME_LABEL, CONTROL_PLANE_LABEL
from clusterwright.conditions import is_true
from clusterwright.controllers.kubeadmconfig.init_lock import NAME_SUFFIX, read_information
from clusterwright.controllers.kubeadmconfig.reconciler import make
from clusterwright.controllers.kubeadmconfig.snapshot import ClusterFacts, OwnerFacts
from clusterwright.controllers.wiring import Access, ControllerDefinition, WorkloadWake
from clusterwright.kubeadm.certificates import SECRET_TYPE, CertificateError, Purpose, parse_secret_name
from clusterwright.kubeadm.tokens import SECRET_TYPE as TOKEN_TYPE
from clusterwright.runtime.client import Reader
from clusterwright.runtime.predicates import appeared_or_changed
from clusterwright.runtime.reconcile import Watch

_MADE_BY_PROGRAMS = frozenset({SECRET_TYPE, TOKEN_TYPE, "kubernetes.io/service-account-token", "helm.sh/release.v1"})


def config_of(owner: Machine | MachinePool) -> ObjectKey | None:
    """Return the KubeadmConfig that a Machine or MachinePool refers to, or None."""
    spec = owner.spec if isinstance(owner, Machine) else owner.spec.template.spec
    reference = spec.bootstrap.config_ref if spec is not None else None
    if reference is None or (reference.api_group, reference.kind) != (BOOTSTRAP_GROUP, "KubeadmConfig") or not reference.name:
        return None
    return ObjectKey(owner.metadata.namespace, reference.name)


async def owner_to_config(owner: Machine | MachinePool, _: Reader) -> Sequence[ObjectKey]:
    """Return the config that a Machine or MachinePool refers to."""
    key = config_of(owner)
    return () if key is None else (key,)


async def cluster_to_configs(cluster: Cluster, reader: Reader) -> Sequence[ObjectKey]:
    """Return the configs of all Machines and MachinePools of a Cluster."""
    return await _configs(reader, cluster.metadata.namespace, cluster.metadata.name)


async def certificate_to_configs(secret: Secret, reader: Reader) -> Sequence[ObjectKey]:
    """Return the configs of all Machines and MachinePools of a certificate's Cluster."""
    return await _configs(reader, secret.metadata.namespace, _cluster_of(secret))


async def content_to_configs(secret: Secret, reader: Reader) -> Sequence[ObjectKey]:
    """Return the configs without data that take a file or a password from a user's Secret."""
    configs = await reader.list(KubeadmConfig, namespace=secret.metadata.namespace)
    return tuple(c.key for c in configs if not is_true(c.status.conditions, "DataSecretAvailable") and secret.metadata.name in _sources(c))


def _sources(config: KubeadmConfig) -> set[str]:
    files = {f.content_from.secret.name for f in config.spec.files if f.content_from is not None}
    return files | {u.passwd_from.secret.name for u in config.spec.users if u.passwd_from is not None}


async def lock_to_configs(lock: ConfigMap, reader: Reader) -> Sequence[ObjectKey]:
    """Return the configs of the other control-plane Machines, which may wait for the init lock.

    A pass that fails releases the lock that it took. If that requeued the same config, it would fail again at once, without backoff.
    """
    name, held = lock.metadata.labels.get(CLUSTER_NAME_LABEL, ""), read_information(lock)
    holder = held.machine_name if held is not None else ""
    return await _configs(reader, lock.metadata.namespace, name, f",{CONTROL_PLANE_LABEL}", but=holder) if name else ()


async def gone_to_configs(machine: Machine, reader: Reader) -> Sequence[ObjectKey]:
    """Return the configs of the other control-plane Machines: a deleted Machine may have held the init lock."""
    return await _configs(reader, machine.metadata.namespace, machine.spec.cluster_name, f",{CONTROL_PLANE_LABEL}")


async def _configs(reader: Reader, namespace: str, cluster: str, more: str = "", but: str = "") -> Sequence[ObjectKey]:
    found: dict[ObjectKey, None] = {}
    owners: list[Machine | MachinePool] = []
    owners += await reader.list(Machine, namespace=namespace, labels=f"{CLUSTER_NAME_LABEL}={cluster}{more}")
    if not more:
        owners += await reader.list(MachinePool, namespace=namespace, labels=f"{CLUSTER_NAME_LABEL}={cluster}")
    for owner in owners:
        key = config_of(owner)
        if key is not None and owner.metadata.name != but:
            found[key] = None
    return tuple(found)


def is_control_plane_gone(old: Machine | None, new: Machine | None) -> bool:
    """Return whether a control-plane Machine was deleted."""
    return old is not None and new is None and CONTROL_PLANE_LABEL in old.metadata.labels


def is_lock(old: ConfigMap | None, new: ConfigMap | None) -> bool:
    """Return whether an init lock was released or changed; taking it does not count."""
    return old is not None and old.metadata.name.endswith(NAME_SUFFIX)


def _cluster_of(secret: Secret) -> str:
    """Return the Cluster whose certificate a Secret holds, from its name, because users' Secrets need no label; else an empty string."""
    name = secret.metadata.name
    client = f"-{Purpose.API_SERVER_ETCD_CLIENT}"
    if name.endswith(client):
        return name.removesuffix(client)
    try:
        cluster, purpose = parse_secret_name(name)
    except CertificateError:
        return ""
    return "" if purpose is Purpose.KUBECONFIG else cluster


def is_certificate(old: Secret | None, new: Secret | None) -> bool:
    """Return whether a certificate Secret appeared or changed."""
    return new is not None and (old is None or old.data != new.data) and bool(_cluster_of(new))


def is_content(old: Secret | None, new: Secret | None) -> bool:
    """Return whether a user's Secret appeared or changed; skip types of Secrets that cannot contain files."""
    return new is not None and new.type not in _MADE_BY_PROGRAMS and (old is None or old.data != new.data)


CONTROLLER = ControllerDefinition(
    name="kubeadmconfig",
    kind=KubeadmConfig,
    watches=(
        Watch(Machine, owner_to_config, appeared_or_changed(OwnerFacts.of)),
        Watch(Machine, gone_to_configs, is_control_plane_gone, why="the Machine may have held the init lock"),
        Watch(MachinePool, owner_to_config, appeared_or_changed(OwnerFacts.of)),
        Watch(Cluster, cluster_to_configs, appeared_or_changed(ClusterFacts.of)),
        Watch(ConfigMap, lock_to_configs, is_lock, why="another Machine may take the init lock now"),
        Watch(Secret, certificate_to_configs, is_certificate, why="joining nodes need the certificates"),
        Watch(Secret, content_to_configs, is_content, why="files and passwords come from users' Secrets"),
    ),
    make=make,
    access=(
        Access("secrets", "create update patch delete"),
        Access("configmaps", "create update delete"),
        Access("machinesets.cluster.x-k8s.io", "get"),  # whose Machine it is, for the log
    ),
    workload_wake=WorkloadWake(map=cluster_to_configs),
    concurrency=100,
)
