"""ClusterResourceSets and bindings, at their edges, with our rulings where there are any."""

from __future__ import annotations

import base64
from typing import Any

import pytest

import clusterwright
from controllers.clusterresourceset.test_resource_sets import (
    MANIFEST,
    NOW,
    cluster,
    condition,
    config_map,
    decide,
    observation,
    resource_set,
)

Json = dict[str, Any]
ADDONS = "addons.cluster.x-k8s.io/v1beta2"
CONNECTED = {"connected": True, "lastProbeSuccess": NOW, "objects": []}


def there(*objects: Json, **more: Any) -> Json:
    return observation(c1={**CONNECTED, "objects": list(objects), **more})


def binding(*resources: Json, sets: tuple[str, ...] = ("rs",), **metadata: Any) -> Json:
    owners = [{"apiVersion": ADDONS, "kind": "ClusterResourceSet", "name": s, "uid": f"u-{s}"} for s in sets]
    return {
        "apiVersion": ADDONS,
        "kind": "ClusterResourceSetBinding",
        "metadata": {"name": "c1", "namespace": "ns", "uid": "u-b", "ownerReferences": owners, **metadata},
        "spec": {
            "clusterName": "c1",
            "bindings": [{"clusterResourceSetName": s, **({"resources": list(resources)} if resources else {})} for s in sets],
        },
    }


def applied(name: str = "cm", hash: str = "", ok: bool = True) -> Json:
    return {"kind": "ConfigMap", "name": name, "applied": ok, "hash": hash, "lastAppliedTime": "2026-05-01T11:00:00Z"}


def entries(answer: Json) -> list[Json]:
    found = answer["others"].get("ClusterResourceSetBinding/c1") or {"spec": {"bindings": []}}
    return [r for b in found["spec"]["bindings"] for r in b.get("resources") or ()]


def remote(answer: Json) -> list[tuple[str, str]]:
    """What was written in the workload cluster."""
    ours = {"ClusterResourceSetBinding"}
    return [(a["verb"], a["name"]) for a in answer["actions"] if a["kind"] not in ours and a["name"] not in {"cm", "cm2", "s"}]


def other(name: str, kind: str = "ConfigMap") -> str:
    return MANIFEST.replace("name: w", f"name: {name}").replace("kind: ConfigMap", f"kind: {kind}")


def test_an_empty_selector_selects_no_cluster() -> None:
    empty = resource_set()
    empty["spec"]["clusterSelector"] = {}
    answer = decide(empty, cluster(), config_map(MANIFEST), there())

    assert answer["actions"] == []
    assert [c["type"] for c in answer["object"]["status"]["conditions"]] == ["Paused"]


def test_a_missing_resource_is_skipped() -> None:
    answer = decide(resource_set("Reconcile", "missing", "cm"), cluster(), config_map(MANIFEST), there())

    assert (condition(answer), [e["name"] for e in entries(answer)]) == (("True", "Applied"), ["cm"])


def test_a_secret_of_another_type_stops_applying_but_not_adoption() -> None:
    secret = {
        "apiVersion": "v1",
        "kind": "Secret",
        "type": "Opaque",
        "metadata": {"name": "s", "namespace": "ns", "uid": "u-s"},
        "data": {"a": base64.b64encode(MANIFEST.encode()).decode()},
    }
    both = resource_set("Reconcile", "cm")
    both["spec"]["resources"].insert(0, {"kind": "Secret", "name": "s"})
    answer = decide(both, cluster(), config_map(MANIFEST), secret, there())

    assert (condition(answer), remote(answer)) == (("False", "WrongSecretType"), [])
    assert [o["kind"] for o in answer["others"]["ConfigMap/cm"]["metadata"]["ownerReferences"]] == ["ClusterResourceSet"]


def test_without_a_connection_the_binding_exists_and_is_empty() -> None:
    answer = decide(resource_set(), cluster(), config_map(MANIFEST), observation(c1={"connected": False}))

    made = answer["others"]["ClusterResourceSetBinding/c1"]
    assert [b["clusterResourceSetName"] for b in made["spec"]["bindings"]] == ["rs"]
    assert [o["name"] for o in made["metadata"]["ownerReferences"]] == ["rs"]
    assert (condition(answer), entries(answer)) == (("False", "InternalError"), [])


def test_with_apply_once_existing_objects_are_left_alone() -> None:
    present = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "w", "namespace": "default"}, "data": {"k": "other"}}
    answer = decide(resource_set("ApplyOnce"), cluster(), config_map(MANIFEST), there(present))

    assert (remote(answer), condition(answer), [e["applied"] for e in entries(answer)]) == ([], ("True", "Applied"), [True])


def _hash(text: str = MANIFEST) -> str:
    (entry,) = entries(decide(resource_set(), cluster(), config_map(text), there()))
    return str(entry["hash"])


@pytest.mark.parametrize(("ok", "calls"), [(True, []), (False, [("create", "w")])])
def test_the_same_content_is_applied_again_only_where_it_failed(ok: bool, calls: list[Any]) -> None:
    answer = decide(resource_set(), cluster(), config_map(MANIFEST), binding(applied(hash=_hash(), ok=ok)), there())

    assert remote(answer) == calls


def test_a_failing_object_does_not_stop_the_others() -> None:
    text = "---\n".join(other(n) for n in ("one", "two", "three"))
    answer = decide(resource_set(), cluster(), config_map(text), there(unwritable=[{"verb": "create", "kind": "ConfigMap", "name": "two"}]))

    assert {name for _, name in remote(answer)} == {"one", "three"}
    assert (condition(answer), [e["applied"] for e in entries(answer)]) == (("False", "NotApplied"), [False])


@pytest.mark.parametrize(
    ("strategy", "present", "fault", "words"),
    [
        ("ApplyOnce", (), {"unwritable": [{"verb": "create", "kind": "ConfigMap"}]}, "creating object v1, Kind=ConfigMap "),
        ("Reconcile", (), {"unwritable": [{"verb": "create", "kind": "ConfigMap"}]}, "creating object v1, Kind=ConfigMap "),
        ("Reconcile", (True,), {"unwritable": [{"verb": "patch", "kind": "ConfigMap"}]}, "patching object v1, Kind=ConfigMap "),
        ("Reconcile", (True,), {"unreadable": [{"kind": "ConfigMap"}]}, "reading object v1, Kind=ConfigMap "),
    ],
)
def test_an_error_names_the_failed_operation(strategy: str, present: tuple[bool, ...], fault: Json, words: str) -> None:
    before = [{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "one", "namespace": "default"}} for _ in present]
    answer = decide(resource_set(strategy), cluster(), config_map(other("one")), there(*before, **fault))

    (old,) = answer["object"]["status"]["deprecated"]["v1beta1"]["conditions"]
    assert old["message"].startswith(words)


def test_a_resource_that_is_named_twice_is_applied_once() -> None:
    answer = decide(resource_set("Reconcile", "cm", "cm"), cluster(), config_map(MANIFEST), there())

    assert (len(remote(answer)), len(entries(answer))) == (1, 1)


@pytest.mark.parametrize(
    ("number", "refused"),
    [(47, {"verb": "patch", "kind": "ClusterResourceSetBinding"}), (49, {"verb": "patch", "kind": "ConfigMap", "name": "cm"})],
)
def test_a_conflict_is_retried_soon_and_is_not_an_error(number: int, refused: Json) -> None:
    world = {**there(), "unwritable": [{**refused, "error": "Conflict"}]}
    answer = decide(resource_set(), cluster(), config_map(MANIFEST), binding(), world)

    assert (answer["requeueAfterSeconds"], answer["error"]) == (0.1, None)


def test_a_conflict_together_with_another_error_is_an_error() -> None:
    world = there(unwritable=[{"verb": "create", "kind": "ConfigMap"}])
    world["unwritable"] = [{"verb": "patch", "kind": "ClusterResourceSetBinding", "error": "Conflict"}]
    answer = decide(resource_set(), cluster(), config_map(MANIFEST), binding(), world)

    assert answer["error"]


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ('  [{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"x","namespace":"default"}}]', [("create", "x")]),
        ("# nothing but a comment that is longer than thirty-two bytes\n", []),
    ],
)
def test_lists_and_comments_of_a_resource_are_read(text: str, names: list[Any]) -> None:
    answer = decide(resource_set(), cluster(), config_map(text), there())

    assert (remote(answer), [e["applied"] for e in entries(answer)]) == (names, [True])


def deleted() -> Json:
    made = resource_set()
    made["metadata"]["deletionTimestamp"] = NOW
    return made


def test_a_deleted_set_removes_only_its_own_entry() -> None:
    answer = decide(deleted(), cluster(), binding(sets=("rs", "another")), there())
    left = answer["others"]["ClusterResourceSetBinding/c1"]

    assert [b["clusterResourceSetName"] for b in left["spec"]["bindings"]] == ["another"]
    assert [o["name"] for o in left["metadata"]["ownerReferences"]] == ["another"]
    assert answer["object"] is None
    assert decide(deleted(), cluster(), there())["object"] is None, "a binding that is gone holds nothing up"


def test_a_deleted_set_removes_its_entry_even_if_its_selector_no_longer_matches() -> None:
    """Our ruling: bindings are looked at, not Clusters."""
    unlabelled = cluster()
    unlabelled["metadata"]["labels"] = {}
    answer = decide(deleted(), unlabelled, binding(sets=("rs", "another")), there())

    assert [b["clusterResourceSetName"] for b in answer["others"]["ClusterResourceSetBinding/c1"]["spec"]["bindings"]] == ["another"]


def test_an_old_binding_owned_by_the_cluster_is_modernised() -> None:
    old = binding()
    old["metadata"]["ownerReferences"].append({"apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Cluster", "name": "c1", "uid": "u-c1"})
    del old["spec"]["clusterName"]
    answer = clusterwright.decide([cluster(), old, there()], "ClusterResourceSetBinding/ns/c1")
    made = answer["object"]

    assert made["spec"]["clusterName"] == "c1"
    assert [o["kind"] for o in made["metadata"]["ownerReferences"]] == ["ClusterResourceSet"]


@pytest.mark.parametrize("allowed", [False, True])
def test_a_binding_waits_until_the_cluster_can_be_deleted(allowed: bool) -> None:
    going = cluster()
    going["metadata"] |= {"deletionTimestamp": NOW, "finalizers": ["x/y"]}
    going["metadata"]["annotations"] = {"runtime.cluster.x-k8s.io/ok-to-delete": ""} if allowed else {}
    going["spec"] = {"topology": {"classRef": {"name": "k"}, "version": "v1.34.1"}}
    world = {**there(), "features": {"ClusterTopology": True, "RuntimeSDK": True}}
    answer = clusterwright.decide([going, binding(), world], "ClusterResourceSetBinding/ns/c1")

    assert (answer["object"] is None) is allowed


def test_errors_do_not_name_objects_inside_a_secret() -> None:
    wrong = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: needle-name, namespace: needle}\n"
    data = {"a": base64.b64encode(wrong.encode()).decode()}
    secret = {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": "s", "namespace": "ns"},
        "type": "addons.cluster.x-k8s.io/resource-set",
        "data": data,
    }
    given = resource_set()
    given["spec"]["resources"] = [{"kind": "Secret", "name": "s"}]

    answer = decide(given, cluster(), secret, there(unwritable=[{"verb": "create", "kind": "ConfigMap"}]))

    assert "failed to apply the 1st object in Secret ns/s" in str(answer)
    assert "needle" not in str([answer["object"]["status"], answer.get("events"), answer.get("error"), answer.get("logs")])
