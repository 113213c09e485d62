"""Deleting owners, namespaces and definitions looks at each object a fixed number of times, a bounded number at once."""

from __future__ import annotations

import asyncio
import asyncio.events as loop_events
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from random import Random
from typing import Any

import msgspec
import pytest

from apiserver.apiserver_testing import Api, Clock, configmap, widget, widget_crds
from clusterwright.apiserver.server import ApiServer
from clusterwright.apiserver.storage.store import Entry
from clusterwright.apiserver.system import garbage

CONFIGMAPS = "/api/v1/namespaces/default/configmaps"
AT_ONCE = 60
"""Writes in one step of the event loop: a slice, and the request that began it."""


class Work:
    """How often objects were decoded for their owners or written; the most writes in one step of the event loop."""

    def __init__(self) -> None:
        self.looked = 0
        self.longest = 0


@pytest.fixture
def work(monkeypatch: pytest.MonkeyPatch) -> Work:
    found, decode = Work(), garbage._owned

    def counted(raw: bytes) -> Any:
        found.looked += 1
        return decode(raw)

    monkeypatch.setattr(garbage, "_owned", counted)
    return found


@asynccontextmanager
async def counting(server: ApiServer, work: Work, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[None]:
    run = loop_events.Handle._run

    def measured(handle: Any) -> None:
        before = server.store.revision
        run(handle)
        if is_counting:
            work.longest = max(work.longest, server.store.revision - before)

    is_counting, work.looked, begun = True, 0, server.store.revision
    with monkeypatch.context() as patched:
        patched.setattr(loop_events.Handle, "_run", measured)
        yield
        await idle(server)
        is_counting = False
    work.looked += server.store.revision - begun


async def idle(server: ApiServer) -> None:
    """Wait until the server has nothing left to do."""
    while server._backlog._long:  # noqa: ASYNC110 - each turn of the loop does a slice
        await asyncio.sleep(0)
    await asyncio.sleep(0)


def a_server(clock: Clock | None = None) -> ApiServer:
    server = ApiServer(now=clock or Clock(), random=Random(1))
    server.start_controllers()
    return server


def put(server: ApiServer, name: str, *, namespace: str = "default", table: str = "configmaps", **meta: Any) -> str:
    """Store an object without a request. Return its uid."""
    rv, uid = server.store.next_revision(), server.new_uid()
    whole = {"name": name, "namespace": namespace, "uid": uid, "resourceVersion": str(rv), **meta}
    raw = msgspec.json.encode({"kind": "ConfigMap", "apiVersion": "v1", "metadata": whole})
    server.store.put(server.store.table(table), Entry(f"{namespace}/{name}", namespace, name, uid, rv, raw))
    server.drain()
    return uid


def owned_by(uid: str, *, block: bool = True) -> dict[str, Any]:
    return {"ownerReferences": [{"apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": uid, "blockOwnerDeletion": block}]}


async def foreground(count: int, work: Work, monkeypatch: pytest.MonkeyPatch) -> int:
    server = a_server()
    api, owner = Api.of(server), put(server, "owner")
    for number in range(count):
        put(server, f"held-{number}", finalizers=["example.com/held"], **owned_by(owner))
        put(server, f"free-{number}", **owned_by(owner))
    await idle(server)
    table = server.store.table("configmaps")
    async with counting(server, work, monkeypatch):
        answer = await api.delete(f"{CONFIGMAPS}/owner", body={"propagationPolicy": "Foreground"})
        assert answer.status in {200, 202}
    assert len(table.objects) == count + 1
    looked = work.looked
    for number in range(count):
        entry = table.objects[f"default/held-{number}"]
        server.drop_finalizer(table, entry, json.loads(entry.raw), "example.com/held")
        server.drain()
    assert not table.objects
    return looked


async def test_foreground_deletion_is_linear_and_in_slices(work: Work, monkeypatch: pytest.MonkeyPatch) -> None:
    looked = [await foreground(count, work, monkeypatch) for count in (250, 1000, 4000)]

    assert looked[1] <= 4.1 * looked[0]
    assert looked[2] <= 4.1 * looked[1]
    assert work.longest <= AT_ONCE


async def test_background_and_orphan_deletion_are_linear_and_in_slices(work: Work, monkeypatch: pytest.MonkeyPatch) -> None:
    for policy, left in (("Background", 0), ("Orphan", 1000)):
        server = a_server()
        owner = put(server, "owner")
        for number in range(1000):
            put(server, f"c{number}", **owned_by(owner))
        async with counting(server, work, monkeypatch):
            await Api.of(server).delete(f"{CONFIGMAPS}/owner", body={"propagationPolicy": policy})

        assert len(server.store.table("configmaps").objects) == left
        assert work.looked <= 6 * 1000
        assert work.longest <= AT_ONCE


async def emptied(count: int, work: Work, monkeypatch: pytest.MonkeyPatch) -> int:
    server = a_server()
    api = Api.of(server)
    await api.post("/api/v1/namespaces", {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "a"}})
    for number in range(count):
        put(server, f"held-{number}", namespace="a", finalizers=["example.com/held"])
        put(server, f"free-{number}", namespace="a")
    table = server.store.table("configmaps")
    async with counting(server, work, monkeypatch):
        await api.delete("/api/v1/namespaces/a")
    assert len(table.objects) == count
    async with counting(server, work, monkeypatch):
        for entry in list(table.objects.values()):
            server.drop_finalizer(table, entry, json.loads(entry.raw), "example.com/held")
            server.drain()
            await asyncio.sleep(0)
    assert (await api.get("/api/v1/namespaces/a")).status == 404
    return work.looked


async def test_the_deletion_of_a_namespace_is_linear_and_in_slices(work: Work, monkeypatch: pytest.MonkeyPatch) -> None:
    few = await emptied(100, work, monkeypatch)
    many = await emptied(800, work, monkeypatch)

    assert many <= 8.5 * few
    assert work.longest <= AT_ONCE


async def test_an_object_whose_request_outlived_its_namespace_does_not_keep_the_namespace() -> None:
    server = a_server()
    api = Api.of(server)
    await api.post("/api/v1/namespaces", {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "a"}})
    put(server, "held", namespace="a", finalizers=["example.com/held"])
    await api.delete("/api/v1/namespaces/a")
    put(server, "late", namespace="a")

    table = server.store.table("configmaps")
    assert list(table.objects) == ["a/held"]
    entry = table.objects["a/held"]
    server.drop_finalizer(table, entry, json.loads(entry.raw), "example.com/held")
    server.drain()
    assert (await api.get("/api/v1/namespaces/a")).status == 404


async def test_the_deletion_of_a_definition_is_in_slices(work: Work, monkeypatch: pytest.MonkeyPatch) -> None:
    server = a_server()
    api = Api.of(server)
    server.ensure(widget_crds())
    path = "/apis/widgets.example.com/v1/namespaces/default/widgets"
    for number in range(300):
        assert (await api.post(path, widget(f"w{number}"))).status == 201
    crds = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/widgets.widgets.example.com"
    async with counting(server, work, monkeypatch):
        await api.delete(crds)

    assert (await api.get(crds)).status == 404
    assert not server.store.table("widgets.widgets.example.com").objects
    assert work.longest <= AT_ONCE


async def test_a_collection_is_deleted_in_slices(work: Work, monkeypatch: pytest.MonkeyPatch) -> None:
    server = a_server()
    for number in range(300):
        put(server, f"c{number}")
    async with counting(server, work, monkeypatch):
        await asyncio.ensure_future(Api.of(server).delete(CONFIGMAPS))

    assert not server.store.table("configmaps").objects
    assert work.longest <= AT_ONCE


async def test_old_events_expire_in_slices(work: Work, monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock()
    server = a_server(clock)
    for number in range(300):
        put(server, f"e{number}", table="events")
    clock.time += timedelta(hours=2)
    async with counting(server, work, monkeypatch):
        put(server, "new", table="events")

    assert list(server.store.table("events").objects) == ["default/new"]
    assert work.longest <= AT_ONCE


async def test_others_are_served_while_a_large_deletion_goes_on() -> None:
    server = a_server()
    api, owner = Api.of(server), put(server, "owner")
    for number in range(1000):
        put(server, f"c{number}", **owned_by(owner))
    await api.delete(f"{CONFIGMAPS}/owner", body={"propagationPolicy": "Foreground"})

    assert len(server.store.table("configmaps").objects) > 900
    assert (await api.post(CONFIGMAPS, configmap("other"))).status == 201
    second = put(server, "second")
    put(server, "small", **owned_by(second))
    await api.delete(f"{CONFIGMAPS}/second", body={"propagationPolicy": "Background"})
    for _ in range(4):
        await asyncio.sleep(0)
    assert "default/small" not in server.store.table("configmaps").objects  # small work does not wait for large work
    await idle(server)
    assert list(server.store.table("configmaps").objects) == ["default/other"]


async def test_a_dependent_in_another_namespace_does_not_block_its_owner() -> None:
    server = a_server()
    api, owner = Api.of(server), put(server, "owner", namespace="default")
    put(server, "foreign", namespace="kube-public", finalizers=["example.com/held"], **owned_by(owner))
    put(server, "mine", **owned_by(owner))

    await api.delete(f"{CONFIGMAPS}/owner", body={"propagationPolicy": "Foreground"})

    assert [key for key in server.store.table("configmaps").objects if key.startswith("default/")] == []


async def test_a_dependent_that_no_longer_blocks_lets_its_owner_go() -> None:
    server = a_server()
    api, owner = Api.of(server), put(server, "owner")
    put(server, "held", finalizers=["example.com/held"], **owned_by(owner))
    await api.delete(f"{CONFIGMAPS}/owner", body={"propagationPolicy": "Foreground"})
    assert (await api.get(f"{CONFIGMAPS}/owner")).status == 200

    held = (await api.get(f"{CONFIGMAPS}/held")).json
    held["metadata"]["ownerReferences"][0]["blockOwnerDeletion"] = False
    assert (await api.put(f"{CONFIGMAPS}/held", held)).status == 200

    assert (await api.get(f"{CONFIGMAPS}/owner")).status == 404


async def test_a_foreground_deletion_is_taken_up_after_a_restart() -> None:
    server = ApiServer(now=Clock(), random=Random(1))
    meta: dict[str, Any] = {"finalizers": ["foregroundDeletion"], "deletionTimestamp": "2026-05-01T11:00:00Z"}
    owner = put(server, "owner", **meta)
    put(server, "mine", **owned_by(owner))

    server.start_controllers()
    await idle(server)

    assert not server.store.table("configmaps").objects
