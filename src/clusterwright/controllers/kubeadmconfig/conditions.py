"""The conditions of a KubeadmConfig, in both forms, at the end of a pass. Pure.

Rows of failures come before rows of success, because a pass that fails late has often succeeded in part. They end the pass in its error.
"""

from __future__ import annotations

from clusterwright.controllers.kit.conditions import CHECK_LOGS
from clusterwright.controllers.kubeadmconfig.guards import (
    certificates_available,
    data_available,
    files_unresolved,
    generation_failed,
    infrastructure_missing,
    kubeconfig_failed,
    lookup_failed,
    not_initialized,
    reported,
    secret_in_the_way,
    users_unresolved,
)
from clusterwright.controllers.kubeadmconfig.snapshot import ConfigDone
from clusterwright.tables import KEEP, OTHERWISE, Row, Table, false, message, true, unknown


@message("<error>")
def detail(f: ConfigDone) -> str:
    return f.detail


@message("Failed to prepare spec.files: <error>")
def files_detail(f: ConfigDone) -> str:
    return f"Failed to prepare spec.files: {f.detail}"


@message("<error>")
def error(f: ConfigDone) -> str:
    return str(f.cause or f.detail)


# fmt: off
DATA_SECRET_AVAILABLE: Table[ConfigDone] = Table(
    "DataSecretAvailable",
    Row("infrastructure-not-provisioned", infrastructure_missing,      false("NotAvailable", "Waiting for Cluster status.infrastructureReady to be true"), v1beta1=false("WaitingForClusterInfrastructure", severity="Info")),
    Row("files-unresolved",               files_unresolved,            false("NotAvailable", files_detail), v1beta1=false("DataSecretGenerationFailed", detail, severity="Warning"), error=error),
    Row("users-unresolved",               users_unresolved,            false("NotAvailable", "Failed to read password from secrets for spec.users"), v1beta1=false("DataSecretGenerationFailed", detail, severity="Warning"), error=error),
    Row("kubeconfig-failed",              kubeconfig_failed,           false("NotAvailable", "Failed to create kubeconfig for spec.joinConfiguration.discovery.file"), v1beta1=false("DataSecretGenerationFailed", detail, severity="Warning"), error=error),
    Row("secret-in-the-way",              secret_in_the_way,           false("NotAvailable", detail), v1beta1=false("DataSecretGenerationFailed", detail, severity="Warning"), error=error),
    Row("available",                      data_available,              true("Available"), v1beta1=true("")),
    Row("control-plane-not-initialized",  not_initialized & ~reported, false("NotAvailable", "Waiting for Cluster control plane to be initialized"), v1beta1=false("WaitingForControlPlaneAvailable", severity="Info")),
    Row("unchanged",                      OTHERWISE,                   KEEP),
    at_most_one=[(infrastructure_missing, files_unresolved, users_unresolved, kubeconfig_failed, secret_in_the_way, data_available, not_initialized)],
)
CERTIFICATES_AVAILABLE: Table[ConfigDone] = Table(
    "CertificatesAvailable",
    Row("generation-failed", generation_failed,      unknown("InternalError", CHECK_LOGS), v1beta1=false("CertificatesGenerationFailed", detail, severity="Warning"), error=error),
    Row("lookup-failed",     lookup_failed,          unknown("InternalError", CHECK_LOGS), v1beta1=false("CertificatesCorrupted", detail, severity="Error"), error=error),
    Row("available",         certificates_available, true("Available"), v1beta1=true("")),
    Row("unchanged",         OTHERWISE,              KEEP),
    at_most_one=[(generation_failed, lookup_failed, certificates_available)],
)
# fmt: on
TABLES = (DATA_SECRET_AVAILABLE, CERTIFICATES_AVAILABLE)
