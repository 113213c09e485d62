from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from clusterwright.api.copying import replace
from clusterwright.api.core import (
    Cluster,
    ClusterStatus,
    Machine,
    MachineDeployment,
    MachineHealthCheck,
    MachinePool,
    MachinePoolDeprecatedStatus,
    MachinePoolStatus,
    MachinePoolV1Beta1DeprecatedStatus,
    MachineSet,
    MachineSetSpec,
    MachineStatus,
)
from clusterwright.api.core.cluster import ClusterClassRef, ClusterSpec, Topology
from clusterwright.api.core.shared import ContractVersionedObjectReference
from clusterwright.api.meta import Condition, ObjectMeta, OwnerReference, Unstructured, V1Beta1Condition
from clusterwright.cli.layout import Layout, render
from clusterwright.cli.tree import Parts, age, cluster_tree

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

    machines = [machine("cp", is_control_plane=True), machine("w", is_control_plane=False)]
    tree = cluster_tree(cluster, infrastructure, None, Parts(machines))

    assert render(tree, NOW).splitlines() == [
        "NAME                                     STATUS  REASON        SINCE  MESSAGE",
        "Cluster/c                                False   NotAvailable  5m     first",
        "│                                                                     second",
        "├─ClusterInfrastructure - AcmeCluster/i",
        "├─ControlPlane",
        "│ └─Machine/cp                           True    Fine          5m",
        "└─Workers",
        "  └─Machine/w                            True    Fine          5m",
    ]
    assert "Paused" not in render(tree, NOW)
    assert "Paused" in render(tree, NOW, Layout(conditions=True))


def controlled(obj: Any, owner: Any) -> Any:
    reference = OwnerReference(kind=owner.kind, name=owner.metadata.name, controller=True)
    return replace(obj, metadata=replace(obj.metadata, owner_references=(reference,)))


def test_workers_hang_below_what_controls_them() -> None:
    deployment = MachineDeployment(metadata=ObjectMeta(name="md"))
    current = controlled(MachineSet(metadata=ObjectMeta(name="md-2"), spec=MachineSetSpec(replicas=1)), deployment)
    past = controlled(MachineSet(metadata=ObjectMeta(name="md-1"), spec=MachineSetSpec(replicas=0)), deployment)
    alone = MachineSet(metadata=ObjectMeta(name="ms"))
    old = MachinePoolV1Beta1DeprecatedStatus(conditions=(V1Beta1Condition(type="Ready", status="False", reason="Waiting"),))
    pool = MachinePool(metadata=ObjectMeta(name="mp"), status=MachinePoolStatus(deprecated=MachinePoolDeprecatedStatus(v1beta1=old)))
    worker = machine("w", is_control_plane=False)
    machines = [controlled(replace(worker, metadata=ObjectMeta(name=n)), o) for n, o in (("a", current), ("b", alone), ("c", pool))]
    parts = Parts([*machines, worker], [current, past, alone], [deployment], [pool], [MachineHealthCheck(metadata=ObjectMeta(name="hc"))])

    lines = render(cluster_tree(Cluster(metadata=ObjectMeta(name="c")), None, None, parts), NOW).splitlines()

    assert [re.findall(r"^\W*[\w/-]+", line)[0] for line in lines[2:]] == [
        "├─Workers",
        "│ ├─MachineDeployment/md",
        "│ │ └─MachineSet/md-2",
        "│ │   └─Machine/a",
        "│ ├─MachineSet/ms",
        "│ │ └─Machine/b",
        "│ ├─MachinePool/mp",
        "│ │ └─Machine/c",
        "│ └─Machine/w",
        "└─HealthChecks",
        "  └─MachineHealthCheck/hc",
    ]
    assert "False   Waiting" in next(line for line in lines if "MachinePool/mp" in line)


def test_objects_under_deletion_are_marked() -> None:
    cluster = Cluster(metadata=ObjectMeta(name="c", deletion_timestamp=NOW))

    assert "Cluster/c (deleting)" in render(cluster_tree(cluster, None, None, Parts()), NOW)


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


def test_a_topology_is_shown_with_class_version_and_step() -> None:
    topology = Topology(class_ref=ClusterClassRef(name="quick-start"), version="v1.34.1")
    cluster = Cluster(
        metadata=ObjectMeta(name="c", annotations={"topology.internal.cluster.x-k8s.io/upgrade-step": "v1.33.0"}),
        spec=ClusterSpec(topology=topology),
        status=ClusterStatus(conditions=(condition("TopologyReconciled", "False", "ClusterUpgrading", "on its way"),)),
    )

    text = render(cluster_tree(cluster, None, None, Parts()), NOW)

    assert "Topology - ClusterClass/quick-start v1.34.1 (upgrade step v1.33.0)  False   ClusterUpgrading" in text


def test_replicas_are_counted_where_there_are_any() -> None:
    plane = Unstructured({"kind": "Plane", "metadata": {"name": "p"}, "spec": {"replicas": 3}, "status": {"readyReplicas": 2}})

    lines = render(cluster_tree(Cluster(metadata=ObjectMeta(name="c")), None, plane, Parts()), NOW).splitlines()

    assert lines[0].split() == ["NAME", "READY", "STATUS", "REASON", "SINCE", "MESSAGE"]
    assert lines[2].split() == ["└─ControlPlane", "-", "Plane/p", "2/3"]


def test_a_rollout_can_be_seen() -> None:
    plane = Unstructured(
        {"kind": "Plane", "metadata": {"name": "p"}, "spec": {"replicas": 3, "version": "v1.35.0"}, "status": {"upToDateReplicas": 1}}
    )
    old = replace(machine("a", is_control_plane=True), status=MachineStatus(conditions=(condition("UpToDate", "False", "NotUpToDate"),)))
    old = replace(old, spec=replace(old.spec, version="v1.34.1"))

    lines = render(cluster_tree(Cluster(metadata=ObjectMeta(name="c")), None, plane, Parts([old])), NOW).splitlines()

    assert lines[0].split() == ["NAME", "READY", "UP-TO-DATE", "VERSION", "STATUS", "REASON", "SINCE", "MESSAGE"]
    assert lines[2].split() == ["└─ControlPlane", "-", "Plane/p", "0/3", "1/3", "v1.35.0"]
    assert lines[3].split() == ["└─Machine/a", "no", "v1.34.1"]


def test_what_is_up_to_date_is_not_counted() -> None:
    plane = Unstructured({"kind": "Plane", "metadata": {"name": "p"}, "spec": {"replicas": 3}, "status": {"upToDateReplicas": 3}})

    assert "UP-TO-DATE" not in render(cluster_tree(Cluster(metadata=ObjectMeta(name="c")), None, plane, Parts()), NOW)


def test_machines_in_the_same_state_are_one_line() -> None:
    machines = [machine(f"w{n}", is_control_plane=False) for n in range(5)]
    odd = replace(machines[2], status=MachineStatus(conditions=(condition("Ready", "False", "NotReady", "it is not"),)))
    tree = cluster_tree(Cluster(metadata=ObjectMeta(name="c")), None, None, Parts([*machines[:2], odd, *machines[3:]]))

    lines = render(tree, NOW, Layout(grouping=True)).splitlines()

    assert [line.split("─")[-1].split("  ")[0] for line in lines[3:]] == ["4 Machines", "Machine/w2"]
    assert lines[3].endswith("See w0, w1, w3, and 1 more")
    assert len(render(tree, NOW).splitlines()) == 8
    assert len(render(tree, NOW, Layout(grouping=True, conditions=["Machine"])).splitlines()) == 8


def test_whole_messages_fit_the_terminal_and_statuses_are_coloured() -> None:
    text = "* Machines a, b:\n  * EtcdMemberHealthy: " + "a long story " * 12
    cluster = Cluster(
        metadata=ObjectMeta(name="c"),
        status=ClusterStatus(
            conditions=(condition("Available", "False", "NotAvailable", text), condition("RollingOut", "True", "RollingOut"))
        ),
    )
    tree = cluster_tree(cluster, None, None, Parts())

    lines = render(tree, NOW, Layout(width=100)).splitlines()
    assert max(map(len, lines)) <= 100
    assert " ".join("".join(lines).split()).count("a long story") == 12
    painted = render(tree, NOW, Layout(colour=True, conditions=True))
    assert painted.count("\x1b[31m") == 2, "what should not be so is red as well"
    assert "\x1b" not in render(tree, NOW, Layout(conditions=True))


def test_objects_of_machines_are_shown_below_them_on_request() -> None:
    one = machine("w", is_control_plane=False)
    reference = ContractVersionedObjectReference(api_group="infrastructure.example", kind="AcmeMachine", name="w")
    one = replace(one, spec=replace(one.spec, infrastructure_ref=reference))
    infra = Unstructured({"kind": "AcmeMachine", "metadata": {"name": "w"}, "status": {"conditions": []}})

    tree = cluster_tree(Cluster(metadata=ObjectMeta(name="c")), None, None, Parts([one], others={("AcmeMachine", "w"): infra}))

    assert render(tree, NOW).splitlines()[-1] == "    └─AcmeMachine/w"
