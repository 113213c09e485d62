"""JSON patch (RFC 6902) with the semantics of the Go library that Kubernetes uses. Pure.

The API server uses version 4 of that library, the patches of ClusterClasses and of runtime extensions use version 5. Version 4 treats a
missing member as null when it is replaced or copied; version 5 reports an error.
"""

from __future__ import annotations

import json
from typing import Any, Final

import msgspec

from clusterwright.api.jsonvalues import copied, equal, merge_patched, pointer_steps
from clusterwright.golang.numbers import atoi

_OPERATIONS: Final = frozenset({"add", "remove", "replace", "move", "copy", "test"})
_COPIED: Final = 3 * 1024 * 1024
"""The most bytes of all copies in one patch. Without a limit, a patch that copies its own copies doubles the document each time."""


class PatchFailed(ValueError):
    """The patch is malformed or does not apply."""


def decoded(text: str) -> Any:
    """Decode the JSON of a patch; raises PatchFailed."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise PatchFailed(str(error)) from None


def merge(target: Any, patch: Any) -> Any:
    """Apply a JSON merge patch; neither argument is changed. Raises PatchFailed if the patch is not an object."""
    if not isinstance(patch, dict):
        raise PatchFailed("a merge patch must be an object")
    return merge_patched(target, copied(patch))


def apply(document: Any, operations: Any) -> Any:
    """Apply a JSON patch to a copy of a document, with the rules of version 5; raises PatchFailed."""
    if not isinstance(operations, list) or not all(isinstance(o, dict) for o in operations):
        raise PatchFailed("a JSON patch must be a list of operations")
    return apply_in_place(copied(document), operations, strict=True)


def apply_in_place(document: Any, operations: list[dict[str, Any]], *, strict: bool) -> Any:
    """Apply a JSON patch and change the document where possible; `strict` selects version 5. Raises PatchFailed."""
    patch = _Patch(strict)
    for operation in operations:
        document = patch.operate(document, operation)
    return document


class _Patch:
    def __init__(self, strict: bool) -> None:
        self._strict = strict
        self._left = _COPIED

    def operate(self, document: Any, operation: dict[str, Any]) -> Any:
        op, path = operation.get("op"), operation.get("path")
        if op not in _OPERATIONS or not isinstance(path, str):
            raise PatchFailed(f"Unexpected kind: {op}")
        if op == "test":
            if not equal(self._find(document, path), operation.get("value")):
                raise PatchFailed(f"testing value {path} failed: test failed")
            return document
        if op in ("add", "replace"):
            if self._strict and "value" not in operation:
                raise PatchFailed(f"{op} operation for path '{path}' has no value")
            return self._put(document, path, copied(operation.get("value")), op)
        if op == "remove":
            return self._remove(document, path)
        source = operation.get("from")
        if not isinstance(source, str):
            raise PatchFailed(f"{op} operation has no from")
        value = self._get(document, source, op)
        if op == "move":
            return self._put(self._remove(document, source), path, value, "add")
        self._left -= len(msgspec.json.encode(value))
        if self._left < 0:
            raise PatchFailed(f"the copies of the patch add up to more than {_COPIED} bytes")
        return self._put(document, path, copied(value), "add")

    def _index(self, step: str, length: int, path: str) -> int:
        try:
            index = atoi(step)
        except ValueError:
            raise PatchFailed(f"invalid array index {step!r} in path '{path}'") from None
        if index < 0:
            index += length
        is_padded = not self._strict and step[:1] == "0" and len(step) > 1
        if is_padded or not 0 <= index < length:
            raise PatchFailed(f"Unable to access invalid index: {step}: invalid index referenced")
        return index

    def _parent(self, document: Any, path: str, op: str) -> tuple[Any, str]:
        steps = pointer_steps(path)
        parent = document
        for step in steps[:-1]:
            if isinstance(parent, dict):
                parent = parent.get(step)
            elif isinstance(parent, list):
                parent = parent[self._index(step, len(parent), path)]
        if not steps or not isinstance(parent, (dict, list)):
            shown = path if op == "replace" else f'"{path}"'
            raise PatchFailed(f"{op} operation does not apply: doc is missing path: {shown}: missing value")
        return parent, steps[-1]

    def _find(self, document: Any, path: str) -> Any:
        """Return the value at a path, or None."""
        value = document
        for step in pointer_steps(path):
            if isinstance(value, dict):
                value = value.get(step)
            elif isinstance(value, list):
                value = value[self._index(step, len(value), path)]
            else:
                return None
        return value

    def _get(self, document: Any, path: str, op: str) -> Any:
        parent, last = self._parent(document, path, op)
        if isinstance(parent, list):
            return parent[self._index(last, len(parent), path)]
        if last not in parent and self._strict:
            raise PatchFailed(f"{op} operation does not apply: doc is missing key: {path}: missing value")
        return parent.get(last)

    def _put(self, document: Any, path: str, value: Any, op: str) -> Any:
        if path == "" and (self._strict or op == "replace"):
            return value
        parent, last = self._parent(document, path, op)
        if isinstance(parent, dict):
            if op == "replace" and self._strict and last not in parent:
                raise PatchFailed(f"replace operation does not apply: doc is missing key: {path}: missing value")
            parent[last] = value
        elif op == "replace":
            parent[self._index(last, len(parent), path)] = value
        elif last == "-":
            parent.append(value)
        else:
            parent.insert(self._index(last, len(parent) + 1, path), value)
        return document

    def _remove(self, document: Any, path: str) -> Any:
        parent, last = self._parent(document, path, "remove")
        if isinstance(parent, list):
            del parent[self._index(last, len(parent), path)]
        elif last in parent:
            del parent[last]
        else:
            raise PatchFailed(f"error in remove for path: '{path}': unable to remove nonexistent key: {last}: missing value")
        return document
