"""The functions of CEL itself: conversions, strings, optionals, times."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta, timezone
from typing import Any, Final

from clusterwright.cel.overloads import Cidr, Ip, Library, NamedFormat, checked, runtime_name
from clusterwright.cel.values import (
    INT_MAX,
    INT_MIN,
    NONE,
    CelError,
    Optional,
    Quantity,
    Semver,
    TypeValue,
    UInt,
    parse_duration,
    parse_timestamp,
    show_duration,
    show_timestamp,
)
from clusterwright.golang.floats import format_float
from clusterwright.golang.quoting import quote
from clusterwright.golang.regex import BadPattern, Pattern, compile_go, matcher
from clusterwright.golang.urls import RequestUrl

LIBRARY: Final = Library()

# ---------------------------------------------------------------- numbers


def _to_int(value: Any) -> int:
    if isinstance(value, str):
        if re.fullmatch(r"[+-]?\d+", value, re.ASCII) is None or not INT_MIN <= int(value) <= INT_MAX:
            raise not_convertible("int")
        return int(value)
    if isinstance(value, float):
        if math.isnan(value) or not INT_MIN < value < INT_MAX:
            raise CelError("integer overflow")
        return int(value)
    if isinstance(value, datetime):
        return int(value.timestamp())
    if isinstance(value, timedelta):
        return (value // timedelta(microseconds=1)) * 1000
    return checked(int(value))


def not_convertible(kind: str) -> CelError:
    """A text that does not say a value of a kind."""
    return CelError(f"type conversion error from 'string' to '{kind}'")


def _parsed(parse: Callable[[str], Any], kind: str) -> Callable[[str], Any]:
    def convert(text: str) -> Any:
        try:
            return parse(text)
        except CelError:
            raise not_convertible(kind) from None

    return convert


def _to_uint(value: Any) -> UInt:
    try:
        number = int(value)
    except (ValueError, OverflowError):
        raise not_convertible("uint") from None
    if not 0 <= number < 2**64:
        raise CelError("unsigned integer overflow")
    return UInt(number)


def _to_double(value: Any) -> float:
    try:
        return float(value)
    except ValueError:
        raise not_convertible("double") from None


def show_double(value: float) -> str:
    """A double as string() shows it."""
    if math.isinf(value):
        return "+Inf" if value > 0 else "-Inf"
    if math.isnan(value):
        return "NaN"
    return format_float(value, "g", -1)


def to_string(value: Any) -> str:
    """string(value)."""
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return show_double(value)
    if isinstance(value, bytes):
        try:
            return value.decode()
        except UnicodeDecodeError:
            raise CelError("invalid UTF-8 in bytes, cannot convert to string") from None
    if isinstance(value, datetime):
        return show_timestamp(value)
    if isinstance(value, timedelta):
        return show_duration(value)
    if isinstance(value, (Ip, Cidr)):
        return str(value.value)
    if isinstance(value, RequestUrl):
        return value.text
    return str(int(value))


def _to_bool(text: str) -> bool:
    if text in ("true", "True", "TRUE", "t", "1"):
        return True
    if text in ("false", "False", "FALSE", "f", "0"):
        return False
    raise CelError("type conversion error from 'string' to 'bool'")


for _source in ("int", "uint", "double", "string", "timestamp", "duration"):
    LIBRARY.define(f"int({_source}) int", _to_int)
for _source in ("int", "uint", "double", "string"):
    LIBRARY.define(f"uint({_source}) uint", _to_uint)
    LIBRARY.define(f"double({_source}) double", _to_double)
for _source in ("int", "uint", "double", "string", "bool", "bytes", "timestamp", "duration", "ip", "cidr", "url"):
    LIBRARY.define(f"string({_source}) string", to_string)
LIBRARY.define("bool(string) bool", _to_bool)
LIBRARY.define("bool(bool) bool", lambda v: v)
LIBRARY.define("bytes(string) bytes", lambda v: v.encode())
LIBRARY.define("bytes(bytes) bytes", lambda v: v)
LIBRARY.define("timestamp(string) timestamp", _parsed(parse_timestamp, "google.protobuf.Timestamp"))
LIBRARY.define("timestamp(timestamp) timestamp", lambda v: v)
LIBRARY.define("timestamp(int) timestamp", lambda v: datetime.fromtimestamp(v, UTC))
LIBRARY.define("duration(string) duration", _parsed(parse_duration, "google.protobuf.Duration"))
LIBRARY.define("duration(duration) duration", lambda v: v)
LIBRARY.define("dyn(A) dyn", lambda v: v)


# ---------------------------------------------------------------- strings


def _regex(pattern: str) -> Pattern:
    try:
        return compile_go(pattern)
    except BadPattern as e:
        raise CelError(f"error parsing regexp: {e}") from None


def matches(text: str, pattern: str) -> bool:
    """text.matches(pattern)."""
    try:
        return matcher(pattern)(text)
    except BadPattern as e:
        raise CelError(f"error parsing regexp: {e}") from None


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
LIBRARY.define("strings.quote(string) string", lambda v: '"' + v.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n") + '"')


def _format(text: str, values: list[Any]) -> str:
    out: list[str] = []
    arguments = iter(values)
    at = 0
    for found in re.finditer(r"%(%|(?:\.(\d+))?([sdfebxXo]))", text):
        if "%" in text[at : found.start()]:
            break
        out.append(text[at : found.start()])
        at = found.end()
        if found.group(1) == "%":
            out.append("%")
            continue
        try:
            value = next(arguments)
        except StopIteration:
            raise CelError(f"index {len(values)} out of range") from None
        out.append(_formatted(found.group(3), found.group(2), value))
    if "%" in text[at:]:
        raise CelError(f"could not parse formatting clause: unrecognized formatting clause in {text!r}")
    out.append(text[at:])
    return "".join(out)


def _formatted(verb: str, precision: str | None, value: Any) -> str:
    digits = int(precision) if precision is not None else 6
    number = isinstance(value, (int, float)) and not isinstance(value, bool)
    match verb:
        case "s":
            return _shown(value)
        case "d" if number:
            return str(int(value))
        case "f" if number:
            return f"{float(value):.{digits}f}"
        case "e" if number:
            return _scientific(float(value), digits)
        case "b" if isinstance(value, (bool, int)):
            return f"{int(value):b}"
        case "o" if isinstance(value, int):
            return f"{value:o}"
        case "x" | "X" if isinstance(value, (int, str, bytes)):
            text = f"{value:x}" if isinstance(value, int) else (value.encode() if isinstance(value, str) else value).hex()
            return text.upper() if verb == "X" else text
    raise CelError(f"error during formatting: {_CLAUSES[verb.lower()]}, was given {runtime_name(value)}")


_CLAUSES: Final = {
    "d": "decimal clause can only be used on integers",
    "f": "fixed-point clause can only be used on doubles",
    "e": "scientific clause can only be used on doubles",
    "b": "only integers and bools can be formatted as binary",
    "o": "octal clause can only be used on integers",
    "x": "only integers, byte buffers, and strings can be formatted as hex",
}
"""What clauses of a format string take."""


def _scientific(value: float, digits: int) -> str:
    """A number with a power of ten, written as the locale of cel-go writes it."""
    mantissa, _, exponent = f"{value:.{digits}e}".partition("e")
    power = exponent[0].replace("+", "").replace("-", "\u207b") + exponent[1:].zfill(2).translate(_SUPERSCRIPTS)
    return f"{mantissa}\u202f\u00d7\u202f10{power}"


_SUPERSCRIPTS: Final = str.maketrans("0123456789", "\u2070\u00b9\u00b2\u00b3\u2074\u2075\u2076\u2077\u2078\u2079")


def _quoted(value: Any) -> str:
    return quote(value) if isinstance(value, str) else _shown(value)


def _shown(value: Any) -> str:
    if value is None:
        return "null"
    if isinstance(value, list):
        return "[" + ", ".join(_quoted(v) for v in value) + "]"
    if isinstance(value, dict):
        return "{" + ", ".join(f"{_quoted(k)}:{_quoted(v)}" for k, v in sorted(value.items(), key=lambda i: str(i[0]))) + "}"
    if isinstance(value, TypeValue):
        return value.name
    if isinstance(value, (Quantity, Semver, Optional, NamedFormat)):
        raise CelError(
            "error during formatting: string clause can only be used on strings, bools, bytes, ints, doubles, "
            "maps, lists, types, durations, and timestamps"
        )
    return to_string(value)


LIBRARY.define("string.format(list<dyn>) string", _format)


# ---------------------------------------------------------------- optionals


def _value(optional: Optional) -> Any:
    if not optional.present:
        raise CelError("optional.none() dereference")
    return optional.value


def _is_zero(value: Any) -> bool:
    return value is None or (isinstance(value, (bool, int, float, str, bytes, list, dict, timedelta)) and not value)


LIBRARY.define("optional.of(A) optional<A>", lambda v: Optional(v, True))
LIBRARY.define("optional.none() optional<A>", lambda: NONE)
LIBRARY.define("optional.ofNonZeroValue(A) optional<A>", lambda v: NONE if _is_zero(v) else Optional(v, True))
LIBRARY.define("optional<A>.hasValue() bool", lambda o: o.present)
LIBRARY.define("optional<A>.value() A", _value)
LIBRARY.define("optional<A>.or(optional<A>) optional<A>", lambda a, b: a if a.present else b)
LIBRARY.define("optional<A>.orValue(A) A", lambda o, v: o.value if o.present else v)

# ---------------------------------------------------------------- times


def _zone(name: str) -> Any:
    found = re.fullmatch(r"([+-]?)(\d{2}):(\d{2})", name)
    if found:
        offset = timedelta(hours=int(found.group(2)), minutes=int(found.group(3)))
        return timezone(-offset if found.group(1) == "-" else offset)
    if name in ("UTC", ""):
        return UTC
    from zoneinfo import ZoneInfo

    try:
        return ZoneInfo(name)
    except (KeyError, ValueError, OSError):
        raise CelError(f"unknown time zone {name}") from None


_PARTS: Final[dict[str, Callable[[datetime], int]]] = {
    "getFullYear": lambda t: t.year,
    "getMonth": lambda t: t.month - 1,
    "getDate": lambda t: t.day,
    "getDayOfMonth": lambda t: t.day - 1,
    "getDayOfWeek": lambda t: t.isoweekday() % 7,
    "getDayOfYear": lambda t: t.timetuple().tm_yday - 1,
    "getHours": lambda t: t.hour,
    "getMinutes": lambda t: t.minute,
    "getSeconds": lambda t: t.second,
    "getMilliseconds": lambda t: t.microsecond // 1000,
}
for _name, _part in _PARTS.items():
    LIBRARY.define(f"timestamp.{_name}() int", lambda t, p=_part: p(t.astimezone(UTC)))
    LIBRARY.define(f"timestamp.{_name}(string) int", lambda t, z, p=_part: p(t.astimezone(_zone(z))))


def _whole(value: timedelta, unit: timedelta) -> int:
    return int(value / unit)


LIBRARY.define("duration.getHours() int", lambda d: _whole(d, timedelta(hours=1)))
LIBRARY.define("duration.getMinutes() int", lambda d: _whole(d, timedelta(minutes=1)))
LIBRARY.define("duration.getSeconds() int", lambda d: _whole(d, timedelta(seconds=1)))
LIBRARY.define("duration.getMilliseconds() int", lambda d: _whole(d, timedelta(milliseconds=1)))
