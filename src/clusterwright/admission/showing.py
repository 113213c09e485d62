"""Values in error messages: fields in upstream's order, keys of maps sorted, empty values omitted."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final

import msgspec

from clusterwright.api.codec import DecodeError, convert, encoded_names, to_json
from clusterwright.api.meta import Json, Object

_ORDER: Final = (
    "op", "path", "name", "owner", "permissions", "encoding", "append", "gecos", "groups", "homeDir", "inactive", "shell", "content",
    "contentFrom", "passwd", "passwdFrom", "primaryGroup", "lockPassword", "sudo", "sshAuthorizedKeys", "matchLabels", "matchExpressions",
    "key", "operator", "values", "authProvider", "exec", "command", "args", "env", "config", "provideClusterInfo", "description",
    "enabledIf", "definitions", "external", "generatePatchesExtension", "validateTopologyExtension", "discoverVariablesExtension",
    "settings", "selector", "jsonPatches", "value", "valueFrom", "variable", "template", "apiVersion", "kind", "apiGroup",
    "matchResources", "controlPlane", "infrastructureCluster", "machineDeploymentClass", "machinePoolClass", "names", "attributes",
)  # fmt: skip
"""The fields in the order of upstream's types: one order that is right for every type in messages."""
_RANK: Final = {key: rank for rank, key in enumerate(_ORDER)}


def as_written(obj: Json, model: type[Object], steps: tuple[Any, ...], keys: tuple[object, ...]) -> str:
    """Return the value at a path in an object, as the object's type writes it."""
    try:
        typed: Any = convert(obj, model)
    except DecodeError:
        typed = None
    plain: Any = obj if typed is None else to_json(typed)
    remaining = list(keys)
    for step in steps:
        if isinstance(step, str):
            plain = plain.get(step) if isinstance(plain, dict) else None
            typed = _attribute(typed, step)
        else:
            index = _index(plain, step[0], remaining.pop(0))
            plain = plain[index] if isinstance(plain, list) else None
            typed = typed[index] if isinstance(typed, (list, tuple)) else None
    return compact({} if plain is None and isinstance(typed, msgspec.Struct) else plain, typed)


def compact(plain: Any, typed: Any = None) -> str:
    """Return JSON without spaces; maps are sorted by key."""
    return json.dumps(_sorted(plain, typed), separators=(",", ":"), ensure_ascii=False)


def ordered(plain: Any) -> Any:
    """Return the value with its fields in upstream's order, without empty lists; values below `value` are the user's and stay unchanged."""
    if isinstance(plain, dict):
        return {key: plain[key] if key == "value" else ordered(plain[key]) for key in sorted(plain, key=_rank) if plain[key] != []}
    return [ordered(item) for item in plain] if isinstance(plain, list) else plain


def _rank(key: str) -> tuple[int, str]:
    return _RANK.get(key, len(_RANK)), key


def _index(plain: Any, name: str, key: object) -> int:
    if not name:
        return int(str(key))
    return next((n for n, item in enumerate(plain or ()) if (item.get(name) or "") == key), 0)


def _attribute(typed: Any, key: str) -> Any:
    if isinstance(typed, Mapping):
        return typed.get(key)
    if isinstance(typed, msgspec.Struct):
        return next((getattr(typed, attribute) for name, attribute in encoded_names(type(typed)) if name == key), None)
    return None


def _sorted(plain: Any, typed: Any) -> Any:
    if isinstance(plain, dict):
        keys = sorted(plain, key=_rank) if isinstance(typed, msgspec.Struct) else sorted(plain)
        return {key: _sorted(plain[key], _attribute(typed, key)) for key in keys}
    if isinstance(plain, list):
        below = typed if isinstance(typed, (list, tuple)) else [None] * len(plain)
        return [_sorted(item, below[n] if n < len(below) else None) for n, item in enumerate(plain)]
    return plain
