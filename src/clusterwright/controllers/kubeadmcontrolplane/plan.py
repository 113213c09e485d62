"""The actions on a control plane as tables, in the order of evaluation. Pure."""

from __future__ import annotations

from enum import Enum

from clusterwright.controllers.kit.lookup import Unreadable
from clusterwright.controllers.kubeadmcontrolplane import names
from clusterwright.controllers.kubeadmcontrolplane.guards import (
    Snapshot,
    any_begun,
    any_leaving,
    any_released,
    any_stray,
    any_to_roll_out,
    any_updating,
    below_surge,
    descendants_unlisted,
    enough,
    has_endpoint,
    infrastructure_provisioned,
    may_leave,
    no_machines,
    not_too_many,
    replicas_set,
    rolling_update,
    stray_is_needed,
    stray_member,
    template_missing,
    template_unreadable,
    version_readable,
    workers_left,
)
from clusterwright.controllers.kubeadmcontrolplane.snapshot import ControlPlaneDone
from clusterwright.tables import KEEP, OTHERWISE, Row, Table, message, unknown

# --------------------------------------------------------------------------------------------- preparation


class Preparation(Enum):
    """The preparations before Machines are inspected."""

    NOTHING = "say that nothing can be looked at, and end"
    CERTIFICATES = "look after certificates; say that nothing can be looked at, and end"
    ALL = "look after certificates, the kubeconfig and what Machines should be, and go on"


@message("<Kind> <namespace/name> does not exist")
def no_template(c: Snapshot) -> str:
    """Return the error of a missing infrastructure template."""
    reference = c.object.spec.machine_template.spec.infrastructure_ref
    return f"{reference.kind} {c.key.namespace}/{reference.name} does not exist"


@message("<why the template cannot be used>")
def template_error(c: Snapshot) -> str:
    """Return why the template cannot be read."""
    return c.template.error if isinstance(c.template, Unreadable) else ""


# fmt: off
PREPARE: Table[Snapshot] = Table(
    "Prepare",
    Row("template-unreadable", template_unreadable,         KEEP, error=template_error),
    Row("template-missing",    template_missing,            KEEP, error=no_template),
    Row("infrastructure",      ~infrastructure_provisioned, unknown("InspectionFailed", "Waiting for Cluster status.infrastructureReady to be true"), act=Preparation.NOTHING),
    Row("endpoint",            ~has_endpoint,               unknown("InspectionFailed", "Waiting for Cluster spec.controlPlaneEndpoint to be set"),    act=Preparation.CERTIFICATES),
    Row("ready",               OTHERWISE,                   KEEP, act=Preparation.ALL),
    about="The prerequisites of looking at Machines. EtcdClusterHealthy and ControlPlaneComponentsHealthy report what is missing.",
    at_most_one=[(template_unreadable, template_missing)],
)
# fmt: on


# ------------------------------------------------------------------------------------ members, Machines that go


class MemberRemoval(Enum):
    """The action on members and Machines that leave; the pass ends with it."""

    REMOVE_MEMBER = "remove the etcd member, if those that stay and answer are a quorum"
    WAIT = "wait"
    RELEASE_MACHINE = "move the etcd leadership away, remove the etcd member, remove the pre-terminate hook"
    FINISH_UPDATES = "complete what was begun"


@message(
    "etcd member <name> does not have a corresponding Machine, it must be removed from the cluster but this operation can lead to quorum loss"
)
def stray_error(c: ControlPlaneDone) -> str:
    """Return the error about a member without a Machine."""
    stray = stray_member(c)
    return (
        f"etcd member {stray.name if stray else ''} does not have a corresponding Machine, it must be removed from the cluster but this "
        "operation can lead to quorum loss. Please check the etcd status"
    )


@message("failed to parse Kubernetes version <version>")
def version_error(c: Snapshot) -> str:
    """Return the error of an unreadable version, without which the order of hooks is unknown."""
    return f"failed to parse Kubernetes version {c.object.spec.version!r}"


# fmt: off
LEAVE: Table[ControlPlaneDone] = Table(
    "Leave",
    Row("stray-needed",       any_stray & stray_is_needed,    KEEP, error=stray_error),
    Row("stray",              any_stray,                      KEEP, act=MemberRemoval.REMOVE_MEMBER,  requeue=names.SOON),
    Row("released",           any_leaving & any_released,     KEEP, act=MemberRemoval.WAIT,           requeue=names.DELETE_WAIT),
    Row("version-unreadable", any_leaving & ~version_readable, KEEP, error=version_error),
    Row("let-go",             any_leaving & may_leave,        KEEP, act=MemberRemoval.RELEASE_MACHINE,         requeue=names.DELETE_WAIT),
    Row("leaving",            any_leaving,                    KEEP, act=MemberRemoval.WAIT,           requeue=names.DELETE_WAIT),
    Row("update-begun",       any_begun,                      KEEP, act=MemberRemoval.FINISH_UPDATES),
    Row("nobody",             OTHERWISE,                      KEEP),
    about="Removals come first: etcd members without a Machine, then one deleting Machine at a time; then interrupted in-place updates. If there are none, the pass continues.",
    assuming=[~stray_is_needed | any_stray, ~(any_released | may_leave) | any_leaving],
)
# fmt: on


# --------------------------------------------------------------------------------------------- rollout and scale


class Scale(Enum):
    """The next scaling step towards the spec; the pass ends with it."""

    WAIT = "wait"
    PREPARE_ROLLOUT = "prepare the workload cluster for what is rolled out"
    SURGE = "prepare the workload cluster, then create one Machine that joins"
    REPLACE = "prepare the workload cluster, then update one Machine in place or delete one"
    INITIALIZE = "create the first Machine"
    CREATE = "create one Machine that joins"
    DELETE = "delete one Machine"
    TEND = "sweep up what was made for no Machine, update kube-proxy and CoreDNS, write down when certificates expire"


# fmt: off
SCALE: Table[Snapshot] = Table(
    "Scale",
    Row("updating",       any_updating,                      KEEP, act=Scale.WAIT),
    Row("other-strategy", any_to_roll_out & ~rolling_update, KEEP, act=Scale.PREPARE_ROLLOUT),
    Row("surge",          any_to_roll_out & below_surge,     KEEP, act=Scale.SURGE),
    Row("replace",        any_to_roll_out,                   KEEP, act=Scale.REPLACE),
    Row("replicas-unset", ~replicas_set,                     KEEP, act=Scale.WAIT),
    Row("initialize",     ~enough & no_machines,             KEEP, act=Scale.INITIALIZE),
    Row("create",         ~enough,                           KEEP, act=Scale.CREATE),
    Row("delete",         ~not_too_many,                     KEEP, act=Scale.DELETE),
    Row("steady",         OTHERWISE,                         KEEP, act=Scale.TEND),
    about="The actions on the Machines, one at a time, once no removal and no remediation is left. Machines are added and removed only if the preflight checks pass.",
    assuming=[enough | not_too_many, ~(no_machines & (any_updating | any_to_roll_out | ~not_too_many)), replicas_set | enough, enough | below_surge],
)
# fmt: on


# ----------------------------------------------------------------------------------------------------- deletion


class Deletion(Enum):
    """The next step of the deletion of a control plane."""

    RELEASE = "remove the finalizer"
    WAIT = "wait for the workers to go"
    DELETE = "delete all Machines, without regard to etcd"


@message("failed to list descendants: <error>")
def descendants_error(c: Snapshot) -> str:
    """Return the error of unknown descendants, without which nothing is deleted."""
    return f"failed to list descendants: {c.descendants.error if isinstance(c.descendants, Unreadable) else ''}"


# fmt: off
DELETE: Table[Snapshot] = Table(
    "Delete",
    Row("gone",         no_machines,          KEEP, act=Deletion.RELEASE),
    Row("unlisted",     descendants_unlisted, KEEP, error=descendants_error),
    Row("workers-left", workers_left,         KEEP, act=Deletion.WAIT,   requeue=names.DELETE_WAIT),
    Row("delete",       OTHERWISE,            KEEP, act=Deletion.DELETE, requeue=names.DELETE_WAIT),
    about="Deleting a control plane: workers first, then all Machines at once; etcd goes down with them.",
    at_most_one=[(descendants_unlisted, workers_left)],
    assuming=[~(no_machines & (descendants_unlisted | workers_left))],
)
# fmt: on
