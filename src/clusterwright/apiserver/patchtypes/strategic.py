"""Strategic merge patch: lists of built-in kinds are merged by their keys, with directives for other changes."""

from __future__ import annotations

from typing import Any, Final

from clusterwright.api.meta import Json
from clusterwright.apiserver.schema.gotypes import json_fields, table
from clusterwright.apiserver.status import failure
from clusterwright.golang.printing import printed

_PATCH: Final = "$patch"
_RETAIN: Final = "$retainKeys"
_ORDER: Final = "$setElementOrder/"
_DELETE: Final = "$deleteFromPrimitiveList/"


class BadPatch(Exception):
    """A patch contradicts its kind: 500, as in kube-apiserver. `refused` is 400: it contradicts itself."""

    def __init__(self, text: str, *, refused: bool = False) -> None:
        super().__init__(text)
        self.refused = refused


def merge(original: Json, patch: Json, schema: Any) -> Json:
    """Return the original with the patch applied. `schema` is the handler's. Raises StatusError."""
    go_type = getattr(schema, "go_type", "")
    try:
        return _merge_map(original, patch, go_type)
    except BadPatch as e:
        raise failure(400, "BadRequest", str(e)) if e.refused else failure(500, "", str(e)) from None


class _Field:
    """The patch metadata of a field."""

    __slots__ = ("item", "key", "strategies")

    def __init__(self, go_type: str, name: str) -> None:
        field = json_fields(go_type).get(name) if go_type in table() else None
        kind = str(field["t"]) if field else ""
        self.strategies: tuple[str, ...] = tuple((field or {}).get("ps", "").split(",")) if field else ()
        self.key: str = (field or {}).get("pk", "")
        self.item: str = kind.lstrip("*").removeprefix("[]").removeprefix("{}").lstrip("*")

    @property
    def strategy(self) -> str:
        return next((s for s in self.strategies if s and s != "retainKeys"), "")


def _merge_map(original: Json, patch: Json, go_type: str) -> Json:
    directive = patch.get(_PATCH)
    if directive is not None:
        if directive == "replace":
            return {k: v for k, v in patch.items() if k != _PATCH}
        if directive == "delete":
            return {}
        raise BadPatch(f"unknown patch type: {directive} in map: {printed(patch)}")
    patch = dict(patch)
    out = dict(original)
    _retain(out, patch)
    _ordered_lists(out, patch, go_type)
    for key, value in patch.items():
        deleting = key.startswith(_DELETE)
        name = key.removeprefix(_DELETE)
        if value is None:
            out.pop(name, None)
            continue
        if name not in out or type(out[name]) is not type(value):
            if not deleting:
                kept, cleaned = _without_directives(_without_nulls(value))
                if kept:
                    out[name] = cleaned
                else:
                    out.pop(name, None)
            continue
        field = _Field(go_type, name)
        if isinstance(value, dict):
            out[name] = value if field.strategy == "replace" else _merge_map(out[name], value, field.item)
        elif isinstance(value, list):
            out[name] = _merge_lists(out[name], value, field, deleting=deleting)
        else:
            out[name] = value
    return out


def _retain(original: Json, patch: Json) -> None:
    keys = patch.pop(_RETAIN, None)
    if keys is None:
        return
    if not isinstance(keys, list):
        raise BadPatch("invalid patch format of retainKeys", refused=True)
    for key, value in patch.items():
        if value is not None and not key.startswith((_DELETE, _ORDER)) and key not in keys:
            raise BadPatch("invalid patch format of retainKeys", refused=True)
    for key in [k for k in original if k not in keys]:
        del original[key]


def _ordered_lists(original: Json, patch: Json, go_type: str) -> None:
    """Return the lists for which the patch sets the order of elements."""
    for directive in [k for k in patch if k.startswith(_ORDER)]:
        order = patch.pop(directive)
        name = directive.removeprefix(_ORDER)
        if not isinstance(order, list):
            raise BadPatch("invalid patch format of setElementOrder list", refused=True)
        field = _Field(go_type, name)
        before, change = original.get(name), patch.get(name)
        for value in (before, change):
            if value is not None and not isinstance(value, list):
                raise BadPatch(f"expected a list at {name}")
        if before is None and change is None:
            continue
        if change is not None:
            _check_order(change, order, field.key)
        if change is None:
            merged = before or []
        elif before is None:
            merged = _without_directives(change)[1]
        else:
            merged = _merge_lists(before, change, field)
        listed = {_key_of(o, field.key) for o in order}
        mine = [v for v in merged if _key_of(v, field.key) in listed]
        theirs = [v for v in merged if _key_of(v, field.key) not in listed]
        original[name] = _interleave(mine, theirs, order, before or [], field.key)
        patch.pop(name, None)


def _check_order(change: list[Any], order: list[Any], key: str) -> None:
    positions = iter(_key_of(o, key) for o in order)
    for item in change:
        if isinstance(item, dict) and _PATCH in item:
            continue
        wanted = _key_of(item, key)
        if order and not any(p == wanted for p in positions):
            raise BadPatch(f"The order in patch list:\n{change}\n doesn't match $setElementOrder list:\n{order}\n")


def _key_of(item: Any, key: str) -> Any:
    if isinstance(item, dict):
        value = item.get(key)
        return value if not isinstance(value, (dict, list)) else repr(value)
    return item if not isinstance(item, list) else repr(item)


def _merge_lists(original: list[Any], patch: list[Any], field: _Field, *, deleting: bool = False) -> list[Any]:
    if not deleting and field.strategy != "merge":
        return patch
    if not original and not patch:
        return original
    if not any(isinstance(v, dict) for v in (*original, *patch)):
        if deleting:
            return [v for v in original if v not in patch]
        merged = list(dict.fromkeys([*original, *patch]))
        mine = [v for v in merged if v in patch]
        theirs = [v for v in merged if v not in patch]
        return _interleave(mine, theirs, patch, original, "")
    if not field.key:
        raise BadPatch("cannot merge lists without merge key")
    result, changes = _special(list(original), patch, field.key)
    for item in changes:
        if field.key not in item:
            raise BadPatch(f"map: {printed(item)} does not contain declared merge key: {field.key}")
        at = next((i for i, v in enumerate(result) if isinstance(v, dict) and v.get(field.key) == item[field.key]), None)
        if at is None:
            result.append(item)
        else:
            result[at] = _merge_map(result[at], item, field.item)
    named = {_key_of(c, field.key) for c in changes}
    mine = [v for v in result if _key_of(v, field.key) in named]
    theirs = [v for v in result if _key_of(v, field.key) not in named]
    return _interleave(mine, theirs, changes, original, field.key)


def _special(original: list[Any], patch: list[Any], key: str) -> tuple[list[Any], list[Any]]:
    changes: list[Any] = []
    replace = False
    for item in patch:
        if not isinstance(item, dict):
            raise BadPatch("expected a list of objects")
        directive = item.get(_PATCH)
        if directive is None:
            changes.append(item)
        elif directive == "delete":
            if key not in item:
                raise BadPatch(f"map: {printed(item)} does not contain declared merge key: {key}")
            original = [v for v in original if not (isinstance(v, dict) and v.get(key) == item[key])]
        elif directive == "replace":
            replace = True
        else:
            raise BadPatch(
                "merging lists cannot yet be specified in the patch"
                if directive == "merge"
                else f"unknown patch type: {directive} in map: {printed(item)}"
            )
    return (changes, []) if replace else (original, changes)


def _interleave(mine: list[Any], theirs: list[Any], order: list[Any], live: list[Any], key: str) -> list[Any]:
    """Return the items that the patch names in its order, and between them the others in their places."""
    rank = {_key_of(o, key): i for i, o in enumerate(order)}
    mine = sorted(mine, key=lambda v: rank.get(_key_of(v, key), -1))
    places = {_key_of(v, key): i for i, v in enumerate(live)}
    theirs = sorted(theirs, key=lambda v: places.get(_key_of(v, key), -1))
    out: list[Any] = []
    i = j = 0
    while i < len(theirs) or j < len(mine):
        if i >= len(theirs):
            out.append(mine[j])
            j += 1
        elif j >= len(mine):
            out.append(theirs[i])
            i += 1
        else:
            left, right = places.get(_key_of(theirs[i], key)), places.get(_key_of(mine[j], key))
            if left is not None and right is not None and left < right:
                out.append(theirs[i])
                i += 1
            else:
                out.append(mine[j])
                j += 1
    return out


def _without_nulls(value: Any) -> Any:
    if isinstance(value, dict):
        return {k: _without_nulls(v) for k, v in value.items() if v is not None}
    if isinstance(value, list):
        return [_without_nulls(v) for v in value]
    return value


def _without_directives(value: Any) -> tuple[bool, Any]:
    """Return whether to keep a value, and the value without directives."""
    if isinstance(value, dict):
        if _PATCH in value:
            return False, None
        out = {}
        for key, item in value.items():
            if key.startswith((_ORDER, _DELETE)) or key == _RETAIN:
                continue
            kept, cleaned = _without_directives(item)
            if kept:
                out[key] = cleaned
        return True, out
    if isinstance(value, list):
        return True, [cleaned for kept, cleaned in map(_without_directives, value) if kept]
    return True, value
