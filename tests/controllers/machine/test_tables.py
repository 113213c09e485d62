"""Every table of the Machine controller covers everything and has no dead row."""

from __future__ import annotations

from typing import Any

import pytest

from clusterwright.controllers.machine import conditions, host_deletion, inplace, node_access, node_shutdown, plan
from clusterwright.tables import as_markdown, gaps, unreachable

TABLES = (
    *plan.TABLES,
    *conditions.TABLES,
    node_access.NODE_HANDLING,
    node_shutdown.NODE_SHUTDOWN,
    host_deletion.HOST_DELETION,
    inplace.IN_PLACE_UPDATE,
)


@pytest.mark.parametrize("table", TABLES, ids=lambda t: t.name)
def test_every_snapshot_matches_a_row(table: Any) -> None:
    assert gaps(table) == []


@pytest.mark.parametrize("table", TABLES, ids=lambda t: t.name)
def test_every_row_can_decide(table: Any) -> None:
    assert unreachable(table) == []


@pytest.mark.parametrize("table", TABLES, ids=lambda t: t.name)
def test_every_table_renders(table: Any) -> None:
    text = as_markdown(table)

    assert all(name in text for name in table.row_names)
