"""Sets of field paths, as tries in the shape of FieldsV1.

A node maps path elements (`f:name`, `k:{"a":1}`, `v:"x"`, `i:0`) to nodes; the key `.` means that the path to the node itself is in the
set. The wire form omits the dot of a leaf; `load` and `dump` translate.
"""

from __future__ import annotations

from typing import Any

from clusterwright.apiserver.schema.mergetypes import LIST, MergeType

Set = dict[str, Any]
DOT: Set = {}


def load(fields: Any) -> Set:
    """Decode a set from FieldsV1. Raises ValueError."""
    if type(fields) is not dict:
        raise ValueError("not an object")
    out: Set = {}
    for key, child in fields.items():
        if key == ".":
            out["."] = DOT
            continue
        if key[:2] not in ("f:", "k:", "v:", "i:"):
            raise ValueError(f"unrecognized path element {key!r}")
        node = load(child)
        out[key] = node or {".": DOT}
    return out


def dump(node: Set) -> dict[str, Any]:
    """Encode a set as FieldsV1, sorted."""
    if len(node) == 1:
        key, child = next(iter(node.items()))
        return {} if key == "." else {key: dump(child)}
    # an empty node is a dot, one of one is a leaf or a way to the next
    return {key: {} if not (child := node[key]) or (len(child) == 1 and "." in child) else dump(child) for key in sorted(node)}


def union(a: Set, b: Set) -> Set:
    """Return the union of two sets."""
    if not a:
        return b
    if not b:
        return a
    out = dict(a)
    for key, child in b.items():
        mine = out.get(key)
        out[key] = child if mine is None or key == "." else union(mine, child)
    return out


def difference(a: Set, b: Set) -> Set:
    """Return what is in `a` and not in `b`."""
    if not b or not a:
        return a
    out: Set = {}
    for key, child in a.items():
        theirs = b.get(key)
        if theirs is None:
            out[key] = child
        elif key != ".":
            rest = difference(child, theirs)
            if rest:
                out[key] = rest
    return out


def intersection(a: Set, b: Set) -> Set:
    """Return the intersection of two sets."""
    if not a or not b:
        return {}
    out: Set = {}
    for key, child in a.items():
        theirs = b.get(key)
        if theirs is None:
            continue
        if key == ".":
            out[key] = DOT
        else:
            both = intersection(child, theirs)
            if both:
                out[key] = both
    return out


def contains(a: Set, b: Set) -> bool:
    """Return whether all of `b` is in `a`."""
    for key, child in b.items():
        mine = a.get(key)
        if mine is None:
            return False
        if key != "." and not (("." in mine) if len(child) == 1 and "." in child else contains(mine, child)):
            return False
    return True


def without(a: Set, paths: list[tuple[str, ...]]) -> Set:
    """Return the set without some fields and everything below them."""
    for path in paths:
        a = _without(a, path)
    return a


def _without(a: Set, path: tuple[str, ...]) -> Set:
    key = f"f:{path[0]}"
    child = a.get(key)
    if child is None:
        return a
    out = dict(a)
    rest = _without(child, path[1:]) if len(path) > 1 else {}
    if rest:
        out[key] = rest
    else:
        del out[key]
    return out


def with_named_fields(a: Set, kind: MergeType | None) -> Set:
    """Return the set with all named fields of structs on its paths added; members of maps and items of lists are not added."""
    if kind is None:
        return a
    out: Set = {}
    for key, child in a.items():
        if key == "." or (len(child) == 1 and "." in child):  # a leaf, as most are
            out[key] = child
            continue
        is_field = key[:2] == "f:"
        node = with_named_fields(child, kind.child(key[2:]) if is_field and kind.kind != LIST else kind.element)
        if is_field and key[2:] in kind.fields and "." not in node:
            node = {".": DOT, **node}
        out[key] = node
    return out


def paths(a: Set, prefix: tuple[str, ...] = ()) -> list[tuple[str, ...]]:
    """Yield all paths of a set in kube-apiserver's order: the members of a level before what is below them."""
    keys = sorted(k for k in a if k != ".")
    out = [(*prefix, k) for k in keys if "." in a[k]]
    for key in keys:
        out.extend(paths(a[key], (*prefix, key)))
    return out
