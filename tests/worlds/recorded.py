"""Recorded worlds, and how trouble is made in them."""

from __future__ import annotations

import fnmatch
import gzip
import json
from pathlib import Path
from typing import Any

from clusterwright.offline.bundle import assemble
from clusterwright.offline.explain import explain

HERE = Path(__file__).resolve().parent
NAMES = sorted(p.name.removesuffix(".json.gz") for p in HERE.glob("*.json.gz"))
NOW = "2026-11-15T17:29:00Z"
World = dict[str, Any]
Json = dict[str, Any]


def load(name: str) -> World:
    with gzip.open(HERE / f"{name}.json.gz", "rt", encoding="utf-8") as file:
        world: World = json.load(file)
    return world


def first_cause(world: World) -> str | None:
    causes = explain(assemble(world["objects"]), world["subject"]).causes
    return causes[0]["object"] if causes else None


def is_named(cause: str | None, truth: str | None) -> bool:
    """`truth` is Kind/name, where the name may end in a star."""
    if cause is None or truth is None:
        return cause is truth
    kind, _, rest = cause.partition("/")
    return fnmatch.fnmatchcase(f"{kind}/{rest.rpartition('/')[2]}", truth)


def find(world: World, kind: str, pattern: str = "*") -> Json:
    return next(o for o in world["objects"] if o["kind"] == kind and fnmatch.fnmatchcase(o["metadata"]["name"], pattern))


def every(world: World, kind: str, pattern: str = "*") -> list[Json]:
    return [o for o in world["objects"] if o["kind"] == kind and fnmatch.fnmatchcase(o["metadata"]["name"], pattern)]


def remove(world: World, *objects: Json) -> None:
    world["objects"] = [o for o in world["objects"] if all(o is not gone for gone in objects)]


def says(obj: Json, type: str, status: str, reason: str, message: str = "") -> None:
    conditions = obj.setdefault("status", {}).setdefault("conditions", [])
    conditions[:] = [c for c in conditions if c["type"] != type]
    conditions.append({"type": type, "status": status, "reason": reason, "message": message, "lastTransitionTime": NOW})


def deleting(obj: Json, finalizer: str = "") -> None:
    obj["metadata"]["deletionTimestamp"] = NOW
    if finalizer:
        obj["metadata"]["finalizers"] = [finalizer]


def warns(world: World, obj: Json, reason: str, message: str) -> None:
    meta = obj["metadata"]
    involved = {"kind": obj["kind"], "namespace": meta["namespace"], "name": meta["name"]}
    world["objects"].append(
        {
            "apiVersion": "v1",
            "kind": "Event",
            "metadata": {"name": f"{meta['name']}.1", "namespace": meta["namespace"]},
            "involvedObject": involved,
            "type": "Warning",
            "reason": reason,
            "message": message,
            "lastTimestamp": "2026-11-15T17:30:00Z",
        }
    )
