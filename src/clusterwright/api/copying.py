"""Change frozen values: make a copy with other fields."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec

if TYPE_CHECKING:
    from dataclasses import replace
else:
    _T = TypeVar("_T")

    def replace(obj: _T, /, **changes: Any) -> _T:
        """Return a copy of a frozen object of the API, or of a dataclass, with other fields."""
        if isinstance(obj, msgspec.Struct):
            return msgspec.structs.replace(obj, **changes)
        return dataclasses.replace(obj, **changes)


__all__ = ["replace"]
