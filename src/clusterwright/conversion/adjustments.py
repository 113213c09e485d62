"""Places that neither schema nor model describes fully, by the names of struct and field."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from clusterwright.api.copying import replace
from clusterwright.conversion.types import TOKEN, Field, List

Adjustments = Mapping[tuple[str, str], Callable[[Field], Field]]

ADJUSTED: Final[Adjustments] = {
    ("bootstrapTokens", "token"): lambda field: replace(field, type=TOKEN),
}
"""The adjustments in every version."""


def _pointers(field: Field) -> Field:
    return replace(field, type=List(field.type.item, pointers=True)) if isinstance(field.type, List) else field


ADJUSTED_SPOKE: Final[Adjustments] = {
    ("bootstrapTokens", "token"): lambda field: replace(field, type=TOKEN, pointer=True),
    ("nodeRegistration", "taints"): lambda field: replace(field, presence="P"),
    ("poolRef", "apiGroup"): lambda field: replace(field, pointer=True),
    ("spec", "bindings"): _pointers,
}
"""The adjustments in old versions."""
