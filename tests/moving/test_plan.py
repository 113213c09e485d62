"""What a move takes along, and in which order."""

from __future__ import annotations

from typing import Any

import pytest

from clusterwright.api.meta import GroupVersionKind
from clusterwright.moving.plan import Moved, MovedKind, arriving, in_order, kinds, unready

CORE = "cluster.x-k8s.io"


def kind(name: str, group: str = CORE, **more: bool) -> MovedKind:
    return MovedKind(GroupVersionKind(group, "v1beta2" if group else "v1", name), **more)


CLUSTER, CLASS = kind("Cluster", moves=True, with_owned=True), kind("ClusterClass", moves=True, with_owned=True)
MACHINE, SECRET, TEMPLATE = kind("Machine"), kind("Secret", ""), kind("DevMachineTemplate", "infrastructure.cluster.x-k8s.io")


def obj(of: MovedKind, name: str, *owners: str, **more: Any) -> tuple[MovedKind, dict[str, Any]]:
    metadata: dict[str, Any] = {"name": name, "namespace": "ns", "uid": f"{of.gvk.kind}/{name}", "resourceVersion": "7"}
    if owners:
        metadata["ownerReferences"] = [{"uid": uid, "kind": uid.partition("/")[0], "name": uid.partition("/")[2]} for uid in owners]
    metadata |= more.pop("metadata", {})
    return of, {"apiVersion": of.gvk.api_version, "kind": of.gvk.kind, "metadata": metadata, "spec": {}, **more}


def names(moved: list[Moved]) -> list[str]:
    return [m.name for m in moved]


def test_objects_of_a_cluster_move_owners_first_and_others_stay() -> None:
    moved = in_order(
        [
            obj(MACHINE, "m", "Cluster/c"),
            obj(SECRET, "m-data", "Machine/m"),
            obj(SECRET, "c-ca"),
            obj(SECRET, "c-other"),
            obj(SECRET, "somebody-elses"),
            obj(SECRET, "orphan", "Pod/gone"),
            obj(TEMPLATE, "unused"),
            obj(CLUSTER, "c"),
        ]
    )

    assert set(names(moved)) == {"Cluster/c", "Machine/m", "Secret/m-data", "Secret/c-ca"}
    assert names(moved).index("Cluster/c") < names(moved).index("Machine/m") < names(moved).index("Secret/m-data")
    assert names(moved).index("Cluster/c") < names(moved).index("Secret/c-ca")


def test_a_class_comes_before_the_clusters_that_are_of_it() -> None:
    moved = in_order(
        [obj(CLUSTER, "a", spec={"topology": {"classRef": {"name": "z"}}}), obj(CLASS, "z"), obj(TEMPLATE, "t", "ClusterClass/z")]
    )

    assert names(moved).index("ClusterClass/z") < names(moved).index("Cluster/a")
    assert "DevMachineTemplate/t" in names(moved)


def test_labels_make_objects_move_alone_or_with_what_they_own() -> None:
    label = "clusterctl.cluster.x-k8s.io/move"
    moved = in_order(
        [
            obj(SECRET, "alone", metadata={"labels": {label: ""}}),
            obj(SECRET, "below", "Secret/alone"),
            obj(TEMPLATE, "root", metadata={"labels": {f"{label}-hierarchy": ""}}),
            obj(SECRET, "under", "DevMachineTemplate/root"),
        ]
    )

    assert sorted(names(moved)) == ["DevMachineTemplate/root", "Secret/alone", "Secret/under"]


def test_objects_that_own_each_other_do_not_hang_it() -> None:
    assert len(in_order([obj(CLUSTER, "c", "Machine/m"), obj(MACHINE, "m", "Cluster/c")])) == 2


def test_crd_labels_select_the_kinds_to_move() -> None:
    def crd(name: str, scope: str = "Namespaced", **labels: str) -> dict[str, Any]:
        versions = [{"name": "v1beta1", "storage": False}, {"name": "v1beta2", "storage": True}]
        return {"metadata": {"labels": labels}, "spec": {"group": CORE, "scope": scope, "names": {"kind": name}, "versions": versions}}

    found = kinds([crd("Cluster"), crd("Machine"), crd("Identity", "Cluster", **{"clusterctl.cluster.x-k8s.io/move-hierarchy": ""})])

    assert [(k.gvk.kind, k.gvk.version, k.is_namespaced, k.moves, k.with_owned) for k in found] == [
        ("Cluster", "v1beta2", True, True, True),
        ("Machine", "v1beta2", True, False, False),
        ("Identity", "v1beta2", False, True, True),
    ]


def test_moved_objects_are_paused_with_owners_and_without_source_metadata() -> None:
    cluster, machine = in_order([obj(CLUSTER, "c", status={"phase": "Provisioned"}), obj(MACHINE, "m", "Cluster/c", "Pod/elsewhere")])

    made = arriving(cluster, {})
    assert made["spec"] == {"paused": True}
    assert "status" not in made
    assert made["metadata"] == {"name": "c", "namespace": "ns"}
    assert arriving(machine, {"Cluster/c": "new"})["metadata"]["ownerReferences"] == [{"uid": "new", "kind": "Cluster", "name": "c"}]
    assert cluster.json["spec"] == {}  # what is here is not touched


READY = {"initialization": {"infrastructureProvisioned": True, "controlPlaneInitialized": True}}


@pytest.mark.parametrize(
    ("entry", "reason"),
    [
        (obj(CLUSTER, "c", status=READY), None),
        (obj(CLUSTER, "c"), "the infrastructure of Cluster/c is not provisioned yet"),
        (obj(CLUSTER, "c", status={"initialization": {"infrastructureProvisioned": True}}), "the control plane of Cluster/c is not"),
        (obj(CLUSTER, "c", spec={"paused": True}, status=READY), "Cluster/c is paused"),
        (obj(CLUSTER, "c", metadata={"deletionTimestamp": "2026-01-01T00:00:00Z"}, status=READY), "Cluster/c is being deleted"),
        (obj(CLASS, "z", metadata={"annotations": {"cluster.x-k8s.io/paused": ""}}), "ClusterClass/z is paused"),
        (obj(MACHINE, "m", metadata={"labels": {"clusterctl.cluster.x-k8s.io/move": ""}}), "Machine/m has no Node yet"),
    ],
    ids=["ready", "infrastructure", "control plane", "paused", "deleted", "paused class", "no node"],
)
def test_objects_that_are_not_ready_to_move_are_named(entry: tuple[MovedKind, dict[str, Any]], reason: str | None) -> None:
    said = unready(in_order([entry]))

    assert said == [] if reason is None else said[0].startswith(reason) and len(said) == 1
