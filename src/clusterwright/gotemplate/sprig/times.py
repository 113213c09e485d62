"""Functions on times and durations. Functions of the present are missing; local time is UTC."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from clusterwright.golang.times import format_duration, parse_duration
from clusterwright.gotemplate.sprig.signatures import Library
from clusterwright.gotemplate.values import Int, Opaque

LIBRARY: Final = Library()
_define = LIBRARY.define
_LAYOUT: Final = {
    "2006": "%Y", "01": "%m", "02": "%d", "15": "%H", "03": "%I", "04": "%M", "05": "%S", "06": "%y", "January": "%B", "Jan": "%b",
    "Monday": "%A", "Mon": "%a", "PM": "%p", "-0700": "%z", "-07:00": "%z", "Z07:00": "%z", "MST": "%Z",
    "1": "%m", "2": "%d", "3": "%I", "4": "%M", "5": "%S",
}  # fmt: skip
_TOKENS: Final = re.compile("|".join(re.escape(t) for t in sorted(_LAYOUT, key=len, reverse=True)))
_YEARS: Final = frozenset({"2006", "06"})
_ROUNDED: Final = (("y", 365 * 86400), ("mo", 30 * 86400), ("d", 86400), ("h", 3600), ("m", 60), ("s", 1))
_LONGEST: Final = 512
"""The longest layout and time together, in characters: every new layout is compiled."""
_ZERO: Final = datetime(1, 1, 1, tzinfo=UTC)


class Time(Opaque):
    """Go's time.Time."""

    go_type = "time.Time"

    def __init__(self, moment: datetime) -> None:
        self.moment = moment

    def __str__(self) -> str:
        return f"{self.moment:%Y-%m-%d %H:%M:%S} +0000 UTC"


def _nanoseconds(text: str) -> int:
    """Return a duration parsed as in Go; raises ValueError."""
    found = parse_duration(text)
    if found is None:
        raise ValueError(f'time: invalid duration "{text}"')
    return found


def _duration(seconds: Any) -> str:
    if isinstance(seconds, str):
        number = int(seconds) if re.fullmatch(r"[+-]?[0-9]+", seconds) else 0
    else:
        number = int(seconds) if isinstance(seconds, int) and not isinstance(seconds, (bool, Int)) else 0
    return format_duration(number * 10**9)


def _rounded(duration: Any) -> str:
    nanoseconds = 0
    if isinstance(duration, str):
        try:
            nanoseconds = _nanoseconds(duration)
        except ValueError:
            nanoseconds = 0
    elif isinstance(duration, int) and not isinstance(duration, (bool, Int)):
        nanoseconds = int(duration)
    size = abs(nanoseconds)
    return next((f"{size // (s * 10**9)}{unit}" for unit, s in _ROUNDED if size > s * 10**9), "0s")


def _date(layout: str, text: str) -> Time:
    if len(layout) + len(text) > _LONGEST:
        raise ValueError(f"parsing time: layout and text have more than {_LONGEST} characters together")
    parts = [part for part in re.split(f"({_TOKENS.pattern})", layout) if part]
    pattern = "".join(_LAYOUT[part] if _TOKENS.fullmatch(part) else part.replace("%", "%%") for part in parts)
    if not _YEARS.intersection(parts):
        text, pattern = f"1900 {text}", f"%Y {pattern}"  # newer versions of Python want days with a year
    try:
        moment = datetime.strptime(text, pattern)  # noqa: DTZ007 - the zone may be in the text
    except re.error:
        raise ValueError(f"parsing time: the layout {layout!r} names a part twice") from None
    return Time(moment if moment.tzinfo else moment.replace(tzinfo=UTC))


def _lenient_date(layout: str, text: str) -> Time:
    try:
        return _date(layout, text)
    except ValueError:
        return Time(_ZERO)


def _time(value: Any) -> Time:
    if not isinstance(value, Time):
        raise TypeError("wrong type for value; expected time.Time")
    return value


_define("duration", "any", _duration)
_define("durationRound", "any", _rounded)
_define("toDate", "string string", _lenient_date, steps=500)
_define("mustToDate", "string string", _date, steps=500)
_define("unixEpoch", "any", lambda date: str(int(_time(date).moment.timestamp())))
_define(
    "mustDateModify must_date_modify",
    "string any",
    lambda by, date: Time(_time(date).moment + timedelta(microseconds=_nanoseconds(by) / 1000)),
)
