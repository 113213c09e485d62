"""Times as Go reads them by its layout RFC3339: no lower case, a comma may stand for the point, any number of digits after it."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import Final

RFC3339: Final = re.compile(r"(\d{4}-\d\d-\d\d)T(\d\d:\d\d:\d\d)(?:[.,](\d+))?(Z|[+-]\d\d:\d\d)", re.ASCII)
"""Day, time, fraction (its digits) and zone."""


def parse_rfc3339(text: str) -> datetime | None:
    """The time in UTC, to the microsecond; None for what is none, or lies outside the years 1 to 9999."""
    found = RFC3339.fullmatch(text)
    if found is None:
        return None
    day, clock, fraction, zone = found.groups()
    try:
        made = datetime.fromisoformat(f"{day}T{clock}.{(fraction or '')[:6]:0<6}{'+00:00' if zone == 'Z' else zone}")
        return made.astimezone(UTC)
    except (ValueError, OverflowError):
        return None
