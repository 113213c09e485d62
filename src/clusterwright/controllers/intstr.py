"""Numbers in texts, and those that may be given as a share of another: `3` or `"30%"`. Pure."""

from __future__ import annotations

import re

_PERCENT = re.compile(r"[+-]?[0-9]+%")


def count(text: str) -> int | None:
    """The number of things that an annotation says; None where it says none that an int32 holds."""
    found = int(text) if re.fullmatch("[0-9]{1,10}", text) else None
    return found if found is not None and found < 1 << 31 else None


def scaled(value: int | str, total: int, *, round_up: bool) -> int:
    """The number itself, or that share of `total`, rounded up or down. Raises ValueError for a text that is no percentage."""
    if isinstance(value, int):
        return value
    if not _PERCENT.fullmatch(value):
        raise ValueError(f"invalid value for IntOrString: invalid type: string is not a percentage: {value!r}")
    share = int(value[:-1]) * total
    return -(-share // 100) if round_up else share // 100
