"""The questions that the tables of a KubeadmConfig ask: about what was seen, and about what the pass has found. Pure."""

from __future__ import annotations

from clusterwright.controllers.kubeadmconfig.snapshot import Certificates, Data, Findings, Snapshot
from clusterwright.tables import Guard, Subject, guard


def the_cluster(s: Snapshot) -> tuple[Subject, ...]:
    """Whom questions about the Cluster ask."""
    return (Subject("cluster.x-k8s.io", "Cluster", s.cluster.metadata.namespace, s.cluster.metadata.name),)


def the_owner(s: Snapshot) -> tuple[Subject, ...]:
    """Whom questions about the owner ask."""
    owner = s.owner.object
    return (Subject("cluster.x-k8s.io", owner.kind, owner.metadata.namespace, owner.metadata.name),)


@guard("cluster.status.initialization.infrastructureProvisioned=true", about=the_cluster)
def infrastructure_provisioned(s: Snapshot) -> bool:
    return s.infrastructure_provisioned


@guard("configOwner.DataSecretName() is set", about=the_owner)
def owner_has_data_secret(s: Snapshot) -> bool:
    return bool(s.owner.data_secret_name)


@guard("status.dataSecretName is set")
def data_secret_named(s: Snapshot) -> bool:
    return bool(s.config.status.data_secret_name)


@guard("dataSecretCreated=true")
def data_secret_created(s: Snapshot) -> bool:
    return s.data_secret_created


@guard("spec.joinConfiguration.discovery.bootstrapToken is defined")
def token_discovery_defined(s: Snapshot) -> bool:
    return s.token_discovery is not None


@guard("hasNodeRefs", about=the_owner)
def has_node_refs(s: Snapshot) -> bool:
    return s.owner.has_node_refs


@guard("owner is a MachinePool", about=the_owner)
def machine_pool(s: Snapshot) -> bool:
    return s.owner.is_machine_pool


@guard("ControlPlaneInitialized=true", about=the_cluster)
def control_plane_initialized(s: Snapshot) -> bool:
    return s.control_plane_initialized


@guard("is control plane machine", about=the_owner)
def control_plane_machine(s: Snapshot) -> bool:
    return s.owner.is_control_plane


def _data(what: Data, text: str) -> Guard[Findings]:
    return Guard(text, lambda f: f.data is what)


def _certificates(what: Certificates, text: str) -> Guard[Findings]:
    return Guard(text, lambda f: f.certificates is what)


infrastructure_missing = _data(Data.INFRASTRUCTURE_NOT_PROVISIONED, "Cluster infrastructure not ready")
not_initialized = _data(Data.CONTROL_PLANE_NOT_INITIALIZED, "control plane not initialized, no data generated")
files_unresolved = _data(Data.FILES_UNRESOLVED, "File resolution fails")
users_unresolved = _data(Data.USERS_UNRESOLVED, "User password resolution fails")
kubeconfig_failed = _data(Data.KUBECONFIG_FAILED, "Discovery kubeconfig resolution fails")
secret_in_the_way = _data(Data.SECRET_IN_THE_WAY, "a Secret with the name of the config is not its bootstrap data")
data_available = _data(Data.AVAILABLE, "bootstrap secret created or restored")
generation_failed = _certificates(Certificates.GENERATION_FAILED, "Certificate generation fails (initial CP)")
lookup_failed = _certificates(Certificates.LOOKUP_FAILED, "Certificate lookup fails (join)")
certificates_available = _certificates(Certificates.AVAILABLE, "certificates found or generated")


@guard("DataSecretAvailable was reported before")
def reported(f: Findings) -> bool:
    return f.reported
