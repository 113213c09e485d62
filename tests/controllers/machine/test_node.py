"""What a Machine makes of its Node."""

from __future__ import annotations

import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clusterwright.api.core import Machine, MachineDeployment, MachineSet, MachineSpec, MachineTaint
from clusterwright.api.kubernetes import Node, NodeCondition, NodeSpec, NodeStatus, Taint
from clusterwright.api.meta import ObjectKey, ObjectMeta, OwnerReference
from clusterwright.controllers.machine import node
from clusterwright.controllers.machine.node import Desired
from clusterwright.controllers.machine.snapshot import OwnerFacts

TRACKED = "cluster.x-k8s.io/taints-from-machine"
LABELS = "cluster.x-k8s.io/labels-from-machine"
ANNOTATIONS = "cluster.x-k8s.io/annotations-from-machine"


def a_node(*, taints: Any = (), labels: Any = None, annotations: Any = None, conditions: Any = (), provider_id: str = "p:///1") -> Node:
    return Node(
        metadata=ObjectMeta(name="n", resource_version="7", labels=labels or {}, annotations=annotations or {}),
        spec=NodeSpec(provider_id=provider_id, taints=tuple(taints)),
        status=NodeStatus(conditions=tuple(NodeCondition(type=t, status=s, message=m) for t, s, m in conditions)),
    )


def a_machine(*, labels: Any = None, annotations: Any = None, owner: str = "") -> Machine:
    owners = (OwnerReference(api_version="cluster.x-k8s.io/v1beta2", kind=owner, name="o", uid="u", controller=True),) if owner else ()
    metadata = ObjectMeta(name="m1", namespace="ns1", labels=labels or {}, annotations=annotations or {}, owner_references=owners)
    return Machine(metadata=metadata, spec=MachineSpec(cluster_name="c1"))


# -------------------------------------------------------------------------------------------------------- which node


def test_the_node_is_found_by_its_provider_id_letter_for_letter() -> None:
    assert node.node_with("p:///1", [a_node(provider_id="p:///10"), a_node()]) == a_node()
    assert node.node_with("P:///1", [a_node()]) is None


def test_two_nodes_with_one_provider_id_are_an_error() -> None:
    with pytest.raises(node.AmbiguousNode):
        node.node_with("p:///1", [a_node(), a_node()])


@pytest.mark.parametrize(("ready", "unreachable"), [("Unknown", True), ("False", False), ("True", False)])
def test_a_node_is_unreachable_if_ready_is_unknown(ready: str, unreachable: bool) -> None:
    assert node.is_unreachable(a_node(conditions=[("Ready", ready, "")])) is unreachable


# ------------------------------------------------------------------------------------------------ what is passed on


@pytest.mark.parametrize(
    ("key", "passed"),
    [
        ("node-role.kubernetes.io/worker", True),
        ("sub.node-role.kubernetes.io/worker", False),
        ("node-restriction.kubernetes.io/a", True),
        ("x.node-restriction.kubernetes.io/a", True),
        ("notnode-restriction.kubernetes.io/a", False),
        ("node.cluster.x-k8s.io/a", True),
        ("y.node.cluster.x-k8s.io/a", True),
        ("cluster.x-k8s.io/control-plane", False),
        ("example.com/extra-a", True),
        ("example.com/other", False),
    ],
)
def test_the_right_labels_are_copied_to_the_node(key: str, passed: bool) -> None:
    labels = node.labels_for_node(a_machine(labels={key: "v"}), interruptible=False, also=[re.compile("^example.com/extra-")])

    assert labels == ({key: "v"} if passed else {})


def test_an_interruptible_machine_marks_its_node() -> None:
    assert node.labels_for_node(a_machine(), interruptible=True) == {"cluster.x-k8s.io/interruptible": ""}


def test_annotations_are_those_of_the_domain_and_the_bookkeeping() -> None:
    machine = a_machine(
        annotations={"node.cluster.x-k8s.io/a": "1", "a.node.cluster.x-k8s.io/b": "2", "example.com/c": "3"}, owner="MachineSet"
    )

    assert node.annotations_for_node(machine) == {
        "node.cluster.x-k8s.io/a": "1",
        "a.node.cluster.x-k8s.io/b": "2",
        "cluster.x-k8s.io/cluster-name": "c1",
        "cluster.x-k8s.io/cluster-namespace": "ns1",
        "cluster.x-k8s.io/machine": "m1",
        "cluster.x-k8s.io/owner-kind": "MachineSet",
        "cluster.x-k8s.io/owner-name": "o",
    }


# ------------------------------------------------------------------------------------------------------------ patch


def test_an_up_to_date_node_is_not_patched() -> None:
    found = a_node(labels={"a": "1", "mine": "x"}, annotations={"b": "2", LABELS: "a", ANNOTATIONS: "b"})

    assert node.node_patch(found, Desired(labels={"a": "1"}, annotations={"b": "2"})) is None


def test_a_patch_adds_changes_and_removes_only_what_came_from_the_machine() -> None:
    found = a_node(
        labels={"old": "1", "same": "1", "changed": "1", "mine": "x"},
        annotations={LABELS: "old,same,changed", ANNOTATIONS: "gone", "gone": "1", "mine": "y"},
    )

    patch = node.node_patch(found, Desired(labels={"same": "1", "changed": "2", "new": "3"}, annotations={"fresh": "4"}))

    assert patch == {
        "metadata": {
            "resourceVersion": "7",
            "labels": {"old": None, "changed": "2", "new": "3"},
            "annotations": {LABELS: "changed,new,same", ANNOTATIONS: "fresh", "fresh": "4", "gone": None},
        }
    }


def test_the_uninitialized_taint_goes_with_the_first_sync_and_other_effects_of_it_stay() -> None:
    stays = Taint(key="node.cluster.x-k8s.io/uninitialized", effect="NoExecute")
    patch = node.node_patch(a_node(taints=[node.UNINITIALIZED, stays]), Desired(labels={}, annotations={}))

    assert patch is not None
    assert patch["spec"] == {"taints": [{"key": "node.cluster.x-k8s.io/uninitialized", "effect": "NoExecute"}]}


def test_the_last_taint_is_removed_as_a_field() -> None:
    patch = node.node_patch(a_node(taints=[node.UNINITIALIZED]), Desired(labels={}, annotations={}))

    assert patch is not None
    assert patch["spec"] == {"taints": None}


def test_taints_that_are_not_propagated_are_not_tracked() -> None:
    patch = node.node_patch(a_node(), Desired(labels={}, annotations={}, taints=None))

    assert patch is not None
    assert TRACKED not in patch["metadata"]["annotations"]


# ----------------------------------------------------------------------------------------------------------- taints


def always(key: str, value: str = "", effect: str = "NoSchedule") -> MachineTaint:
    return MachineTaint(key=key, value=value, effect=effect, propagation="Always")


def once(key: str, value: str = "", effect: str = "NoSchedule") -> MachineTaint:
    return MachineTaint(key=key, value=value, effect=effect, propagation="OnInitialization")


def taint(key: str, value: str = "", effect: str = "NoSchedule") -> Taint:
    return Taint(key=key, value=value, effect=effect)


@pytest.mark.parametrize(
    ("before", "desired", "tracked", "after", "owned"),
    [
        pytest.param([], [always("a", "1")], None, [taint("a", "1")], "a:NoSchedule", id="19-always-is-added-and-tracked"),
        pytest.param([taint("a")], [once("a")], "a:NoSchedule", [taint("a")], "", id="19-always-to-once-keeps-it-untracked"),
        pytest.param([taint("a")], [always("a")], "", [taint("a")], "a:NoSchedule", id="19-once-to-always-starts-tracking"),
        pytest.param([taint("a", "1")], [always("a", "2")], "a:NoSchedule", [taint("a", "2")], "a:NoSchedule", id="19-value-replaced"),
        pytest.param(
            [taint("a")],
            [always("a", effect="NoExecute")],
            "a:NoSchedule",
            [taint("a", effect="NoExecute")],
            "a:NoExecute",
            id="19-effect-replaced",
        ),
        pytest.param([taint("a")], [always("a")], None, [taint("a")], "a:NoSchedule", id="19-identical-untracked-is-adopted"),
        pytest.param([taint("a")], [always("a")], ",a:NoSchedule,", [taint("a")], "a:NoSchedule", id="19-empty-items-are-repaired"),
        pytest.param([], [once("a")], "", [], "", id="19-once-is-not-added-again"),
        pytest.param([], [once("a")], None, [taint("a")], "", id="19-once-is-added-the-first-time"),
        pytest.param([taint("a"), taint("z")], [], "a:NoSchedule", [taint("z")], "", id="19-tracked-and-gone-is-removed"),
        pytest.param(
            [taint("z")], [always("c"), always("a")], None, [taint("z"), taint("c"), taint("a")], "a:NoSchedule,c:NoSchedule", id="19-order"
        ),
        pytest.param([], [always("a")], "a:NoSchedule", [taint("a")], "a:NoSchedule", id="19-removed-by-hand-is-put-back"),
    ],
)
def test_taints_of_machines_reach_the_node(before: Any, desired: Any, tracked: str | None, after: Any, owned: str) -> None:
    assert node.taints_from_machine(before, desired, tracked) == (tuple(after), owned)


@pytest.mark.parametrize("tracked", ["a", "a:b:c"])
def test_a_malformed_entry_is_an_error(tracked: str) -> None:
    with pytest.raises(node.NodeSyncError):
        node.taints_from_machine([], [], tracked)


_TAINTS = st.lists(st.builds(taint, st.sampled_from("abc"), st.sampled_from(["", "1"])), max_size=3, unique_by=lambda t: t.key)
_DESIRED = st.lists(
    st.one_of(st.builds(always, st.sampled_from("abc"), st.sampled_from(["", "1"])), st.builds(once, st.sampled_from("abc"))),
    max_size=3,
    unique_by=lambda t: t.key,
)


@given(_TAINTS, _DESIRED)
def test_syncing_taints_twice_is_syncing_them_once(before: list[Taint], desired: list[MachineTaint]) -> None:
    first, tracked = node.taints_from_machine(before, desired, None)

    assert node.taints_from_machine(first, desired, tracked) == (first, tracked)


@given(_TAINTS, _DESIRED, _DESIRED)
def test_taints_of_others_survive_and_always_taints_are_set(
    before: list[Taint], earlier: list[MachineTaint], desired: list[MachineTaint]
) -> None:
    first, tracked = node.taints_from_machine(before, earlier, None)
    after, _ = node.taints_from_machine(first, desired, tracked)
    named = {t.key for t in (*earlier, *desired)}

    assert [t for t in before if t.key not in named] == [t for t in after if t.key not in named]
    assert {(t.key, t.value) for t in desired if t.propagation == "Always"} <= {(t.key, t.value) for t in after}


def revision(kind: Any, text: str | None) -> Any:
    annotations = {} if text is None else {"machinedeployment.clusters.x-k8s.io/revision": text}
    return OwnerFacts.of(kind(metadata=ObjectMeta(name="x", annotations=annotations)))


@pytest.mark.parametrize(
    ("ours", "theirs", "outdated"), [("1", "2", True), ("9", "10", True), ("2", "2", False), (None, "1", True), ("3", "2", False)]
)
def test_outdated_revisions_are_detected(ours: str | None, theirs: str | None, outdated: bool) -> None:
    assert node.is_outdated(revision(MachineSet, ours), revision(MachineDeployment, theirs)) is outdated


@pytest.mark.parametrize("text", ["", "one", "1.5"])
def test_a_revision_that_is_not_a_number_is_an_error(text: str) -> None:
    with pytest.raises(node.NodeSyncError):
        node.is_outdated(revision(MachineSet, text), revision(MachineDeployment, "1"))


# ----------------------------------------------------------------------------------------------------------- health

GOOD = [("Ready", "True", ""), ("MemoryPressure", "False", ""), ("DiskPressure", "False", ""), ("PIDPressure", "False", "")]


@pytest.mark.parametrize(
    ("conditions", "status", "message"),
    [
        pytest.param(GOOD, "True", "", id="20-good"),
        pytest.param([("Ready", "False", "down"), *GOOD[1:]], "False", "* Node.Ready: down", id="20-not-ready"),
        pytest.param(
            [*GOOD[:3], ("PIDPressure", "True", "")], "False", "* Node.PIDPressure: Condition is True", id="20-pressure-without-message"
        ),
        pytest.param([(t, "Unknown", "lost") for t, _, _ in GOOD], "Unknown", "* Node.AllConditions: lost", id="20-all-unknown"),
        pytest.param(GOOD[:3], "Unknown", "* Node.PIDPressure: Condition not yet reported", id="20-one-missing"),
        pytest.param(
            [("Ready", "Unknown", "lost"), ("MemoryPressure", "Unknown", "other"), *GOOD[2:]],
            "Unknown",
            "* Node.Ready: lost\n* Node.MemoryPressure: other",
            id="20-different-messages",
        ),
        pytest.param(
            [("Ready", "Unknown", "x"), ("MemoryPressure", "True", "y"), *GOOD[2:]],
            "False",
            "* Node.Ready: x\n* Node.MemoryPressure: y",
            id="20-bad-beats-unknown",
        ),
    ],
)
def test_the_health_of_a_node_is_reported(conditions: Any, status: str, message: str) -> None:
    health = node.node_health(a_node(conditions=conditions))

    assert (health.status, health.message) == (status, message)


@pytest.mark.parametrize(
    ("conditions", "status"),
    [
        pytest.param(GOOD, "True", id="good"),
        pytest.param([(t, "Unknown", "") for t, _, _ in GOOD], "Unknown", id="all-unknown"),
        pytest.param([*[(t, "Unknown", "") for t, _, _ in GOOD[:3]], GOOD[3]], "True", id="one-good-is-enough"),
        pytest.param([], "True", id="nothing-reported"),
        pytest.param([("DiskPressure", "True", "")], "False", id="bad"),
    ],
)
def test_health_as_v1beta1_reads_it(conditions: Any, status: str) -> None:
    assert node.node_health_v1beta1(a_node(conditions=conditions)).status == status


def test_a_node_of_another_cluster_is_not_ours() -> None:
    annotations = {"cluster.x-k8s.io/cluster-name": "c1", "cluster.x-k8s.io/cluster-namespace": "ns1"}

    assert node.belongs_to(a_node(annotations=annotations), ObjectKey("ns1", "c1"))
    assert not node.belongs_to(a_node(annotations=annotations), ObjectKey("ns2", "c1"))
    assert node.belongs_to(a_node(), ObjectKey("ns2", "c1"))
