"""Numbers that may be given as a share of another: `3` or `"30%"`. Pure."""

from __future__ import annotations

import re

_PERCENT = re.compile(r"[+-]?[0-9]+%")


def scaled(value: int | str, total: int, *, round_up: bool) -> int:
    """The number itself, or that share of `total`, rounded up or down. Raises ValueError for a text that is no percentage."""
    if isinstance(value, int):
        return value
    if not _PERCENT.fullmatch(value):
        raise ValueError(f"invalid value for IntOrString: invalid type: string is not a percentage: {value!r}")
    share = int(value[:-1]) * total
    return -(-share // 100) if round_up else share // 100
