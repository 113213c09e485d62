"""When a bundle is of: what its Observation says, else what the clock does."""

from __future__ import annotations

from datetime import UTC, datetime

from clusterwright.offline.bundle import parse
from support.clocks import MovableClock

TEXT = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n"
NOW = datetime(2026, 5, 1, 12, 30, 0, 250_000, tzinfo=UTC)


def test_a_bundle_is_of_its_observation_or_of_the_clock() -> None:
    observed = parse(
        f'{TEXT}---\napiVersion: clusterwright.dev/v1alpha1\nkind: Observation\nnow: "2026-01-02T03:04:05Z"\n', clock=MovableClock(NOW)
    )

    assert observed.moment() == datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
    assert parse(TEXT, clock=MovableClock(NOW)).moment() == NOW.replace(microsecond=0)
