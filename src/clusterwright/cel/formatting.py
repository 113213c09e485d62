"""string.format(): the types of its clauses, and cel-go's output in its English locale."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from typing import Any, Final

from clusterwright.cel.moments import Duration, Timestamp
from clusterwright.cel.overloads import runtime_name, shown_name
from clusterwright.cel.values import CelError, TypeValue
from clusterwright.golang.floats import format_float
from clusterwright.golang.numbers import atoi, parse_float
from clusterwright.golang.quoting import quote
from clusterwright.golang.urls import RequestUrl

Write = Callable[[int, str, int], str]
"""The placeholder of a clause: the index of its argument, its letter, and its precision."""

_CLAUSE: Final = re.compile(r"(?:\.([0-9]*))?(.)?", re.DOTALL)
_DEFAULT_PRECISION: Final = 6
_LARGEST: Final = 10**6
_SPECIAL: Final = frozenset({"NaN", "Infinity", "-Infinity"})
_INTEGERS: Final = frozenset({"int", "uint"})
_SIMPLE: Final = frozenset({"bool", "bytes", "double", "duration", "int", "null", "string", "timestamp", "type", "uint"})

CLAUSES: Final[dict[str, tuple[frozenset[str], str]]] = {
    "s": (
        _SIMPLE | {"list", "map"},
        "string clause can only be used on strings, bools, bytes, ints, doubles, maps, lists, types, durations, and timestamps",
    ),
    "d": (_INTEGERS, "decimal clause can only be used on integers"),
    "f": (frozenset({"double", "string"}), "fixed-point clause can only be used on doubles"),
    "e": (frozenset({"double", "string"}), "scientific clause can only be used on doubles"),
    "b": (_INTEGERS | {"bool"}, "only integers and bools can be formatted as binary"),
    "o": (_INTEGERS, "octal clause can only be used on integers"),
    "x": (_INTEGERS | {"bytes", "string"}, "only integers, byte buffers, and strings can be formatted as hex"),
}
"""By letter: the types that a clause accepts (of strings only those for special numbers), and the error about others."""


def refused(verb: str, kind: str) -> CelError:
    """Return the error of a clause with a wrong type."""
    return CelError(f"error during formatting: {CLAUSES[verb.lower()][1]}, was given {shown_name(kind)}")


def interpolated(text: str, arguments: int, write: Write) -> tuple[str, int]:
    """Return a text with its clauses replaced, and their number; raises CelError."""
    out, at, index = [], 0, 0
    while (found := text.find("%", at)) >= 0:
        out.append(text[at:found])
        at = found + 2
        if text.startswith("%%", found):
            out.append("%")
            continue
        if index >= arguments:
            raise CelError(f"index {index} out of range")
        if at > len(text):
            raise CelError("unexpected end of string")
        verb, precision, at = _clause(text, found + 1)
        out.append(write(index, verb, precision))
        index += 1
    return "".join([*out, text[at:]]), index


def _clause(text: str, at: int) -> tuple[str, int, int]:
    found = _CLAUSE.match(text, at)
    assert found is not None  # it takes anything
    digits, verb = found.groups()
    wrong = "could not parse formatting clause: "
    if verb is None:
        raise CelError(f"{wrong}error while parsing precision: could not find end of precision specifier")
    try:
        precision = _DEFAULT_PRECISION if digits is None else atoi(digits)
    except ValueError as e:
        raise CelError(f"{wrong}error while parsing precision: error while converting precision to integer: {e}") from None
    if verb.lower() not in CLAUSES or verb in "SDFEBO":
        raise CelError(f'{wrong}unrecognized formatting clause "{verb}"')
    return verb, precision, found.end()


def format_values(text: str, values: list[Any]) -> str:
    """Return text.format(values)."""
    return interpolated(text, len(values), lambda index, verb, precision: _formatted(verb, precision, values[index]))[0]


def _formatted(verb: str, precision: int, value: Any) -> str:
    kind = runtime_name(value)
    if kind not in CLAUSES[verb.lower()][0] or (verb in "fe" and kind == "string" and value not in _SPECIAL):
        raise refused(verb, kind)
    if precision > _LARGEST:
        return "%!(NOVERB)" if verb in "fe" else _formatted(verb, 0, value)
    match verb:
        case "f":
            return _number(value, lambda n: f"{n:,.{precision}f}")
        case "e":
            return _number(value, _scientific).rjust(precision)
        case "x" | "X" if isinstance(value, (str, bytes)):
            text = (value.encode() if isinstance(value, str) else value).hex()
            return text.upper() if verb == "X" else text
        case "s":
            return _shown(value)
    return f"{int(value):{verb}}"


def _number(value: float | str, show: Callable[[float], str]) -> str:
    number = parse_float(value) if isinstance(value, str) else value
    if math.isnan(number):
        return "NaN"
    if math.isinf(number):
        return "\u221e" if number > 0 else "-\u221e"
    return show(number or 0.0)


def _scientific(value: float) -> str:
    mantissa, _, exponent = f"{value:.6e}".partition("e")
    power = exponent[0].replace("+", "").replace("-", "\u207b") + exponent[1:].zfill(2).translate(_SUPERSCRIPTS)
    return f"{mantissa}\u202f\u00d7\u202f10{power}"


_SUPERSCRIPTS: Final = str.maketrans("0123456789", "\u2070\u00b9\u00b2\u00b3\u2074\u2075\u2076\u2077\u2078\u2079")


def show_double(value: float) -> str:
    """Return a double in the format of string()."""
    return format_float(value, "g", -1)


def to_string(value: Any) -> str:
    """Return string(value)."""
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return show_double(value)
    if isinstance(value, bytes):
        try:
            return value.decode()
        except UnicodeDecodeError:
            raise CelError("invalid UTF-8 in bytes, cannot convert to string") from None
    if isinstance(value, RequestUrl):
        return value.text
    return str(int(value)) if isinstance(value, int) else str(value)


def _shown(value: Any) -> str:
    if value is None:
        return "null"
    if isinstance(value, list):
        return "[" + ", ".join(map(_quoted, value)) + "]"
    if isinstance(value, dict):
        return "{" + ", ".join(f"{k}:{v}" for k, v in sorted((_key(k), _quoted(v)) for k, v in value.items())) + "}"
    return value.name if isinstance(value, TypeValue) else to_string(value)


def _key(value: Any) -> str:
    kind = runtime_name(value)
    if kind not in ("bool", "int", "string", "uint"):
        raise CelError(f"error during formatting: no formatting function for map key of type {shown_name(kind)}")
    return _quoted(value)


def _quoted(value: Any) -> str:
    """Return the content of lists and maps in the syntax of expressions."""
    kind = runtime_name(value)
    match value:
        case float():
            return f"{value:.6f}" if math.isfinite(value) else quote(show_double(value))
        case str():
            return quote(value)
        case bytes():
            return "b" + quote(to_string(value))
        case Duration() | Timestamp():
            return f"{kind}({quote(str(value))})"
    if kind not in CLAUSES["s"][0]:
        raise CelError(f"error during formatting: no formatting function for {shown_name(kind)}")
    return _shown(value)
