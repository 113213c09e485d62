"""Times as Go's API machinery reads and writes them."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import Final

_RFC3339: Final = re.compile(r"(\d{4}-\d\d-\d\d)T(\d\d:\d\d:\d\d)(?:[.,](\d+))?(Z|[+-]\d\d:\d\d)", re.ASCII)


def _parse(text: str) -> tuple[datetime, str] | None:
    found = _RFC3339.fullmatch(text)
    if found is None:
        return None
    day, clock, fraction, zone = found.groups()
    try:
        made = datetime.fromisoformat(f"{day}T{clock}{'+00:00' if zone == 'Z' else zone}").astimezone(UTC)
    except (ValueError, OverflowError):
        return None
    return made, fraction or ""


def second_time(text: str) -> str | None:
    """metav1.Time: RFC 3339 in, seconds in UTC out; None if it is not a time."""
    found = _parse(text)
    return None if found is None else found[0].strftime("%Y-%m-%dT%H:%M:%SZ") if found[0].year >= 1000 else text


def micro_time(text: str) -> str | None:
    """metav1.MicroTime: a fraction of six digits is demanded; None if it is not one."""
    found = _parse(text)
    if found is None or len(found[1]) != 6:
        return None
    return f"{found[0].strftime('%Y-%m-%dT%H:%M:%S')}.{found[1]}Z"
