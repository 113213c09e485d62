"""The phases as tables: each changes the Cluster in memory, and returns actions and the next requeue. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from enum import Enum
from typing import assert_never

from clusterwright.api.copying import replace
from clusterwright.api.core import Cluster, ClusterInitializationStatus, ClusterStatus
from clusterwright.api.meta import GroupVersionKind, Json, ObjectKey, Unstructured
from clusterwright.api.wellknown import CLUSTER_NAME_LABEL, CORE_GROUP, OK_TO_DELETE_ANNOTATION
from clusterwright.conditions import names_with_limit
from clusterwright.conditions.limits import cut
from clusterwright.controllers.cluster.guards import (
    CONTROL_PLANE,
    INFRASTRUCTURE,
    control_plane_deleting,
    control_plane_endpoint_garbled,
    control_plane_found,
    control_plane_garbled,
    control_plane_missing,
    control_plane_ready,
    control_plane_unreadable,
    deleting,
    descendants_listed,
    endpoint_valid,
    failure_domains_garbled,
    infrastructure_deleting,
    infrastructure_endpoint_garbled,
    infrastructure_found,
    infrastructure_garbled,
    infrastructure_missing,
    infrastructure_ready,
    infrastructure_unreadable,
    initialized,
    no_control_plane_ref,
    no_infrastructure_ref,
    provisioned,
    topology,
)
from clusterwright.controllers.cluster.providers import Found, Garbled, Lookup
from clusterwright.controllers.cluster.snapshot import (
    Child,
    ClusterSnapshot,
    Descendants,
    has_topology,
    owned_children,
)
from clusterwright.controllers.external import AlreadyControlled, refers_to
from clusterwright.controllers.kit.adopt import owned_metadata, owner_reference
from clusterwright.controllers.kit.conditions import CHECK_LOGS, with_v1beta1_status
from clusterwright.controllers.kit.lookup import Unreadable, names_anything
from clusterwright.tables import KEEP, OTHERWISE, Message, Row, Table, guard, message, true

MOST_FAILURE_MESSAGE = 10240
EXTERNAL_WAIT = timedelta(seconds=30)
DELETE_POLL = timedelta(seconds=5)

Snapshot = ClusterSnapshot


# ------------------------------------------------------------------------------ making objects ours


class BelongsToAnother(AlreadyControlled):
    """A provider's object belongs to another Cluster."""


def adoption(cluster: Cluster, obj: Unstructured) -> Json | None:
    """Return the merge patch that makes the Cluster an owner of a provider's object; None if it is. Raises AlreadyControlled (BelongsToAnother is one).

    The Cluster is the controller only of objects that its topology made; otherwise a plain owner. An object that has the label and a
    reference of another Cluster stays with that one: two Clusters that name the same object would rewrite its label in turn, without end.
    """
    label = obj.metadata.labels.get(CLUSTER_NAME_LABEL, "")
    if label not in ("", cluster.metadata.name) and any(refers_to(r, CORE_GROUP, "Cluster", label) for r in obj.metadata.owner_references):
        raise BelongsToAnother(f"already belongs to Cluster {label}")
    owner = owner_reference(cluster, controller=has_topology(cluster))
    return owned_metadata(obj, owner, {CLUSTER_NAME_LABEL: cluster.metadata.name})


# ------------------------------------------------------------------------- changes to the Cluster itself


class Copy(Enum):
    """The values that the Cluster copies from a provider's object, in memory."""

    NO_INFRASTRUCTURE = "set status.initialization.infrastructureProvisioned=true"
    INFRASTRUCTURE_ENDPOINT = "copy the endpoint of the infrastructure, unless there is a valid one"
    INFRASTRUCTURE = "copy its endpoint, unless there is a valid one; replace status.failureDomains; set infrastructureProvisioned=true"
    CONTROL_PLANE = "copy its endpoint, unless there is a valid one; set controlPlaneInitialized=true"


def copied(seen: Snapshot, what: Copy | None) -> Cluster:
    """Return the Cluster with the copied values."""
    cluster = seen.cluster
    match what:
        case None:
            return cluster
        case Copy.NO_INFRASTRUCTURE:
            return replace(cluster, status=_initialization(cluster.status, infrastructure_provisioned=True))
        case Copy.INFRASTRUCTURE_ENDPOINT:
            return _with_endpoint(seen, seen.infrastructure)
        case Copy.INFRASTRUCTURE:
            cluster, found = _with_endpoint(seen, seen.infrastructure), seen.infrastructure
            status = cluster.status
            if isinstance(found, Found) and not isinstance(found.failure_domains, Garbled):
                status = replace(status, failure_domains=found.failure_domains)
            return replace(cluster, status=_initialization(status, infrastructure_provisioned=True))
        case Copy.CONTROL_PLANE:
            cluster = _with_endpoint(seen, seen.control_plane)
            return replace(cluster, status=_initialization(cluster.status, control_plane_initialized=True))
        case never:
            assert_never(never)


def _with_endpoint(seen: Snapshot, source: Lookup) -> Cluster:
    if not isinstance(source, Found) or isinstance(source.endpoint, Garbled) or seen.endpoint_valid:
        return seen.cluster
    return replace(seen.cluster, spec=replace(seen.cluster.spec, control_plane_endpoint=source.endpoint))


def _initialization(status: ClusterStatus, **done: bool) -> ClusterStatus:
    now = replace(status.initialization or ClusterInitializationStatus(), **done)
    return status if now == status.initialization else replace(status, initialization=now)


def with_failures(cluster: Cluster, *lookups: Lookup) -> Cluster:
    """Return the Cluster with the terminal failures that its objects report under the old contract; they are never removed."""
    for found in lookups:
        if not isinstance(found, Found) or not (found.failure_reason or found.failure_message):
            continue
        if found.failure_reason:
            cluster = with_v1beta1_status(cluster, failure_reason=found.failure_reason)
        if found.failure_message:
            gvk = found.object.gvk
            text = f"Failure detected from referenced resource {gvk.api_version}, Kind={gvk.kind}"
            said = f'{text} with name "{found.object.key.name}": {found.failure_message}'
            cluster = with_v1beta1_status(cluster, failure_message=cut(said, MOST_FAILURE_MESSAGE))
    return cluster


# -------------------------------------------------------------------------------------- infrastructure


@message("<Kind> has been deleted after being provisioned")
def deleted_after_provisioned(c: Snapshot) -> str:
    return f"{c.infrastructure_kind} has been deleted after being provisioned"


@message("<the error>")
def infrastructure_error(c: Snapshot) -> str:
    return _error(c.infrastructure, "ready")


@message(
    "failed to retrieve spec.controlPlaneEndpoint from infrastructure provider for Cluster <name> in namespace <namespace>: <the error>"
)
def infrastructure_endpoint_error(c: Snapshot) -> str:
    return _field_error(c, c.infrastructure, "endpoint", "spec.controlPlaneEndpoint", "infrastructure")


@message("failed to retrieve status.failureDomains from infrastructure provider for Cluster <name> in namespace <namespace>: <the error>")
def failure_domains_error(c: Snapshot) -> str:
    return _field_error(c, c.infrastructure, "failure_domains", "status.failureDomains", "infrastructure")


def _error(lookup: Lookup, field: str) -> str:
    if isinstance(lookup, Unreadable):
        return lookup.error
    value = getattr(lookup, field, None)
    return value.error if isinstance(value, Garbled) else ""


def _field_error(c: Snapshot, lookup: Lookup, field: str, path: str, provider: str) -> str:
    meta = c.metadata
    where = f'from {provider} provider for Cluster "{meta.name}" in namespace "{meta.namespace}"'
    return f"failed to retrieve {path} {where}: {_error(lookup, field)}"


# fmt: off
RECONCILE_INFRASTRUCTURE: Table[Snapshot] = Table(
    "reconcileInfrastructure",
    Row("no-ref-deleting",            no_infrastructure_ref & deleting,                       KEEP),
    Row("no-ref",                     no_infrastructure_ref,                                  KEEP, act=Copy.NO_INFRASTRUCTURE),
    Row("missing-deleting",           infrastructure_missing & deleting,                      KEEP, "tolerate"),
    Row("missing-after-provisioned",  infrastructure_missing & provisioned,                   KEEP, error=deleted_after_provisioned),
    Row("missing",                    infrastructure_missing,                                 KEEP, "wait for the object", requeue=EXTERNAL_WAIT),
    Row("unreadable",                 infrastructure_unreadable,                              KEEP, error=infrastructure_error),
    Row("garbled",                    infrastructure_garbled,                                 KEEP, error=infrastructure_error),
    Row("object-deleting",            infrastructure_found & infrastructure_deleting,         KEEP),
    Row("not-provisioned",            infrastructure_found & ~infrastructure_ready & ~provisioned, KEEP, "log and wait"),
    Row("endpoint-garbled",           infrastructure_endpoint_garbled & ~endpoint_valid,      KEEP, error=infrastructure_endpoint_error),
    Row("failure-domains-garbled",    failure_domains_garbled,                                KEEP, act=Copy.INFRASTRUCTURE_ENDPOINT, error=failure_domains_error),
    Row("provisioned",                infrastructure_found,                                   KEEP, act=Copy.INFRASTRUCTURE),
    about="The phase of `spec.infrastructureRef`. Before it, the object was adopted (owner reference and cluster label).",
    exactly_one=[INFRASTRUCTURE],
    assuming=[~infrastructure_garbled | infrastructure_found, ~infrastructure_ready | infrastructure_found, ~infrastructure_deleting | infrastructure_found,
              ~infrastructure_endpoint_garbled | infrastructure_found, ~failure_domains_garbled | infrastructure_found],
)
# fmt: on


# --------------------------------------------------------------------------------------- control plane


@message("<Kind> has been deleted after being initialized")
def deleted_after_initialized(c: Snapshot) -> str:
    return f"{c.control_plane_kind} has been deleted after being initialized"


@message("<the error>")
def control_plane_error(c: Snapshot) -> str:
    return _error(c.control_plane, "ready")


@message(
    "failed to retrieve spec.controlPlaneEndpoint from control plane provider for Cluster <name> in namespace <namespace>: <the error>"
)
def control_plane_endpoint_error(c: Snapshot) -> str:
    return _field_error(c, c.control_plane, "endpoint", "spec.controlPlaneEndpoint", "control plane")


# fmt: off
RECONCILE_CONTROL_PLANE: Table[Snapshot] = Table(
    "reconcileControlPlane",
    Row("no-ref",                     no_control_plane_ref,                                   KEEP),
    Row("missing-deleting",           control_plane_missing & deleting,                       KEEP, "tolerate"),
    Row("missing-after-initialized",  control_plane_missing & initialized,                    KEEP, error=deleted_after_initialized),
    Row("missing",                    control_plane_missing,                                  KEEP, "wait for the object", requeue=EXTERNAL_WAIT),
    Row("unreadable",                 control_plane_unreadable,                               KEEP, error=control_plane_error),
    Row("garbled",                    control_plane_garbled,                                  KEEP, error=control_plane_error),
    Row("object-deleting",            control_plane_found & control_plane_deleting,           KEEP),
    Row("not-initialized",            control_plane_found & ~control_plane_ready & ~initialized, KEEP, "log and wait"),
    Row("endpoint-garbled",           control_plane_endpoint_garbled & ~endpoint_valid,       KEEP, error=control_plane_endpoint_error),
    Row("initialized",                control_plane_found,                                    KEEP, act=Copy.CONTROL_PLANE),
    about="The phase of `spec.controlPlaneRef`. Before it, the object was adopted (owner reference and cluster label).",
    exactly_one=[CONTROL_PLANE],
    assuming=[~control_plane_garbled | control_plane_found, ~control_plane_ready | control_plane_found, ~control_plane_deleting | control_plane_found,
              ~control_plane_endpoint_garbled | control_plane_found],
)
# fmt: on


# ---------------------------------------------------------------------------------------------- deletion


class Deletion(Enum):
    """The next step in the deletion of a Cluster."""

    DELETE_CHILDREN = "delete owned children that are not being deleted"
    DELETE_CONTROL_PLANE = "delete the control plane if it is not being deleted"
    AWAIT_INFRASTRUCTURE = "wait until the infrastructure can be read"
    DELETE_INFRASTRUCTURE = "delete the infrastructure if it is not being deleted"
    REMOVE_FINALIZER = "remove the finalizer"


PAST_CONTROL_PLANE = frozenset({Deletion.AWAIT_INFRASTRUCTURE, Deletion.DELETE_INFRASTRUCTURE, Deletion.REMOVE_FINALIZER})
"""Actions that follow only when no control plane is left."""


@dataclass(frozen=True, slots=True)
class Delete:
    """Delete an object that is not being deleted yet; an object that is gone already is not an error."""

    kind: GroupVersionKind
    key: ObjectKey
    uid: str = ""


@guard("RuntimeSDK + ClusterTopology enabled")
def hooks_enabled(c: Snapshot) -> bool:
    return c.features.get("RuntimeSDK", False) and c.features.get("ClusterTopology", False)


@guard("hooks.IsOkToDelete")
def ok_to_delete(c: Snapshot) -> bool:
    return OK_TO_DELETE_ANNOTATION in c.metadata.annotations


@guard("filterOwnedDescendants error")
def children_unclear(c: Snapshot) -> bool:
    return bool(_children_error(c))


@guard("has owned children not already deleting")
def children_to_delete(c: Snapshot) -> bool:
    return bool(_deletions_of_children(c))


@guard("objectsPendingDeleteCount > 0")
def descendants_pending(c: Snapshot) -> bool:
    return pending_count(c) > 0


def _children_error(c: Snapshot) -> str:
    try:
        owned_children(c)
    except ValueError as error:
        return f"failed to extract direct descendants: {error}"
    return ""


children_error: Message[Snapshot] = Message("failed to extract direct descendants: <the error>", _children_error)


def _deletions_of_children(c: Snapshot) -> tuple[Delete, ...]:
    try:
        children = owned_children(c)
    except ValueError:
        return ()
    return tuple(
        Delete(GroupVersionKind.of(o.api_version, o.kind), o.key, o.metadata.uid) for o in children if o.metadata.deletion_timestamp is None
    )


def _deletion_of(lookup: Lookup) -> tuple[Delete, ...]:
    if not isinstance(lookup, Found) or lookup.deleting:
        return ()
    return (Delete(lookup.object.gvk, lookup.object.key, lookup.object.metadata.uid),)


def pending_count(c: Snapshot) -> int:
    """Return how many descendants must go before the control plane may; the owner of control-plane Machines deletes those."""
    return sum(len(names) for _, names in _pending(c))


def _pending(c: Snapshot) -> list[tuple[str, list[str]]]:
    all_of = c.descendants or Descendants()
    groups: list[tuple[str, Sequence[Child]]] = []
    if not names_anything(c.cluster.spec.control_plane_ref):
        groups.append(("Control plane Machines", all_of.control_plane_machines))
    groups += [("MachineDeployments", all_of.machine_deployments), ("MachineSets", all_of.machine_sets)]
    groups += [("MachinePools", all_of.machine_pools), ("Worker Machines", all_of.worker_machines)]
    return [(title, sorted(o.metadata.name for o in objects)) for title, objects in groups if objects]


@message("* <Kinds>: <first five names>, ... (<N> more)")
def pending_descendants(c: Snapshot) -> str:
    return "\n".join(f"* {title}: {names_with_limit(names, 5)}" for title, names in _pending(c))


@message("Waiting for <Kind> to be deleted")
def waiting_for_control_plane(c: Snapshot) -> str:
    return f"Waiting for {c.control_plane_kind} to be deleted"


@message("Waiting for <Kind> to be deleted")
def waiting_for_infrastructure(c: Snapshot) -> str:
    return f"Waiting for {c.infrastructure_kind} to be deleted"


def deletions(seen: Snapshot, act: Deletion | None) -> tuple[Delete, ...]:
    """Return the objects that an action of the deletion deletes."""
    match act:
        case Deletion.DELETE_CHILDREN:
            return _deletions_of_children(seen)
        case Deletion.DELETE_CONTROL_PLANE:
            return _deletion_of(seen.control_plane)
        case Deletion.DELETE_INFRASTRUCTURE:
            return _deletion_of(seen.infrastructure)
        case Deletion.AWAIT_INFRASTRUCTURE | Deletion.REMOVE_FINALIZER | None:
            return ()
        case never:
            assert_never(never)


# fmt: off
RECONCILE_DELETE: Table[Snapshot] = Table(
    "reconcileDelete",
    Row("hook-pending",             hooks_enabled & topology & ~ok_to_delete, true("WaitingForBeforeDeleteHook", "Waiting for BeforeClusterDelete hook")),
    Row("descendants-unlisted",     ~descendants_listed,                      true("InternalError", CHECK_LOGS)),
    Row("children-unclear",         children_unclear,                         true("InternalError", CHECK_LOGS), error=children_error),
    Row("children-remain",          children_to_delete & descendants_pending, true("WaitingForWorkersDeletion", pending_descendants), requeue=DELETE_POLL, act=Deletion.DELETE_CHILDREN),
    Row("descendants-pending",      descendants_pending,                      true("WaitingForWorkersDeletion", pending_descendants), "wait", DELETE_POLL),
    Row("control-plane-unreadable", control_plane_unreadable,                 true("InternalError", CHECK_LOGS)),
    Row("control-plane-remains",    control_plane_found,                      true("WaitingForControlPlaneDeletion", waiting_for_control_plane), act=Deletion.DELETE_CONTROL_PLANE),
    Row("infrastructure-unreadable", infrastructure_unreadable,               true("InternalError", CHECK_LOGS), act=Deletion.AWAIT_INFRASTRUCTURE),
    Row("infrastructure-remains",   infrastructure_found,                     true("WaitingForInfrastructureDeletion", waiting_for_infrastructure), act=Deletion.DELETE_INFRASTRUCTURE),
    Row("completed",                OTHERWISE,                                true("DeletionCompleted", "Deletion completed"), act=Deletion.REMOVE_FINALIZER),
    about="The strict order of deletion. The row that fires also gives the `Deleting` condition its reason and message.",
    exactly_one=[INFRASTRUCTURE, CONTROL_PLANE],
    assuming=[~children_to_delete | descendants_pending, descendants_listed | ~descendants_pending, descendants_listed | ~children_unclear],
)
# fmt: on
