"""The tables of DevMachine: every row, no gaps."""

from datetime import timedelta

import pytest

from clusterwright.controllers.inmemory.conditions import (
    API_SERVER_PROVISIONED,
    CONTROL_PLANE_TABLES,
    ETCD_PROVISIONED,
    NODE_PROVISIONED,
    VM_PROVISIONED,
    Progress,
)
from clusterwright.tables import gaps

SECOND = timedelta(seconds=1)
WAITING = "WaitingForStartupTimeout"

ROWS = [
    (VM_PROVISIONED, "cluster-infrastructure-pending", {"cluster_infrastructure_provisioned": False, "has_bootstrap_data": False}, "WaitingForClusterInfrastructureReady"),
    (VM_PROVISIONED, "control-plane-not-initialized", {"has_bootstrap_data": False, "control_plane_initialized": False}, "WaitingForControlPlaneInitialized"),
    (VM_PROVISIONED, "no-bootstrap-data", {"has_bootstrap_data": False}, "WaitingForBootstrapData"),
    (VM_PROVISIONED, "no-bootstrap-data", {"has_bootstrap_data": False, "control_plane_initialized": False, "is_control_plane": True}, "WaitingForBootstrapData"),
    (VM_PROVISIONED, "failed", {"failed": "VMProvisioned"}, "InternalError"),
    (VM_PROVISIONED, "never-boots", {"never_boots": True}, WAITING),
    (VM_PROVISIONED, "starting", {"vm_left": SECOND}, WAITING),
    (VM_PROVISIONED, "provisioned", {}, "Provisioned"),
    (VM_PROVISIONED, "provisioned", {"control_plane_initialized": False}, "Provisioned"),
    (NODE_PROVISIONED, "vm-pending", {"vm_left": SECOND}, "WaitingForVMProvisioned"),
    (NODE_PROVISIONED, "vm-pending", {"cluster_infrastructure_provisioned": False}, "WaitingForVMProvisioned"),
    (NODE_PROVISIONED, "failed", {"failed": "NodeProvisioned"}, "InternalError"),
    (NODE_PROVISIONED, "starting", {"node_left": SECOND}, WAITING),
    (NODE_PROVISIONED, "boot-waiting", {"boot_failure": "refused", "boot_is_waiting": True}, "WaitingForControlPlane"),
    (NODE_PROVISIONED, "boot-failed", {"boot_failure": "expired"}, "BootstrapFailed"),
    (NODE_PROVISIONED, "provisioned", {}, "Provisioned"),
    (ETCD_PROVISIONED, "vm-pending", {"never_boots": True}, "WaitingForVMProvisioned"),
    (ETCD_PROVISIONED, "node-pending", {"boot_failure": "expired"}, "WaitingForNodeProvisioned"),
    (ETCD_PROVISIONED, "failed", {"failed": "EtcdProvisioned"}, "InternalError"),
    (ETCD_PROVISIONED, "starting", {"etcd_left": SECOND}, WAITING),
    (ETCD_PROVISIONED, "stopped", {"etcd_stopped": True}, "Stopped"),
    (ETCD_PROVISIONED, "provisioned", {}, "Provisioned"),
    (API_SERVER_PROVISIONED, "vm-pending", {"failed": "VMProvisioned"}, "WaitingForVMProvisioned"),
    (API_SERVER_PROVISIONED, "node-pending", {"node_left": SECOND}, "WaitingForNodeProvisioned"),
    (API_SERVER_PROVISIONED, "failed", {"failed": "APIServerProvisioned"}, "InternalError"),
    (API_SERVER_PROVISIONED, "etcd-failed", {"failed": "EtcdProvisioned"}, WAITING),
    (API_SERVER_PROVISIONED, "starting", {"api_server_left": SECOND}, WAITING),
    (API_SERVER_PROVISIONED, "stopped", {"api_server_stopped": True}, "Stopped"),
    (API_SERVER_PROVISIONED, "provisioned", {}, "Provisioned"),
]  # fmt: skip


@pytest.mark.parametrize(("table", "row", "progress", "reason"), ROWS, ids=[f"{t.name}/{r}" for t, r, *_ in ROWS])
def test_rows(table, row, progress, reason):
    decision = table.decide(Progress(**progress))

    assert (decision.row, decision.outcome.reason) == (row, reason)
    assert decision.outcome.status == ("True" if row == "provisioned" else "False")


def test_every_row_of_every_table_is_tried():
    assert {(t.name, row.name) for t in CONTROL_PLANE_TABLES for row in t.rows} == {(t.name, r) for t, r, *_ in ROWS}


@pytest.mark.parametrize("table", CONTROL_PLANE_TABLES, ids=lambda t: t.name)
def test_every_machine_matches_a_row(table):
    assert list(gaps(table)) == []
