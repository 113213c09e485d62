"""Numbers in texts, and numbers that may be a share of another: `3` or `"30%"`. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

INT32_MAX: Final = (1 << 31) - 1
"""The largest number that a counter of the API can hold."""
_PERCENT = re.compile(r"[+-]?[0-9]+%")


def count(text: str) -> int | None:
    """Return the number in an annotation; None if it is not an int32."""
    found = int(text) if re.fullmatch("[0-9]{1,10}", text) else None
    return found if found is not None and found <= INT32_MAX else None


def capped(number: int) -> int:
    """Return the number, limited to the largest counter: the API server refuses a status with a larger one."""
    return min(number, INT32_MAX)


def total(counts: Iterable[int | None]) -> int | None:
    """Return the sum of the known counters, limited to the largest counter; None if none is known."""
    known = [c for c in counts if c is not None]
    return capped(sum(known)) if known else None


def scaled(value: int | str, of: int, *, round_up: bool) -> int:
    """Return the number, or the share of `of`, rounded up or down; limited to the largest counter.

    Raises ValueError if a text is not a percentage.
    """
    if isinstance(value, int):
        return value
    if not _PERCENT.fullmatch(value):
        raise ValueError(f"invalid value for IntOrString: invalid type: string is not a percentage: {value!r}")
    share = int(value[:-1]) * of
    return capped(-(-share // 100) if round_up else share // 100)
