"""For each incident a bug that takes our defence out: with it the scenario must fail."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from importlib import import_module
from typing import Any

from clusterwright.tables import Table

C = "clusterwright.controllers"
KCP = f"{C}.kubeadmcontrolplane"


@dataclass(frozen=True)
class Bug:
    """What it does, in words; a part of what the scenario complains of; and the hand that plants it, for the life of the process."""

    what: str
    complaint: str
    plant: Callable[[], None]


def put(module: str, name: str, value: Any) -> Callable[[], None]:
    """Replace a name of a module, or `Class.name` in it."""

    def plant() -> None:
        holder: Any = import_module(module)
        *outer, last = name.split(".")
        for step in outer:
            holder = getattr(holder, step)
        assert hasattr(holder, last), f"{module}.{name} is not there any more"
        setattr(holder, last, value)

    return plant


def without_rows(module: str, table: str, *rows: str) -> Callable[[], None]:
    """Take rows out of a decision table."""

    def plant() -> None:
        found: Table[Any] = getattr(import_module(module), table)
        assert set(rows) <= {name for row in found.rows for name in row.names}, f"{table} has no rows {rows}"
        object.__setattr__(found, "rows", tuple(row for row in found.rows if not set(row.names) & set(rows)))

    return plant


def both(*plants: Callable[[], None]) -> Callable[[], None]:
    """Do all of it."""

    def plant() -> None:
        for each in plants:
            each()

    return plant


PLANTED: dict[str, Bug] = {
    "cluster-api#14197": Bug(
        "a learner without a name is nobody's at once",
        "was removed before it had a name",
        put(f"{KCP}.guards", "LEARNER_GRACE", timedelta()),
    ),
}
