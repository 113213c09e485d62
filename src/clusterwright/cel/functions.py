"""The functions of CEL itself: conversions, strings, optionals, times."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Final

from clusterwright.cel.formatting import format_values, to_string
from clusterwright.cel.moments import EARLIEST, Duration, Parts, Timestamp, parse_duration, parse_timestamp, zone_offset
from clusterwright.cel.overloads import Library, checked, checked_uint
from clusterwright.cel.values import INT_MAX, INT_MIN, NONE, CelError, Optional, UInt
from clusterwright.golang.numbers import parse_float, parse_int, parse_uint, to_double
from clusterwright.golang.regex import BadPattern, Pattern, compile_go, matcher

LIBRARY: Final = Library()

# ---------------------------------------------------------------- numbers


def _to_int(value: Any) -> int:
    if isinstance(value, float):
        if math.isnan(value) or not INT_MIN < value < INT_MAX:
            raise CelError("integer overflow")
        return int(value)
    if isinstance(value, Timestamp):
        return value.seconds
    return value.nanoseconds if isinstance(value, Duration) else checked(int(value))


def _to_uint(value: float) -> UInt:
    return checked_uint(int(value) if 0 <= value < 1 << 64 else -1)


def _parsed(kind: str, parse: Callable[[str], Any]) -> Callable[[str], Any]:
    """Return a conversion of texts to values by a function that raises ValueError for invalid texts."""

    def convert(text: str) -> Any:
        try:
            return parse(text)
        except ValueError:
            raise CelError(f"type conversion error from 'string' to '{kind}'") from None

    return convert


_BOOLS: Final = dict.fromkeys(("true", "True", "TRUE", "t", "T", "1"), True) | dict.fromkeys(
    ("false", "False", "FALSE", "f", "F", "0"), False
)


def _parse_bool(text: str) -> bool:
    if text not in _BOOLS:
        raise ValueError(text)
    return _BOOLS[text]


for _source in ("int", "uint", "double", "timestamp", "duration"):
    LIBRARY.define(f"int({_source}) int", _to_int)
for _source in ("int", "uint", "double"):
    LIBRARY.define(f"uint({_source}) uint", _to_uint)
    LIBRARY.define(f"double({_source}) double", to_double)
LIBRARY.define("int(string) int", _parsed("int", lambda text: parse_int(text, 64)))
LIBRARY.define("uint(string) uint", _parsed("uint", lambda text: UInt(parse_uint(text))))
LIBRARY.define("double(string) double", _parsed("double", parse_float))
for _source in ("int", "uint", "double", "string", "bool", "bytes", "timestamp", "duration", "ip", "cidr", "url"):
    LIBRARY.define(f"string({_source}) string", to_string)
LIBRARY.define("bool(string) bool", _parsed("bool", _parse_bool))
LIBRARY.define("bool(bool) bool", lambda v: v)
LIBRARY.define("bytes(string) bytes", str.encode)
LIBRARY.define("bytes(bytes) bytes", lambda v: v)
LIBRARY.define("timestamp(string) timestamp", _parsed("google.protobuf.Timestamp", parse_timestamp))
LIBRARY.define("timestamp(timestamp) timestamp", lambda v: v)
LIBRARY.define("timestamp(int) timestamp", lambda v: Timestamp(v * 10**9))
LIBRARY.define("duration(string) duration", _parsed("google.protobuf.Duration", parse_duration))
LIBRARY.define("duration(duration) duration", lambda v: v)
LIBRARY.define("dyn(A) dyn", lambda v: v)


# ---------------------------------------------------------------- strings


def _regex(pattern: str) -> Pattern:
    try:
        return compile_go(pattern)
    except BadPattern as e:
        raise CelError(f"Illegal regex: {e}") from None


def matches(text: str, pattern: str) -> bool:
    """Return text.matches(pattern)."""
    try:
        return matcher(pattern)(text)
    except BadPattern as e:
        raise CelError(str(e)) from None


def _find_all(text: str, pattern: str, limit: int = -1) -> list[str]:
    found, end = [], -1
    for match in _regex(pattern).finditer(text):
        if match.end() > end or match.start() < match.end():  # nothing is not found once more where something ends
            found.append(match.group())
        end = match.end()
    return found if limit < 0 else found[:limit]


def _find(text: str, pattern: str) -> str:
    found = _regex(pattern).search(text)
    return found.group() if found else ""


def _char_at(text: str, index: int) -> str:
    if not 0 <= index <= len(text):
        raise CelError(f"index out of range: {index}")
    return text[index : index + 1]


def _substring(text: str, start: int, end: int | None = None) -> str:
    stop = len(text) if end is None else end
    if end is not None and start > stop:
        raise CelError(f"invalid substring range. start: {start}, end: {stop}")
    if not 0 <= start <= len(text):
        raise CelError(f"index out of range: {start}")
    if not 0 <= stop <= len(text):
        raise CelError(f"index out of range: {stop}")
    return text[start:stop]


def _index_of(text: str, part: str, start: int = 0) -> int:
    if start < 0:
        raise CelError(f"index out of range: {start}")
    return text.find(part, start) if part else min(start, len(text))


def _last_index_of(text: str, part: str, end: int | None = None) -> int:
    if end is None:
        return text.rfind(part)
    if end < 0:
        raise CelError(f"index out of range: {end}")
    if not part:
        return min(end, len(text))
    return -1 if end >= len(text) else text.rfind(part, 0, end + len(part))


def _split(text: str, separator: str, limit: int = -1) -> list[str]:
    if limit == 0:
        return []
    if separator == "":
        parts = list(text)
        return parts if limit < 0 or limit >= len(parts) else [*parts[: limit - 1], "".join(parts[limit - 1 :])]
    return text.split(separator) if limit < 0 else text.split(separator, limit - 1)


def _ascii_case(text: str, upper: bool) -> str:
    return "".join((c.upper() if upper else c.lower()) if c.isascii() else c for c in text)


_ESCAPES: Final = str.maketrans({c: f"\\{w}" for c, w in zip('\a\b\f\n\r\t\v\\"', 'abfnrtv\\"', strict=True)})

LIBRARY.define("size(string) int", len)
LIBRARY.define("size(bytes) int", len)
LIBRARY.define("size(list<A>) int", len)
LIBRARY.define("size(map<A, B>) int", len)
LIBRARY.define("string.size() int", len)
LIBRARY.define("bytes.size() int", len)
LIBRARY.define("list<A>.size() int", len)
LIBRARY.define("map<A, B>.size() int", len)
LIBRARY.define("string.contains(string) bool", lambda a, b: b in a)
LIBRARY.define("string.startsWith(string) bool", lambda a, b: a.startswith(b))
LIBRARY.define("string.endsWith(string) bool", lambda a, b: a.endswith(b))
LIBRARY.define("string.matches(string) bool", matches)
LIBRARY.define("matches(string, string) bool", matches)
LIBRARY.define("string.find(string) string", _find)
LIBRARY.define("string.findAll(string) list<string>", _find_all)
LIBRARY.define("string.findAll(string, int) list<string>", _find_all)
LIBRARY.define("string.charAt(int) string", _char_at)
LIBRARY.define("string.indexOf(string) int", _index_of)
LIBRARY.define("string.indexOf(string, int) int", _index_of)
LIBRARY.define("string.lastIndexOf(string) int", _last_index_of)
LIBRARY.define("string.lastIndexOf(string, int) int", _last_index_of)
LIBRARY.define("string.lowerAscii() string", lambda v: _ascii_case(v, False))
LIBRARY.define("string.upperAscii() string", lambda v: _ascii_case(v, True))
LIBRARY.define("string.replace(string, string) string", lambda v, a, b: v.replace(a, b))
LIBRARY.define("string.replace(string, string, int) string", lambda v, a, b, n: v.replace(a, b, n))
LIBRARY.define("string.split(string) list<string>", _split)
LIBRARY.define("string.split(string, int) list<string>", _split)
LIBRARY.define("string.substring(int) string", _substring)
LIBRARY.define("string.substring(int, int) string", _substring)
LIBRARY.define("string.trim() string", str.strip)
LIBRARY.define("list<string>.join() string", "".join)
LIBRARY.define("list<string>.join(string) string", lambda v, s: s.join(v))
LIBRARY.define("strings.quote(string) string", lambda v: f'"{v.translate(_ESCAPES)}"')


LIBRARY.define("string.format(list<dyn>) string", format_values)


# ---------------------------------------------------------------- optionals


def _value(optional: Optional) -> Any:
    if not optional.present:
        raise CelError("optional.none() dereference")
    return optional.value


def _is_zero(value: Any) -> bool:
    if isinstance(value, Timestamp):
        return value.nanoseconds == EARLIEST * 10**9
    return value is None or (isinstance(value, (bool, int, float, str, bytes, list, dict, Duration)) and not value)


LIBRARY.define("optional.of(A) optional<A>", lambda v: Optional(v, True))
LIBRARY.define("optional.none() optional<A>", lambda: NONE)
LIBRARY.define("optional.ofNonZeroValue(A) optional<A>", lambda v: NONE if _is_zero(v) else Optional(v, True))
LIBRARY.define("optional<A>.hasValue() bool", lambda o: o.present)
LIBRARY.define("optional<A>.value() A", _value)
LIBRARY.define("optional<A>.or(optional<A>) optional<A>", lambda a, b: a if a.present else b)
LIBRARY.define("optional<A>.orValue(A) A", lambda o, v: o.value if o.present else v)

# ---------------------------------------------------------------- times


_PARTS: Final[dict[str, Callable[[Parts], int]]] = {
    "getFullYear": lambda p: p.year,
    "getMonth": lambda p: p.month,
    "getDate": lambda p: p.day + 1,
    "getDayOfMonth": lambda p: p.day,
    "getDayOfWeek": lambda p: p.weekday,
    "getDayOfYear": lambda p: p.yearday,
    "getHours": lambda p: p.second // 3600,
    "getMinutes": lambda p: p.second // 60 % 60,
    "getSeconds": lambda p: p.second % 60,
}
for _name, _part in _PARTS.items():
    LIBRARY.define(f"timestamp.{_name}() int", lambda t, p=_part: p(t.parts(0)))
    LIBRARY.define(f"timestamp.{_name}(string) int", lambda t, z, p=_part: p(t.parts(zone_offset(z, t))))


def _milliseconds(moment: Timestamp, zone: str = "") -> int:
    zone_offset(zone, moment)  # which must be one, although all have the same
    return moment.nanoseconds // 10**6 % 1000


LIBRARY.define("timestamp.getMilliseconds() int", _milliseconds)
LIBRARY.define("timestamp.getMilliseconds(string) int", _milliseconds)
LIBRARY.define("duration.getHours() int", lambda d: d.whole(3600 * 10**9))
LIBRARY.define("duration.getMinutes() int", lambda d: d.whole(60 * 10**9))
LIBRARY.define("duration.getSeconds() int", lambda d: d.whole(10**9))
LIBRARY.define("duration.getMilliseconds() int", lambda d: d.whole(10**6))
