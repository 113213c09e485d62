"""Times in Go's layout RFC3339: no lower case, a comma may replace the point, any number of digits after it.

And durations in the syntax of time.ParseDuration.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from typing import Final

from clusterwright.golang.quoting import quote

RFC3339: Final = re.compile(r"(\d{4}-\d\d-\d\d)T(\d\d:\d\d:\d\d)(?:[.,](\d+))?(Z|[+-]\d\d:\d\d)", re.ASCII)
"""Day, time, fraction (its digits) and zone."""
_UNIX: Final = datetime(1970, 1, 1, tzinfo=UTC)


def parse_rfc3339(text: str) -> datetime | None:
    """Return the time in UTC, to the microsecond; None for an invalid one, or outside the years 1 to 9999."""
    found = RFC3339.fullmatch(text)
    if found is None:
        return None
    day, clock, fraction, zone = found.groups()
    try:
        made = datetime.fromisoformat(f"{day}T{clock}.{(fraction or '')[:6]:0<6}{'+00:00' if zone == 'Z' else zone}")
        return made.astimezone(UTC)
    except (ValueError, OverflowError):
        return None


def parse_rfc3339_nano(text: str) -> tuple[int, int] | None:
    """Return Unix nanoseconds, and the zone in seconds east of UTC; None if the text is not a time. Also outside the years 1 to 9999."""
    found = RFC3339.fullmatch(text)
    if found is None:
        return None
    day, clock, fraction, zone = found.groups()
    is_year_zero = day.startswith("0000")  # which Go knows, and Python not: it is a leap year, as 2000 is
    try:
        made = datetime.fromisoformat(f"{'2000' + day[4:] if is_year_zero else day}T{clock}+00:00")
        there = _UNIX if zone == "Z" else datetime.fromisoformat(f"1970-01-01T00:00:00{zone}")
    except ValueError:
        return None
    offset = (_UNIX - there) // timedelta(seconds=1)
    seconds = (made - _UNIX) // timedelta(seconds=1) - offset - (is_year_zero and 5 * 146097 * 86400)
    return seconds * 10**9 + int(f"{(fraction or '')[:9]:0<9}"), offset


NANOSECONDS: Final = {
    "ns": 1, "us": 10**3, "\u00b5s": 10**3, "\u03bcs": 10**3, "ms": 10**6, "s": 10**9, "m": 60 * 10**9, "h": 3600 * 10**9,
}  # fmt: skip
_PART: Final = re.compile(r"(?:([0-9]+)(?:\.([0-9]*))?|\.([0-9]+))(ns|us|\u00b5s|\u03bcs|ms|s|m|h)")
_MOST: Final = 1 << 63
LONGEST: Final = len(str(_MOST))
"""The most digits: longer numbers are too large, and are not parsed."""


def parse_duration(text: str) -> int | None:
    """Return nanoseconds; None for a text that is not a duration, or for more than fits (about 292 years)."""
    negative, body = text[:1] == "-", text[1:] if text[:1] in {"+", "-"} else text
    if body == "0":
        return 0
    total = at = 0
    while at < len(body):
        found = _PART.match(body, at)
        if found is None:
            return None
        whole, fraction, alone, unit = found.groups()
        whole, digits, size = (whole or "").lstrip("0") or "0", (fraction or alone or "")[:LONGEST], NANOSECONDS[unit]
        if len(whole) > LONGEST:
            return None
        total += int(whole) * size + (int(digits) * size // 10 ** len(digits) if digits else 0)
        at = found.end()
    if not body or total > (_MOST if negative else _MOST - 1):
        return None
    return -total if negative else total


def format_duration(nanoseconds: int) -> str:
    """Return a duration in the format of time.Duration: `0s`, `59s`, `1h0m0s`, `1.5s`, `500ms`."""
    if nanoseconds == 0:
        return "0s"
    sign, rest = "-" * (nanoseconds < 0), abs(nanoseconds)
    if rest < NANOSECONDS["s"]:
        unit = next(unit for unit in ("ms", "\u00b5s", "ns") if rest >= NANOSECONDS[unit])
        return f"{sign}{_fraction(rest, NANOSECONDS[unit])}{unit}"
    minutes, rest = divmod(rest, NANOSECONDS["m"])
    hours, minutes = divmod(minutes, 60)
    seconds = f"{_fraction(rest, NANOSECONDS['s'])}s"
    return sign + (f"{hours}h" if hours else "") + (f"{minutes}m" if hours or minutes else "") + seconds


def _fraction(value: int, unit: int) -> str:
    whole, rest = divmod(value, unit)
    digits = str(rest).rjust(len(str(unit)) - 1, "0").rstrip("0") if rest else ""
    return f"{whole}.{digits}" if digits else str(whole)


_LAYOUT: Final = (
    ("2006", r"[0-9]{4}"), ("-", "-"), ("01", "[0-9]{2}"), ("-", "-"), ("02", "[0-9]{2}"), ("T", "T"), ("15", "[0-9]{2}"),
    (":", ":"), ("04", "[0-9]{2}"), (":", ":"), ("05", "[0-9]{2}"),
)  # fmt: skip
_RANGES: Final = (("2006", 0, 9999, "year"), ("01", 1, 12, "month"), ("02", 1, 31, "day"), ("15", 0, 23, "hour"), ("04", 0, 59, "minute"),
                  ("05", 0, 59, "second"))  # fmt: skip


def parse_problem(text: str, *, fraction: str = "") -> str:
    """Return Go's explanation why a text is not a time of the layout RFC3339; `fraction`: what the layout requires after the seconds."""
    begun = f"parsing time {quote(text)}"
    layout = "".join(element for element, _ in _LAYOUT) + fraction + "Z07:00"
    rest, numbers = text, dict[str, int]()
    after = (fraction, rf"\.[0-9]{{{len(fraction) - 1}}}") if fraction else ("", r"(?:[.,][0-9]+)?")
    for element, pattern in (*_LAYOUT, after, ("Z07:00", r"Z|[+-][0-9]{2}:[0-9]{2}")):
        found = re.match(pattern, rest)
        if found is None:
            return f"{begun} as {quote(layout)}: cannot parse {quote(rest)} as {quote(element)}"
        if found[0].isdigit():
            numbers[element] = int(found[0])
        rest = rest[found.end() :]
    if rest:
        return f"{begun}: extra text: {quote(rest)}"
    for element, least, most, name in _RANGES:
        if not least <= numbers[element] <= most:
            return f"{begun}: {name} out of range"
    return f"{begun}: day out of range"
