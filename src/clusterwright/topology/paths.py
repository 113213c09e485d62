"""Read and write plain JSON by paths."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from clusterwright.api.meta import Json


def at(json: Mapping[str, Any] | None, *path: str) -> Any:
    """Return the value at a path; None if there is none."""
    value: Any = json
    for step in path:
        if not isinstance(value, Mapping):
            return None
        value = value.get(step)
    return value


def has(json: Mapping[str, Any], *path: str) -> bool:
    """Return whether there is a value at a path, even null."""
    parent = at(json, *path[:-1])
    return isinstance(parent, Mapping) and path[-1] in parent


def put(json: Json, value: Any, *path: str) -> None:
    """Set the value at a path, creating the objects on the way, in place."""
    for step in path[:-1]:
        child = json.get(step)
        if not isinstance(child, dict):
            child = {}
            json[step] = child
        json = child
    json[path[-1]] = value


def drop(json: Json, *path: str) -> None:
    """Remove the value at a path, and objects on the way that become empty, in place."""
    if len(path) == 1:
        json.pop(path[0], None)
        return
    child = json.get(path[0])
    if isinstance(child, dict):
        drop(child, *path[1:])
        if len(child) == 0:
            del json[path[0]]
