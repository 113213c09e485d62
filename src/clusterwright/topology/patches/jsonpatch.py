"""JSON patches and JSON merge patches as the patches of a class mean them: a path that is not there is an error."""

from __future__ import annotations

import json
from typing import Any, Final

import msgspec

from clusterwright.api.jsonvalues import equal, merge_patched, pointer_steps
from clusterwright.golang.numbers import atoi
from clusterwright.topology.paths import copied

_OPERATIONS: Final = frozenset({"add", "remove", "replace", "move", "copy", "test"})
_COPIED: Final = 3 * 1024 * 1024
"""Bytes that the copies of one patch may add up to: what is copied may be copied again, and grow with every copy."""


class PatchFailed(ValueError):
    """The patch is none, or does not apply."""


def decoded(text: str) -> Any:
    """The JSON of a patch; raises PatchFailed."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise PatchFailed(str(error)) from None


def merge(target: Any, patch: Any) -> Any:
    """A JSON merge patch applied; neither argument is changed. Raises PatchFailed for what is no object."""
    if not isinstance(patch, dict):
        raise PatchFailed("a merge patch must be an object")
    return merge_patched(target, copied(patch))


def apply(document: Any, operations: Any) -> Any:
    """A JSON patch applied to a copy of a document; raises PatchFailed."""
    if not isinstance(operations, list) or not all(isinstance(o, dict) for o in operations):
        raise PatchFailed("a JSON patch must be a list of operations")
    result = copied(document)
    left = [_COPIED]
    for operation in operations:
        result = _operate(result, operation, left)
    return result


def _operate(document: Any, operation: dict[str, Any], left: list[int]) -> Any:
    op, path = operation.get("op"), operation.get("path")
    if op not in _OPERATIONS or not isinstance(path, str):
        raise PatchFailed(f"Unexpected kind: {op}")
    if op == "test":
        if not equal(_find(document, path), operation.get("value")):
            raise PatchFailed(f"testing value {path} failed: test failed")
        return document
    if op in ("add", "replace"):
        if "value" not in operation:
            raise PatchFailed(f"{op} operation for path '{path}' has no value")
        return _put(document, path, copied(operation["value"]), op)
    if op == "remove":
        return _remove(document, path)
    source = operation.get("from")
    if not isinstance(source, str):
        raise PatchFailed(f"{op} operation has no from")
    value = _get(document, source, op)
    if op == "move":
        return _put(_remove(document, source), path, value, "add")
    left[0] -= len(msgspec.json.encode(value))
    if left[0] < 0:
        raise PatchFailed(f"the copies of the patch add up to more than {_COPIED} bytes")
    return _put(document, path, copied(value), "add")


def _index(step: str, length: int, path: str) -> int:
    try:
        index = atoi(step)
    except ValueError:
        raise PatchFailed(f"invalid array index {step!r} in path '{path}'") from None
    if index < 0:
        index += length
    if not 0 <= index < length:
        raise PatchFailed(f"Unable to access invalid index: {step}: invalid index referenced")
    return index


def _parent(document: Any, path: str, op: str) -> tuple[Any, str]:
    steps = pointer_steps(path)
    if not steps:
        raise PatchFailed(f'{op} operation does not apply: doc is missing path: "{path}": missing value')
    parent = document
    for step in steps[:-1]:
        if isinstance(parent, dict) and parent.get(step) is not None:
            parent = parent[step]
        elif isinstance(parent, list):
            parent = parent[_index(step, len(parent), path)]
        else:
            raise PatchFailed(f'{op} operation does not apply: doc is missing path: "{path}": missing value')
    if not isinstance(parent, (dict, list)):
        raise PatchFailed(f'{op} operation does not apply: doc is missing path: "{path}": missing value')
    return parent, steps[-1]


def _find(document: Any, path: str) -> Any:
    """What is at a path; None if there is nothing."""
    value = document
    for step in pointer_steps(path):
        if isinstance(value, dict):
            value = value.get(step)
        elif isinstance(value, list):
            value = value[_index(step, len(value), path)]
        else:
            return None
    return value


def _get(document: Any, path: str, op: str) -> Any:
    parent, last = _parent(document, path, op)
    if isinstance(parent, dict):
        if last not in parent:
            raise PatchFailed(f"{op} operation does not apply: doc is missing key: {path}: missing value")
        return parent[last]
    return parent[_index(last, len(parent), path)]


def _put(document: Any, path: str, value: Any, op: str) -> Any:
    if path == "":
        return value
    parent, last = _parent(document, path, op)
    if isinstance(parent, dict):
        if op == "replace" and last not in parent:
            raise PatchFailed(f"replace operation does not apply: doc is missing key: {path}: missing value")
        parent[last] = value
    elif op == "replace":
        parent[_index(last, len(parent), path)] = value
    elif last == "-":
        parent.append(value)
    else:
        parent.insert(_index(last, len(parent) + 1, path), value)
    return document


def _remove(document: Any, path: str) -> Any:
    parent, last = _parent(document, path, "remove")
    if isinstance(parent, dict):
        if last not in parent:
            raise PatchFailed(f"error in remove for path: '{path}': unable to remove nonexistent key: {last}: missing value")
        del parent[last]
    else:
        del parent[_index(last, len(parent), path)]
    return document
