"""Whether an optional part of the spec says anything.

Absent, `{}` and all-zero are the same; an explicit `false` or `0` of a field that has three states counts as said.
"""

from __future__ import annotations

from functools import cache
from typing import Any, TypeVar, get_type_hints

import msgspec

from clusterwright.api.meta import KEEP_EMPTY, Struct

S = TypeVar("S", bound=Struct)


@cache
def _fields(cls: type[Struct]) -> tuple[tuple[str, Any, bool], ...]:
    """(attribute, default, whether its {} counts) of each field."""
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
    """Return whether the part says anything."""
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
    """Return the part if it says anything, else None."""
    return part if is_defined(part) else None
