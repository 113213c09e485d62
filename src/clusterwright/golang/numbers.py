"""Integers as strconv reads them, with its sentences."""

from __future__ import annotations

import re
from typing import Final

from clusterwright.golang.quoting import quote

_DIGITS: Final = re.compile(r"[+-]?[0-9]+")


def atoi(text: str) -> int:
    """A decimal integer of 64 bits; raises ValueError."""
    return _parse("Atoi", text, 64)


def parse_int(text: str, bits: int) -> int:
    """A decimal integer of so many bits; raises ValueError."""
    return _parse("ParseInt", text, bits)


def _parse(function: str, text: str, bits: int) -> int:
    if not _DIGITS.fullmatch(text):
        raise ValueError(f"strconv.{function}: parsing {quote(text)}: invalid syntax")
    # not by int(): that refuses very long texts with an error of its own
    digits = text.lstrip("+-").lstrip("0") or "0"
    value = int(digits) * (-1 if text[0] == "-" else 1) if len(digits) <= 20 else 1 << 64
    if not -(1 << (bits - 1)) <= value < 1 << (bits - 1):
        raise ValueError(f"strconv.{function}: parsing {quote(text)}: value out of range")
    return value
