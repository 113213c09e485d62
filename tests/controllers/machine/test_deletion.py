"""When a deletion may touch the Node, what it waits for, and when it gives up."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from clusterwright.api.core import Machine, MachineDeletionSpec, MachineDeletionStatus, MachineSpec, MachineStatus
from clusterwright.api.meta import ObjectMeta, OwnerReference, Unstructured
from clusterwright.controllers.machine import deletion
from clusterwright.controllers.machine.deletion import HandlingSnapshot
from clusterwright.controllers.machine.snapshot import Found, Missing, NotReferenced, Unreadable

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

    drain = deletion.pre_drain_hooks(machine)

    assert deletion.waiting_for_pre_drain(drain).message == (
        "Waiting for pre-drain hooks to succeed "
        "(hooks: pre-drain.delete.hook.machine.cluster.x-k8s.io/a,pre-drain.delete.hook.machine.cluster.x-k8s.io/b)"
    )
    assert deletion.pre_terminate_hooks(machine) == ("pre-terminate.delete.hook.machine.cluster.x-k8s.io",)


# ------------------------------------------------------------------------------------------------- drain and volumes

STARTED = MachineDeletionStatus(
    node_drain_start_time=NOW - timedelta(seconds=60), wait_for_node_volume_detach_start_time=NOW - timedelta(seconds=60)
)
CONTROL_PLANE = {"cluster.x-k8s.io/control-plane": ""}
KCP_HOOK = {"pre-terminate.delete.hook.machine.cluster.x-k8s.io/kcp-cleanup": ""}


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
        pytest.param({"labels": CONTROL_PLANE, "owner": "KubeadmControlPlane"}, False, False, id="out-of-etcd-already"),
        pytest.param({"labels": CONTROL_PLANE, "owner": "KubeadmControlPlane", "annotations": KCP_HOOK}, True, True, id="still-in-etcd"),
        pytest.param({"labels": CONTROL_PLANE, "owner": "OtherControlPlane"}, True, True, id="another-control-plane"),
        pytest.param({"owner": "KubeadmControlPlane"}, True, True, id="no-control-plane-machine"),
    ],
)
def test_what_is_allowed(facts: Any, drain: bool, volumes: bool) -> None:
    machine = a_machine(**facts)

    assert deletion.drain_is_allowed(machine, NOW) is drain
    assert deletion.volume_wait_is_allowed(machine, NOW) is volumes


@pytest.mark.parametrize(("limit", "since", "stays"), [(10, 9, False), (10, 10, True), (0, 10_000, False), (None, 10_000, False)])
def test_when_a_node_that_cannot_be_deleted_is_left_behind(limit: int | None, since: int, stays: bool) -> None:
    machine = a_machine(spec=MachineDeletionSpec(node_deletion_timeout_seconds=limit), deleted_for=since)

    assert deletion.node_may_stay(machine, NOW) is stays


# ----------------------------------------------------------------------------------------------------- node handling


def control_plane(*, deleting: bool = False, external: Any = None) -> Found:
    metadata = {"name": "cp", **({"deletionTimestamp": "2026-05-01T11:00:00Z"} if deleting else {})}
    return Found(Unstructured({"kind": "X", "metadata": metadata, "status": {"externalManagedControlPlane": external}}))


@pytest.mark.parametrize(
    ("snapshot", "row", "status"),
    [
        pytest.param(HandlingSnapshot(cluster_deleting=True), "cluster-deleting", "Denied", id="cluster-deleting"),
        pytest.param(HandlingSnapshot(node_known=False), "no-node", "Denied", id="no-node"),
        pytest.param(HandlingSnapshot(control_plane=Unreadable(OSError("x"))), "control-plane-unreadable", None, id="unreadable"),
        pytest.param(HandlingSnapshot(control_plane=Missing()), "allowed", "Allowed", id="control-plane-missing"),
        pytest.param(
            HandlingSnapshot(control_plane=control_plane(deleting=True, external=True)), "control-plane-deleting", "Denied", id="going"
        ),
        pytest.param(
            HandlingSnapshot(control_plane=control_plane(external=True), control_planes_left=0),
            "externally-managed",
            "Allowed",
            id="external",
        ),
        pytest.param(
            HandlingSnapshot(control_plane=control_plane(external="yes"), control_planes_left=0),
            "last-control-plane",
            "Denied",
            id="not-a-boolean",
        ),
        pytest.param(HandlingSnapshot(control_planes_left=OSError("x")), "machines-unlisted", None, id="unlisted"),
        pytest.param(HandlingSnapshot(control_planes_left=0), "last-control-plane", "Denied", id="last"),
        pytest.param(HandlingSnapshot(control_plane=NotReferenced()), "allowed", "Allowed", id="allowed"),
    ],
)
def test_node_handling(snapshot: HandlingSnapshot, row: str, status: str | None) -> None:
    decision = deletion.NODE_HANDLING.decide(snapshot)

    assert decision.row == row
    assert (decision.outcome.status if decision.outcome else None) == status
    assert bool(decision.error) is (status is None)


def test_every_row_of_node_handling_is_tested() -> None:
    tested = {p.values[1] for p in test_node_handling.pytestmark[0].args[1]}  # type: ignore[attr-defined]

    assert tested == set(deletion.NODE_HANDLING.row_names)
