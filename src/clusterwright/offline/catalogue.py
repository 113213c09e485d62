"""All decision tables of all controllers, found where they are defined."""

from __future__ import annotations

import pkgutil
from functools import cache
from importlib import import_module
from typing import Any

from clusterwright import controllers
from clusterwright.tables import Table


def catalogue() -> dict[str, tuple[Table[Any], ...]]:
    """Return the tables by controller package, without packages that have none."""
    packages = sorted(m.name for m in pkgutil.iter_modules(controllers.__path__) if m.ispkg)
    return {package: tables for package in packages if (tables := tables_of(package))}


@cache
def tables_of(package: str) -> tuple[Table[Any], ...]:
    """Return the tables of one controller, phases first, in the order of definition. A table that is imported elsewhere counts once."""
    prefix = f"{controllers.__name__}.{package}"
    modules = [import_module(prefix)]
    modules += [import_module(m.name) for m in pkgutil.walk_packages(modules[0].__path__, f"{prefix}.")]
    tables: dict[int, Table[Any]] = {}
    for module in sorted(modules, key=lambda m: (not m.__name__.endswith(".plan"), m.__name__)):
        tables.update({id(v): v for v in vars(module).values() if isinstance(v, Table)})
    return tuple({t.name: t for t in tables.values()}.values())
