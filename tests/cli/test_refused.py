"""Which stored objects today's admission refuses, as `adopt --dry-run` reports them."""

from __future__ import annotations

import copy
from typing import Any

from clusterwright.cli.refused import refused
from vectors import replay

WORLD = next(v["objects"] for v in replay.vectors("machine") if v["id"] == "machine-h-boot-copy-01")


class Nothing:
    """A reader of an empty cluster."""

    async def get(self, *_: Any, **__: Any) -> Any:
        raise AssertionError("nothing is read")

    find = list = get


def machine(version: str, **metadata: Any) -> dict[str, Any]:
    found = copy.deepcopy(next(o for o in WORLD if o["kind"] == "Machine"))
    found["spec"]["version"] = version
    found["metadata"] |= metadata
    return found


async def told(*documents: dict[str, Any]) -> list[Any]:
    return await refused(Nothing(), documents)  # type: ignore[arg-type]  # rules for Machines read nothing


async def test_an_object_that_today_is_refused_is_named_with_the_field_and_the_rule() -> None:
    (found,) = await told(machine("v1.34.1"), machine("v1.34"))

    assert found["object"].startswith("Machine/")
    assert "spec.version" in found["error"]


async def test_nothing_is_changed_by_asking() -> None:
    document = machine("v1.34.1")
    before = copy.deepcopy(document)

    assert await told(document) == []
    assert document == before


async def test_kinds_without_rules_and_objects_that_go_are_passed_over() -> None:
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}}

    assert await told(secret, machine("v1.34", deletionTimestamp="2026-05-01T00:00:00Z")) == []
