"""Simple values as Go's decoder reads them."""

from __future__ import annotations

import base64
import re
from collections.abc import Callable
from decimal import Decimal
from typing import Any, Final

from clusterwright.apiserver.interfaces import DecodeError
from clusterwright.apiserver.schema.times import micro_time, second_time
from clusterwright.golang.encodings import decode_base64
from clusterwright.golang.quantities import parse_quantity
from clusterwright.golang.times import parse_duration, parse_problem

Json = dict[str, Any]
Decoder = Callable[[Any, str, list[str]], Any]
"""A function of a JSON value, its path, and a list for the paths of unknown fields; raises DecodeError."""


def json_type(value: Any) -> str:
    """Return Go's name for the type of a JSON value."""
    names = {dict: "object", list: "array", str: "string", bool: "bool", int: "number", float: "number", type(None): "null"}
    return names.get(type(value), "value")


class Mismatch(DecodeError):
    """A value has another type than the field; the struct with the field adds the place."""

    def __init__(self, found: str, wanted: str, converting: str) -> None:
        super().__init__(f"json: cannot unmarshal {found}", converting)
        self.wanted = wanted


def mismatch(value: Any, path: str, wanted: str) -> Mismatch:
    """Return the error for a value that does not fit a Go type."""
    del path
    return Mismatch(json_type(value), re.sub(r"\w+\.(v\d\w*\.)", r"\1", wanted), _unconverted(value, wanted))


_GO_KINDS: Final = {dict: "map", list: "slice", str: "string", bool: "bool", int: "int64", float: "float64"}
_CONVERTIBLE: Final = frozenset({("int64", "string"), ("float64", "int32"), ("float64", "int64")})
"""Types that Go would convert and Kubernetes does not."""


def _unconverted(value: Any, wanted: str) -> str:
    """Return the error for a value that does not fit a Go type when data are converted to an object, not decoded."""
    found = _GO_KINDS.get(type(value), "")
    if wanted.startswith("[]"):
        return f"cannot restore slice from {found}"
    if wanted.startswith("map["):
        return f"cannot restore map from {found}"
    if "." in wanted:
        return f"cannot restore struct from: {found}"
    return f"cannot convert {found} to {wanted}" if (found, wanted) in _CONVERTIBLE else f"unrecognized type: {wanted}"


def decode_string(value: Any, path: str, unknown: list[str]) -> str:
    """Return a Go string."""
    if value is None:
        return ""
    if type(value) is not str:
        raise mismatch(value, path, "string")
    return value


def decode_bool(value: Any, path: str, unknown: list[str]) -> bool | None:
    """Return a Go bool."""
    if value is None or type(value) is bool:
        return value
    raise mismatch(value, path, "bool")


def _integer(bits: int) -> Callable[[Any, str, list[str]], int | None]:
    low, high = -(2 ** (bits - 1)), 2 ** (bits - 1) - 1

    def decode(value: Any, path: str, unknown: list[str]) -> int | None:
        if value is None:
            return None
        if type(value) is not int or not low <= value <= high:
            found = f"number {value}" if type(value) in (int, float) else json_type(value)
            raise Mismatch(found, f"int{bits}", _unconverted(value, f"int{bits}"))
        return value

    return decode


def _float(value: Any, path: str, unknown: list[str]) -> float | None:
    if value is None or type(value) is float or type(value) is int:
        return value
    raise mismatch(value, path, "float64")


def _bytes(value: Any, path: str, unknown: list[str]) -> str:
    if value is None:
        return ""
    if type(value) is not str:
        raise mismatch(value, path, "[]uint8")
    try:
        data = decode_base64(value.encode())
    except ValueError as e:
        raise DecodeError(str(e), f"error decoding from json: {e}") from None
    return base64.b64encode(data).decode()


def _time(value: Any, path: str, unknown: list[str]) -> str | None:
    if value is None or value == "":
        return None
    made = second_time(value) if type(value) is str else None
    if made is None:
        raise DecodeError(parse_problem(str(value)))
    return made


def _micro(value: Any, path: str, unknown: list[str]) -> str | None:
    if value is None or value == "":
        return None
    made = micro_time(value) if type(value) is str else None
    if made is None:
        raise DecodeError(parse_problem(str(value), fraction=".000000"))
    return made


def _duration(value: Any, path: str, unknown: list[str]) -> str | None:
    if value is None:
        return None
    if type(value) is not str or parse_duration(value) is None:
        raise DecodeError(f'time: invalid duration "{value}"')
    return value


def _plain(amount: Decimal) -> str:
    return format(amount.normalize(), "f")


def _quantity(value: Any, path: str, unknown: list[str]) -> str:
    if value is None:
        return "0"
    if type(value) is bool or not isinstance(value, (str, int, float)):
        raise mismatch(value, path, "resource.Quantity")
    try:
        return parse_quantity(value if isinstance(value, str) else _plain(Decimal(str(value)))).canonical()
    except ValueError as e:
        raise DecodeError(str(e)) from None


def _int_or_string(value: Any, path: str, unknown: list[str]) -> Any:
    if value is None:
        return None
    if type(value) is str or type(value) is int:
        return value
    found = json_type(value)
    raise Mismatch(found, "int32", f"json: cannot unmarshal {found} into Go value of type int32")


def _any(value: Any, path: str, unknown: list[str]) -> Any:
    return value


SCALARS: Final[dict[str, Decoder]] = {
    "string": decode_string,
    "bool": decode_bool,
    "byte": _integer(32),
    "int32": _integer(32),
    "int64": _integer(64),
    "float64": _float,
    "bytes": _bytes,
    "time": _time,
    "microtime": _micro,
    "duration": _duration,
    "quantity": _quantity,
    "intstr": _int_or_string,
    "raw": _any,
    "any": _any,
}
"""Decoders of simple types, as Go's decoder works."""
