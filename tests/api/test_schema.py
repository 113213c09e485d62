"""How constraints of models become keywords of schemas. What our kinds' schemas are, the recorded definitions say."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar

from clusterwright.api.constraints import PRESERVE, REQUIRED, Each, Int32, Items, Len, Props, Range
from clusterwright.api.meta import Struct
from clusterwright.api.schema import schema_of


class _Part(Struct):
    constraints: ClassVar[tuple[object, ...]] = (Props(1, 2),)

    number: Annotated[Int32 | None, Range(0, 9)] = None
    words: Annotated[tuple[tuple[str, ...], ...], Items(1), Each(Items(2), Each(Len(3, 4)))] = ()
    anything: Annotated[Any, REQUIRED, PRESERVE] = None
    again: tuple[_Part, ...] = ()


def test_constraints_become_keywords() -> None:
    assert schema_of(_Part) == {
        "type": "object",
        "minProperties": 1,
        "maxProperties": 2,
        "required": ["anything"],
        "properties": {
            "again": {"type": "array", "items": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}},
            "anything": {"x-kubernetes-preserve-unknown-fields": True},
            "number": {"type": "integer", "format": "int32", "minimum": 0, "maximum": 9},
            "words": {
                "type": "array",
                "minItems": 1,
                "items": {"type": "array", "minItems": 2, "items": {"type": "string", "minLength": 3, "maxLength": 4}},
            },
        },
    }
