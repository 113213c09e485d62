"""ClusterResourceSets where rulings, not recordings, say what is right."""

from __future__ import annotations

from typing import Any

import pytest

import clusterwright
from clusterwright.api.kubernetes import ConfigMap
from clusterwright.api.meta import ObjectMeta
from clusterwright.controllers.clusterresourceset.content import BadContent, content_of, flaw_of

NOW = "2026-05-01T12:00:00Z"


def resource_set(strategy: str = "Reconcile", *names: str) -> dict[str, Any]:
    return {
        "apiVersion": "addons.cluster.x-k8s.io/v1beta2",
        "kind": "ClusterResourceSet",
        "metadata": {"name": "rs", "namespace": "ns", "uid": "u-rs", "generation": 1, "finalizers": ["addons.cluster.x-k8s.io"]},
        "spec": {
            "clusterSelector": {"matchLabels": {"cni": "x"}},
            "strategy": strategy,
            "resources": [{"kind": "ConfigMap", "name": n} for n in names or ("cm",)],
        },
        "status": {
            "conditions": [
                {
                    "type": "Paused",
                    "status": "False",
                    "reason": "NotPaused",
                    "message": "",
                    "lastTransitionTime": NOW,
                    "observedGeneration": 1,
                }
            ]
        },
    }


def cluster(name: str = "c1") -> dict[str, Any]:
    return {
        "apiVersion": "cluster.x-k8s.io/v1beta2",
        "kind": "Cluster",
        "metadata": {"name": name, "namespace": "ns", "uid": f"u-{name}", "labels": {"cni": "x"}},
        "spec": {},
    }


def config_map(text: str, name: str = "cm") -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": "ns", "uid": f"u-{name}"}, "data": {"a": text}}


def observation(**workload: Any) -> dict[str, Any]:
    return {
        "apiVersion": "clusterwright.dev/v1alpha1",
        "kind": "Observation",
        "now": NOW,
        "workloadClusters": {f"ns/{n}": w for n, w in workload.items()},
    }


def decide(*objects: dict[str, Any]) -> dict[str, Any]:
    return dict(clusterwright.decide(objects, "ClusterResourceSet/ns/rs"))


def condition(answer: dict[str, Any]) -> tuple[str, str]:
    return next((c["status"], c["reason"]) for c in answer["object"]["status"]["conditions"] if c["type"] == "ResourcesApplied")


MANIFEST = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: w, namespace: default}\ndata: {k: v}\n"


def held(text: str) -> tuple[dict[str, Any], ...]:
    return content_of(ConfigMap(metadata=ObjectMeta(name="cm", namespace="ns"), data={"a": text})).objects


def test_a_short_value_is_read_like_any_other() -> None:
    assert held("# nothing\n") == ()
    assert held("{}") == ()


@pytest.mark.parametrize(
    "text",
    [
        "[{",
        "   [1]",
        "- a list\n- of YAML, long enough to be looked at\n",
        "just words",
    ],
)
def test_a_value_that_is_not_an_object_is_refused(text: str) -> None:
    with pytest.raises(BadContent, match="failed converting data"):
        held(text)


@pytest.mark.parametrize(
    ("text", "flaw"),
    [
        ("kind: ConfigMap\nmetadata: {}\n", "apiVersion is missing"),
        ("apiVersion: v1\nkind: ConfigMap\n", "metadata is missing"),
        ("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: 7}\n", "metadata.name is not a string"),
        ("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n", ""),
    ],
)
def test_an_object_that_no_server_accepts_has_a_flaw(text: str, flaw: str) -> None:
    assert [flaw_of(obj) for obj in held(text)] == [flaw]


def test_an_error_does_not_quote_the_content() -> None:
    with pytest.raises(BadContent) as refused:
        held("apiVersion: v1\nkind: Secret\nstringData: {password: hunter2}: {\n")

    assert "hunter2" not in str(refused.value)


def test_objects_that_others_need_come_first() -> None:
    text = "---\n".join(
        f"apiVersion: v1\nkind: {kind}\nmetadata: {{name: x}}\n" for kind in ("Service", "ConfigMap", "Secret", "Namespace", "Service")
    )

    assert [o["kind"] for o in held(text)] == ["Namespace", "Secret", "ConfigMap", "Service", "Service"]


def test_fields_that_others_set_stay() -> None:
    there = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "w", "namespace": "default", "uid": "u-w", "labels": {"theirs": "yes"}},
        "data": {"k": "old", "other": "kept"},
    }

    answer = decide(resource_set(), cluster(), config_map(MANIFEST), observation(c1={"connected": True, "objects": [there]}))

    assert answer["error"] is None
    assert answer["others"]["ConfigMap/w"]["data"] == {"k": "v", "other": "kept"}
    assert answer["others"]["ConfigMap/w"]["metadata"]["labels"] == {"theirs": "yes"}


def test_the_worst_cluster_wins() -> None:
    answer = decide(
        resource_set(), cluster("c1"), cluster("c2"), config_map(MANIFEST), observation(c1={"connected": False}, c2={"connected": True})
    )

    assert condition(answer) == ("False", "InternalError")
    assert "ns/c1" in answer["error"]


def test_content_that_cannot_be_read_is_not_applied() -> None:
    answer = decide(resource_set("ApplyOnce"), cluster(), config_map("{"), observation(c1={"connected": True}))

    assert condition(answer) == ("False", "NotApplied")
    assert answer["others"]["ClusterResourceSetBinding/c1"]["spec"]["bindings"][0]["resources"][0]["applied"] is False


def test_a_conflict_does_not_hide_errors_of_other_clusters() -> None:
    conflict = {
        **observation(c1={"connected": True}, c2={"connected": False}),
        "unwritable": [{"verb": "patch", "kind": "ClusterResourceSetBinding", "name": "c1", "error": "Conflict"}],
    }

    answer = decide(resource_set(), cluster("c1"), cluster("c2"), config_map(MANIFEST), conflict)

    assert answer["error"]
    assert answer["requeueAfterSeconds"] is None


def test_all_bindings_are_released_even_if_one_is_gone() -> None:
    deleting = resource_set()
    deleting["metadata"]["deletionTimestamp"] = NOW
    binding = {
        "apiVersion": "addons.cluster.x-k8s.io/v1beta2",
        "kind": "ClusterResourceSetBinding",
        "metadata": {"name": "c2", "namespace": "ns", "uid": "u-b"},
        "spec": {"clusterName": "c2", "bindings": [{"clusterResourceSetName": "rs"}]},
    }

    answer = decide(deleting, cluster("c1"), cluster("c2"), binding, observation())

    assert [(a["verb"], a["name"]) for a in answer["actions"]] == [("delete", "c2")]
    assert answer["object"] is None
