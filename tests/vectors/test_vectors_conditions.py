"""The condition algebra agrees with every recorded call."""

from __future__ import annotations

from vectors import adapter, replay


def test_every_recorded_call_of_the_condition_algebra_agrees() -> None:
    vectors = list(replay.vectors("conditions"))

    differing = [(v["id"], v["note"]) for v in vectors if adapter.evaluate(v) != v["expect"]]

    assert len(vectors) >= 819
    assert differing == []
