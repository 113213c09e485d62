"""Compare, merge and cut values by their merge type. Values are plain JSON; nothing is changed in place."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import msgspec

from clusterwright.apiserver.managedfields.sets import DOT, Set
from clusterwright.apiserver.schema.mergetypes import ANY, ANY_TYPE, LIST, MAP, SCALAR, MergeType
from clusterwright.golang.printing import in_syntax, printed
from clusterwright.golang.quoting import quote

_encode = msgspec.json.Encoder(order="sorted").encode
ABSENT: Final = object()
_LEAF: Final[Set] = {".": DOT}
"""The set of a leaf. Sets are immutable, so all leaves can share it."""


class SchemaMismatch(Exception):
    """A value that does not fit its merge type. `path` and `text` make the message."""

    def __init__(self, text: str, path: str = "") -> None:
        super().__init__(f"{path}: {text}" if path else text)
        self.text = text
        self.path = path

    def under(self, step: str) -> SchemaMismatch:
        """Return the same error with the parent's path in front."""
        return SchemaMismatch(self.text, step + self.path)


def element_of(item: Any, kind: MergeType) -> str:
    """Return the path element of an item of a set or map list. Raises SchemaMismatch."""
    if not kind.keys:
        if type(item) is dict:
            raise SchemaMismatch("associative list without keys has an element that's a map type")
        if type(item) is list:
            raise SchemaMismatch("not supported: associative list with lists as elements")
        if item is None:
            raise SchemaMismatch("associative list without keys has an element that's an explicit null")
        return "v:" + _encode(item).decode()
    if item is None:
        raise SchemaMismatch("associative list with keys may not have a null element")
    if type(item) is not dict:
        raise SchemaMismatch("associative list with keys may not have non-map elements")
    key: dict[str, Any] = {}
    for name in kind.keys:
        if name in item:
            key[name] = item[name]
        elif name in kind.defaults:
            key[name] = kind.defaults[name]
    if not key:
        names = " ".join(quote(k) for k in kind.keys)
        raise SchemaMismatch(
            f"associative list with keys has an element that omits all key fields [{names}] (and doesn't have "
            f"default values for any key fields)"
        )
    return "k:" + _encode(key).decode()


def show_element(element: str) -> str:
    """Return a path element as messages show it."""
    tag, body = element[:2], element[2:]
    if tag == "f:":
        return f".{body}"
    if tag == "i:":
        return f"[{body}]"
    value = msgspec.json.decode(body)
    if tag == "v:":
        return f"[={_shown(value)}]"
    return "[" + ",".join(f"{k}={_shown(v)}" for k, v in value.items()) + "]"


def _shown(value: Any) -> str:
    if isinstance(value, str):
        return quote(value)
    return _encode(value).decode()


def _child(kind: MergeType, key: str) -> MergeType:
    return kind.child(key) or ANY_TYPE


def _is_map(kind: MergeType, value: Any) -> bool:
    return kind.kind == MAP or (kind.kind == ANY and type(value) is dict)


# ---------------------------------------------------------------- checking


def check(value: Any, kind: MergeType, *, duplicates: bool = False) -> None:
    """Raise SchemaMismatch unless a value fits; `duplicates` allows repeated items in sets and map lists."""
    if _fits(value, kind, duplicates):
        return
    found = [str(problem) for problem in _problems(value, kind, duplicates)]
    raise SchemaMismatch(found[0] if len(found) == 1 else "\n  ".join(("errors:", *found)))


def _fits(value: Any, kind: MergeType, duplicates: bool) -> bool:
    """Return whether a value fits: the fast path of `check`, enough for nearly all values."""
    if value is None or kind.kind == ANY:
        return True
    if kind.kind == SCALAR:
        return not _scalar_problem(value, kind)
    if kind.kind == LIST:
        return next(_problems(value, kind, duplicates), None) is None
    if type(value) is not dict:
        return False
    fields, element = kind.fields, kind.element
    for key, item in value.items():
        child = fields.get(key) or element
        if child is None or not _fits(item, child, duplicates):
            return False
    return True


def _problems(value: Any, kind: MergeType, duplicates: bool) -> Iterator[SchemaMismatch]:
    if value is None or kind.kind == ANY:
        return
    if kind.kind == SCALAR:
        if text := _scalar_problem(value, kind):
            yield SchemaMismatch(text)
    elif kind.kind == LIST:
        if type(value) is not list:
            yield SchemaMismatch(f"expected list, got {_go(value)}")
        else:
            yield from _item_problems(value, kind, duplicates)
    elif type(value) is not dict:
        yield SchemaMismatch(f"expected map, got {_go(value)}")
    else:
        # kube-apiserver stops at the first undeclared field, so it comes last
        for key in sorted(value, key=lambda k: (kind.child(k) is None, k)):
            child = kind.child(key)
            if child is None:
                yield SchemaMismatch("field not declared in schema", f".{key}")
                return
            yield from (e.under(f".{key}") for e in _problems(value[key], child, duplicates))


def _item_problems(value: list[Any], kind: MergeType, duplicates: bool) -> Iterator[SchemaMismatch]:
    element = kind.element or ANY_TYPE
    seen: set[str] = set()
    for i, item in enumerate(value):
        step = f"[{i}]"
        if not kind.atomic:
            try:
                name = element_of(item, kind)
            except SchemaMismatch as e:
                yield SchemaMismatch(f"element {i}: {e.text}")
                return  # where the others are cannot be said
            step = show_element(name)
            if name in seen and not duplicates:
                yield SchemaMismatch(f"duplicate entries for key {step}")
            seen.add(name)
        yield from (e.under(step) for e in _problems(item, element, duplicates))


def _scalar_problem(value: Any, kind: MergeType) -> str:
    number = isinstance(value, (int, float)) and type(value) is not bool
    if kind.scalar == "numeric" and not number:
        names = {str: "string", bool: "bool", dict: "map[string]interface {}", list: "[]interface {}"}
        return f"expected numeric (int or float), got {names.get(type(value), 'value')}"
    if kind.scalar == "string" and type(value) is not str:
        return f"expected string, got &value.valueUnstructured{{Value:{in_syntax(value)}}}"
    if kind.scalar == "boolean" and type(value) is not bool:
        return f"expected boolean, got {_go(value)}"
    if kind.scalar == "untyped" and type(value) in (dict, list):
        return f"expected any scalar, got {_go(value)}"
    return ""


def _go(value: Any) -> str:
    """Return a value as Go prints the pointer to its wrapper."""
    return f"&{{{printed(value)}}}"


# ---------------------------------------------------------------- comparing


def compare(old: Any, new: Any, kind: MergeType) -> tuple[Set, Set, Set]:
    """Return the sets of removed, modified and added paths."""
    removed: Set = {}
    modified: Set = {}
    added: Set = {}
    _compare(old, new, kind, removed, modified, added)
    return removed, modified, added


def everything(value: Any, kind: MergeType) -> Set:
    """Return all paths of a value, which are added or removed with it."""
    if type(value) is dict and value and not kind.atomic and kind.kind in (MAP, ANY):
        out: Set = {".": DOT}
        for key, item in value.items():
            is_leaf = type(item) is not dict and type(item) is not list
            out[f"f:{key}"] = _LEAF if is_leaf else everything(item, _child(kind, key))
        return out
    if type(value) is list and value and kind.kind == LIST and not kind.atomic:
        out = {".": DOT}
        element = kind.element or ANY_TYPE
        for item in value:
            name = element_of(item, kind)
            out[name] = _LEAF if name in out else everything(item, element)
        return out
    return _LEAF


def _compare(old: Any, new: Any, kind: MergeType, removed: Set, modified: Set, added: Set) -> None:
    if type(old) is dict or type(new) is dict:
        if (kind.kind in (MAP, ANY)) and not kind.atomic:
            left, right = (old if type(old) is dict else {}), (new if type(new) is dict else {})
            if kind.kind == ANY and (type(old) is not type(new)) and old is not None and new is not None:
                modified["."] = DOT
            if left or right:
                _compare_maps(left, right, kind, removed, modified, added)
                return
    elif kind.kind == LIST and not kind.atomic and (old or new):
        _compare_lists(old or [], new or [], kind, removed, modified, added)
        return
    if old != new or type(old) is not type(new):
        modified["."] = DOT


def _compare_maps(old: dict[str, Any], new: dict[str, Any], kind: MergeType, removed: Set, modified: Set, added: Set) -> None:
    for key, item in new.items():
        before = old.get(key, ABSENT)
        if before is ABSENT:
            added[f"f:{key}"] = everything(item, _child(kind, key))
        elif before is not item and (before != item or type(before) is not type(item)):
            if type(item) is str and type(before) is str:
                modified[f"f:{key}"] = _LEAF
            else:
                _descend(f"f:{key}", before, item, _child(kind, key), removed, modified, added)
    if len(old) > len(new) or not old.keys() <= new.keys():
        for key, item in old.items():
            if key not in new:
                removed[f"f:{key}"] = everything(item, _child(kind, key))


def _descend(name: str, before: Any, after: Any, kind: MergeType, removed: Set, modified: Set, added: Set) -> None:
    r: Set = {}
    m: Set = {}
    a: Set = {}
    _compare(before, after, kind, r, m, a)
    if r:
        removed[name] = r
    if m:
        modified[name] = m
    if a:
        added[name] = a


def _grouped(values: Any, kind: MergeType) -> dict[str, list[Any]]:
    if type(values) is not list:  # objects are compared before they are validated
        raise SchemaMismatch(f"expected list, got {_go(values)}")
    out: dict[str, list[Any]] = {}
    for item in values:
        out.setdefault(element_of(item, kind), []).append(item)
    return out


def _compare_lists(old: Any, new: Any, kind: MergeType, removed: Set, modified: Set, added: Set) -> None:
    element = kind.element or ANY_TYPE
    left, right = _grouped(old, kind), _grouped(new, kind)
    for name in {**left, **right}:
        before, after = left.get(name, []), right.get(name, [])
        if len(before) <= 1 and len(after) <= 1:
            if not before:
                added[name] = everything(after[0], element)
            elif not after:
                removed[name] = everything(before[0], element)
            elif before[0] != after[0]:
                _descend(name, before[0], after[0], element, removed, modified, added)
        elif len(before) >= 2 and len(after) >= 2:
            if before != after:
                modified[name] = _LEAF
        elif len(before) >= 2:
            removed[name] = _LEAF
            if after:
                added[name] = everything(after[0], element)
        else:
            added[name] = _LEAF
            if before:
                removed[name] = everything(before[0], element)


# ---------------------------------------------------------------- owned by an apply


def field_set(value: Any, kind: MergeType) -> Set:
    """Return the paths that applying a value owns: leaves, empty maps, and items of sets and map lists."""
    out: Set = {}
    _field_set(value, kind, out)
    return out


def _field_set(value: Any, kind: MergeType, out: Set) -> None:
    if kind.atomic or kind.kind == SCALAR:
        out["."] = DOT
    elif _is_map(kind, value):
        if type(value) is not dict:
            return
        fields = kind.fields
        for key, item in value.items():
            inner = _child(kind, key)
            if inner.atomic or inner.kind == SCALAR:
                out[f"f:{key}"] = _LEAF
                continue
            child: Set = {}
            _field_set(item, inner, child)
            if item is None or item == {} or key not in fields:
                child["."] = DOT
            if child:
                out[f"f:{key}"] = child
    elif kind.kind == LIST:
        if type(value) is not list:
            return
        element = kind.element or ANY_TYPE
        for name, items in _grouped(value, kind).items():
            child = {".": DOT}
            if len(items) == 1:
                _field_set(items[0], element, child)
            out[name] = child
    else:
        out["."] = DOT


# ---------------------------------------------------------------- merging


def merge(live: Any, config: Any, kind: MergeType) -> Any:
    """Return `live` with `config` merged into it."""
    if live is ABSENT:
        return _clean(config)
    if config is ABSENT:
        return _clean(live)
    if not kind.atomic and _is_map(kind, config) and (type(live) is dict or type(config) is dict):
        left, right = (live if type(live) is dict else {}), (config if type(config) is dict else {})
        if not left and not right:
            return config
        out = {}
        for key in left:
            out[key] = merge(left[key], right.get(key, ABSENT), _child(kind, key))
        for key in right:
            if key not in left:
                out[key] = _clean(right[key])
        return out
    if not kind.atomic and kind.kind == LIST and (live or config):
        return _merge_lists(live or [], config or [], kind)
    return config


def _clean(value: Any) -> Any:
    return value


def _merge_lists(live: list[Any], config: list[Any], kind: MergeType) -> list[Any]:
    element = kind.element or ANY_TYPE
    left = [element_of(v, kind) for v in live]
    right = [element_of(v, kind) for v in config]
    old: dict[str, Any] = {}
    for name, item in zip(left, live, strict=True):
        old[name] = ABSENT if name in old else item
    new = dict(zip(right, config, strict=True))
    shared = iter([name for name in right if name in old])
    next_shared = next(shared, None)
    merged: set[str] = set()
    out: list[Any] = []
    i = j = 0

    def take(name: str) -> None:
        merged.add(name)
        out.append(merge(old.get(name, ABSENT), new[name], element))

    while i < len(left) or j < len(right):
        if i < len(left) and j < len(right):
            name = left[i]
            if name == right[j]:
                take(name)
                i += 1
                j += 1
                next_shared = next(shared, None)
                continue
            if name in new and next_shared is not None and next_shared != name:
                i += 1
                continue
        if i < len(left):
            name = left[i]
            if name not in new:
                out.append(live[i])
                i += 1
                continue
            if name in merged:
                i += 1
        if j < len(right):
            name = right[j]
            take(name)
            j += 1
            if next_shared == name:
                next_shared = next(shared, None)
    return out


# ---------------------------------------------------------------- removing


def remove(value: Any, paths: Set, kind: MergeType) -> Any:
    """Return the value without the items of a set. Maps and lists that become empty stay."""
    if not paths or not value:
        return value
    if _is_map(kind, value) and type(value) is dict:
        if kind.atomic:
            return None
        out = {}
        for key, item in value.items():
            node = paths.get(f"f:{key}")
            if node is None:
                out[key] = item
            elif "." not in node:
                out[key] = _remove_within(item, node, _child(kind, key))
        return out
    if kind.kind == LIST and type(value) is list:
        if kind.atomic:
            return None
        element = kind.element or ANY_TYPE
        items = []
        for item in value:
            node = paths.get(element_of(item, kind))
            if node is None:
                items.append(item)
            elif "." not in node:
                items.append(_remove_within(item, node, element))
        return items
    return value


def _remove_within(value: Any, paths: Set, kind: MergeType) -> Any:
    rest = remove(value, paths, kind)
    if rest is None:
        return {} if type(value) is dict else [] if type(value) is list else None
    return rest
