"""Every recorded conversion agrees."""

from __future__ import annotations

from vectors import adapter, replay


def test_every_recorded_conversion_agrees() -> None:
    vectors = list(replay.vectors("conversion"))

    differing = [(v["id"], v["note"]) for v in vectors if adapter.evaluate(v) != v["expect"]]

    assert len(vectors) >= 1299
    assert differing == []
