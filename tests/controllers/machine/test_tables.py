"""Every table of the Machine controller covers everything, has no dead row, and overlaps only where its order is meant."""

from __future__ import annotations

from typing import Any

import pytest

from clusterwright.controllers.machine import conditions, deletion, inplace, plan, release, removal
from clusterwright.tables import as_markdown, gaps, overlaps, unreachable

TABLES = (
    *plan.TABLES,
    *conditions.TABLES,
    deletion.NODE_HANDLING,
    release.RELEASE_NODE,
    removal.REMOVE,
    inplace.IN_PLACE_UPDATE,
)


@pytest.mark.parametrize("table", TABLES, ids=lambda t: t.name)
def test_no_world_falls_through(table: Any) -> None:
    assert gaps(table) == []


@pytest.mark.parametrize("table", TABLES, ids=lambda t: t.name)
def test_every_row_can_decide(table: Any) -> None:
    assert unreachable(table) == []


@pytest.mark.parametrize("table", TABLES, ids=lambda t: t.name)
def test_every_table_renders(table: Any) -> None:
    text = as_markdown(table)

    assert all(name in text for name in table.row_names)


# What may hold at once is written down: a new overlap is a decision about order, not an accident.
ORDERED = {
    "BootstrapConfigReady": {("invalid", "mirrored"), ("deleted", "missing")},
    "Deleting": {("not-deleting", "stage"), ("not-deleting", "resting"), ("stage", "resting")},
    "Updating": {("stage", "in-progress"), ("stage", "not-updating"), ("in-progress", "not-updating")},
    "Ready": {("circular", "summary")},
    "Available": {
        ("ready-unreported", "not-ready"),
        ("ready-unreported", "maturing"),
        ("not-ready", "maturing"),
        ("available", "maturing"),
    },
    "UpToDate": {
        ("not-deployed", "outdated"),
        ("not-deployed", "updating"),
        ("not-deployed", "up-to-date"),
        ("outdated", "updating"),
        ("outdated", "up-to-date"),
        ("updating", "up-to-date"),
    },
}


@pytest.mark.parametrize("table", [t for t in TABLES if t.name in ORDERED], ids=lambda t: t.name)
def test_rows_overlap_only_where_their_order_is_meant(table: Any) -> None:
    assert set(overlaps(table)) == ORDERED[table.name]
