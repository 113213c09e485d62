"""The tables of a pass over a KubeadmConfig, in the order of evaluation. Pure.

    PRESENCE    are owner and Cluster there?            asked before the pass begins
    STEP        which step does the pass take?          asked once
    LOCK        may this Machine run `kubeadm init`?    asked when the attempt to take the lock is over
    DISCOVERY   what does the joining node still need?  asked when the spec is filled in
    TOKEN       what becomes of the bootstrap token?    asked when it was looked at, prolonged or created

What the conditions then say is in `conditions`.
"""

from __future__ import annotations

from datetime import timedelta
from enum import Enum

from clusterwright.controllers.kubeadmconfig.discovery import Filled
from clusterwright.controllers.kubeadmconfig.guards import (
    by_file,
    control_plane_initialized,
    control_plane_machine,
    control_plane_set,
    data_secret_created,
    data_secret_named,
    deleting,
    endpoint_missing,
    has_node_refs,
    infrastructure_provisioned,
    initialized_meanwhile,
    join_impossible,
    lock_denied,
    lock_free,
    lock_held,
    lock_ours,
    lock_stale,
    machine_pool,
    no_cluster,
    no_owner,
    owner_has_data_secret,
    token_discovery_defined,
    token_gone,
    token_good,
    token_missing,
    token_near_its_end,
    token_not_created,
    token_past_half,
    token_unreadable,
    token_used,
)
from clusterwright.controllers.kubeadmconfig.init_lock import Attempt
from clusterwright.controllers.kubeadmconfig.snapshot import ConfigSnapshot, Presence
from clusterwright.controllers.kubeadmconfig.token import TokenFound
from clusterwright.kubeadm.tokens import check_interval
from clusterwright.tables import KEEP, OTHERWISE, Later, Row, Table, message

CONTROL_PLANE_POLL = timedelta(seconds=30)
ENDPOINT_POLL = timedelta(seconds=10)


class Begin(Enum):
    """Whether a pass can begin."""

    AWAIT_OWNER = "wait for the owner reference to be set"
    AWAIT_CLUSTER = 'log "Cluster does not exist yet, waiting until it is created"'
    LEAVE = "nothing: garbage collection follows the owner reference"
    GO_ON = "go on"


class Step(Enum):
    """The step of a pass."""

    AWAIT_INFRASTRUCTURE = "wait for the Cluster's infrastructure"
    RESTORE_STATUS = "take status from the owner"
    REFRESH_TOKEN = "prolong the bootstrap token if it ends soon"  # noqa: S105
    ROTATE_TOKEN = "replace the bootstrap token after half of its life"  # noqa: S105
    KEEP_DATA = "nothing: the data is there"
    AWAIT_CONTROL_PLANE = "wait for the first control plane machine"
    INIT = "take the init lock, then generate data for kubeadm init"
    JOIN = "release the init lock, then generate data for kubeadm join"


class Locking(Enum):
    """The result of an attempt to take the init lock."""

    GENERATE = "generate data for kubeadm init and keep the lock"
    WAIT = 'log "A control plane is already being initialized"'
    WAIT_SILENTLY = 'nothing: "Cannot acquire the init lock" was logged'
    RELEASE = "release the lock: this node must join"


class Joining(Enum):
    """The missing prerequisite of a joining node."""

    GENERATE = "generate data for kubeadm join"
    CREATE_TOKEN = "create a bootstrap token, then generate data for kubeadm join"  # noqa: S105
    WAIT = 'log "Waiting for Cluster Controller to set Cluster.Spec.ControlPlaneEndpoint"'


class Keeping(Enum):
    """The action on a bootstrap token."""

    KEEP = "nothing, or generate the data again if it has another token"
    PROLONG = "extend the expiration of the token; generate the data again if it has another token"
    REPLACE = "create another token, then generate the data again"


@message("<error>")
def token_error(t: TokenFound) -> str:
    """Return the error about the token."""
    return t.detail


@message("<error>; the machine was already created with this token and can no longer join: delete the Machine to replace it")
def comes_too_late(t: TokenFound) -> str:
    """Return why another token would be useless."""
    return f"{t.detail}; the machine was already created with this token and can no longer join: delete the Machine to replace it"


_restore = owner_has_data_secret & ~(data_secret_created & data_secret_named)
_holds_token = data_secret_created & token_discovery_defined
_join_check: Later[Filled] = Later("TTL/3", lambda f: check_interval(f.ttl))
_check: Later[TokenFound] = Later("TTL/3", lambda t: check_interval(t.ttl))

# fmt: off
PRESENCE: Table[Presence] = Table(
    "Presence",
    Row("no-owner",   no_owner,   KEEP, act=Begin.AWAIT_OWNER),
    Row("no-cluster", no_cluster, KEEP, act=Begin.AWAIT_CLUSTER),
    Row("deleting",   deleting,   KEEP, act=Begin.LEAVE),
    Row("present",    OTHERWISE,  KEEP, act=Begin.GO_ON),
    about="Whether a pass has anything to do. The deletion is checked after the pause.",
)
STEP: Table[ConfigSnapshot] = Table(
    "Step",
    Row("infrastructure-not-provisioned", ~infrastructure_provisioned,                         KEEP, act=Step.AWAIT_INFRASTRUCTURE),
    Row("restore-status",                 _restore,                                            KEEP, act=Step.RESTORE_STATUS),
    Row("refresh-token",                  _holds_token & ~has_node_refs,                       KEEP, act=Step.REFRESH_TOKEN),
    Row("rotate-token",                   _holds_token & has_node_refs & machine_pool,         KEEP, act=Step.ROTATE_TOKEN),
    Row("generated",                      data_secret_created,                                 KEEP, act=Step.KEEP_DATA),
    Row("init-control-plane",             ~control_plane_initialized & control_plane_machine,  KEEP, act=Step.INIT),
    Row("await-control-plane",            ~control_plane_initialized,                          KEEP, requeue=CONTROL_PLANE_POLL, act=Step.AWAIT_CONTROL_PLANE),
    Row("join-control-plane",             control_plane_machine,                               KEEP, act=Step.JOIN),
    Row("join-worker",                    OTHERWISE,                                           KEEP, act=Step.JOIN),
    about="The step of a pass; rows in the order of the seed's flowchart.",
)
LOCK: Table[Attempt] = Table(
    "InitLock",
    Row("initialized-meanwhile", initialized_meanwhile, KEEP, requeue=CONTROL_PLANE_POLL, act=Locking.RELEASE),
    Row("free",                  lock_free,             KEEP, act=Locking.GENERATE),
    Row("ours",                  lock_ours,             KEEP, act=Locking.GENERATE),
    Row("held",                  lock_held,             KEEP, requeue=CONTROL_PLANE_POLL, act=Locking.WAIT),
    Row("stale",                 lock_stale,            KEEP, act=Locking.GENERATE),
    Row("not-acquired",          lock_denied,           KEEP, requeue=CONTROL_PLANE_POLL, act=Locking.WAIT_SILENTLY),
    about="Whether this Machine may run `kubeadm init`, after it tried to take the lock.",
    exactly_one=[(lock_free, lock_ours, lock_held, lock_stale, lock_denied)],
    assuming=[~(initialized_meanwhile & (lock_ours | lock_held | lock_denied))],
)
DISCOVERY: Table[Filled] = Table(
    "Discovery",
    Row("control-plane-set", control_plane_set, KEEP, error="Machine is a Worker, but JoinConfiguration.ControlPlane is set in the KubeadmConfig object"),
    Row("endpoint-missing",  endpoint_missing,  KEEP, requeue=ENDPOINT_POLL, act=Joining.WAIT),
    Row("file",              by_file,           KEEP, requeue=_join_check, act=Joining.GENERATE),
    Row("token-missing",     token_missing,     KEEP, requeue=_join_check, act=Joining.CREATE_TOKEN),
    Row("complete",          OTHERWISE,         KEEP, requeue=_join_check, act=Joining.GENERATE),
    about="The missing facts about its cluster that a joining node needs, after the spec was filled in.",
    at_most_one=[(control_plane_set, endpoint_missing), (control_plane_set, by_file), (control_plane_set, token_missing), (by_file, token_missing)],
)
TOKEN: Table[TokenFound] = Table(
    "BootstrapToken",
    Row("good",            token_good,                                     KEEP, requeue=_check, act=Keeping.KEEP),
    Row("near-its-end",    token_near_its_end,                             KEEP, requeue=_check, act=Keeping.PROLONG),
    Row("past-half",       token_past_half,                                KEEP, requeue=_check, act=Keeping.REPLACE),
    Row("gone-and-used",   token_gone & token_used,                        KEEP, error=comes_too_late),
    Row("gone-too-early",  token_gone & ~token_used & join_impossible,     KEEP, error=token_error),
    Row("gone-and-unused", token_gone & ~token_used & ~join_impossible,    KEEP, requeue=_check, act=Keeping.REPLACE),
    Row("unreadable",      token_unreadable,                               KEEP, error=token_error),
    Row("not-created",     token_not_created,                              KEEP, error=token_error),
    about="The action on the bootstrap token of the workload cluster.",
    exactly_one=[(token_good, token_near_its_end, token_past_half, token_gone, token_unreadable, token_not_created)],
)
# fmt: on
