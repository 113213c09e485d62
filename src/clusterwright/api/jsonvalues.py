"""Operations on any JSON value: copies, equality, pointers, merge patches. Pure."""

from __future__ import annotations

from typing import Any


def equal(a: Any, b: Any) -> bool:
    """Return whether two values are equal JSON: true is not 1, and 1 is 1.0."""
    if isinstance(a, bool) != isinstance(b, bool):
        return False
    if isinstance(a, dict) and isinstance(b, dict):
        return a.keys() == b.keys() and all(equal(a[k], b[k]) for k in a)
    if isinstance(a, list) and isinstance(b, list):
        return len(a) == len(b) and all(map(equal, a, b))
    return bool(a == b)


def copied(value: Any) -> Any:
    """Return a deep copy of a JSON value."""
    if type(value) is dict:
        return {k: copied(v) if type(v) in (dict, list) else v for k, v in value.items()}
    if type(value) is list:
        return [copied(v) if type(v) in (dict, list) else v for v in value]
    return value


def pointer_steps(pointer: str) -> list[str]:
    """Return the steps of a JSON pointer (RFC 6901)."""
    return [step.replace("~1", "/").replace("~0", "~") for step in pointer.split("/")[1:]]


def merge_patched(target: Any, patch: Any) -> Any:
    """Return `target` after a JSON merge patch (RFC 7386); neither is changed, unchanged parts are shared."""
    if not isinstance(patch, dict):
        return patch
    result = dict(target) if isinstance(target, dict) else {}
    for key, value in patch.items():
        if value is None:
            result.pop(key, None)
        else:
            result[key] = merge_patched(result.get(key), value) if isinstance(value, dict) else value
    return result
