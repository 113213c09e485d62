from typing import Any

import msgspec
import pytest

from clusterwright.api.kubernetes import ConfigMap, Pod
from clusterwright.api.meta import GroupVersionKind, ObjectKey, ObjectMeta, Unstructured
from clusterwright.api.scheme import gvk_of
from clusterwright.api.wire import Response
from clusterwright.runtime.errors import (
    AlreadyExists,
    Conflict,
    ConnectionFailed,
    Forbidden,
    Invalid,
    NoKindMatch,
    NotFound,
    ServerError,
    ServiceUnavailable,
    TooManyRequests,
)
from clusterwright.simulation.sample import GROUP, Child, Parent, ParentSpec

from .conftest import failure

PARENT = gvk_of(Parent)


async def test_typed_and_untyped_reads_of_the_same_object(world):
    key = await world.make(spec={"children": 2, "unknown": 1})

    typed, untyped = await world.client.get(Parent, key), await world.client.get(PARENT, key)

    assert (typed.spec.children, typed.key) == (2, key)
    assert untyped.at("spec") == {"children": 2, "unknown": 1}
    assert (await world.client.read(Parent, key)).object == typed


async def test_missing_objects_are_not_found_or_none(world):
    key = ObjectKey("default", "nobody")

    with pytest.raises(NotFound):
        await world.client.get(Parent, key)
    assert await world.client.find(Parent, key) is None
    assert await world.client.read(Parent, key) is None


@pytest.mark.parametrize("name", ["", ".", "..", "a/status", "a%2fb"])
async def test_a_name_that_no_object_can_have_never_means_another_path(world, name):
    kept, key = await world.make(), ObjectKey("default", name)

    assert await world.client.find(Parent, key) is None
    with pytest.raises(NotFound):
        await world.client.delete(Parent, key)
    with pytest.raises(NotFound):
        await world.client.patch(Parent, key, {"metadata": {"labels": {"a": "b"}}})
    assert [p.key for p in await world.client.list(Parent)] == [kept]


@pytest.mark.parametrize(
    "gvk", [GroupVersionKind("nowhere.dev", "v1", "Thing"), GroupVersionKind(GROUP, "v9", "Parent"), GroupVersionKind(GROUP, "v1", "Thing")]
)
async def test_a_kind_that_is_not_served_is_not_a_missing_object(world, gvk):
    with pytest.raises(NoKindMatch):
        await world.client.find(gvk, ObjectKey("default", "x"))
    with pytest.raises(NoKindMatch):
        await world.client.list(gvk)


async def test_a_status_inside_a_go_error_is_still_a_status(world):
    """Upstream's in-memory API servers answer so: without it every missing object there were a kind that is not served."""
    status = {"metadata": {}, "status": "Failure", "message": "gone away", "reason": "NotFound", "details": {"name": "x"}, "code": 404}

    async def answer(request):
        return Response(status=404, body=msgspec.json.encode({"ErrStatus": status})) if request.path.endswith("/x") else None

    world.transport.before = answer
    with pytest.raises(NotFound, match="gone away"):
        await world.client.get(Parent, ObjectKey("default", "x"))


async def test_a_known_kind_whose_crd_is_missing_is_not_a_missing_object(world):
    from clusterwright.api.core import Cluster

    with pytest.raises(NoKindMatch):
        await world.client.find(Cluster, ObjectKey("default", "x"))


async def test_discovery_is_asked_once_and_again_after_the_kind_was_gone(world):
    key = await world.make()
    await world.client.get(PARENT, key)
    await world.client.get(PARENT, key)
    discovery = f"/apis/{GROUP}/v1"
    assert [r.path for r in world.transport.sent].count(discovery) == 1

    world.transport.sent.clear()
    await world.user.delete(GroupVersionKind("apiextensions.k8s.io", "v1", "CustomResourceDefinition"), ObjectKey("", f"parents.{GROUP}"))
    with pytest.raises(NoKindMatch):
        await world.client.get(PARENT, key)
    with pytest.raises(NoKindMatch):
        await world.client.get(PARENT, key)
    assert [r.path for r in world.transport.sent].count(discovery) == 1


async def test_lists_are_paged_sorted_and_filtered(world):
    for n in range(1203):
        metadata: Any = {"namespace": "default", "name": f"c-{n:04}", "labels": {"third": str(n % 3)}}
        if n < 5:
            metadata["ownerReferences"] = [{"apiVersion": "v1", "kind": "K", "name": "n", "uid": "u1"}]
        await world.user.create({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata})
    world.transport.sent.clear()

    found = await world.client.list(ConfigMap)

    assert [c.metadata.name for c in found] == [f"c-{n:04}" for n in range(1203)]
    assert len(world.transport.sent) == 3
    assert {dict(r.query)["limit"] for r in world.transport.sent} == {"500"}
    assert len(await world.client.list(ConfigMap, labels={"third": "1"})) == 401
    assert len(await world.client.list(ConfigMap, labels="third notin (1,2)")) == 401
    assert [c.metadata.name for c in await world.client.list(ConfigMap, owner="u1")] == [f"c-000{n}" for n in range(5)]
    assert [c.metadata.name for c in await world.client.list(ConfigMap, fields="metadata.name=c-0007")] == ["c-0007"]
    assert await world.client.list(ConfigMap, namespace="kube-system") == []


async def test_a_list_whose_continue_token_expired_begins_again(world):
    for n in range(600):
        await world.user.create({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"namespace": "default", "name": f"c-{n}"}})
    expired = []

    async def expire(request):
        if "continue" in dict(request.query) and not expired:
            expired.append(1)
            return failure(410, "Expired")
        return None

    world.transport.before = expire
    assert len(await world.client.list(ConfigMap)) == 600
    assert expired


async def test_writes_of_every_verb(world):
    client = world.client
    made = await client.create(Parent(metadata=ObjectMeta(namespace="default", generate_name="gen-"), spec=ParentSpec(children=1)))
    assert made.key.name.startswith("gen-")
    with pytest.raises(AlreadyExists):
        await client.create(Parent(metadata=ObjectMeta(namespace="default", name=made.key.name)))

    patched = await client.patch(PARENT, made.key, {"spec": {"children": 2}})
    assert patched.at("spec", "children") == 2
    patched = await client.patch(Parent, made.key, [{"op": "replace", "path": "/spec/children", "value": 3}], type="json")
    assert patched.at("spec", "children") == 3
    applied = await client.apply(
        Parent(metadata=ObjectMeta(namespace="default", name="applied"), spec=ParentSpec(children=4)), field_manager="me"
    )
    assert isinstance(applied, Unstructured)
    assert applied.at("metadata", "managedFields")[0]["manager"] == "me"
    with pytest.raises(Conflict):
        await client.patch(PARENT, made.key, {"metadata": {"resourceVersion": made.metadata.resource_version}, "spec": {"children": 9}})
    updated = await client.update({**patched.json, "spec": {"children": 5}})
    assert updated.at("spec", "children") == 5
    with pytest.raises(Conflict):
        await client.update({**patched.json, "spec": {"children": 6}})

    with pytest.raises(Conflict):
        await client.delete(Parent, made.key, uid="another")
    await client.delete(Parent, made.key, uid=made.metadata.uid)
    with pytest.raises(NotFound):
        await client.delete(Parent, made.key)


async def test_strategic_merge_patch_and_invalid_objects(world):
    await world.client.create(
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"namespace": "default", "name": "c"}, "data": {"a": "1", "b": "2"}}
    )
    patched = await world.client.patch(ConfigMap, ObjectKey("default", "c"), {"data": {"a": None}}, type="strategic")
    assert patched.at("data") == {"b": "2"}
    with pytest.raises(Invalid):
        await world.client.create({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"namespace": "default", "name": "Not_A_Name"}})


async def test_being_throttled_is_waited_out_forevery_verb(world):
    key = await world.make()
    answers = [failure(429, "TooManyRequests", retry_after="3"), failure(503, "ServiceUnavailable", retry_after="4")]

    async def throttle(request):
        return answers.pop(0) if answers else None

    world.transport.before = throttle
    await world.client.patch(PARENT, key, {"spec": {"children": 2}})

    assert world.clock.at == 7.0
    assert (await world.json())["spec"]["children"] == 2


async def test_throttling_without_end_is_an_error(world):
    async def throttle(request):
        return failure(429, "TooManyRequests", retry_after="1")

    world.transport.before = throttle
    with pytest.raises(TooManyRequests):
        await world.client.get(ConfigMap, ObjectKey("default", "x"))
    assert len(world.transport.sent) == 5


async def test_server_errors_without_retry_after_are_not_retried(world):
    async def fail(request):
        return failure(500, "InternalError")

    world.transport.before = fail
    with pytest.raises(ServerError):
        await world.client.create(Child(metadata=ObjectMeta(namespace="default", name="c")))
    assert len(world.transport.writes) <= 1


async def test_broken_connections_are_retried_for_reads_only(world):
    key = await world.make()
    await world.client.get(PARENT, key)
    world.transport.sent.clear()
    failures = [1, 1]

    async def drop(request):
        if failures:
            failures.pop()
            raise ConnectionFailed("reset")

    world.transport.before = drop
    await world.client.get(PARENT, key)
    assert len(world.transport.sent) == 3

    failures += [1]
    with pytest.raises(ConnectionFailed):
        await world.client.patch(PARENT, key, {"spec": {"children": 2}})


async def test_a_refused_eviction_is_not_sent_again(world):
    async def refuse(request):
        return failure(429, "TooManyRequests", "Cannot evict pod as it would violate the pod's disruption budget.", retry_after="10")

    world.transport.before = refuse
    with pytest.raises(TooManyRequests) as caught:
        await world.client.create_subresource(Pod, ObjectKey("default", "p"), "eviction", {"apiVersion": "policy/v1", "kind": "Eviction"})
    assert caught.value.retry_after == 10
    assert len(world.transport.sent) == 1


async def test_a_subresource_that_is_not_served_says_nothing_about_the_kind(world):
    """There are API servers without evictions, simulated ones: for them a Pod is as good as gone, as it is for client-go."""

    async def no_such_path(request):
        return Response(status=404, body=b"404: Page Not Found") if request.path.endswith("/eviction") else None

    world.transport.before = no_such_path
    with pytest.raises(NotFound):
        await world.client.create_subresource(Pod, ObjectKey("default", "p"), "eviction", {"apiVersion": "policy/v1", "kind": "Eviction"})


async def test_errors_that_are_not_a_status_are_quoted_in_short(world):
    async def proxy_page(request):
        return Response(status=502, body=b"<html>" + b"x" * 10_000)

    world.transport.before = proxy_page
    with pytest.raises(ServerError) as caught:
        await world.client.get(ConfigMap, ObjectKey("default", "x"))
    assert len(str(caught.value)) <= 200


async def test_answers_that_are_not_from_an_api_server_are_failed_connections(world):
    key = await world.make()
    await world.client.get(PARENT, key)

    async def portal(request):
        return Response(status=200, body=b"<html>Sign in to the Wi-Fi</html>")

    world.transport.before = portal
    for call in (world.client.list(PARENT), world.client.patch(PARENT, key, {"spec": {}}), world.client.get(PARENT, key)):
        with pytest.raises(ConnectionFailed):
            await call


@pytest.mark.parametrize(("code", "kind"), [(403, Forbidden), (503, ServiceUnavailable), (409, Conflict), (422, Invalid)])
async def test_status_codes_become_classes(world, code, kind):
    async def answer(request):
        return failure(code, "Whatever")

    world.transport.before = answer
    with pytest.raises(kind):
        await world.client.get(ConfigMap, ObjectKey("default", "x"))


async def test_a_raw_get_that_takes_too_long_is_a_failed_connection(world):
    import asyncio

    async def hang(request):
        await asyncio.Event().wait()

    assert b"gitVersion" in await world.client.raw_get("/version")
    world.transport.before = hang
    with pytest.raises(ConnectionFailed):
        await world.client.raw_get("/version", timeout=0.01)


def test_repr_of_an_object_never_shows_its_content():
    assert "hunter2" not in repr(Unstructured({"kind": "Secret", "metadata": {"name": "s"}, "data": {"password": "hunter2"}}))
    assert msgspec.json.decode(b"{}") == {}
