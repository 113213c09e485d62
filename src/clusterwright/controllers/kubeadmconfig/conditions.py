"""Every choice of the KubeadmConfig controller: which step comes next, and what the conditions say after it.

STEP is asked once, on the snapshot. The four condition tables are asked at the end, on what the pass found; a failure speaks
before a success, because a pass that fails late has often succeeded in part.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from enum import Enum

from clusterwright.api.reasons import KubeadmConfigCondition as Type
from clusterwright.api.reasons import KubeadmConfigReason as Reason
from clusterwright.controllers.kubeadmconfig.snapshot import Snapshot
from clusterwright.tables import KEEP, OTHERWISE, Guard, Row, Table, false, guard, message, true, unknown

CONTROL_PLANE_POLL = timedelta(seconds=30)
ENDPOINT_POLL = timedelta(seconds=10)

# ------------------------------------------------------------------------------------------- the next step


@guard("cluster.status.initialization.infrastructureProvisioned=true")
def infrastructure_provisioned(s: Snapshot) -> bool:
    return s.infrastructure_provisioned


@guard("configOwner.DataSecretName() is set")
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


@guard("hasNodeRefs")
def has_node_refs(s: Snapshot) -> bool:
    return s.owner.has_node_refs


@guard("owner is a MachinePool")
def machine_pool(s: Snapshot) -> bool:
    return s.owner.is_machine_pool


@guard("ControlPlaneInitialized=true")
def control_plane_initialized(s: Snapshot) -> bool:
    return s.control_plane_initialized


@guard("is control plane machine")
def control_plane_machine(s: Snapshot) -> bool:
    return s.owner.is_control_plane


_restore = owner_has_data_secret & ~(data_secret_created & data_secret_named)
_holds_token = data_secret_created & token_discovery_defined

# fmt: off
STEP: Table[Snapshot] = Table(
    "Step",
    Row("infrastructure-not-provisioned", ~infrastructure_provisioned,                         KEEP, "wait for the Cluster's infrastructure"),
    Row("restore-status",                 _restore,                                            KEEP, "take status from the owner"),
    Row("refresh-token",                  _holds_token & ~has_node_refs,                       KEEP, "prolong the bootstrap token if it ends soon"),
    Row("rotate-token",                   _holds_token & has_node_refs & machine_pool,         KEEP, "replace the bootstrap token after half of its life"),
    Row("generated",                      data_secret_created,                                 KEEP, "nothing: the data is there"),
    Row("await-control-plane",            ~control_plane_initialized & ~control_plane_machine, KEEP, "wait for the first control plane machine", CONTROL_PLANE_POLL),
    Row("init-control-plane",             ~control_plane_initialized,                          KEEP, "take the init lock, then generate data for kubeadm init"),
    Row("join-control-plane",             control_plane_machine,                               KEEP, "release the init lock, then generate data for kubeadm join"),
    Row("join-worker",                    OTHERWISE,                                           KEEP, "release the init lock, then generate data for kubeadm join"),
    about="Which step a pass takes; rows in the order of the seed's flowchart.",
)
# fmt: on


# --------------------------------------------------------------------------------- what a pass has found


class Data(Enum):
    """How far the pass came with the bootstrap data."""

    UNTOUCHED = "untouched"
    INFRASTRUCTURE_NOT_PROVISIONED = "infrastructure-not-provisioned"
    CONTROL_PLANE_NOT_INITIALIZED = "control-plane-not-initialized"
    FILES_UNRESOLVED = "files-unresolved"
    USERS_UNRESOLVED = "users-unresolved"
    KUBECONFIG_FAILED = "kubeconfig-failed"
    AVAILABLE = "available"


class Certificates(Enum):
    """How far the pass came with the certificates."""

    UNTOUCHED = "untouched"
    GENERATION_FAILED = "generation-failed"
    LOOKUP_FAILED = "lookup-failed"
    AVAILABLE = "available"


@dataclass(frozen=True, slots=True, kw_only=True)
class Findings:
    """What a pass has found, for the tables. `detail` is the text of the error that a failure ended in."""

    data: Data = Data.UNTOUCHED
    certificates: Certificates = Certificates.UNTOUCHED
    detail: str = ""
    reported: bool = False
    """Whether DataSecretAvailable was reported before this pass."""


def _data(what: Data, text: str) -> Guard[Findings]:
    return Guard(text, lambda f: f.data is what)


def _certificates(what: Certificates, text: str) -> Guard[Findings]:
    return Guard(text, lambda f: f.certificates is what)


infrastructure_missing = _data(Data.INFRASTRUCTURE_NOT_PROVISIONED, "Cluster infrastructure not ready")
not_initialized = _data(Data.CONTROL_PLANE_NOT_INITIALIZED, "control plane not initialized, no data generated")
files_unresolved = _data(Data.FILES_UNRESOLVED, "File resolution fails")
users_unresolved = _data(Data.USERS_UNRESOLVED, "User password resolution fails")
kubeconfig_failed = _data(Data.KUBECONFIG_FAILED, "Discovery kubeconfig resolution fails")
data_available = _data(Data.AVAILABLE, "bootstrap secret created or restored")
generation_failed = _certificates(Certificates.GENERATION_FAILED, "Certificate generation fails (initial CP)")
lookup_failed = _certificates(Certificates.LOOKUP_FAILED, "Certificate lookup fails (join)")
certificates_available = _certificates(Certificates.AVAILABLE, "certificates found or generated")


@guard("DataSecretAvailable was reported before")
def reported(f: Findings) -> bool:
    return f.reported


@message("<error>")
def detail(f: Findings) -> str:
    return f.detail


# fmt: off
DATA_SECRET_AVAILABLE: Table[Findings] = Table(
    Type.DATA_SECRET_AVAILABLE.value,
    Row("infrastructure-not-provisioned", infrastructure_missing,      false(Reason.NOT_AVAILABLE, "Waiting for Cluster status.infrastructureReady to be true")),
    Row("files-unresolved",               files_unresolved,            false(Reason.NOT_AVAILABLE, "Failed to read content from secrets for spec.files")),
    Row("users-unresolved",               users_unresolved,            false(Reason.NOT_AVAILABLE, "Failed to read password from secrets for spec.users")),
    Row("kubeconfig-failed",              kubeconfig_failed,           false(Reason.NOT_AVAILABLE, "Failed to create kubeconfig for spec.joinConfiguration.discovery.file")),
    Row("available",                      data_available,              true(Reason.AVAILABLE)),
    Row("control-plane-not-initialized",  not_initialized & ~reported, false(Reason.NOT_AVAILABLE, "Waiting for Cluster control plane to be initialized")),
    Row("unchanged",                      OTHERWISE,                   KEEP),
    at_most_one=[(infrastructure_missing, files_unresolved, users_unresolved, kubeconfig_failed, data_available, not_initialized)],
)
V1BETA1_DATA_SECRET_AVAILABLE: Table[Findings] = Table(
    f"{Type.DATA_SECRET_AVAILABLE} (v1beta1)",
    Row("infrastructure-not-provisioned", infrastructure_missing,      false("WaitingForClusterInfrastructure", severity="Info")),
    Row("files-unresolved",               files_unresolved,            false("DataSecretGenerationFailed", detail, severity="Warning")),
    Row("users-unresolved",               users_unresolved,            false("DataSecretGenerationFailed", detail, severity="Warning")),
    Row("kubeconfig-failed",              kubeconfig_failed,           false("DataSecretGenerationFailed", detail, severity="Warning")),
    Row("available",                      data_available,              true("")),
    Row("control-plane-not-initialized",  not_initialized & ~reported, false("WaitingForControlPlaneAvailable", severity="Info")),
    Row("unchanged",                      OTHERWISE,                   KEEP),
    at_most_one=[(infrastructure_missing, files_unresolved, users_unresolved, kubeconfig_failed, data_available, not_initialized)],
)
CERTIFICATES_AVAILABLE: Table[Findings] = Table(
    Type.CERTIFICATES_AVAILABLE.value,
    Row("generation-failed", generation_failed,      unknown(Reason.INTERNAL_ERROR, "Please check controller logs for errors")),
    Row("lookup-failed",     lookup_failed,          unknown(Reason.INTERNAL_ERROR, "Please check controller logs for errors")),
    Row("available",         certificates_available, true(Reason.AVAILABLE)),
    Row("unchanged",         OTHERWISE,              KEEP),
    at_most_one=[(generation_failed, lookup_failed, certificates_available)],
)
V1BETA1_CERTIFICATES_AVAILABLE: Table[Findings] = Table(
    f"{Type.CERTIFICATES_AVAILABLE} (v1beta1)",
    Row("generation-failed", generation_failed,      false("CertificatesGenerationFailed", detail, severity="Warning")),
    Row("lookup-failed",     lookup_failed,          false("CertificatesCorrupted", detail, severity="Error")),
    Row("available",         certificates_available, true("")),
    Row("unchanged",         OTHERWISE,              KEEP),
    at_most_one=[(generation_failed, lookup_failed, certificates_available)],
)
# fmt: on
TABLES = (STEP, DATA_SECRET_AVAILABLE, V1BETA1_DATA_SECRET_AVAILABLE, CERTIFICATES_AVAILABLE, V1BETA1_CERTIFICATES_AVAILABLE)
