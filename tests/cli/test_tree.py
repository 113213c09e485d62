from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from clusterwright.api.core import Cluster, ClusterStatus, Machine, MachineStatus
from clusterwright.api.meta import Condition, ObjectMeta, Unstructured
from clusterwright.cli.tree import age, cluster_tree, render

NOW = datetime(2026, 5, 1, 12, tzinfo=UTC)


def condition(type_: str, status: str = "True", reason: str = "Fine", message: str = "") -> Condition:
    return Condition(type=type_, status=status, reason=reason, message=message, last_transition_time=NOW - timedelta(minutes=5))


def machine(name: str, *, is_control_plane: bool) -> Machine:
    labels = {"cluster.x-k8s.io/control-plane": ""} if is_control_plane else {}
    return Machine(metadata=ObjectMeta(name=name, labels=labels), status=MachineStatus(conditions=(condition("Ready"),)))


def test_a_cluster_is_shown_with_what_it_is_made_of() -> None:
    cluster = Cluster(
        metadata=ObjectMeta(name="c"),
        status=ClusterStatus(conditions=(condition("Available", "False", "NotAvailable", "first\nsecond"), condition("Paused", "False"))),
    )
    infrastructure = Unstructured({"kind": "AcmeCluster", "metadata": {"name": "i"}, "status": {"conditions": "garbled"}})

    tree = cluster_tree(cluster, infrastructure, None, [machine("cp", is_control_plane=True), machine("w", is_control_plane=False)], [])

    assert render(tree, NOW).splitlines() == [
        "NAME                                     STATUS  REASON        SINCE  MESSAGE",
        "Cluster/c                                False   NotAvailable  5m     first ... (1 more)",
        "├─ClusterInfrastructure - AcmeCluster/i",
        "├─ControlPlane",
        "│ └─Machine/cp                           True    Fine          5m",
        "└─Workers",
        "  └─Machine/w                            True    Fine          5m",
    ]
    assert "Paused" not in render(tree, NOW)
    assert "Paused" in render(tree, NOW, show_conditions=True)


def test_what_is_being_deleted_says_so() -> None:
    cluster = Cluster(metadata=ObjectMeta(name="c", deletion_timestamp=NOW))

    assert "Cluster/c (deleting)" in render(cluster_tree(cluster, None, None, [], []), NOW)


@pytest.mark.parametrize(
    ("ago", "shown"),
    [
        (timedelta(seconds=5), "5s"),
        (timedelta(seconds=119), "119s"),
        (timedelta(minutes=2), "2m"),
        (timedelta(hours=30), "30h"),
        (timedelta(days=3), "3d"),
    ],
)
def test_ages_are_written_as_kubectl_writes_them(ago: timedelta, shown: str) -> None:
    assert age(NOW - ago, NOW) == shown
    assert age(None, NOW) == ""
