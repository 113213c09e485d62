"""The guards of the KubeadmConfig tables, in the order of the tables. Pure."""

from __future__ import annotations

from clusterwright.controllers.kit.lookup import core_subject
from clusterwright.controllers.kubeadmconfig.discovery import Filled
from clusterwright.controllers.kubeadmconfig.init_lock import Attempt, Lock
from clusterwright.controllers.kubeadmconfig.snapshot import Certificates, ConfigDone, ConfigSnapshot, Data, Presence
from clusterwright.controllers.kubeadmconfig.token import Token, TokenFound
from clusterwright.tables import Guard, Subject, guard

# ------------------------------------------------------------------------------ about the objects around it


@guard("Owner (Machine/MachinePool) not yet assigned")
def no_owner(p: Presence) -> bool:
    return p.owner is None


@guard("Cluster reference resolution fails")
def no_cluster(p: Presence) -> bool:
    return p.cluster is None


@guard("KubeadmConfig marked for deletion")
def deleting(p: Presence) -> bool:
    return p.deleting


# --------------------------------------------------------------------------------------- about what was seen


def the_cluster(s: ConfigSnapshot) -> tuple[Subject, ...]:
    """Return the Cluster as the subject of a guard."""
    return (core_subject("Cluster", s.cluster.key),)


def the_owner(s: ConfigSnapshot) -> tuple[Subject, ...]:
    """Return the owner as the subject of a guard."""
    return (core_subject(s.owner.kind, s.owner.key),)


@guard("cluster.status.initialization.infrastructureProvisioned=true", about=the_cluster)
def infrastructure_provisioned(s: ConfigSnapshot) -> bool:
    return s.cluster.provisioned


@guard("configOwner.DataSecretName() is set", about=the_owner)
def owner_has_data_secret(s: ConfigSnapshot) -> bool:
    return bool(s.owner.data_secret_name)


@guard("status.dataSecretName is set")
def data_secret_named(s: ConfigSnapshot) -> bool:
    return bool(s.config.status.data_secret_name)


@guard("dataSecretCreated=true")
def data_secret_created(s: ConfigSnapshot) -> bool:
    return s.data_secret_created


@guard("spec.joinConfiguration.discovery.bootstrapToken is defined")
def token_discovery_defined(s: ConfigSnapshot) -> bool:
    return s.token_discovery is not None


@guard("hasNodeRefs", about=the_owner)
def has_node_refs(s: ConfigSnapshot) -> bool:
    return s.owner.has_node_refs


@guard("owner is a MachinePool", about=the_owner)
def machine_pool(s: ConfigSnapshot) -> bool:
    return s.owner.is_machine_pool


@guard("ControlPlaneInitialized=true", about=the_cluster)
def control_plane_initialized(s: ConfigSnapshot) -> bool:
    return s.cluster.initialized


@guard("is control plane machine", about=the_owner)
def control_plane_machine(s: ConfigSnapshot) -> bool:
    return s.owner.is_control_plane


# ----------------------------------------------------------------------------------------- about the init lock


def _lock(state: Lock, text: str) -> Guard[Attempt]:
    return Guard(text, lambda a: a.lock is state)


lock_free = _lock(Lock.FREE, "First control plane machine needs init")
lock_ours = _lock(Lock.OURS, "this Machine held the lock before")
lock_held = _lock(Lock.HELD, "Another CP machine already initializing")
lock_stale = _lock(Lock.STALE, "the Machine that held the lock is gone")
lock_denied = _lock(Lock.DENIED, "Concurrent init attempt or ConfigMap creation conflict")


@guard("a control plane was initialized before the lock was taken")
def initialized_meanwhile(a: Attempt) -> bool:
    return a.initialized


# -------------------------------------------------------------------------- about discovery and its token


@guard("Worker machine, JoinConfiguration.ControlPlane set")
def control_plane_set(f: Filled) -> bool:
    return f.misplaced


@guard("Waiting for LB endpoint via reconcileDiscovery")
def endpoint_missing(f: Filled) -> bool:
    return f.needs_endpoint


@guard("spec.joinConfiguration.discovery.file is defined")
def by_file(f: Filled) -> bool:
    return f.by_file


@guard("spec.joinConfiguration.discovery.bootstrapToken.token is not set")
def token_missing(f: Filled) -> bool:
    return f.needs_token


def _token(state: Token, text: str) -> Guard[TokenFound]:
    return Guard(text, lambda t: t.state is state)


token_good = _token(Token.GOOD, "token exists")
token_near_its_end = _token(Token.NEAR_ITS_END, "Token near expiration detected")
token_past_half = _token(Token.PAST_HALF, "past TTL/2")
token_gone = _token(Token.GONE, "Token deleted externally (IsNotFound)")
token_unreadable = _token(Token.UNREADABLE, "the token cannot be read or prolonged")
token_not_created = _token(Token.NOT_CREATED, "Workload cluster unreachable or token creation error")


@guard("the infrastructure was created with the token")
def token_used(t: TokenFound) -> bool:
    return t.used


@guard("owner is a Machine && !ControlPlaneInitialized=true")
def join_impossible(t: TokenFound) -> bool:
    return t.join_impossible


# ---------------------------------------------------------------------------- about what the pass has found


def _data(what: Data, text: str) -> Guard[ConfigDone]:
    return Guard(text, lambda f: f.data is what)


def _certificates(what: Certificates, text: str) -> Guard[ConfigDone]:
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
def reported(s: ConfigSnapshot) -> bool:
    return s.reported
