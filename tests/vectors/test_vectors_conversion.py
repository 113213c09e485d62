"""Every recorded conversion agrees."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from vectors import adapter, replay

CHANGED = frozenset({"devmachine", "devmachinetemplate", "dockermachine", "dockermachinetemplate"})


def without_removed_fields(value: Any, *, in_status: bool = False) -> Any:
    """Take out what v1.14 removed from Dev and Docker machines: `bootstrapped` and `status.backend`. The recordings are of v1.13."""
    if isinstance(value, Mapping):
        kept = {k: v for k, v in value.items() if k != "bootstrapped" and not (in_status and k == "backend")}
        return {k: without_removed_fields(v, in_status=k == "status") for k, v in kept.items()}
    return [without_removed_fields(item) for item in value] if isinstance(value, list) else value


def test_every_recorded_conversion_agrees() -> None:
    vectors = list(replay.vectors("conversion"))
    expected = {v["id"]: without_removed_fields(v["expect"]) if v["id"].split("-")[1] in CHANGED else v["expect"] for v in vectors}

    differing = [(v["id"], v["note"]) for v in vectors if adapter.evaluate(v) != expected[v["id"]]]

    assert len(vectors) >= 1299
    assert differing == []
