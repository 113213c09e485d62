"""Functions on maps. `set`, `unset`, `merge` and `mergeOverwrite` change their first argument, as in Go."""

from __future__ import annotations

from copy import deepcopy
from typing import Any, Final

from clusterwright.gotemplate.metering import MAX_STEPS, Charge, deep_steps
from clusterwright.gotemplate.sprig.signatures import Library, Strings
from clusterwright.gotemplate.sprig.strings import text_of
from clusterwright.gotemplate.values import is_true

LIBRARY: Final = Library()
_define = LIBRARY.define


def _dict(charge: Charge, *parts: Any) -> dict[str, Any]:
    charge(deep_steps(list(parts[::2]), MAX_STEPS))
    return {text_of(parts[i]): parts[i + 1] if i + 1 < len(parts) else "" for i in range(0, len(parts), 2)}


def _set(target: dict[str, Any], key: str, value: Any) -> dict[str, Any]:
    target[key] = value
    return target


def _unset(target: dict[str, Any], key: str) -> dict[str, Any]:
    target.pop(key, None)
    return target


def _merge(target: dict[str, Any], *sources: dict[str, Any], overwrite: bool) -> dict[str, Any]:
    """Merge maps. An empty value is filled; a non-empty one is replaced only on demand, and never by an empty one."""
    waiting = [(target, source) for source in reversed(sources)]
    while waiting:
        into, source = waiting.pop()
        for key, value in source.items():
            old = into.get(key)
            if isinstance(old, dict) and isinstance(value, dict):
                waiting.append((old, value))
            elif key not in into or (not is_true(old) and is_true(value)) or (overwrite and is_true(value)):
                into[key] = deepcopy(value)
    return target


def _omit(source: dict[str, Any], *keys: str) -> dict[str, Any]:
    omitted = frozenset(keys)
    return {k: v for k, v in source.items() if k not in omitted}


def _dig(*arguments: Any) -> Any:
    if len(arguments) < 3:
        raise TypeError("dig needs at least three arguments")
    *keys, default, value = arguments
    for key in keys:
        if not isinstance(value, dict):
            raise TypeError("interface conversion: interface {} is not map[string]interface {}")
        if not isinstance(key, str):
            raise TypeError("interface conversion: interface {} is not string")
        if key not in value:
            return default
        value = value[key]
    return value


_define("dict", "any...", _dict, metered=True)
_define("get", "dict string", lambda d, key: d.get(key, ""))
_define("set", "dict string any", _set)
_define("unset", "dict string", _unset)
_define("hasKey", "dict string", lambda d, key: key in d)
_define("pluck", "string dict...", lambda key, *dicts: [d[key] for d in dicts if key in d])
# Go's order is random; a template whose text changes from pass to pass is of no use to anyone.
_define("keys", "dict...", lambda *dicts: Strings(key for d in dicts for key in sorted(d)), weight=4)
_define("values", "dict", lambda d: [d[key] for key in sorted(d)], weight=4)
_define("pick", "dict string...", lambda d, *keys: {k: d[k] for k in keys if k in d})
_define("omit", "dict string...", _omit)
_define("merge mustMerge", "dict dict...", lambda d, *v: _merge(d, *v, overwrite=False), deep=True, weight=4)
_define("mergeOverwrite mustMergeOverwrite", "dict dict...", lambda d, *v: _merge(d, *v, overwrite=True), deep=True, weight=4)
_define("deepCopy mustDeepCopy", "any", deepcopy, deep=True, weight=4)
_define("dig", "any...", _dig)
