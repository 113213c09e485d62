"""What the page shows of one object when it is asked for."""

from __future__ import annotations

from urllib.parse import quote

import msgspec

from clusterwright.api.meta import Json
from clusterwright.dashboard.details import MOST_EVENTS, MOST_TEXT, details
from clusterwright.dashboard.site import PREFIX
from dashboard.conftest import Served

NAME = "Machine/ns/m"


def machine(**more: Json) -> Json:
    metadata: Json = {
        "name": "m",
        "namespace": "ns",
        "labels": {"a": "b"},
        "annotations": {"cluster.x-k8s.io/conversion-data": "NEEDLE", "note": "kept"},
        "finalizers": ["machine.cluster.x-k8s.io"],
        "ownerReferences": [{"apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "MachineSet", "name": "s", "uid": "1", "controller": True}],
        "managedFields": [{"manager": "x"}],
    }
    return {"apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Machine", "metadata": metadata, **more}


def event(number: int, name: str = "m") -> Json:
    at = f"2026-01-01T00:{number // 60:02}:{number % 60:02}Z"
    involved = {"kind": "Machine", "namespace": "ns", "name": name}
    return {"reason": f"R{number}", "message": "text", "type": "Normal", "lastTimestamp": at, "involvedObject": involved}


def test_facts_labels_owners_and_yaml_of_an_object() -> None:
    spec = {"version": "v1.36.1", "providerID": "dev:///m", "failureDomain": "a"}
    status = {
        "nodeRef": {"name": "node-1"},
        "failureDomain": "b",
        "addresses": [{"type": "InternalIP", "address": "10.0.0.1"}, {"type": "Hostname", "address": "10.0.0.1"}],
    }

    found = details([machine(spec=spec, status=status)], [], NAME, [{"error": "e"}])

    assert found is not None
    assert found["facts"] == [
        ["Version", "v1.36.1"],
        ["Node", "node-1"],
        ["Provider ID", "dev:///m"],
        ["Failure domain", "a"],
        ["Addresses", "10.0.0.1"],
    ]
    assert (found["labels"], found["annotations"]) == ({"a": "b"}, {"note": "kept"})
    assert found["owners"] == ["MachineSet/ns/s"]
    assert found["finalizers"] == ["machine.cluster.x-k8s.io"]
    assert found["errors"] == [{"error": "e"}]
    assert found["yaml"].startswith("apiVersion: cluster.x-k8s.io/v1beta2\nkind: Machine\n")
    assert "managedFields" not in found["yaml"]


def test_an_endpoint_and_a_pause_are_facts() -> None:
    cluster: Json = {
        "kind": "Cluster",
        "metadata": {"name": "c"},
        "spec": {"paused": True, "controlPlaneEndpoint": {"host": "h", "port": 6443}},
    }

    found = details([cluster], [], "Cluster/c", [])

    assert found is not None
    assert found["facts"] == [["Endpoint", "h:6443"], ["Paused", "yes"]]


def test_values_in_which_users_write_secrets_are_hidden() -> None:
    spec = {
        "files": [{"path": "/p", "content": "NEEDLE"}],
        "users": [{"name": "u", "passwd": "NEEDLE"}],
        "joinConfiguration": {"discovery": {"bootstrapToken": {"token": "NEEDLE"}}},
    }

    found = details([machine(spec=spec)], [], NAME, [])

    assert found is not None
    assert b"NEEDLE" not in msgspec.json.encode(found)


def test_a_secret_and_an_object_of_another_cluster_have_no_details() -> None:
    secret: Json = {"kind": "Secret", "metadata": {"name": "s", "namespace": "ns"}, "data": {"k": "NEEDLE"}}

    assert details([secret], [], "Secret/ns/s", []) is None
    assert details([secret], [], NAME, []) is None


def test_the_newest_events_of_the_object_alone_are_shown() -> None:
    events = [*(event(n) for n in range(MOST_EVENTS + 5)), event(500, "another")]

    found = details([machine()], events, NAME, [])

    assert found is not None
    assert [e["about"] for e in found["events"]] == [f"R{n}" for n in reversed(range(5, MOST_EVENTS + 5))]


def test_a_huge_object_is_cut_and_says_so() -> None:
    found = details([machine(spec={"note": "x" * 2 * MOST_TEXT})], [], NAME, [])

    assert found is not None
    assert (len(found["yaml"]), found["isCut"]) == (MOST_TEXT, True)


def test_malformed_objects_have_empty_details() -> None:
    for garbage in (None, 7, "x", [], {"controlPlaneEndpoint": 3, "addresses": [3, {"address": ""}], "version": 4}):
        found = details(
            [{"kind": "Machine", "metadata": {"name": "m", "namespace": "ns"}, "spec": garbage, "status": garbage}], [], NAME, []
        )

        assert found is not None
        assert found["facts"] == []


async def test_details_need_a_session_and_never_show_a_secret(served: Served) -> None:
    async def ask(path: str) -> tuple[int, Json]:
        async with served.session.get(f"{served.url}{PREFIX}/clusters/default/c/objects/{quote(path, safe='')}") as answer:
            return answer.status, await answer.json()

    served.server.ensure(
        [{"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "c-ca", "namespace": "default"}, "data": {"tls.key": "TkVFRExF"}}]
    )
    assert (await ask("Cluster/default/c"))[0] == 401
    await served.enter()

    status, found = await ask("Cluster/default/c")
    assert status == 200
    assert "controlPlaneRef" in found["yaml"]
    for path in ("Secret/default/c-ca", "Cluster/default/other", "Cluster/other/c", "Machine/default/c", "x"):
        status, found = await ask(path)
        assert (status, "shown here" in found["message"]) == (404, True)
