"""Every table of every controller covers everything, every row of it can decide, and rows overlap only where that is written down."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from clusterwright.offline.catalogue import catalogue
from clusterwright.tables import Table, as_json, as_markdown, gaps, overlaps, unreachable

TABLES = {f"{controller}/{t.name}": t for controller, tables in catalogue().items() for t in tables}
ORDERED: dict[str, dict[str, list[str]]] = json.loads((Path(__file__).parent / "overlaps.json").read_text())
"""By table and row: the later rows that may hold at the same time. A change of this file is a decision about order."""

each_table = pytest.mark.parametrize(("name", "table"), TABLES.items(), ids=list(TABLES))


@each_table
def test_a_table_has_no_gap_and_no_row_that_never_decides(name: str, table: Table[Any]) -> None:
    assert gaps(table) == []
    assert unreachable(table) == []


@each_table
def test_rows_overlap_only_where_their_order_is_written_down(name: str, table: Table[Any]) -> None:
    found = set(overlaps(table))

    written = {(first, later) for first, rows in ORDERED.get(name, {}).items() for later in rows}

    assert found - written == set(), "new overlaps: see that the order of these rows is meant, then write them down"
    assert written - found == set(), "these rows no longer overlap"


def test_overlaps_are_written_down_for_tables_that_exist() -> None:
    assert set(ORDERED) <= set(TABLES)


@each_table
def test_a_table_can_be_printed_and_every_row_has_a_name_and_words(name: str, table: Table[Any]) -> None:
    rows = as_json(table)["rows"]

    assert [r["name"] for r in rows] == list(table.row_names)
    assert all(r["guard"] for r in rows)
    assert all(f"`{r['name']}`" in as_markdown(table) for r in rows)
