"""The condition tables of DevMachine: the progress of a simulated machine. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

from clusterwright.controllers.kit.conditions import CHECK_LOGS
from clusterwright.tables import OTHERWISE, Row, Table, Transition, false, guard, message, true


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """The progress of a machine in this pass. `..._left` is None for a stage that is over."""

    is_control_plane: bool = False
    cluster_infrastructure_provisioned: bool = True
    control_plane_initialized: bool = True
    has_bootstrap_data: bool = True
    never_boots: bool = False
    vm_left: timedelta | None = None
    node_left: timedelta | None = None
    boot_failure: str = ""
    boot_is_waiting: bool = False
    etcd_left: timedelta | None = None
    api_server_left: timedelta | None = None
    etcd_stopped: bool = False
    api_server_stopped: bool = False
    failed: str = ""
    """The condition whose stage failed with an error in this pass."""

    @property
    def may_start(self) -> bool:
        """Whether the VM has everything that it waits for."""
        return self.cluster_infrastructure_provisioned and self.has_bootstrap_data

    @property
    def vm_provisioned(self) -> bool:
        """Whether the VM runs."""
        return self.may_start and not self.never_boots and self.vm_left is None and self.failed != "VMProvisioned"

    @property
    def node_provisioned(self) -> bool:
        """Whether the Node has joined."""
        return self.vm_provisioned and not self.boot_failure and self.node_left is None and self.failed != "NodeProvisioned"


@guard("Cluster status.initialization.infrastructureProvisioned is not true")
def cluster_infrastructure_pending(p: Progress) -> bool:
    return not p.cluster_infrastructure_provisioned


@guard("Machine spec.bootstrap.dataSecretName is not set")
def bootstrap_data_missing(p: Progress) -> bool:
    return not p.has_bootstrap_data


@guard("worker of a Cluster whose ControlPlaneInitialized is not True")
def control_plane_not_initialized(p: Progress) -> bool:
    return not p.is_control_plane and not p.control_plane_initialized


@guard("the fault machine-never-boots is set")
def never_boots(p: Progress) -> bool:
    return p.never_boots


@guard("the VM's startup duration is not over")
def vm_starting(p: Progress) -> bool:
    return p.vm_left is not None


@guard("the VM is not provisioned")
def vm_pending(p: Progress) -> bool:
    return not p.vm_provisioned


@guard("the Node's startup duration is not over")
def node_starting(p: Progress) -> bool:
    return p.node_left is not None


@guard("booting failed in a way that a retry can fix")
def boot_waiting(p: Progress) -> bool:
    return bool(p.boot_failure) and p.boot_is_waiting


@guard("booting failed")
def boot_failed(p: Progress) -> bool:
    return bool(p.boot_failure)


@guard("the Node is not provisioned")
def node_pending(p: Progress) -> bool:
    return not p.node_provisioned


@guard("etcd's startup duration is not over")
def etcd_starting(p: Progress) -> bool:
    return p.etcd_left is not None


@guard("the API server's startup duration is not over")
def api_server_starting(p: Progress) -> bool:
    return p.api_server_left is not None


@guard("a fault has stopped etcd")
def etcd_stopped(p: Progress) -> bool:
    return p.etcd_stopped


@guard("a fault has stopped the API server")
def api_server_stopped(p: Progress) -> bool:
    return p.api_server_stopped


@guard("starting the VM ended in an error")
def vm_failed(p: Progress) -> bool:
    return p.failed == "VMProvisioned"


@guard("registering the Node ended in an error")
def node_failed(p: Progress) -> bool:
    return p.failed == "NodeProvisioned"


@guard("starting etcd ended in an error")
def etcd_failed(p: Progress) -> bool:
    return p.failed == "EtcdProvisioned"


@guard("starting the API server ended in an error")
def api_server_failed(p: Progress) -> bool:
    return p.failed == "APIServerProvisioned"


@message("<what the machine's console shows>")
def boot_failure(p: Progress) -> str:
    return p.boot_failure


_STARTING: Transition[Progress] = false("WaitingForStartupTimeout", severity="Info")
_HOLDS: Transition[Progress] = true("")

# fmt: off
VM_PROVISIONED: Table[Progress] = Table(
    "VMProvisioned",
    Row("cluster-infrastructure-pending", cluster_infrastructure_pending,                         false("WaitingForClusterInfrastructureReady"), v1beta1=false("WaitingForClusterInfrastructure", severity="Info")),
    Row("control-plane-not-initialized",  bootstrap_data_missing & control_plane_not_initialized, false("WaitingForControlPlaneInitialized"), v1beta1=false("WaitingControlPlaneInitialized", severity="Info")),
    Row("no-bootstrap-data",              bootstrap_data_missing,                                 false("WaitingForBootstrapData"), v1beta1=false("WaitingForBootstrapData", severity="Info")),
    Row("failed",                         vm_failed,                                              false("InternalError", CHECK_LOGS)),
    Row("never-boots",                    never_boots,                                            false("WaitingForStartupTimeout", "The machine does not boot"), v1beta1=false("WaitingForStartupTimeout", "The machine does not boot", severity="Info")),
    Row("starting",                       vm_starting,                                            false("WaitingForStartupTimeout"), v1beta1=_STARTING),
    Row("provisioned",                    OTHERWISE,                                              true("Provisioned"), v1beta1=_HOLDS),
)

NODE_PROVISIONED: Table[Progress] = Table(
    "NodeProvisioned",
    Row("vm-pending",   vm_pending,    false("WaitingForVMProvisioned")),
    Row("failed",       node_failed,   false("InternalError", CHECK_LOGS)),
    Row("starting",     node_starting, false("WaitingForStartupTimeout"), v1beta1=_STARTING),
    Row("boot-waiting", boot_waiting,  false("WaitingForControlPlane", boot_failure), v1beta1=false("WaitingForControlPlane", boot_failure, severity="Info")),
    Row("boot-failed",  boot_failed,   false("BootstrapFailed", boot_failure), v1beta1=false("BootstrapFailed", boot_failure, severity="Error")),
    Row("provisioned",  OTHERWISE,     true("Provisioned"), v1beta1=_HOLDS),
)

ETCD_PROVISIONED: Table[Progress] = Table(
    "EtcdProvisioned",
    Row("vm-pending",   vm_pending,    false("WaitingForVMProvisioned")),
    Row("node-pending", node_pending,  false("WaitingForNodeProvisioned")),
    Row("failed",       etcd_failed,   false("InternalError", CHECK_LOGS)),
    Row("starting",     etcd_starting, false("WaitingForStartupTimeout"), v1beta1=_STARTING),
    Row("stopped",      etcd_stopped,  false("Stopped", "etcd does not run"), v1beta1=false("Stopped", "etcd does not run", severity="Error")),
    Row("provisioned",  OTHERWISE,     true("Provisioned"), v1beta1=_HOLDS),
)

API_SERVER_PROVISIONED: Table[Progress] = Table(
    "APIServerProvisioned",
    Row("vm-pending",   vm_pending,          false("WaitingForVMProvisioned")),
    Row("node-pending", node_pending,        false("WaitingForNodeProvisioned")),
    Row("failed",       api_server_failed,   false("InternalError", CHECK_LOGS)),
    Row("etcd-failed",  etcd_failed,         false("WaitingForStartupTimeout")),
    Row("starting",     api_server_starting, false("WaitingForStartupTimeout"), v1beta1=_STARTING),
    Row("stopped",      api_server_stopped,  false("Stopped", "the API server does not run"), v1beta1=false("Stopped", "the API server does not run", severity="Error")),
    Row("provisioned",  OTHERWISE,           true("Provisioned"), v1beta1=_HOLDS),
    at_most_one=[(api_server_failed, etcd_failed)],
)
# fmt: on

WORKER_TABLES = (VM_PROVISIONED, NODE_PROVISIONED)
CONTROL_PLANE_TABLES = (VM_PROVISIONED, NODE_PROVISIONED, ETCD_PROVISIONED, API_SERVER_PROVISIONED)
