"""Numbers in texts, and those that may be given as a share of another: `3` or `"30%"`. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

INT32_MAX: Final = (1 << 31) - 1
"""The largest number that a counter of the API can hold."""
_PERCENT = re.compile(r"[+-]?[0-9]+%")


def count(text: str) -> int | None:
    """Return the number of things that an annotation says; None where it says none that an int32 holds."""
    found = int(text) if re.fullmatch("[0-9]{1,10}", text) else None
    return found if found is not None and found <= INT32_MAX else None


def capped(number: int) -> int:
    """Return the number, or the largest one that a counter can hold: the API server refuses a status with a larger one."""
    return min(number, INT32_MAX)


def total(counts: Iterable[int | None]) -> int | None:
    """Return the sum of the counters that are known, as far as a counter can hold it; None if none is known."""
    known = [c for c in counts if c is not None]
    return capped(sum(known)) if known else None


def scaled(value: int | str, of: int, *, round_up: bool) -> int:
    """Return the number itself, or that share of `of`, rounded up or down; at most what a counter can hold.

    Raises ValueError if a text is not a percentage.
    """
    if isinstance(value, int):
        return value
    if not _PERCENT.fullmatch(value):
        raise ValueError(f"invalid value for IntOrString: invalid type: string is not a percentage: {value!r}")
    share = int(value[:-1]) * of
    return capped(-(-share // 100) if round_up else share // 100)
