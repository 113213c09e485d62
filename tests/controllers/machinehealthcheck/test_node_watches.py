"""Which checks a change of a Node, a Machine or a Cluster starts a pass of."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from clusterwright.api.copying import replace
from clusterwright.api.core import Cluster, ClusterSpec, Machine, MachineNodeReference, MachineStatus
from clusterwright.api.kubernetes import Node, NodeCondition, NodeStatus
from clusterwright.api.meta import Condition, GroupVersionKind, ObjectKey, ObjectMeta, Unstructured
from clusterwright.controllers.machinehealthcheck.build import CONTROLLER
from clusterwright.controllers.machinehealthcheck.node_watches import NodeWatches

NOW = datetime(2026, 5, 1, 12, tzinfo=UTC)
CLUSTER, OTHER = ObjectKey("ns1", "c1"), ObjectKey("ns1", "c2")
FIRST, SECOND = ObjectKey("ns1", "first"), ObjectKey("ns1", "second")
TEMPLATE = (GroupVersionKind("g.io", "v1", "RebootTemplate"), ObjectKey("ns1", "rt"))


class Woken(list[str]):
    def __call__(self, key: ObjectKey, reason: str) -> None:
        self.append(key.name)


def a_machine(name: str, node: str = "n1") -> Machine:
    ref = MachineNodeReference(name=node) if node else None
    return Machine(metadata=ObjectMeta(name=name, namespace="ns1"), status=MachineStatus(node_ref=ref))


def a_node(name: str = "n1", ready: str = "True", beat: int = 0, deleting: bool = False) -> Node:
    condition = NodeCondition(type="Ready", status=ready, last_heartbeat_time=NOW + timedelta(seconds=beat))
    return Node(metadata=ObjectMeta(name=name, deletion_timestamp=NOW if deleting else None), status=NodeStatus(conditions=(condition,)))


def test_a_node_claimed_by_two_machines_wakes_no_check() -> None:
    woken = Woken()
    watches = NodeWatches(woken)
    watches.learn(FIRST, CLUSTER, [a_machine("m1"), a_machine("m2")], None)

    watches.node_changed(CLUSTER)(a_node())

    assert woken == []


def test_every_check_that_looks_after_the_machine_is_woken_and_none_of_another_cluster() -> None:
    woken = Woken()
    watches = NodeWatches(woken)
    watches.learn(FIRST, CLUSTER, [a_machine("m1")], None)
    watches.learn(SECOND, CLUSTER, [a_machine("m1"), a_machine("m2", "n2")], None)
    watches.learn(ObjectKey("ns1", "third"), OTHER, [a_machine("m1")], None)

    watches.node_changed(CLUSTER)(a_node())

    assert woken == ["first", "second"]


def test_heartbeats_wake_no_check_but_conditions_and_deletion_do() -> None:
    woken = Woken()
    watches = NodeWatches(woken)
    watches.learn(FIRST, CLUSTER, [a_machine("m1")], None)
    notify = watches.node_changed(CLUSTER)

    for node in (a_node(), a_node(beat=10), a_node(ready="False"), a_node(ready="False", beat=20), a_node(deleting=True)):
        notify(node)

    assert woken == ["first"] * 3


def test_a_check_that_is_gone_or_moved_on_is_not_woken() -> None:
    woken = Woken()
    watches = NodeWatches(woken)
    watches.learn(FIRST, CLUSTER, [a_machine("m1")], None)
    watches.learn(SECOND, CLUSTER, [a_machine("m1")], None)

    watches.forget(FIRST)
    watches.learn(SECOND, CLUSTER, [], None)
    watches.node_changed(CLUSTER)(a_node())

    assert woken == []


async def test_templates_and_requests_wake_the_checks_that_use_them() -> None:
    watches = NodeWatches(Woken())
    watches.learn(FIRST, CLUSTER, [a_machine("m1")], TEMPLATE)
    watches.learn(SECOND, CLUSTER, [a_machine("m1")], None)
    template = Unstructured({"apiVersion": "g.io/v1", "kind": "RebootTemplate", "metadata": {"name": "rt", "namespace": "ns1"}})
    request = Unstructured({"apiVersion": "g.io/v1", "kind": "Reboot", "metadata": {"name": "m1", "namespace": "ns1"}})

    assert await watches.of_template(template, None) == (FIRST,)  # type: ignore[arg-type]
    assert await watches.of_request(request, None) == (FIRST,)  # type: ignore[arg-type]


def with_condition(machine: Machine, type: str, status: str) -> Machine:
    return replace(machine, status=replace(machine.status, conditions=(Condition(type=type, status=status),)))


@pytest.mark.parametrize(
    ("new", "wakes"),
    [
        pytest.param(with_condition(a_machine("m1"), "HealthCheckSucceeded", "False"), False, id="our-own-verdict"),
        pytest.param(with_condition(a_machine("m1"), "InfrastructureReady", "False"), True, id="another-condition"),
        pytest.param(a_machine("m1", "n2"), True, id="node"),
        pytest.param(Machine(metadata=ObjectMeta(name="m1", labels={"a": "b"}), status=a_machine("m1").status), True, id="labels"),
    ],
)
def test_only_relevant_changes_of_a_machine_count(new: Machine, wakes: bool) -> None:
    when = next(w.when for w in CONTROLLER.watches if w.kind is Machine)
    assert when is not None

    assert when(a_machine("m1"), new) is wakes


@pytest.mark.parametrize(("change", "wakes"), [({"paused": True}, True), ({"paused": False}, False)])
def test_only_relevant_changes_of_a_cluster_count(change: Any, wakes: bool) -> None:
    when = next(w.when for w in CONTROLLER.watches if w.kind is Cluster)
    assert when is not None

    assert when(Cluster(), Cluster(spec=ClusterSpec(**change))) is wakes
