"""Numbers as strconv parses them, with its messages for integers."""

from __future__ import annotations

import math
import re
from typing import Final

from clusterwright.golang.quoting import quote

_DIGITS: Final = re.compile(r"[+-]?[0-9]+")


def atoi(text: str) -> int:
    """Return a decimal integer of 64 bits; raises ValueError."""
    return _parse("Atoi", text, 64)


def parse_int(text: str, bits: int) -> int:
    """Return a decimal integer of this many bits; raises ValueError."""
    return _parse("ParseInt", text, bits)


def parse_uint(text: str) -> int:
    """Return a decimal integer of 64 bits without a sign; raises ValueError."""
    if text[:1] in ("+", "-"):
        raise ValueError(f"strconv.ParseUint: parsing {quote(text)}: invalid syntax")
    return _parse("ParseUint", text, 65)


_DECIMAL: Final = "[0-9](?:_?[0-9])*"
_HEX: Final = "[0-9a-fA-F](?:_?[0-9a-fA-F])*"
FLOAT: Final = re.compile(
    rf"[+-]?(?:(?P<hex>0[xX](?:_?{_HEX}(?:\.(?:{_HEX})?)?|\.{_HEX})[pP][+-]?{_DECIMAL})"
    rf"|(?:{_DECIMAL}(?:\.(?:{_DECIMAL})?)?|\.{_DECIMAL})(?:[eE][+-]?{_DECIMAL})?)"
)
"""The pattern of a floating-point number."""
_SPECIAL: Final = re.compile(r"[+-]?inf(?:inity)?|nan", re.IGNORECASE)


def parse_float(text: str) -> float:
    """Return a floating-point number of 64 bits, decimal or hexadecimal; raises ValueError, also for too large numbers."""
    if _SPECIAL.fullmatch(text):
        return float(text)
    found = FLOAT.fullmatch(text)
    if found is None:
        raise ValueError(f"strconv.ParseFloat: parsing {quote(text)}: invalid syntax")
    try:
        value = float.fromhex(text.replace("_", "")) if found["hex"] else float(text)
    except OverflowError:
        value = math.inf
    if math.isinf(value):
        raise ValueError(f"strconv.ParseFloat: parsing {quote(text)}: value out of range")
    return value


def to_double(value: float) -> float:
    """Return a number as a double; JSON can contain larger ones."""
    try:
        return float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf


def _parse(function: str, text: str, bits: int) -> int:
    if not _DIGITS.fullmatch(text):
        raise ValueError(f"strconv.{function}: parsing {quote(text)}: invalid syntax")
    # not by int(): that refuses very long texts with an error of its own
    digits = text.lstrip("+-").lstrip("0") or "0"
    value = int(digits) * (-1 if text[0] == "-" else 1) if len(digits) <= 20 else 1 << 64
    if not -(1 << (bits - 1)) <= value < 1 << (bits - 1):
        raise ValueError(f"strconv.{function}: parsing {quote(text)}: value out of range")
    return value
