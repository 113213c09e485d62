"""Times in the formats of Go's API machinery."""

from __future__ import annotations

from datetime import datetime

from clusterwright.golang.times import RFC3339, parse_rfc3339


def second_time(text: str) -> str | None:
    """Return a metav1.Time in UTC, in seconds, from RFC 3339; None if it is invalid."""
    found = parse_rfc3339(text)
    return None if found is None else _written(found, "seconds")


def micro_time(text: str) -> str | None:
    """Return a metav1.MicroTime, which must have a fraction of six digits; None if it is invalid."""
    found, parts = parse_rfc3339(text), RFC3339.fullmatch(text)
    if found is None or parts is None or len(parts[3] or "") != 6:
        return None
    return _written(found, "microseconds")


def _written(moment: datetime, precision: str) -> str:
    return moment.replace(tzinfo=None).isoformat(timespec=precision) + "Z"  # strftime writes the year 1 with one digit
