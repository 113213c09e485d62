"""`clusterwright store check|repair|backup|restore`: maintain the data directory of `clusterwright up`."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from clusterwright.apiserver.serving import datadir
from clusterwright.apiserver.storage import upkeep
from clusterwright.apiserver.storage.sqlite import StoreBroken
from clusterwright.apiserver.storage.upkeep import Report


def run(arguments: argparse.Namespace) -> int:
    """Run one of the four; return 1 if something is damaged, was lost, or failed."""
    try:
        return _RUN[arguments.command](arguments)
    except (StoreBroken, OSError) as error:
        print(f"clusterwright store {arguments.command}: {error}", file=sys.stderr)
        return 1


def _check(arguments: argparse.Namespace) -> int:
    status = _tell(arguments, [upkeep.check(path) for path in upkeep.stores(arguments.data_dir)])
    problems = datadir.key_problems(arguments.data_dir)
    for line in problems:
        print(line, file=sys.stderr)
    return 1 if problems else status


def _repair(arguments: argparse.Namespace) -> int:
    done = [(path, upkeep.repair(path, datetime.now(UTC))) for path in upkeep.stores(arguments.data_dir)]
    status = _tell(arguments, [upkeep.check(path) if repair is None else repair.found for path, repair in done])
    for path, repair in done:
        if repair is not None:
            print(f"{path}: repaired; {repair.objects} objects are kept, and the damaged file is kept as {repair.kept}", file=sys.stderr)
            for line in repair.lost or ("nothing",):
                print(f"  lost: {line.removeprefix('damaged: ')}", file=sys.stderr)
    return status


def _backup(arguments: argparse.Namespace) -> int:
    if problems := datadir.key_problems(arguments.data_dir):
        raise StoreBroken("; ".join(problems))
    return _tell(arguments, upkeep.backup(arguments.data_dir, arguments.folder, datetime.now(UTC)))


def _restore(arguments: argparse.Namespace) -> int:
    return _tell(arguments, upkeep.restore(arguments.folder, arguments.data_dir))


_RUN = {"check": _check, "repair": _repair, "backup": _backup, "restore": _restore}


def _tell(arguments: argparse.Namespace, reports: Sequence[Report]) -> int:
    if arguments.output == "json":
        print(json.dumps([_json(report) for report in reports], indent=2))
    else:
        for report in reports:
            print(f"{report.path}: {'sound' if report.is_sound else 'damaged'}, {report.objects} objects, revision {report.revision}")
            for line in (*(f"damaged: {name}" for name in report.damaged), *report.problems):
                print(f"  {line}")
    return 0 if all(report.is_sound for report in reports) else 1


def _json(report: Report) -> dict[str, Any]:
    return {
        "path": str(report.path),
        "sound": report.is_sound,
        "objects": report.objects,
        "revision": report.revision,
        "damaged": list(report.damaged),
        "problems": list(report.problems),
    }
