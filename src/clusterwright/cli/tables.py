"""`clusterwright tables [NAME]`: print the decision tables from the code."""

from __future__ import annotations

import argparse
import sys

import msgspec

from clusterwright.offline.catalogue import catalogue
from clusterwright.tables import as_json, as_markdown


def run(arguments: argparse.Namespace) -> int:
    """Print all tables, those of a controller, or one; return 2 on misuse."""
    wanted = arguments.name.lower()
    chosen = {
        controller: [t for t in tables if wanted in {"", controller.lower(), t.name.lower(), f"{controller}/{t.name}".lower()}]
        for controller, tables in catalogue().items()
    }
    chosen = {controller: tables for controller, tables in chosen.items() if tables}
    if not chosen:
        names = "\n".join(f"  {c}/{t.name}" for c, tables in catalogue().items() for t in tables)
        print(f"clusterwright tables: no table {arguments.name!r}; known tables:\n{names}", file=sys.stderr)
        return 2
    if arguments.output == "json":
        items = [{"controller": c, **as_json(t)} for c, tables in chosen.items() for t in tables]
        print(msgspec.json.format(msgspec.json.encode({"tables": items})).decode())
        return 0
    for controller, tables in chosen.items():
        print(f"# {controller}\n")
        for table in tables:
            print(as_markdown(table))
    return 0
