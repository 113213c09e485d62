"""Decide whether an optional part of the spec is set.

Absent, `{}` and all-zero count as unset; an explicit `false` or `0` of a field with three states counts as set.
"""

from __future__ import annotations

from functools import cache
from typing import Any, TypeVar, get_type_hints

import msgspec

from clusterwright.api.meta import KEEP_EMPTY, Struct

S = TypeVar("S", bound=Struct)


@cache
def _fields(cls: type[Struct]) -> tuple[tuple[str, Any, bool], ...]:
    """Return (attribute, default, whether its {} counts) of each field."""
    hints = get_type_hints(cls, include_extras=True)
    return tuple(
        (
            field.name,
            field.default_factory() if field.default is msgspec.NODEFAULT and callable(field.default_factory) else field.default,
            KEEP_EMPTY in getattr(hints[field.name], "__metadata__", ()),
        )
        for field in msgspec.structs.fields(cls)
    )


def is_defined(part: Struct | None) -> bool:
    """Return whether the part is set."""
    if part is None:
        return False
    for name, default, keep_empty in _fields(type(part)):
        value = getattr(part, name)
        if isinstance(value, Struct):
            if keep_empty or is_defined(value):
                return True
        elif value != default:
            return True
    return False


def defined(part: S | None) -> S | None:
    """Return the part if it is set, else None."""
    return part if is_defined(part) else None
