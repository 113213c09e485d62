"""All decision tables of all controllers, found where they are defined."""

from __future__ import annotations

import pkgutil
from functools import cache
from importlib import import_module
from typing import Any

from clusterwright import controllers
from clusterwright.tables import Table


@cache
def catalogue() -> dict[str, tuple[Table[Any], ...]]:
    """Tables by controller package, in the order of their definition; a table that is imported elsewhere counts once."""
    found: dict[str, tuple[Table[Any], ...]] = {}
    for package in sorted(m.name for m in pkgutil.iter_modules(controllers.__path__) if m.ispkg):
        prefix = f"{controllers.__name__}.{package}"
        modules = [import_module(prefix)]
        modules += [import_module(f"{prefix}.{m.name}") for m in pkgutil.iter_modules(modules[0].__path__)]
        tables: dict[int, Table[Any]] = {}
        for module in sorted(modules, key=lambda m: (not m.__name__.endswith(".plan"), m.__name__)):
            tables.update({id(v): v for v in vars(module).values() if isinstance(v, Table)})
        if tables:
            found[package] = tuple({t.name: t for t in tables.values()}.values())
    return found
