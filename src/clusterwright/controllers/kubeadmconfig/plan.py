"""Which step a pass over a KubeadmConfig takes. Pure."""

from __future__ import annotations

from datetime import timedelta
from enum import Enum

from clusterwright.controllers.kubeadmconfig.guards import (
    control_plane_initialized,
    control_plane_machine,
    data_secret_created,
    data_secret_named,
    has_node_refs,
    infrastructure_provisioned,
    machine_pool,
    owner_has_data_secret,
    token_discovery_defined,
)
from clusterwright.controllers.kubeadmconfig.snapshot import Snapshot
from clusterwright.tables import KEEP, OTHERWISE, Row, Table

CONTROL_PLANE_POLL = timedelta(seconds=30)
ENDPOINT_POLL = timedelta(seconds=10)


class Step(Enum):
    """What a pass does."""

    AWAIT_INFRASTRUCTURE = "wait for the Cluster's infrastructure"
    RESTORE_STATUS = "take status from the owner"
    REFRESH_TOKEN = "prolong the bootstrap token if it ends soon"  # noqa: S105
    ROTATE_TOKEN = "replace the bootstrap token after half of its life"  # noqa: S105
    KEEP_DATA = "nothing: the data is there"
    AWAIT_CONTROL_PLANE = "wait for the first control plane machine"
    INIT = "take the init lock, then generate data for kubeadm init"
    JOIN = "release the init lock, then generate data for kubeadm join"


_restore = owner_has_data_secret & ~(data_secret_created & data_secret_named)
_holds_token = data_secret_created & token_discovery_defined

# fmt: off
STEP: Table[Snapshot] = Table(
    "Step",
    Row("infrastructure-not-provisioned", ~infrastructure_provisioned,                         KEEP, act=Step.AWAIT_INFRASTRUCTURE),
    Row("restore-status",                 _restore,                                            KEEP, act=Step.RESTORE_STATUS),
    Row("refresh-token",                  _holds_token & ~has_node_refs,                       KEEP, act=Step.REFRESH_TOKEN),
    Row("rotate-token",                   _holds_token & has_node_refs & machine_pool,         KEEP, act=Step.ROTATE_TOKEN),
    Row("generated",                      data_secret_created,                                 KEEP, act=Step.KEEP_DATA),
    Row("await-control-plane",            ~control_plane_initialized & ~control_plane_machine, KEEP, requeue=CONTROL_PLANE_POLL, act=Step.AWAIT_CONTROL_PLANE),
    Row("init-control-plane",             ~control_plane_initialized,                          KEEP, act=Step.INIT),
    Row("join-control-plane",             control_plane_machine,                               KEEP, act=Step.JOIN),
    Row("join-worker",                    OTHERWISE,                                           KEEP, act=Step.JOIN),
    about="Which step a pass takes; rows in the order of the seed's flowchart.",
)
# fmt: on
