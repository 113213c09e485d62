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
    """A length of time; raises CelError when it is longer than 64 bits can say (292 years)."""

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
        """As CEL's string() shows it: seconds with an `s`."""
        seconds, rest = divmod(abs(self.nanoseconds), _SECOND)
        return "-" * (self.nanoseconds < 0) + format_float(seconds + rest / _SECOND, "f", -1) + "s"

    def whole(self, unit: int) -> int:
        """Return how many units of so many nanoseconds it has; what is left over is left out."""
        return abs(self.nanoseconds) // unit * (-1 if self.nanoseconds < 0 else 1)


class Parts(NamedTuple):
    """A date and a time of day; months, days of months and of years count from 0."""

    year: int
    month: int
    day: int
    weekday: int
    """From Sunday."""
    yearday: int
    second: int
    """Of the day."""


@dataclass(frozen=True, slots=True, order=True)
class Timestamp:
    """A point in time, in nanoseconds of Unix; raises CelError when it lies outside the years 1 to 9999."""

    nanoseconds: int
    offset: int = field(default=0, compare=False)
    """Seconds east of UTC, in which it was written and is shown."""

    def __post_init__(self) -> None:
        if not EARLIEST <= self.seconds <= _LATEST:
            raise CelError("timestamp overflow")

    @property
    def seconds(self) -> int:
        """Whole seconds of Unix."""
        return self.nanoseconds // _SECOND

    def later(self, by: Duration) -> Timestamp:
        """Return the time a duration later."""
        return Timestamp(self.nanoseconds + by.nanoseconds, self.offset)

    def earlier(self, by: Duration) -> Timestamp:
        """Return the time a duration earlier."""
        return Timestamp(self.nanoseconds - by.nanoseconds, self.offset)

    def since(self, other: Timestamp) -> Duration:
        """Return how long after another it is."""
        return Duration(self.nanoseconds - other.nanoseconds)

    def parts(self, offset: int) -> Parts:
        """Return what calendar and clock show so many seconds east of UTC, also when that is outside the years 1 to 9999."""
        day, second = divmod(self.seconds + offset, _DAY)
        cycles, rest = divmod(day + _EPOCH - 1, _DAYS)
        found = date.fromordinal(rest + 1)
        yearday = found.toordinal() - date(found.year, 1, 1).toordinal()
        return Parts(found.year + cycles * _YEARS, found.month - 1, found.day - 1, found.isoweekday() % 7, yearday, second)

    def __str__(self) -> str:
        """As CEL's string() shows it: by Go's layout RFC3339Nano."""
        parts = self.parts(self.offset)
        minutes, second = divmod(parts.second, 60)
        rest = self.nanoseconds % _SECOND
        fraction = f".{rest:09d}".rstrip("0") if rest else ""
        east = abs(self.offset) // 60
        zone = f"{'-' if self.offset < 0 else '+'}{east // 60:02d}:{east % 60:02d}" if self.offset else "Z"
        clock = f"{minutes // 60:02d}:{minutes % 60:02d}:{second:02d}"
        return f"{parts.year:04d}-{parts.month + 1:02d}-{parts.day + 1:02d}T{clock}{fraction}{zone}"


def parse_duration(text: str) -> Duration:
    """Go's duration syntax (`1h30m`); raises ValueError for what is none."""
    found = times.parse_duration(text)
    if found is None:
        raise ValueError(f'time: invalid duration "{text}"')
    return Duration(found)


def parse_timestamp(text: str) -> Timestamp:
    """Return an RFC 3339 time; raises ValueError for what is none, CelError for one outside the years 1 to 9999."""
    found = times.parse_rfc3339_nano(text)
    if found is None:
        raise ValueError(times.parse_problem(text))
    return Timestamp(*found)


def zone_offset(zone: str, at: Timestamp) -> int:
    """Return seconds east of UTC of a zone, by name (`America/New_York`) or as hours and minutes (`-03:30`); raises CelError."""
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
