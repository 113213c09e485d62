"""What is shown of objects, whatever they hold."""

from __future__ import annotations

from typing import Any

import msgspec

from clusterwright.api.meta import Json, Unstructured
from clusterwright.dashboard.views import fleet_row, object_view, parents
from clusterwright.dashboard.waterfall import waterfall
from clusterwright.offline.verdict import State, Verdict
from clusterwright.offline.workings import Past

FINE = Verdict("Cluster/ns/c", State.FINE, "nothing is wrong")


def obj(kind: str, name: str, owners: tuple[tuple[str, str, bool], ...] = (), **more: Any) -> Unstructured:
    references = [{"apiVersion": "v1", "kind": k, "name": n, "uid": n, "controller": c} for k, n, c in owners]
    metadata: Json = {"name": name, "namespace": "ns", "ownerReferences": references, "creationTimestamp": "2026-01-01T00:00:00Z"}
    return Unstructured({"apiVersion": "cluster.x-k8s.io/v1beta2", "kind": kind, "metadata": metadata, **more})


def condition(type_: str, status: str, at: str) -> Json:
    return {"type": type_, "status": status, "reason": f"R{type_}", "message": "", "lastTransitionTime": f"2026-01-01T00:00:{at}Z"}


def test_each_object_hangs_below_its_controller_else_an_owner_else_the_cluster() -> None:
    found = parents(
        [
            obj("Cluster", "c"),
            obj("Machine", "m", (("Cluster", "c", False), ("MachineSet", "s", True))),
            obj("MachineSet", "s", (("Cluster", "c", True),)),
            obj("DevMachine", "m", (("Machine", "m", False),)),
            obj("DevMachineTemplate", "t"),
            obj("Machine", "orphan", (("MachineSet", "gone", True),)),
        ],
        "Cluster/ns/c",
    )

    assert found == {
        "Cluster/ns/c": "",
        "Machine/ns/m": "MachineSet/ns/s",
        "MachineSet/ns/s": "Cluster/ns/c",
        "DevMachine/ns/m": "Machine/ns/m",
        "DevMachineTemplate/ns/t": "Cluster/ns/c",
        "Machine/ns/orphan": "Cluster/ns/c",
    }


def test_a_cycle_of_owners_does_not_hide_objects() -> None:
    found = parents(
        [
            obj("Cluster", "c"),
            obj("A", "a", (("B", "b", True),)),
            obj("B", "b", (("A", "a", True),)),
            obj("D", "d", (("D", "d", True),)),
            obj("E", "e", (("A", "a", True),)),
        ],
        "Cluster/ns/c",
    )

    for name in found:
        seen, at = set[str](), name
        while at != "Cluster/ns/c":
            assert at not in seen
            seen.add(at)
            at = found[at]


def test_only_counts_and_versions_of_a_spec_are_shown() -> None:
    spec = {"replicas": 3, "version": "v1.36.1", "files": [{"content": "SECRET"}], "kubeadmConfigSpec": {"token": "SECRET"}}
    shown = object_view(obj("KubeadmControlPlane", "k", spec=spec, data={"x": "SECRET"}), "")

    assert b"SECRET" not in msgspec.json.encode(shown)
    assert (shown["replicas"], shown["version"]) == ({"wanted": 3, "ready": 0}, "v1.36.1")


def test_malformed_objects_are_shown_empty() -> None:
    for garbage in (None, 7, "x", [], {"phase": 3, "conditions": "no", "readyReplicas": "many", "controlPlane": 3, "workers": []}):
        broken = obj("Cluster", "c", spec=garbage, status=garbage)

        assert object_view(broken, "")["conditions"] == []
        assert fleet_row(broken, FINE)["controlPlane"] is None
        assert [steps["steps"] for _, steps in waterfall([broken])] == [[]]


def test_steps_follow_each_other_and_the_open_one_has_no_end() -> None:
    said = [
        condition("Ready", "False", "09"),
        condition("BootstrapConfigReady", "True", "02"),
        condition("NodeReady", "Unknown", "08"),
        condition("InfrastructureReady", "True", "05"),
    ]

    [(name, found)] = waterfall([obj("Machine", "m", status={"conditions": said}), obj("DevMachine", "m")])

    assert name == "Machine/ns/m"
    assert [(s["step"], s["from"][-3:-1], s["to"] and s["to"][-3:-1], s["why"]) for s in found["steps"]] == [
        ("BootstrapConfigReady", "00", "02", ""),
        ("InfrastructureReady", "02", "05", ""),
        ("NodeReady", "05", None, "RNodeReady"),
    ]
    assert [s["place"] for s in found["steps"]] == [0, 1, 2]


def test_what_a_machine_had_and_lost_is_no_step_of_its_provisioning() -> None:
    said = [condition("InfrastructureReady", "True", "02"), condition("NodeReady", "False", "50"), condition("Ready", "False", "51")]

    def shown(phase: str) -> Json:
        [(_, found)] = waterfall([obj("Machine", "m", spec={"version": "v1.36.1"}, status={"phase": phase, "conditions": said})])
        return found

    up = shown("Running")
    assert [s["step"] for s in up["steps"]] == ["InfrastructureReady"]
    assert up["lost"] == [{"step": "NodeReady", "at": "2026-01-01T00:00:50Z"}]
    assert up["version"] == "v1.36.1"
    assert [s["step"] for s in shown("Provisioned")["steps"]] == ["InfrastructureReady", "NodeReady"]
    assert shown("Provisioned")["lost"] == []


def test_an_object_has_its_counted_versions_and_the_one_it_wants() -> None:
    status = {"versions": [{"version": "v1.34.1", "replicas": 2}, {"version": "v1.35.0", "replicas": 1}, {"version": "v1"}, 7]}
    shown = object_view(obj("MachineDeployment", "d", spec={"template": {"spec": {"version": "v1.35.0"}}}, status=status), "")

    assert shown["target"] == "v1.35.0"
    assert shown["versions"] == [{"version": "v1.34.1", "replicas": 2}, {"version": "v1.35.0", "replicas": 1}]
    plan = {"controlPlane": {"upgradePlan": [{"version": "v1.35.0"}, {"version": "v1.36.0"}, 7]}}
    assert object_view(obj("Cluster", "c", status=plan), "")["upgradePlan"] == ["v1.35.0", "v1.36.0"]


def test_a_row_has_the_last_verdicts() -> None:
    past = [Past(f"2026-01-01T00:00:{n:02}Z", "fine", "") for n in range(40)]

    assert fleet_row(obj("Cluster", "c"), FINE, past)["past"] == [[one.at, "fine"] for one in past[-24:]]


def test_a_row_has_the_versions_of_the_machines_and_the_wanted_one() -> None:
    def row(**cluster: Any) -> Any:
        return fleet_row(Unstructured({"kind": "Cluster", "metadata": {"name": "c", "namespace": "n"}, **cluster}), None)["version"]

    used = {
        "controlPlane": {"versions": [{"version": "v1.34.1"}, {"version": "v1.35.0"}]},
        "workers": {"versions": [{"version": "v1.34.1"}]},
    }
    assert row() == ""
    assert row(status=used) == "v1.34.1 → v1.35.0"
    assert row(spec={"topology": {"version": "v1.36.0"}}, status=used) == "v1.34.1 → v1.35.0 → v1.36.0"
    assert row(status={"controlPlane": {"versions": "x"}, "workers": []}) == ""
