"""Changes in a workload cluster wake the right Machine, and a drain asks it no more often than it must."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from clusterwright.api.core import Machine, MachineNodeReference, MachineSpec, MachineStatus
from clusterwright.api.kubernetes import Node, NodeSpec, Pod, PodSpec, PodStatus, VolumeAttachment, VolumeAttachmentSpec
from clusterwright.api.meta import ObjectKey, ObjectMeta
from clusterwright.controllers.machine.node_shutdown import Shutdown
from clusterwright.controllers.machine.node_watches import SHORTEST_REST, NodeWatches

NOW = datetime(2026, 5, 1, 12, tzinfo=UTC)
CLUSTER = ObjectKey("ns1", "c1")
RETRY = timedelta(seconds=20)


def a_machine(name: str = "m1", node: str = "", provider_id: str = "") -> Machine:
    ref = MachineNodeReference(name=node) if node else None
    return Machine(
        metadata=ObjectMeta(name=name, namespace="ns1"), spec=MachineSpec(provider_id=provider_id), status=MachineStatus(node_ref=ref)
    )


def a_node(name: str = "n1", provider_id: str = "", **annotations: str) -> Node:
    return Node(metadata=ObjectMeta(name=name, annotations=annotations), spec=NodeSpec(provider_id=provider_id))


def unwatched(cluster: ObjectKey, watcher: str, kind: Any) -> None:
    raise AssertionError("no watch was needed")


class Woken(list[str]):
    def __call__(self, key: ObjectKey, reason: str) -> None:
        self.append(key.name)


@pytest.mark.parametrize(
    ("machines", "node", "expected"),
    [
        pytest.param([a_machine(node="n1")], a_node(), ["m1"], id="by-name"),
        pytest.param([a_machine(provider_id="p1")], a_node(provider_id="p1"), ["m1"], id="by-provider-id"),
        pytest.param([a_machine("m1", node="n1"), a_machine("m2", provider_id="p1")], a_node(provider_id="p1"), ["m1"], id="name-first"),
        pytest.param([a_machine("m1", provider_id="p1"), a_machine("m2", provider_id="p1")], a_node(provider_id="p1"), [], id="ambiguous"),
        pytest.param([a_machine(node="n1")], a_node("n2", "p9"), [], id="nobody"),
        pytest.param([a_machine()], a_node(), [], id="no-provider-id-is-no-match"),
    ],
)
def test_a_node_wakes_its_machine(machines: Any, node: Node, expected: Any) -> None:
    woken = Woken()
    watches = NodeWatches(woken, unwatched)
    for machine in machines:
        watches.learn(machine, CLUSTER)

    watches.node_changed(CLUSTER)(node)

    assert woken == expected


def test_a_node_annotated_for_another_cluster_wakes_no_machine() -> None:
    woken = Woken()
    watches = NodeWatches(woken, unwatched)
    watches.learn(a_machine(node="n1"), CLUSTER)
    claimed = {"cluster.x-k8s.io/cluster-name": "c2", "cluster.x-k8s.io/cluster-namespace": "ns1"}

    watches.node_changed(CLUSTER)(a_node(**claimed))

    assert woken == []


def test_a_machine_that_changed_its_node_or_is_gone_is_not_woken_by_the_old_one() -> None:
    woken = Woken()
    watches = NodeWatches(woken, unwatched)
    watches.learn(a_machine(node="n1"), CLUSTER)
    watches.learn(a_machine(node="n2"), CLUSTER)
    watches.node_changed(CLUSTER)(a_node("n1"))
    watches.forget(ObjectKey("ns1", "m1"))
    watches.node_changed(CLUSTER)(a_node("n2"))

    assert woken == []
    assert not watches._by_name


def resting() -> tuple[NodeWatches, Woken, ObjectKey]:
    woken = Woken()
    watches = NodeWatches(woken, unwatched)
    machine = a_machine(node="n1")
    watches.learn(machine, CLUSTER)
    watches.begin_look(machine.key)
    watches.rest(machine.key, Shutdown.AWAIT_PODS, NOW, RETRY, "seen")
    return watches, woken, machine.key


def a_pod(*, phase: str = "Running", gone: bool = False, node: str = "n1") -> Pod:
    metadata = ObjectMeta(
        name="p", namespace="web", deletion_timestamp=NOW if gone else None, deletion_grace_period_seconds=0 if gone else None
    )
    return Pod(metadata=metadata, spec=PodSpec(node_name=node), status=PodStatus(phase=phase))


def test_a_machine_waits_until_its_time_or_until_a_relevant_change() -> None:
    watches, _, key = resting()

    rest = watches.resting(key, NOW + timedelta(seconds=5), "seen")

    assert rest is not None
    assert (rest.stage, rest.until) == (Shutdown.AWAIT_PODS, NOW + RETRY)
    assert watches.resting(key, NOW + timedelta(seconds=5), "something else") is None
    assert watches.resting(key, NOW + timedelta(seconds=5), "seen") is None


def test_however_much_changes_the_shortest_rest_is_kept() -> None:
    watches, _, key = resting()

    rest = watches.resting(key, NOW + SHORTEST_REST / 2, "something else")

    assert rest is not None
    assert rest.until == NOW + SHORTEST_REST


def test_the_rest_ends_with_its_time() -> None:
    watches, _, key = resting()

    assert watches.resting(key, NOW + RETRY, "seen") is None


@pytest.mark.parametrize(
    ("pod", "stirs"),
    [
        pytest.param(a_pod(gone=True), True, id="gone"),
        pytest.param(a_pod(phase="Succeeded"), True, id="completed"),
        pytest.param(a_pod(), False, id="still-running"),
        pytest.param(a_pod(gone=True, node="n2"), False, id="of-another-node"),
    ],
)
def test_a_pod_that_leaves_its_node_shortens_the_rest(pod: Pod, stirs: bool) -> None:
    watches, woken, key = resting()

    watches.pod_changed(CLUSTER)(pod)

    assert bool(woken) is stirs
    rest = watches.resting(key, NOW, "seen")
    assert rest is not None
    assert rest.until == NOW + (SHORTEST_REST if stirs else RETRY)


def test_changes_during_a_check_are_not_missed() -> None:
    woken = Woken()
    watches = NodeWatches(woken, unwatched)
    machine = a_machine(node="n1")
    watches.learn(machine, CLUSTER)
    watches.begin_look(machine.key)
    watches.pod_changed(CLUSTER)(a_pod(gone=True))

    assert watches.rest(machine.key, Shutdown.AWAIT_PODS, NOW, RETRY, "seen") == SHORTEST_REST


def test_a_volume_attachment_shortens_the_rest() -> None:
    watches, woken, _ = resting()

    watches.attachment_changed(CLUSTER)(VolumeAttachment(spec=VolumeAttachmentSpec(node_name="n1")))

    assert woken == ["m1"]


def test_a_watch_ends_with_the_last_machine_that_needs_it() -> None:
    ended: list[Any] = []
    watches = NodeWatches(Woken(), lambda *watch: ended.append(watch))
    first, second = ObjectKey("ns1", "m1"), ObjectKey("ns1", "m2")
    for machine in (first, second):
        watches.needs_watch(machine, CLUSTER, "machine-pods", Pod)
    watches.needs_watch(first, CLUSTER, "machine-volumes", VolumeAttachment)
    watches.end_watches(first)
    partly = list(ended)
    watches.forget(second)
    watches.end_watches(second)

    assert partly == [(CLUSTER, "machine-volumes", VolumeAttachment)]
    assert ended == [*partly, (CLUSTER, "machine-pods", Pod)]
