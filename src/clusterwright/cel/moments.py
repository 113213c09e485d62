"""CEL's timestamps and durations: to the nanosecond, within the years 1 to 9999 and 64 bits."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from typing import Final, NamedTuple
from zoneinfo import ZoneInfo

from clusterwright.cel.values import INT_MAX, INT_MIN, CelError
from clusterwright.golang import times
from clusterwright.golang.floats import format_float
from clusterwright.golang.numbers import atoi

_SECOND: Final = 10**9
_DAY: Final = 86400
_EPOCH: Final = date(1970, 1, 1).toordinal()
_YEARS, _DAYS = 400, 146097  # after so many of each the calendar repeats itself, weekdays included
EARLIEST: Final = (1 - _EPOCH) * _DAY
"""0001-01-01T00:00:00Z in seconds of Unix."""
_LATEST: Final = (date.max.toordinal() + 1 - _EPOCH) * _DAY - 1


@dataclass(frozen=True, slots=True, order=True)
class Duration:
    """A length of time; raises CelError if it does not fit 64 bits (292 years)."""

    nanoseconds: int

    def __post_init__(self) -> None:
        if not INT_MIN <= self.nanoseconds <= INT_MAX:
            raise CelError("integer overflow")

    def __add__(self, other: Duration) -> Duration:
        return Duration(self.nanoseconds + other.nanoseconds)

    def __sub__(self, other: Duration) -> Duration:
        return Duration(self.nanoseconds - other.nanoseconds)

    def __bool__(self) -> bool:
        return self.nanoseconds != 0

    def __str__(self) -> str:
        """Return the duration in the format of CEL's string(): seconds with an `s`."""
        seconds, rest = divmod(abs(self.nanoseconds), _SECOND)
        return "-" * (self.nanoseconds < 0) + format_float(seconds + rest / _SECOND, "f", -1) + "s"

    def whole(self, unit: int) -> int:
        """Return the number of whole units of this many nanoseconds; the rest is dropped."""
        return abs(self.nanoseconds) // unit * (-1 if self.nanoseconds < 0 else 1)


class Parts(NamedTuple):
    """A date and a time of day; months, days of months and of years count from 0."""

    year: int
    month: int
    day: int
    weekday: int
    """The day of the week, from Sunday."""
    yearday: int
    second: int
    """The second of the day."""


@dataclass(frozen=True, slots=True, order=True)
class Timestamp:
    """A point in time, in Unix nanoseconds; raises CelError outside the years 1 to 9999."""

    nanoseconds: int
    offset: int = field(default=0, compare=False)
    """Seconds east of UTC of its notation."""

    def __post_init__(self) -> None:
        if not EARLIEST <= self.seconds <= _LATEST:
            raise CelError("timestamp overflow")

    @property
    def seconds(self) -> int:
        """The Unix time in whole seconds."""
        return self.nanoseconds // _SECOND

    def later(self, by: Duration) -> Timestamp:
        """Return the time after a duration."""
        return Timestamp(self.nanoseconds + by.nanoseconds, self.offset)

    def earlier(self, by: Duration) -> Timestamp:
        """Return the time before a duration."""
        return Timestamp(self.nanoseconds - by.nanoseconds, self.offset)

    def since(self, other: Timestamp) -> Duration:
        """Return the duration since another time."""
        return Duration(self.nanoseconds - other.nanoseconds)

    def parts(self, offset: int) -> Parts:
        """Return date and time in a zone so many seconds east of UTC, also outside the years 1 to 9999."""
        day, second = divmod(self.seconds + offset, _DAY)
        cycles, rest = divmod(day + _EPOCH - 1, _DAYS)
        found = date.fromordinal(rest + 1)
        yearday = found.toordinal() - date(found.year, 1, 1).toordinal()
        return Parts(found.year + cycles * _YEARS, found.month - 1, found.day - 1, found.isoweekday() % 7, yearday, second)

    def __str__(self) -> str:
        """Return the time in the format of CEL's string(): Go's layout RFC3339Nano."""
        parts = self.parts(self.offset)
        minutes, second = divmod(parts.second, 60)
        rest = self.nanoseconds % _SECOND
        fraction = f".{rest:09d}".rstrip("0") if rest else ""
        east = abs(self.offset) // 60
        zone = f"{'-' if self.offset < 0 else '+'}{east // 60:02d}:{east % 60:02d}" if self.offset else "Z"
        clock = f"{minutes // 60:02d}:{minutes % 60:02d}:{second:02d}"
        return f"{parts.year:04d}-{parts.month + 1:02d}-{parts.day + 1:02d}T{clock}{fraction}{zone}"


def parse_duration(text: str) -> Duration:
    """Return a duration from Go's syntax (`1h30m`); raises ValueError for other texts."""
    found = times.parse_duration(text)
    if found is None:
        raise ValueError(f'time: invalid duration "{text}"')
    return Duration(found)


def parse_timestamp(text: str) -> Timestamp:
    """Return an RFC 3339 time; raises ValueError for other texts, CelError outside the years 1 to 9999."""
    found = times.parse_rfc3339_nano(text)
    if found is None:
        raise ValueError(times.parse_problem(text))
    return Timestamp(*found)


def zone_offset(zone: str, at: Timestamp) -> int:
    """Return a zone's seconds east of UTC, by name (`America/New_York`) or as hours and minutes (`-03:30`); raises CelError."""
    hours, colon, minutes = zone.partition(":")
    if colon:
        try:
            east, further = atoi(hours), atoi(minutes)
        except ValueError as e:
            raise CelError(str(e)) from None
        return 60 * (60 * east - further if hours.startswith("-") else 60 * east + further)
    if zone in ("", "UTC", "Local"):  # whoever runs the server must not change what expressions say
        return 0
    if ".." in zone or zone[0] in "/\\":
        raise CelError("time: invalid location name")
    try:
        found = ZoneInfo(zone)
    except (KeyError, ValueError, OSError):
        raise CelError(f"unknown time zone {zone}") from None
    margin = 2 * _DAY  # of the years that datetime knows
    moment = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(seconds=min(max(at.seconds, EARLIEST + margin), _LATEST - margin))
    return int((moment.astimezone(found).utcoffset() or timedelta()).total_seconds())
