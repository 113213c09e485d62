"""When a deletion may touch the Node, what it waits for, and when it gives up."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from clusterwright.api.core import Machine, MachineDeletionSpec, MachineDeletionStatus, MachineSpec, MachineStatus
from clusterwright.api.meta import ObjectKey, ObjectMeta, OwnerReference, Unstructured
from clusterwright.controllers.kit.lookup import Found, Lookup, Missing, NotReferenced, Unreadable
from clusterwright.controllers.machine import host_deletion, node_access, node_shutdown
from clusterwright.controllers.machine.drain import DrainPlan, DrainProgress
from clusterwright.controllers.machine.host_deletion import HostSnapshot, Remains
from clusterwright.controllers.machine.node_access import Access, Done, Failed, HandlingSnapshot, Untried
from clusterwright.controllers.machine.node_shutdown import ShutdownSnapshot
from clusterwright.controllers.machine.volumes import VolumeWait

NOW = datetime(2026, 5, 1, 12, tzinfo=UTC)


def a_machine(
    *, annotations: Any = None, labels: Any = None, owner: str = "", deleted_for: int = 0, spec: Any = None, status: Any = None
) -> Machine:
    owners = (OwnerReference(api_version="controlplane.cluster.x-k8s.io/v1beta2", kind=owner, name="kcp", uid="u"),) if owner else ()
    return Machine(
        metadata=ObjectMeta(
            name="m1",
            annotations=annotations or {},
            labels=labels or {},
            owner_references=owners,
            deletion_timestamp=NOW - timedelta(seconds=deleted_for),
        ),
        spec=MachineSpec(deletion=spec),
        status=MachineStatus(deletion=status),
    )


# ------------------------------------------------------------------------------------------------------------- hooks


def test_hooks_are_found_by_prefix_and_sorted() -> None:
    machine = a_machine(
        annotations={
            "pre-drain.delete.hook.machine.cluster.x-k8s.io/b": "",
            "pre-drain.delete.hook.machine.cluster.x-k8s.io/a": "",
            "pre-terminate.delete.hook.machine.cluster.x-k8s.io": "",
            "example.com/pre-drain.delete.hook.machine.cluster.x-k8s.io": "",
        }
    )

    waiting = node_shutdown.NODE_SHUTDOWN.decide(ShutdownSnapshot(machine=machine, host=HOST, now=NOW))

    assert waiting.outcome is not None
    assert waiting.outcome.message == (
        "Waiting for pre-drain hooks to succeed "
        "(hooks: pre-drain.delete.hook.machine.cluster.x-k8s.io/a,pre-drain.delete.hook.machine.cluster.x-k8s.io/b)"
    )
    assert node_access.pre_terminate_hooks(machine) == ("pre-terminate.delete.hook.machine.cluster.x-k8s.io",)


# ------------------------------------------------------------------------------------------------- drain and volumes

STARTED = MachineDeletionStatus(
    node_drain_start_time=NOW - timedelta(seconds=60), wait_for_node_volume_detach_start_time=NOW - timedelta(seconds=60)
)
CONTROL_PLANE = {"cluster.x-k8s.io/control-plane": ""}
PRE_TERMINATE_HOOK = {"pre-terminate.delete.hook.machine.cluster.x-k8s.io/kcp-cleanup": ""}
TERMINATING = MachineDeletionStatus(wait_for_pre_terminate_hook_start_time=NOW - timedelta(seconds=60))
HOST = Found(Unstructured({"kind": "DevMachine", "metadata": {"name": "m"}}))


@pytest.mark.parametrize(
    ("facts", "drain", "volumes"),
    [
        pytest.param({}, True, True, id="by-default"),
        pytest.param({"annotations": {"machine.cluster.x-k8s.io/exclude-node-draining": ""}}, False, True, id="drain-excluded"),
        pytest.param(
            {"annotations": {"machine.cluster.x-k8s.io/exclude-wait-for-node-volume-detach": ""}}, True, False, id="volumes-excluded"
        ),
        pytest.param({"spec": MachineDeletionSpec(node_drain_timeout_seconds=60), "status": STARTED}, False, True, id="drain-over"),
        pytest.param({"spec": MachineDeletionSpec(node_drain_timeout_seconds=61), "status": STARTED}, True, True, id="drain-not-over"),
        pytest.param(
            {"spec": MachineDeletionSpec(node_volume_detach_timeout_seconds=60), "status": STARTED}, True, False, id="volumes-over"
        ),
        pytest.param(
            {"spec": MachineDeletionSpec(node_drain_timeout_seconds=1, node_volume_detach_timeout_seconds=1)}, True, True, id="not-started"
        ),
        pytest.param({"spec": MachineDeletionSpec(node_drain_timeout_seconds=0), "status": STARTED}, True, True, id="no-limit"),
        pytest.param({"labels": CONTROL_PLANE, "owner": "KubeadmControlPlane", "status": TERMINATING}, False, False, id="terminating"),
        pytest.param(
            {"labels": CONTROL_PLANE, "owner": "OtherControlPlane", "status": TERMINATING}, False, False, id="other-control-plane"
        ),
        pytest.param({"status": TERMINATING}, False, False, id="terminating-worker"),
        pytest.param({"annotations": PRE_TERMINATE_HOOK}, True, True, id="hooked-but-not-waiting"),
    ],
)
def test_the_deletion_steps_are_allowed_in_the_right_cases(facts: Any, drain: bool, volumes: bool) -> None:
    machine = a_machine(**facts)

    assert node_access.drain_is_allowed(machine, HOST, NOW) is drain
    assert node_access.volume_wait_is_allowed(machine, HOST, NOW) is volumes


@pytest.mark.parametrize(
    ("host", "allowed"),
    [
        pytest.param(HOST, True, id="alive"),
        pytest.param(Found(Unstructured({"kind": "X", "metadata": {"deletionTimestamp": "2026-05-01T11:00:00Z"}})), False, id="deleting"),
        pytest.param(Missing(), False, id="gone"),
        pytest.param(Unreadable("x", OSError("x")), False, id="unreadable"),
    ],
)
def test_a_node_whose_machine_is_going_is_not_drained(host: Lookup, allowed: bool) -> None:
    assert node_access.drain_is_allowed(a_machine(), host, NOW) is allowed
    assert node_access.volume_wait_is_allowed(a_machine(), host, NOW) is allowed


def test_a_drain_is_not_given_up_because_the_machine_cannot_be_read_once() -> None:
    """With the wait for a pre-terminate hook the drain would be over for good."""
    hooked, host = a_machine(annotations=PRE_TERMINATE_HOOK), Unreadable("x", OSError("x"))

    assert node_access.drain_is_allowed(hooked, host, NOW)
    assert node_access.volume_wait_is_allowed(hooked, host, NOW)


@pytest.mark.parametrize(("limit", "since", "stays"), [(10, 9, False), (10, 10, True), (0, 10_000, False), (None, 10_000, False)])
def test_an_undeletable_node_is_abandoned_after_its_time_limit(limit: int | None, since: int, stays: bool) -> None:
    machine = a_machine(spec=MachineDeletionSpec(node_deletion_timeout_seconds=limit), deleted_for=since)

    assert node_access.node_may_stay(machine, NOW) is stays


# ----------------------------------------------------------------------------------------------------- node handling


def control_plane(*, deleting: bool = False, external: Any = None) -> Found:
    metadata = {"name": "cp", **({"deletionTimestamp": "2026-05-01T11:00:00Z"} if deleting else {})}
    return Found(Unstructured({"kind": "X", "metadata": metadata, "status": {"externalManagedControlPlane": external}}))


@pytest.mark.parametrize(
    ("snapshot", "row", "access"),
    [
        pytest.param(HandlingSnapshot(cluster_deleting=True), "cluster-deleting", Access.DENIED, id="cluster-deleting"),
        pytest.param(HandlingSnapshot(node_known=False), "no-node", Access.DENIED, id="no-node"),
        pytest.param(HandlingSnapshot(control_plane=Unreadable("x", OSError("x"))), "control-plane-unreadable", None, id="unreadable"),
        pytest.param(HandlingSnapshot(control_plane=Missing()), "allowed", Access.ALLOWED, id="control-plane-missing"),
        pytest.param(
            HandlingSnapshot(control_plane=control_plane(deleting=True, external=True)), "control-plane-deleting", Access.DENIED, id="going"
        ),
        pytest.param(
            HandlingSnapshot(control_plane=control_plane(external=True), control_planes_left=0),
            "externally-managed",
            Access.ALLOWED,
            id="external",
        ),
        pytest.param(
            HandlingSnapshot(control_plane=control_plane(external="yes"), control_planes_left=0),
            "last-control-plane",
            Access.DENIED,
            id="not-a-boolean",
        ),
        pytest.param(HandlingSnapshot(control_planes_left=OSError("x")), "machines-unlisted", None, id="unlisted"),
        pytest.param(HandlingSnapshot(control_planes_left=0), "last-control-plane", Access.DENIED, id="last"),
        pytest.param(HandlingSnapshot(control_plane=NotReferenced()), "allowed", Access.ALLOWED, id="allowed"),
    ],
)
def test_the_node_handling_table_decides_as_expected(snapshot: HandlingSnapshot, row: str, access: Access | None) -> None:
    decision = node_access.NODE_HANDLING.decide(snapshot)

    assert decision.row == row
    assert decision.chosen(Access) is access
    assert bool(decision.error) is (access is None)


def test_every_row_of_node_handling_is_tested() -> None:
    tested = {p.values[1] for p in test_the_node_handling_table_decides_as_expected.pytestmark[0].args[1]}  # type: ignore[attr-defined]

    assert tested == set(node_access.NODE_HANDLING.row_names)


# ----------------------------------------------------------------------------------------------------- release and removal

LEFT = DrainProgress(DrainPlan(terminating=(ObjectKey("default", "a"),)))
EXCLUDED = {"machine.cluster.x-k8s.io/exclude-node-draining": "", "machine.cluster.x-k8s.io/exclude-wait-for-node-volume-detach": ""}


@pytest.mark.parametrize(
    ("facts", "state", "row", "reason"),
    [
        pytest.param(
            {"annotations": {"pre-drain.delete.hook.machine.cluster.x-k8s.io": ""}},
            {},
            "pre-drain-hooks",
            "WaitingForPreDrainHook",
            id="hook",
        ),
        pytest.param({}, {"resting": True}, "resting", None, id="resting"),
        pytest.param({}, {}, "drain", None, id="drain"),
        pytest.param({}, {"drain": Failed(OSError("x"))}, "drain-failed", "DrainingNode", id="drain-failed"),
        pytest.param({}, {"drain": LEFT}, "draining", "DrainingNode", id="draining"),
        pytest.param({}, {"drain": Done()}, "look-at-volumes", None, id="drained"),
        pytest.param(
            {}, {"drain": Done(), "volumes": Failed(OSError("x"))}, "volumes-failed", "WaitingForVolumeDetach", id="volumes-failed"
        ),
        pytest.param(
            {}, {"drain": Done(), "volumes": VolumeWait(unclaimed=("v",))}, "volumes-attached", "WaitingForVolumeDetach", id="volumes"
        ),
        pytest.param({}, {"drain": Done(), "volumes": VolumeWait()}, "released", None, id="released"),
        pytest.param({"annotations": EXCLUDED}, {}, "released", None, id="all-excluded"),
    ],
)
def test_the_order_in_which_a_node_is_released(facts: Any, state: Any, row: str, reason: str | None) -> None:
    decision = node_shutdown.NODE_SHUTDOWN.decide(ShutdownSnapshot(machine=a_machine(**facts), host=HOST, now=NOW, **state))

    assert decision.row == row
    assert (decision.outcome.reason if decision.outcome else None) == reason
    assert (decision.requeue is not None) is (row in {"draining", "volumes-attached"})


GONE = {"infrastructure": Remains.GONE, "bootstrap": Remains.GONE}


@pytest.mark.parametrize(
    ("facts", "state", "row", "reason"),
    [
        pytest.param(
            {"annotations": {"pre-terminate.delete.hook.machine.cluster.x-k8s.io/a": ""}},
            {},
            "pre-terminate-hooks",
            "WaitingForPreTerminateHook",
            id="hook",
        ),
        pytest.param({}, {"infrastructure": Remains.ALIVE}, "delete-infrastructure", None, id="delete-infrastructure"),
        pytest.param(
            {}, {"infrastructure": Remains.REFUSED}, "infrastructure-undeletable", "InternalError", id="infrastructure-undeletable"
        ),
        pytest.param(
            {}, {"infrastructure": Remains.GOING}, "infrastructure-remains", "WaitingForInfrastructureDeletion", id="infrastructure"
        ),
        pytest.param({}, {"bootstrap": Remains.ALIVE}, "delete-bootstrap", None, id="delete-bootstrap"),
        pytest.param({}, {"bootstrap": Remains.REFUSED}, "bootstrap-undeletable", "InternalError", id="bootstrap-undeletable"),
        pytest.param({}, {"bootstrap": Remains.GOING}, "bootstrap-remains", "WaitingForBootstrapDeletion", id="bootstrap"),
        pytest.param({}, {"bootstrap": Remains.NEVER}, "delete-node", None, id="delete-node"),
        pytest.param({}, {"node": Failed(OSError("x"))}, "node-undeletable", "DeletingNode", id="node-undeletable"),
        pytest.param(
            {"spec": MachineDeletionSpec(node_deletion_timeout_seconds=10), "deleted_for": 10},
            {"node": Failed(OSError("x"))},
            "completed",
            "DeletionCompleted",
            id="node-left-behind",
        ),
        pytest.param({}, {"handles_node": False}, "completed", "DeletionCompleted", id="node-not-touched"),
        pytest.param({}, {"node": Done()}, "completed", "DeletionCompleted", id="completed"),
    ],
)
def test_the_order_in_which_a_machine_is_removed(facts: Any, state: Any, row: str, reason: str | None) -> None:
    snapshot = HostSnapshot(**{"machine": a_machine(**facts), "now": NOW, "handles_node": True, **GONE, **state})
    decision = host_deletion.HOST_DELETION.decide(snapshot)

    assert decision.row == row
    assert (decision.outcome.reason if decision.outcome else None) == reason


@pytest.mark.parametrize(
    ("test", "table"),
    [
        (test_the_order_in_which_a_node_is_released, node_shutdown.NODE_SHUTDOWN),
        (test_the_order_in_which_a_machine_is_removed, host_deletion.HOST_DELETION),
    ],
    ids=lambda x: getattr(x, "name", ""),
)
def test_every_row_of_the_orders_is_tested(test: Any, table: Any) -> None:
    assert {p.values[2] for p in test.pytestmark[0].args[1]} == set(table.row_names)


@pytest.mark.parametrize(
    ("lookup", "state"),
    [
        (NotReferenced(), Remains.NEVER),
        (Missing(), Remains.GONE),
        (Unreadable("x", OSError("x")), Remains.GOING),
        (control_plane(), Remains.ALIVE),
        (control_plane(deleting=True), Remains.GOING),
    ],
    ids=lambda x: type(x).__name__ if not isinstance(x, Remains) else x.name,
)
def test_the_state_of_an_object_during_deletion(lookup: Lookup, state: Remains) -> None:
    assert host_deletion.remains(lookup) is state


def test_an_action_that_did_not_run_is_untried() -> None:
    assert ShutdownSnapshot(machine=a_machine(), host=HOST, now=NOW).drain == Untried()
