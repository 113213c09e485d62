"""Server-side apply in an offline world: ownership counts also where there is no schema."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from typing import Any

from clusterwright.api.meta import GroupVersionKind, ObjectKey
from clusterwright.offline.bundle import assemble
from clusterwright.offline.world import World
from clusterwright.runtime.keys import sample_keys

KIND = GroupVersionKind("acme.io", "v1", "Thing")


def thing(**more: Any) -> dict[str, Any]:
    return {"apiVersion": "acme.io/v1", "kind": "Thing", "metadata": {"name": "t", "namespace": "ns"}, **more}


def world(*objects: dict[str, Any]) -> World:
    return World(assemble(objects), datetime(2026, 1, 1, tzinfo=UTC), sample_keys())


def test_what_a_manager_leaves_out_is_removed_and_what_others_own_stays() -> None:
    async def run() -> None:
        there = world(thing() | {"metadata": {"name": "other", "namespace": "ns"}})
        await there.client.apply(thing(spec={"a": 1, "b": {"c": 1, "d": 2}, "list": [1, 2]}), field_manager="us")
        await there.client.apply(thing(spec={"b": {"d": 2}, "theirs": True}), field_manager="they")

        after = await there.client.apply(thing(spec={"a": 2, "list": [3]}), field_manager="us")

        assert after.at("spec") == {"a": 2, "b": {"d": 2}, "theirs": True, "list": [3]}
        assert sorted(e["manager"] for e in after.at("metadata", "managedFields")) == ["they", "us"]

    asyncio.run(run())


def test_owners_are_told_apart_by_uid() -> None:
    def owner(name: str) -> dict[str, Any]:
        return {"apiVersion": "v1", "kind": "Secret", "name": name, "uid": name}

    async def run() -> None:
        there = world(thing() | {"metadata": {"name": "t", "namespace": "ns", "ownerReferences": [owner("x")]}})

        applied = thing() | {"metadata": {"name": "t", "namespace": "ns", "ownerReferences": [owner("y")]}}
        after = await there.client.apply(applied, field_manager="us")

        assert [r["name"] for r in after.at("metadata", "ownerReferences")] == ["x", "y"]

    asyncio.run(run())


def test_a_dry_run_and_a_change_of_owners_are_no_action() -> None:
    async def run() -> None:
        there = world(thing(spec={"a": 1}))

        answer = await there.client.apply(thing(spec={"a": 2}), field_manager="us", dry_run=True)
        assert answer.at("spec", "a") == 2
        assert (await there.client.get(KIND, ObjectKey("ns", "t"))).at("spec", "a") == 1

        await there.client.apply(thing(spec={"a": 1}), field_manager="us")
        assert there.journal.actions == []

        await there.client.apply(thing(spec={"a": 2}), field_manager="us")
        assert [(a.verb, a.kind, a.name) for a in there.journal.actions] == [("patch", "Thing", "t")]

    asyncio.run(run())
