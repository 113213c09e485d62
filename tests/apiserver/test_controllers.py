"""Garbage collection, namespaces, evictions: what the API server does by itself when asked to."""

from __future__ import annotations

from typing import Any

import pytest

from apiserver.apiserver_testing import WIDGETS, Api, Clock, configmap, make_server, widget, widget_crds

CONFIGMAPS = "/api/v1/namespaces/default/configmaps"
PODS = "/api/v1/namespaces/default/pods"
BUDGETS = "/apis/policy/v1/namespaces/default/poddisruptionbudgets"


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def api(clock: Clock) -> Api:
    server = make_server(clock)
    server.ensure(widget_crds())
    server.start_controllers()
    return Api.of(server)


def owned(name: str, *owners: Any, block: bool = False) -> dict[str, Any]:
    obj = configmap(name)
    obj["metadata"]["ownerReferences"] = [
        {
            "apiVersion": "widgets.example.com/v1",
            "kind": "Widget",
            "name": o["metadata"]["name"],
            "uid": o["metadata"]["uid"],
            "blockOwnerDeletion": block,
        }
        for o in owners
    ]
    return obj


async def exists(api: Api, path: str) -> bool:
    return (await api.get(path)).status == 200


async def test_dependents_go_with_their_last_owner(api: Api):
    one, two = await api.post(WIDGETS, widget("one")), await api.post(WIDGETS, widget("two"))
    await api.post(CONFIGMAPS, owned("child", one.json))
    await api.post(CONFIGMAPS, owned("shared", one.json, two.json))

    await api.delete(f"{WIDGETS}/one")

    assert not await exists(api, f"{CONFIGMAPS}/child")
    shared = await api.get(f"{CONFIGMAPS}/shared")
    assert [r["name"] for r in shared["metadata"]["ownerReferences"]] == ["two"]
    await api.delete(f"{WIDGETS}/two")
    assert not await exists(api, f"{CONFIGMAPS}/shared")


async def test_grandchildren_go_too(api: Api):
    top = await api.post(WIDGETS, widget("top"))
    middle = await api.post(CONFIGMAPS, owned("middle", top.json))
    leaf = configmap("leaf")
    leaf["metadata"]["ownerReferences"] = [{"apiVersion": "v1", "kind": "ConfigMap", "name": "middle", "uid": middle["metadata"]["uid"]}]
    await api.post(CONFIGMAPS, leaf)

    await api.delete(f"{WIDGETS}/top")

    assert not await exists(api, f"{CONFIGMAPS}/middle")
    assert not await exists(api, f"{CONFIGMAPS}/leaf")


async def test_an_object_whose_owner_never_was_is_collected(api: Api):
    ghost = {"metadata": {"name": "ghost", "uid": "00000000-0000-4000-8000-000000000000"}}
    await api.post(CONFIGMAPS, owned("orphan", ghost))

    assert not await exists(api, f"{CONFIGMAPS}/orphan")


async def test_an_owner_in_another_namespace_does_not_count(api: Api):
    await api.post("/api/v1/namespaces", {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "other"}})
    owner = await api.post(WIDGETS.replace("default", "other"), widget("far"))
    await api.post(CONFIGMAPS, owned("child", owner.json))

    assert not await exists(api, f"{CONFIGMAPS}/child")


async def test_foreground_waits_for_blocking_dependents(api: Api):
    owner = await api.post(WIDGETS, widget("owner"))
    child = owned("child", owner.json, block=True)
    child["metadata"]["finalizers"] = ["example.com/hold"]
    await api.post(CONFIGMAPS, child)

    await api.delete(f"{WIDGETS}/owner", {"propagationPolicy": "Foreground"})

    assert (await api.get(f"{CONFIGMAPS}/child"))["metadata"]["deletionTimestamp"]
    assert (await api.get(f"{WIDGETS}/owner"))["metadata"]["finalizers"] == ["foregroundDeletion"]
    await api.merge(f"{CONFIGMAPS}/child", {"metadata": {"finalizers": None}})
    assert not await exists(api, f"{CONFIGMAPS}/child")
    assert not await exists(api, f"{WIDGETS}/owner")


async def test_foreground_does_not_wait_for_dependents_that_do_not_block(api: Api):
    owner = await api.post(WIDGETS, widget("owner"))
    child = owned("child", owner.json)
    child["metadata"]["finalizers"] = ["example.com/hold"]
    await api.post(CONFIGMAPS, child)

    await api.delete(f"{WIDGETS}/owner", {"propagationPolicy": "Foreground"})

    assert not await exists(api, f"{WIDGETS}/owner")
    assert (await api.get(f"{CONFIGMAPS}/child"))["metadata"]["deletionTimestamp"]


async def test_orphans_are_left_without_owner(api: Api):
    owner = await api.post(WIDGETS, widget("owner"))
    await api.post(CONFIGMAPS, owned("child", owner.json))

    await api.delete(f"{WIDGETS}/owner", {"propagationPolicy": "Orphan"})

    assert not await exists(api, f"{WIDGETS}/owner")
    assert "ownerReferences" not in (await api.get(f"{CONFIGMAPS}/child"))["metadata"]


async def test_a_deleted_namespace_is_emptied_and_goes_when_nothing_is_left(api: Api):
    await api.post("/api/v1/namespaces", {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "tmp"}})
    held = configmap("held")
    held["metadata"]["finalizers"] = ["example.com/hold"]
    base = "/api/v1/namespaces/tmp/configmaps"
    await api.post(base, held)
    await api.post(base, configmap("free"))

    await api.delete("/api/v1/namespaces/tmp")

    assert (await api.get("/api/v1/namespaces/tmp"))["status"]["phase"] == "Terminating"
    assert (await api.get(base)).names == ["held"]
    await api.merge(f"{base}/held", {"metadata": {"finalizers": None}})
    assert not await exists(api, "/api/v1/namespaces/tmp")


async def test_aggregated_roles_hold_the_rules_of_the_others(api: Api):
    roles = "/apis/rbac.authorization.k8s.io/v1/clusterroles"
    kind = {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole"}
    selector = {"clusterRoleSelectors": [{"matchLabels": {"part": "of-all"}}]}
    rule = {"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}
    await api.post(roles, {**kind, "metadata": {"name": "all"}, "aggregationRule": selector, "rules": []})
    await api.post(roles, {**kind, "metadata": {"name": "part", "labels": {"part": "of-all"}}, "rules": [rule]})

    assert (await api.get(f"{roles}/all"))["rules"] == [rule]
    await api.delete(f"{roles}/part")
    assert not (await api.get(f"{roles}/all")).json.get("rules")


def pod(name: str, **labels: str) -> dict[str, Any]:
    spec = {"nodeName": "n1", "containers": [{"name": "c", "image": "i"}]}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "labels": labels}, "spec": spec}


async def run_pods(api: Api, count: int) -> None:
    for number in range(count):
        await api.post(PODS, pod(f"p{number}", app="web"))
        ready = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}
        assert (await api.merge(f"{PODS}/p{number}/status", {"status": ready})).status == 200


async def evict(api: Api, name: str) -> Any:
    return await api.post(f"{PODS}/{name}/eviction", {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": name}})


async def test_a_budget_stops_evictions_that_would_break_it(api: Api):
    await run_pods(api, 3)
    spec = {"minAvailable": 2, "selector": {"matchLabels": {"app": "web"}}}
    await api.post(BUDGETS, {"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": "b"}, "spec": spec})

    first = await evict(api, "p0")
    await api.delete(f"{PODS}/p0", {"gracePeriodSeconds": 0})
    second = await evict(api, "p1")

    assert first.status == 201
    assert (second.status, second["reason"]) == (429, "TooManyRequests")
    assert second["message"] == "Cannot evict pod as it would violate the pod's disruption budget."
    assert second["details"]["causes"][0]["message"] == "The disruption budget b needs 2 healthy pods and has 2 currently"


async def test_two_budgets_for_one_pod_are_refused(api: Api):
    await run_pods(api, 1)
    for name in ("a", "b"):
        spec = {"minAvailable": 0, "selector": {"matchLabels": {"app": "web"}}}
        await api.post(BUDGETS, {"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": name}, "spec": spec})

    assert (await evict(api, "p0")).status == 500


async def test_a_pod_that_does_not_run_is_evicted_whatever_the_budget(api: Api):
    await api.post(PODS, pod("pending", app="web"))
    spec = {"minAvailable": 5, "selector": {"matchLabels": {"app": "web"}}}
    await api.post(BUDGETS, {"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": "b"}, "spec": spec})

    assert (await evict(api, "pending")).status == 201


async def test_events_are_forgotten_an_hour_after_they_were_written(api: Api, clock: Clock):
    events = "/api/v1/namespaces/default/events"

    def event(name: str) -> dict[str, Any]:
        about = {"kind": "Widget", "name": "w", "namespace": "default"}
        return {"apiVersion": "v1", "kind": "Event", "metadata": {"name": name}, "involvedObject": about, "reason": "R", "type": "Normal"}

    for name in ("first", "touched"):
        assert (await api.post(events, event(name))).status == 201
    clock.pass_(minutes=50)
    await api.merge(f"{events}/touched", {"count": 2})
    clock.pass_(minutes=20)
    await api.post(events, event("new"))

    assert (await api.get(events)).names == ["new", "touched"]


async def test_a_namespace_has_an_account_and_the_certificate_of_the_server():
    server = make_server()
    server.start_controllers(b"the certificate")
    api = Api.of(server)
    await api.post("/api/v1/namespaces", {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "new"}})

    for namespace in ("default", "new"):
        assert (await api.get(f"/api/v1/namespaces/{namespace}/serviceaccounts/default")).status == 200
        config = await api.get(f"/api/v1/namespaces/{namespace}/configmaps/kube-root-ca.crt")
        assert config["data"] == {"ca.crt": "the certificate"}
    await api.delete("/api/v1/namespaces/new/serviceaccounts/default")
    assert (await api.get("/api/v1/namespaces/new/serviceaccounts/default")).status == 200
    await api.delete("/api/v1/namespaces/new")
    assert (await api.get("/api/v1/namespaces/new")).status == 404
    assert (await api.get("/api/v1/namespaces/new/serviceaccounts/default")).status == 404
