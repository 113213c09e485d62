"""JSON patch (RFC 6902), as kube-apiserver understands it."""

from __future__ import annotations

from typing import Any

import msgspec

from clusterwright.api.jsonvalues import equal, pointer_steps
from clusterwright.apiserver.schema.goscalars import json_type
from clusterwright.apiserver.status import bad_request, failure
from clusterwright.golang.numbers import atoi


class _Failed(Exception):
    pass


_OPERATIONS = frozenset({"add", "remove", "replace", "move", "copy", "test"})
_MEMBERS = frozenset({"op", "path", "from", "value"})
_MAXIMUM = 10_000
_COPIED = 3 * 1024 * 1024
"""Bytes that the copies of one patch may add up to."""


def json_patch(target: Any, operations: Any) -> Any:
    """The JSON patch applied to `target`, in place where possible.

    Raises StatusError: 400 for what is no patch, 422 for what cannot be applied.
    """
    if operations is None:
        return target
    if not isinstance(operations, list):
        raise bad_request(
            f"error decoding patch: json: cannot unmarshal {json_type(operations)} into Go value of type []handlers.jsonPatchOp"
        )
    wrong = next((o for o in operations if not isinstance(o, dict)), None)
    if wrong is not None:
        raise bad_request(f"error decoding patch: json: cannot unmarshal {json_type(wrong)} into Go value of type handlers.jsonPatchOp")
    if len(operations) > _MAXIMUM:
        text = f"The allowed maximum operations in a JSON patch is {_MAXIMUM}, got {len(operations)}"
        raise failure(413, "RequestEntityTooLarge", f"Request entity too large: {text}")
    document = target
    copied = [0]
    for operation in operations:
        try:
            document = _operate(document, operation, copied)
        except _Failed as e:
            raise failure(422, "Invalid", "the server rejected our request due to an error in our request", {}) from e
    return document


def unknown_members(operations: Any) -> list[str]:
    """What is to be said of members that no operation has."""
    return [
        f'unknown field "[{index}].{member}"'
        for index, operation in enumerate(operations if isinstance(operations, list) else ())
        if isinstance(operation, dict)
        for member in operation
        if member not in _MEMBERS
    ]


def _operate(document: Any, operation: dict[str, Any], copied: list[int]) -> Any:
    op, path = operation.get("op"), operation.get("path")
    if op not in _OPERATIONS:
        raise _Failed(f"Unexpected kind: {op}")
    if not isinstance(path, str):
        raise _Failed(f"{op} operation: missing path")
    if op == "test":
        found = _get(document, path, missing_is_none=True)
        if not equal(found, operation.get("value")):
            raise _Failed(f"testing value {path} failed: test failed")
        return document
    if op == "add":
        return _add(document, path, operation.get("value"))
    if op == "remove":
        return _remove(document, path)
    if op == "replace":
        if path == "":
            return operation.get("value")
        return _replace(document, path, operation.get("value"))
    source = operation.get("from")
    if not isinstance(source, str):
        raise _Failed(f"{op} operation: missing from")
    if op == "copy":  # of a missing member null is copied
        parent, last = _parent(document, source)
        raw = msgspec.json.encode(parent.get(last) if isinstance(parent, dict) else _get(document, source))
        copied[0] += len(raw)
        if copied[0] > _COPIED:
            raise _Failed(
                f"Unable to complete the copy, the accumulated size increase of copy is {copied[0]}, exceeding the limit {_COPIED}"
            )
        value = msgspec.json.decode(raw)
    else:
        value = _get(document, source)
        document = _remove(document, source)
    return _add(document, path, value)


def _index(step: str, length: int, path: str) -> int:
    try:
        index = atoi(step)
    except ValueError as e:
        raise _Failed(f"path {path}: {e}") from None
    if index < 0:
        index += length
    if not 0 <= index < length or (step[:1] == "0" and len(step) > 1):
        raise _Failed(f"path {path}: Unable to access invalid index: {step}: invalid index referenced")
    return index


def _get(document: Any, path: str, *, missing_is_none: bool = False) -> Any:
    value = document
    for step in pointer_steps(path):
        if isinstance(value, dict):
            if step not in value:
                if missing_is_none:
                    return None
                raise _Failed(f"path {path}: doc is missing key: {path}: missing value")
            value = value[step]
        elif isinstance(value, list):
            value = value[_index(step, len(value), path)]
        elif missing_is_none:
            return None
        else:
            raise _Failed(f"path {path}: doc is missing path: {path}: missing value")
    return value


def _parent(document: Any, path: str) -> tuple[Any, str]:
    steps = pointer_steps(path)
    if not steps:
        raise _Failed(f"doc is missing path: {path}: missing value")
    parent = document
    for step in steps[:-1]:
        if isinstance(parent, dict) and step in parent:
            parent = parent[step]
        elif isinstance(parent, list):
            parent = parent[_index(step, len(parent), path)]
        else:
            raise _Failed(f"doc is missing path: {path}: missing value")
    if not isinstance(parent, (dict, list)):
        raise _Failed(f"doc is missing path: {path}: missing value")
    return parent, steps[-1]


def _add(document: Any, path: str, value: Any) -> Any:
    parent, last = _parent(document, path)
    if isinstance(parent, dict):
        parent[last] = value
    elif last == "-":
        parent.append(value)
    else:
        index = _index(last, len(parent) + 1, path)
        parent.insert(index, value)
    return document


def _replace(document: Any, path: str, value: Any) -> Any:
    parent, last = _parent(document, path)
    if isinstance(parent, dict):
        parent[last] = value
    else:
        parent[_index(last, len(parent), path)] = value
    return document


def _remove(document: Any, path: str) -> Any:
    if path == "":
        raise _Failed("Unable to remove nonexistent key: : missing value")
    parent, last = _parent(document, path)
    if isinstance(parent, dict):
        if last not in parent:
            raise _Failed(f"remove operation does not apply: doc is missing key: {path}: missing value")
        del parent[last]
    else:
        del parent[_index(last, len(parent), path)]
    return document
