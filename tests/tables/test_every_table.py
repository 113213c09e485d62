"""Every table of every controller covers everything, and every row of it can decide."""

from __future__ import annotations

from typing import Any

import pytest

from clusterwright.offline.catalogue import catalogue
from clusterwright.tables import Table, TooManyGuards, as_json, as_markdown, gaps, unreachable

TABLES = [(f"{controller}/{t.name}", t) for controller, tables in catalogue().items() for t in tables]
TOO_LARGE = {"kubeadmcontrolplane/PodHealthy"}
"""Tables with more independent questions than can be tried; their rows are covered by their own tests."""


@pytest.mark.parametrize(("name", "table"), TABLES, ids=[n for n, _ in TABLES])
def test_a_table_has_no_gap_and_no_row_that_never_decides(name: str, table: Table[Any]) -> None:
    if name in TOO_LARGE:
        with pytest.raises(TooManyGuards):
            gaps(table)
        return

    assert gaps(table) == []
    assert unreachable(table) == []


@pytest.mark.parametrize(("name", "table"), TABLES, ids=[n for n, _ in TABLES])
def test_a_table_can_be_printed_and_every_row_has_a_name_and_words(name: str, table: Table[Any]) -> None:
    rows = as_json(table)["rows"]

    assert [r["name"] for r in rows] == list(table.row_names)
    assert all(r["guard"] for r in rows)
    assert all(f"`{r['name']}`" in as_markdown(table) for r in rows)
