"""Old versions on the embedded API server, beyond what was recorded."""

from __future__ import annotations

import asyncio
from random import Random
from typing import Any

import msgspec
import pytest

from clusterwright.api.crds import crds
from clusterwright.api.meta import GroupVersionKind, ObjectKey
from clusterwright.api.wire import Request
from clusterwright.apiserver.server import ApiServer
from clusterwright.apiserver.serving.inprocess import InProcessTransport
from clusterwright.apiserver.storage.streams import Stream
from clusterwright.runtime.clock import SystemClock
from clusterwright.runtime.errors import ApiError, ServerError
from clusterwright.runtime.rest import RestClient
from clusterwright.webhooks import embedded
from support.patience import PATIENCE

OLD = GroupVersionKind("cluster.x-k8s.io", "v1beta1", "Cluster")
NEW = GroupVersionKind("cluster.x-k8s.io", "v1beta2", "Cluster")
KEY = ObjectKey("default", "c")


def make() -> tuple[ApiServer, RestClient]:
    server = ApiServer(now=SystemClock().now, random=Random(1), converters=embedded.converters)
    server.ensure(crds())
    return server, RestClient(InProcessTransport(server))


def cluster(name: str = "c", kind: str = "DevCluster") -> dict[str, Any]:
    reference = {"apiGroup": "infrastructure.cluster.x-k8s.io", "kind": kind, "name": "r"}
    spec = {"infrastructureRef": reference, "paused": False}
    return {"apiVersion": NEW.api_version, "kind": "Cluster", "metadata": {"name": name, "namespace": "default"}, "spec": spec}


async def test_an_unconvertible_object_ends_the_watch_and_does_not_affect_writers() -> None:
    server, client = make()
    path = "/apis/cluster.x-k8s.io/v1beta1/clusters"
    stream = await server.handle(Request(method="GET", path=path, query=(("watch", "true"),)))
    assert isinstance(stream, Stream)
    for name, kind in (("a", "DevCluster"), ("b", "NoSuchKind"), ("c", "DevCluster")):
        await client.create(cluster(name, kind))
    async with asyncio.timeout(PATIENCE):
        events = [msgspec.json.decode(line) async for line in stream]
    assert [event["type"] for event in events] == ["ADDED", "ERROR"]
    assert "nosuchkinds.infrastructure.cluster.x-k8s.io" in events[1]["object"]["message"]


async def test_an_unconvertible_object_fails_only_reads_in_the_old_version() -> None:
    _, client = make()
    await client.create(cluster(kind="NoSuchKind"))
    with pytest.raises(ServerError, match="NoSuchKind"):
        await client.list(OLD)
    with pytest.raises(ServerError, match="NoSuchKind"):
        await client.get(OLD, KEY)
    assert len(await client.list(NEW)) == 1


async def test_a_write_whose_answer_cannot_be_converted_is_not_stored() -> None:
    _, client = make()
    old = cluster() | {"apiVersion": OLD.api_version}
    old["spec"] = {"infrastructureRef": {"apiVersion": "infrastructure.cluster.x-k8s.io/v1beta1", "kind": "NoSuchKind", "name": "r"}}
    with pytest.raises(ApiError, match="NoSuchKind"):
        await client.create(old)
    assert await client.find(NEW, KEY) is None


async def test_fields_of_the_hub_survive_a_client_of_the_old_version() -> None:
    _, client = make()
    await client.create(cluster())
    read = dict((await client.get(OLD, KEY)).json)
    await client.update({**read, "metadata": {**read["metadata"], "labels": {"a": "b"}}})
    now = await client.get(NEW, KEY)
    assert now.at("spec", "paused") is False
    assert now.at("metadata", "labels") == {"a": "b"}
    assert now.at("metadata", "annotations") is None


async def test_generation_grows_with_the_spec_of_the_version_that_is_written() -> None:
    _, client = make()
    await client.create(cluster())
    for version, patch, generation in (
        (OLD, {"spec": {"paused": True}}, 2),
        (NEW, {"metadata": {"labels": {"a": "b"}}}, 2),
        (OLD, {"metadata": {"annotations": {"c": "d"}}}, 2),
        (NEW, {"spec": {"paused": False}}, 3),
        (OLD, {"spec": {"paused": False}}, 4),  # v1beta1 does not print it: for its clients it is new
    ):
        await client.patch(version, KEY, patch)
        assert {(await client.get(v, KEY)).metadata.generation for v in (OLD, NEW)} == {generation}


async def test_appliers_of_two_versions_see_each_other() -> None:
    _, client = make()
    mine = cluster() | {"spec": {"clusterNetwork": {"serviceDomain": "a.local"}}}
    yours = cluster() | {"apiVersion": OLD.api_version, "spec": {"clusterNetwork": {"serviceDomain": "b.local"}}}
    await client.apply(mine, field_manager="alpha", force=False)
    with pytest.raises(ApiError, match=r'conflict with "alpha".*\.spec\.clusterNetwork\.serviceDomain'):
        await client.apply(yours, field_manager="beta", force=False)
    await client.apply(yours, field_manager="beta", force=True)
    entries = (await client.get(NEW, KEY)).at("metadata", "managedFields")
    assert [(entry["manager"], entry["apiVersion"]) for entry in entries] == [("beta", OLD.api_version)]
