"""The functions of CEL and of Kubernetes' extension libraries: a table of overloads."""

from __future__ import annotations

import ipaddress
import itertools
import math
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, timezone
from decimal import Decimal
from typing import Any, Final
from urllib.parse import SplitResult, parse_qs, urlsplit
from urllib.parse import quote as percent

from clusterwright.apiserver.cel.types import DYN, Type, comparable
from clusterwright.apiserver.cel.values import (
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
    parse_quantity,
    parse_semver,
    parse_timestamp,
    show_duration,
    show_timestamp,
)
from clusterwright.apiserver.schema.formats import LONG_NAME, is_cidr, is_ipv4, is_ipv6, is_uri
from clusterwright.apiserver.schema.regex import BadPattern, compile_go
from clusterwright.apiserver.status import quote

Implementation = Callable[..., Any]


@dataclass(frozen=True, slots=True)
class Overload:
    """One signature. `receiver` tells `x.f(y)` from `f(x, y)`; type variables are single capital letters."""

    receiver: bool
    params: tuple[Type, ...]
    result: Type
    run: Implementation


OVERLOADS: Final[dict[str, list[Overload]]] = {}

_TYPE = re.compile(r"\s*([A-Za-z_.]+)\s*(<)?")


def _parse_type(text: str, at: int = 0) -> tuple[Type, int]:
    found = _TYPE.match(text, at)
    assert found is not None, text
    name, at = found.group(1), found.end()
    params = []
    if found.group(2):
        while True:
            param, at = _parse_type(text, at)
            params.append(param)
            closing = text[at]
            at += 1
            if closing == ">":
                break
    return Type(name, tuple(params)), at


def _types(text: str) -> tuple[Type, ...]:
    out, at = [], 0
    while at < len(text) and text[at:].strip():
        kind, at = _parse_type(text, at)
        out.append(kind)
        at += 1
    return tuple(out)


def define(signature: str, run: Implementation) -> None:
    """Add an overload: `f(string, int) bool` or `string.f(int) bool`."""
    head, rest = signature.split("(", 1)
    arguments, result = rest.rsplit(")", 1)
    receiver: tuple[Type, ...] = ()
    owner, dot, name = head.rpartition(".")
    if dot and owner not in NAMESPACES:
        receiver = _types(owner)
    else:
        name = head
    params = receiver + _types(arguments)
    OVERLOADS.setdefault(name, []).append(Overload(bool(receiver), params, _types(result)[0], run))


NAMESPACES: Final = frozenset({"sets", "optional", "lists", "format", "strings"})


def unify(param: Type, actual: Type, bound: dict[str, Type]) -> bool:
    """Whether an argument of a type fits a parameter; binds type variables."""
    if len(param.name) == 1 and param.name.isupper():
        known = bound.get(param.name)
        if known is None or known.name == "dyn":
            bound[param.name] = actual
            return True
        return comparable(known, actual)
    if actual.name == "dyn" or param.name == "dyn":
        return True
    if param.name != actual.name:
        return False
    if len(param.params) != len(actual.params):
        return not actual.params or not param.params
    return all(unify(p, a, bound) for p, a in zip(param.params, actual.params, strict=True))


def substitute(kind: Type, bound: dict[str, Type]) -> Type:
    """The type with its variables replaced."""
    if len(kind.name) == 1 and kind.name.isupper():
        return bound.get(kind.name, DYN)
    return Type(kind.name, tuple(substitute(p, bound) for p in kind.params)) if kind.params else kind


# ---------------------------------------------------------------- runtime types

_RUNTIME: Final[dict[type, str]] = {
    bool: "bool",
    int: "int",
    float: "double",
    str: "string",
    bytes: "bytes",
    list: "list",
    dict: "map",
    type(None): "null",
    datetime: "timestamp",
    timedelta: "duration",
    UInt: "uint",
    TypeValue: "type",
    Optional: "optional",
    Quantity: "quantity",
    Semver: "semver",
    SplitResult: "url",
}
_SHOWN: Final = {
    "null": "null_type",
    "timestamp": "google.protobuf.Timestamp",
    "duration": "google.protobuf.Duration",
    "optional": "optional_type",
    "quantity": "kubernetes.Quantity",
    "url": "kubernetes.URL",
    "ip": "net.IP",
    "cidr": "net.CIDR",
    "semver": "kubernetes.Semver",
    "format": "kubernetes.NamedFormat",
}


@dataclass(frozen=True, slots=True)
class Ip:
    """An IP address."""

    value: ipaddress.IPv4Address | ipaddress.IPv6Address


@dataclass(frozen=True, slots=True)
class Cidr:
    """A network with the address it was written with."""

    value: ipaddress.IPv4Interface | ipaddress.IPv6Interface


@dataclass(frozen=True, slots=True)
class NamedFormat:
    """A validation format of the format library."""

    name: str
    check: Callable[[str], list[str]]


_RUNTIME[Ip] = "ip"
_RUNTIME[Cidr] = "cidr"
_RUNTIME[NamedFormat] = "format"


def runtime_name(value: Any) -> str:
    """The type name of a value."""
    return _RUNTIME.get(type(value), "dyn")


def type_value(value: Any) -> TypeValue:
    """type(value)."""
    name = runtime_name(value)
    return TypeValue(_SHOWN.get(name, name))


def fits(param: Type, value: Any) -> bool:
    """Whether a value may be passed for a parameter, by its outermost type."""
    return param.name == "dyn" or (len(param.name) == 1 and param.name.isupper()) or runtime_name(value) == param.name


# ---------------------------------------------------------------- numbers


def checked(value: int) -> int:
    """An integer, or the overflow error."""
    if INT_MIN <= value <= INT_MAX:
        return value
    raise CelError("integer overflow")


def _to_int(value: Any) -> int:
    if isinstance(value, str):
        if re.fullmatch(r"[+-]?\d+", value, re.ASCII) is None or not INT_MIN <= int(value) <= INT_MAX:
            raise CelError(f'strconv.ParseInt: parsing "{value}": invalid syntax')
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


def _to_uint(value: Any) -> UInt:
    try:
        number = int(value)
    except (ValueError, OverflowError):
        raise CelError(f'strconv.ParseUint: parsing "{value}": invalid syntax') from None
    if not 0 <= number < 2**64:
        raise CelError("unsigned integer overflow")
    return UInt(number)


def _to_double(value: Any) -> float:
    try:
        return float(value)
    except ValueError:
        raise CelError(f'strconv.ParseFloat: parsing "{value}": invalid syntax') from None


def show_double(value: float) -> str:
    """A double as string() shows it."""
    if math.isinf(value):
        return "+Inf" if value > 0 else "-Inf"
    if math.isnan(value):
        return "NaN"
    if value.is_integer() and abs(value) < 1e21:
        return str(int(value))
    text = repr(value)
    return re.sub(r"e([+-])(\d)$", r"e\g<1>0\2", text)


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
    if isinstance(value, SplitResult):
        return value.geturl()
    return str(int(value))


def _to_bool(text: str) -> bool:
    if text in ("true", "True", "TRUE", "t", "1"):
        return True
    if text in ("false", "False", "FALSE", "f", "0"):
        return False
    raise CelError("type conversion error from 'string' to 'bool'")


for _source in ("int", "uint", "double", "string", "timestamp", "duration"):
    define(f"int({_source}) int", _to_int)
for _source in ("int", "uint", "double", "string"):
    define(f"uint({_source}) uint", _to_uint)
    define(f"double({_source}) double", _to_double)
for _source in ("int", "uint", "double", "string", "bool", "bytes", "timestamp", "duration", "ip", "cidr", "url"):
    define(f"string({_source}) string", to_string)
define("bool(string) bool", _to_bool)
define("bool(bool) bool", lambda v: v)
define("bytes(string) bytes", lambda v: v.encode())
define("bytes(bytes) bytes", lambda v: v)
define("timestamp(string) timestamp", parse_timestamp)
define("timestamp(timestamp) timestamp", lambda v: v)
define("timestamp(int) timestamp", lambda v: datetime.fromtimestamp(v, UTC))
define("duration(string) duration", parse_duration)
define("duration(duration) duration", lambda v: v)
define("dyn(A) dyn", lambda v: v)


# ---------------------------------------------------------------- strings


def _regex(pattern: str) -> re.Pattern[str]:
    try:
        return compile_go(pattern)
    except BadPattern as e:
        raise CelError(f"error parsing regexp: {e}") from None


def matches(text: str, pattern: str) -> bool:
    """text.matches(pattern)."""
    return _regex(pattern).search(text) is not None


def _find_all(text: str, pattern: str, limit: int = -1) -> list[str]:
    found = [m.group() for m in _regex(pattern).finditer(text)]
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
    if not 0 <= start <= len(text):
        raise CelError(f"index out of range: {start}")
    if not 0 <= stop <= len(text):
        raise CelError(f"index out of range: {stop}")
    if start > stop:
        raise CelError(f"invalid substring range. start: {start}, end: {stop}")
    return text[start:stop]


def _index_of(text: str, part: str, start: int = 0) -> int:
    if not 0 <= start <= len(text):
        raise CelError(f"index out of range: {start}")
    return text.find(part, start)


def _last_index_of(text: str, part: str, end: int | None = None) -> int:
    if end is not None and not 0 <= end <= len(text):
        raise CelError(f"index out of range: {end}")
    return text.rfind(part) if end is None else text.rfind(part, 0, end + len(part))


def _split(text: str, separator: str, limit: int = -1) -> list[str]:
    if limit == 0:
        return []
    if separator == "":
        parts = list(text)
        return parts if limit < 0 or limit >= len(parts) else [*parts[: limit - 1], "".join(parts[limit - 1 :])]
    return text.split(separator) if limit < 0 else text.split(separator, limit - 1)


def _ascii_case(text: str, upper: bool) -> str:
    return "".join((c.upper() if upper else c.lower()) if c.isascii() else c for c in text)


define("size(string) int", len)
define("size(bytes) int", len)
define("size(list<A>) int", len)
define("size(map<A, B>) int", len)
define("string.size() int", len)
define("bytes.size() int", len)
define("list<A>.size() int", len)
define("map<A, B>.size() int", len)
define("string.contains(string) bool", lambda a, b: b in a)
define("string.startsWith(string) bool", lambda a, b: a.startswith(b))
define("string.endsWith(string) bool", lambda a, b: a.endswith(b))
define("string.matches(string) bool", matches)
define("matches(string, string) bool", matches)
define("string.find(string) string", _find)
define("string.findAll(string) list<string>", _find_all)
define("string.findAll(string, int) list<string>", _find_all)
define("string.charAt(int) string", _char_at)
define("string.indexOf(string) int", _index_of)
define("string.indexOf(string, int) int", _index_of)
define("string.lastIndexOf(string) int", _last_index_of)
define("string.lastIndexOf(string, int) int", _last_index_of)
define("string.lowerAscii() string", lambda v: _ascii_case(v, False))
define("string.upperAscii() string", lambda v: _ascii_case(v, True))
define("string.replace(string, string) string", lambda v, a, b: v.replace(a, b))
define("string.replace(string, string, int) string", lambda v, a, b, n: v.replace(a, b, n))
define("string.split(string) list<string>", _split)
define("string.split(string, int) list<string>", _split)
define("string.substring(int) string", _substring)
define("string.substring(int, int) string", _substring)
define("string.trim() string", str.strip)
define("list<string>.join() string", "".join)
define("list<string>.join(string) string", lambda v, s: s.join(v))
define("strings.quote(string) string", lambda v: '"' + v.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n") + '"')


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
    raise CelError(f"error during formatting: {verb} clause got {runtime_name(value)}")


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


define("string.format(list<dyn>) string", _format)


# ---------------------------------------------------------------- lists, sets


def _comparable_pairs(values: list[Any]) -> Iterator[tuple[Any, Any]]:
    return itertools.pairwise(values)


def _is_sorted(values: list[Any]) -> bool:
    return all(not b < a for a, b in _comparable_pairs(values))


def _sum(values: list[Any]) -> Any:
    if not values:
        return 0
    total = values[0]
    for value in values[1:]:
        total = total + value
    return checked(total) if type(total) is int else total


def _extreme(name: str, choose: Callable[[list[Any]], Any]) -> Implementation:
    def run(values: list[Any]) -> Any:
        if not values:
            raise CelError(f"{name} called on empty list")
        return choose(values)

    return run


def equal(a: Any, b: Any) -> bool:
    """CEL equality: numbers by value, everything else only within its type."""
    kind, other = type(a), type(b)
    if kind is other:
        if kind is list:
            return len(a) == len(b) and all(equal(x, y) for x, y in zip(a, b, strict=True))
        if kind is dict:
            return len(a) == len(b) and all(k in b and equal(v, b[k]) for k, v in a.items())
        return bool(a == b)
    if kind is bool or other is bool:
        return False
    if isinstance(a, (int, float)) and isinstance(b, (int, float)):
        return a == b
    return False


def contains(values: list[Any], item: Any) -> bool:
    """Item in values."""
    return any(equal(item, v) for v in values)


def _first_index(values: list[Any], item: Any) -> int:
    return next((i for i, v in enumerate(values) if equal(v, item)), -1)


def _last_index(values: list[Any], item: Any) -> int:
    return next((i for i in range(len(values) - 1, -1, -1) if equal(values[i], item)), -1)


def _slice(values: list[Any], start: int, end: int) -> list[Any]:
    if start < 0 or end < 0 or start > end or end > len(values):
        raise CelError(f"cannot slice({start}, {end}), list is length {len(values)}")
    return values[start:end]


def _flatten(values: list[Any], depth: int = 1) -> list[Any]:
    out: list[Any] = []
    for value in values:
        if isinstance(value, list) and depth > 0:
            out.extend(_flatten(value, depth - 1))
        else:
            out.append(value)
    return out


def _distinct(values: list[Any]) -> list[Any]:
    out: list[Any] = []
    for value in values:
        if not contains(out, value):
            out.append(value)
    return out


define("list<A>.isSorted() bool", _is_sorted)
define("list<A>.sum() A", _sum)
define("list<A>.min() A", _extreme("min", min))
define("list<A>.max() A", _extreme("max", max))
define("list<A>.indexOf(A) int", _first_index)
define("list<A>.lastIndexOf(A) int", _last_index)
define("list<A>.slice(int, int) list<A>", _slice)
define("list<dyn>.flatten() list<dyn>", _flatten)
define("list<dyn>.flatten(int) list<dyn>", _flatten)
define("list<A>.distinct() list<A>", _distinct)
define("list<A>.reverse() list<A>", lambda v: v[::-1])
define("list<A>.sort() list<A>", sorted)
define("list<A>.first() optional<A>", lambda v: Optional(v[0], True) if v else NONE)
define("list<A>.last() optional<A>", lambda v: Optional(v[-1], True) if v else NONE)
define("lists.range(int) list<int>", lambda n: list(range(min(n, 1_000_000))))
define("sets.contains(list<A>, list<A>) bool", lambda a, b: all(contains(a, x) for x in b))
define("sets.equivalent(list<A>, list<A>) bool", lambda a, b: all(contains(a, x) for x in b) and all(contains(b, x) for x in a))
define("sets.intersects(list<A>, list<A>) bool", lambda a, b: any(contains(a, x) for x in b))

# ---------------------------------------------------------------- optionals


def _value(optional: Optional) -> Any:
    if not optional.present:
        raise CelError("optional.none() dereference")
    return optional.value


def _is_zero(value: Any) -> bool:
    return value is None or (isinstance(value, (bool, int, float, str, bytes, list, dict, timedelta)) and not value)


define("optional.of(A) optional<A>", lambda v: Optional(v, True))
define("optional.none() optional<A>", lambda: NONE)
define("optional.ofNonZeroValue(A) optional<A>", lambda v: NONE if _is_zero(v) else Optional(v, True))
define("optional<A>.hasValue() bool", lambda o: o.present)
define("optional<A>.value() A", _value)
define("optional<A>.or(optional<A>) optional<A>", lambda a, b: a if a.present else b)
define("optional<A>.orValue(A) A", lambda o, v: o.value if o.present else v)

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
    define(f"timestamp.{_name}() int", lambda t, p=_part: p(t.astimezone(UTC)))
    define(f"timestamp.{_name}(string) int", lambda t, z, p=_part: p(t.astimezone(_zone(z))))


def _whole(value: timedelta, unit: timedelta) -> int:
    return int(value / unit)


define("duration.getHours() int", lambda d: _whole(d, timedelta(hours=1)))
define("duration.getMinutes() int", lambda d: _whole(d, timedelta(minutes=1)))
define("duration.getSeconds() int", lambda d: _whole(d, timedelta(seconds=1)))
define("duration.getMilliseconds() int", lambda d: _whole(d, timedelta(milliseconds=1)))

# ---------------------------------------------------------------- quantities


def _is_quantity(text: str) -> bool:
    try:
        parse_quantity(text)
    except CelError:
        return False
    return True


def _amount(value: Quantity | int) -> Decimal:
    return value.amount if isinstance(value, Quantity) else Decimal(value)


def _compare(a: Any, b: Any) -> int:
    return int(a > b) - int(a < b)


def _quantity_int(value: Quantity) -> int:
    if value.amount != value.amount.to_integral_value() or not INT_MIN <= value.amount <= INT_MAX:
        raise CelError("cannot convert value to integer")
    return int(value.amount)


define("quantity(string) quantity", parse_quantity)
define("isQuantity(string) bool", _is_quantity)
define("sign(quantity) int", lambda q: _compare(q.amount, 0))
define("quantity.isInteger() bool", lambda q: q.amount == q.amount.to_integral_value() and INT_MIN <= q.amount <= INT_MAX)
define("quantity.asInteger() int", _quantity_int)
define("quantity.asApproximateFloat() double", lambda q: float(q.amount))
define("quantity.isGreaterThan(quantity) bool", lambda a, b: a.amount > b.amount)
define("quantity.isLessThan(quantity) bool", lambda a, b: a.amount < b.amount)
define("quantity.compareTo(quantity) int", lambda a, b: _compare(a.amount, b.amount))
for _other in ("quantity", "int"):
    define(f"quantity.add({_other}) quantity", lambda a, b: Quantity(a.amount + _amount(b)))
    define(f"quantity.sub({_other}) quantity", lambda a, b: Quantity(a.amount - _amount(b)))

# ---------------------------------------------------------------- semver


def _is_semver(text: str, normalize: bool = False) -> bool:
    try:
        parse_semver(text, normalize)
    except CelError:
        return False
    return True


define("semver(string) semver", parse_semver)
define("semver(string, bool) semver", parse_semver)
define("isSemver(string) bool", _is_semver)
define("isSemver(string, bool) bool", _is_semver)
define("semver.major() int", lambda v: v.major)
define("semver.minor() int", lambda v: v.minor)
define("semver.patch() int", lambda v: v.patch)
define("semver.isGreaterThan(semver) bool", lambda a, b: a.key > b.key)
define("semver.isLessThan(semver) bool", lambda a, b: a.key < b.key)
define("semver.compareTo(semver) int", lambda a, b: _compare(a.key, b.key))

# ---------------------------------------------------------------- URLs, IPs


def _url(text: str) -> SplitResult:
    if not is_uri(text):
        raise CelError(f'URL parse error during conversion from string: parse "{text}": invalid URI for request')
    return urlsplit(text)


def _bracketed(url: SplitResult) -> str:
    return url.netloc.rpartition("@")[2]


define("url(string) url", _url)
define("isURL(string) bool", is_uri)
define("url.getScheme() string", lambda u: u.scheme)
define("url.getHost() string", _bracketed)
define("url.getHostname() string", lambda u: u.hostname or "")
define("url.getPort() string", lambda u: str(u.port) if u.port is not None else "")
define("url.getEscapedPath() string", lambda u: percent(u.path, safe="/%:@!$&'()*+,;=~"))
define("url.getQuery() map<string, list<string>>", lambda u: parse_qs(u.query, keep_blank_values=True))


def _ip(text: str) -> Ip:
    if not is_ipv4(text) and not is_ipv6(text):
        shown = quote(text)
        raise CelError(f"IP Address {shown} parse error during conversion from string: ParseAddr({shown}): unable to parse IP")
    address = ipaddress.ip_address(text)
    if isinstance(address, ipaddress.IPv6Address) and address.ipv4_mapped is not None:
        raise CelError("IPv4-mapped IPv6 address is not allowed")
    return Ip(address)


def _is_ip(text: str) -> bool:
    try:
        _ip(text)
    except CelError:
        return False
    return True


def _cidr(text: str) -> Cidr:
    if not is_cidr(text):
        prefix = "network address parse error during conversion from string: "
        problem = "no '/'" if "/" not in text else "invalid address or prefix length"
        raise CelError(f"{prefix}{prefix}netip.ParsePrefix({quote(text)}): {problem}")
    return Cidr(ipaddress.ip_interface(text))


def _is_canonical(text: str) -> bool:
    return str(_ip(text).value) == text


def _contains_ip(network: Cidr, address: Ip | str) -> bool:
    ip = _ip(address) if isinstance(address, str) else address
    return ip.value in network.value.network


def _contains_cidr(network: Cidr, inner: Cidr | str) -> bool:
    other: Any = (_cidr(inner) if isinstance(inner, str) else inner).value.network
    outer: Any = network.value.network
    return bool(
        other.version == outer.version
        and outer.network_address <= other.network_address
        and other.broadcast_address <= outer.broadcast_address
    )


define("ip(string) ip", _ip)
define("isIP(string) bool", _is_ip)
OVERLOADS["ip.isCanonical"] = [Overload(False, (Type("string"),), Type("bool"), _is_canonical)]
define("ip.family() int", lambda v: v.value.version)
define("ip.isUnspecified() bool", lambda v: v.value.is_unspecified)
define("ip.isLoopback() bool", lambda v: v.value.is_loopback)
define("ip.isLinkLocalMulticast() bool", lambda v: v.value in ipaddress.ip_network("224.0.0.0/24" if v.value.version == 4 else "ff02::/16"))
define("ip.isLinkLocalUnicast() bool", lambda v: v.value.is_link_local)
define(
    "ip.isGlobalUnicast() bool",
    lambda v: not (v.value.is_multicast or v.value.is_loopback or v.value.is_link_local or v.value.is_unspecified),
)
define("cidr(string) cidr", _cidr)
define("isCIDR(string) bool", is_cidr)
for _kind in ("ip", "string"):
    define(f"cidr.containsIP({_kind}) bool", _contains_ip)
for _kind in ("cidr", "string"):
    define(f"cidr.containsCIDR({_kind}) bool", _contains_cidr)
define("cidr.ip() ip", lambda c: Ip(c.value.ip))
define("cidr.masked() cidr", lambda c: Cidr(ipaddress.ip_interface(str(c.value.network))))
define("cidr.prefixLength() int", lambda c: c.value.network.prefixlen)

# ---------------------------------------------------------------- formats


def _named(name: str, problem: str, check: Callable[[str], bool]) -> NamedFormat:
    return NamedFormat(name, lambda text: [] if check(text) else [problem])


def _label(text: str) -> bool:
    return len(text) <= 63 and re.fullmatch(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?", text) is not None


FORMATS: Final = {
    "dns1123Label": _named(
        "dns1123Label",
        (
            "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must "
            "start and end with an alphanumeric character"
        ),
        _label,
    ),
    "dns1123Subdomain": _named(
        "dns1123Subdomain",
        (
            "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and "
            "must start and end with an alphanumeric character"
        ),
        lambda t: len(t) <= 253 and LONG_NAME.fullmatch(t) is not None,
    ),
    "dns1035Label": _named(
        "dns1035Label",
        (
            "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an "
            "alphabetic character, and end with an alphanumeric character"
        ),
        lambda t: len(t) <= 63 and re.fullmatch(r"[a-z]([-a-z0-9]*[a-z0-9])?", t) is not None,
    ),
    "qualifiedName": _named(
        "qualifiedName",
        "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character",
        lambda t: (
            re.fullmatch(
                r"(?:[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?([A-Za-z0-9][-A-Za-z0-9_.]{0,61})?[A-Za-z0-9]", t
            )
            is not None
        ),
    ),
    "labelValue": _named(
        "labelValue",
        (
            "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and "
            "must start and end with an alphanumeric character"
        ),
        lambda t: len(t) <= 63 and re.fullmatch(r"(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?", t) is not None,
    ),
    "uri": _named("uri", "invalid URI for request", is_uri),
    "uuid": _named(
        "uuid",
        "does not match the UUID format",
        lambda t: re.fullmatch(r"(?i)[0-9a-f]{8}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{12}", t) is not None,
    ),
    "byte": _named(
        "byte", "invalid base64", lambda t: re.fullmatch(r"(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?", t) is not None
    ),
    "date": _named("date", "invalid date", lambda t: re.fullmatch(r"\d{4}-\d{2}-\d{2}", t) is not None),
    "datetime": _named(
        "datetime",
        "invalid datetime",
        lambda t: re.fullmatch(r"\d{4}-\d{2}-\d{2}[Tt]\d{2}:\d{2}:\d{2}(\.\d+)?([Zz]|[+-]\d{2}:\d{2})", t) is not None,
    ),
}


def _problems(named: NamedFormat, text: str) -> Optional:
    found = named.check(text)
    return Optional(found, True) if found else NONE


for _name, _named_format in FORMATS.items():
    define(f"format.{_name}() format", lambda f=_named_format: f)
define("format.named(string) optional<format>", lambda n: Optional(FORMATS[n], True) if n in FORMATS else NONE)
OVERLOADS.setdefault("validate", []).append(
    Overload(True, (Type("format"), Type("string")), Type("optional", (Type("list", (Type("string"),)),)), _problems)
)
