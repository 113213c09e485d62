"""The string formats that CRD schemas may name, as kube-apiserver understands them. Others are ignored."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Callable
from datetime import date, datetime
from functools import lru_cache
from typing import Final
from urllib.parse import urlsplit

_DATE_TIME: Final = re.compile(
    r"([0-9]{4})-([0-9]{2})-([0-9]{2})([Tt])([0-9]{2}):([0-9]{2}):([0-9]{2})(\.[0-9]{1,9})?([Zz]|[+-][0-9]{2}:[0-9]{2})"
)
_GO_DURATION: Final = re.compile(r"[-+]?(?:0|(?:(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:ns|us|µs|μs|ms|s|m|h))+)")
_SPACED_DURATION: Final = re.compile(
    r"(?:(?:[0-9]+)\s*(?:nanoseconds?|nanos?|ns|microseconds?|micros?|us|µs|milliseconds?|millis?|ms|seconds?|secs?|s"
    r"|minutes?|mins?|m|hours?|hrs?|h|days?|d|weeks?|wks?|w)\s*)+"
)
_BASE64: Final = re.compile(r"(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=|[A-Za-z0-9+/]{4})")
_HOSTNAME: Final = re.compile(r"[^\W_](?:-?[^\W_]{0,62})?|(?:[^\W_](?:(?:[^\W_]|-){0,61}[^\W_])?\.)+[^\W\d_]{2,63}")
_MAC: Final = re.compile(
    r"(?i)[0-9a-f]{12}|(?:[0-9a-f]{2}([:-]))(?:[0-9a-f]{2}\1){4}[0-9a-f]{2}|(?:[0-9a-f]{4}\.){2}[0-9a-f]{4}|(?:[0-9a-f]{2}([:-]))(?:[0-9a-f]{2}\2){6}[0-9a-f]{2}"
)
_EMAIL: Final = re.compile(r"[^@\s<>]+@[^@\s<>]+|.*<[^@\s<>]+@[^@\s<>]+>")
_CREDIT_CARD: Final = re.compile(
    r"(?:4[0-9]{12}(?:[0-9]{3})?|5[1-5][0-9]{14}|6(?:011|5[0-9][0-9])[0-9]{12}|3[47][0-9]{13}|3(?:0[0-5]|[68][0-9])[0-9]{11}|(?:2131|1800|35\d{3})\d{11})"
)
_RGB: Final = re.compile(
    r"rgb\(\s*(0|[1-9]\d?|1\d\d?|2[0-4]\d|25[0-5])\s*,\s*(0|[1-9]\d?|1\d\d?|2[0-4]\d|25[0-5])\s*,\s*(0|[1-9]\d?|1\d\d?|2[0-4]\d|25[0-5])\s*\)"
)
SHORT_NAME: Final = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?")
LONG_NAME: Final = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")


def _matches(pattern: str, flags: int = 0) -> Callable[[str], bool]:
    compiled = re.compile(pattern, flags)
    return lambda text: compiled.fullmatch(text) is not None


@lru_cache(maxsize=4096)
def is_date_time(text: str) -> bool:
    """RFC 3339 date-time (with a real calendar date)."""
    found = _DATE_TIME.fullmatch(text)
    if found is None:
        return False
    year, month, day, _, hour, minute, second = found.groups()[:7]
    try:
        date(max(int(year), 1), int(month), int(day))
    except ValueError:
        return False
    return int(hour) < 24 and int(minute) < 60 and int(second) < 60


def _is_date(text: str) -> bool:
    try:
        datetime.strptime(text, "%Y-%m-%d")  # noqa: DTZ007
    except ValueError:
        return False
    return len(text) == 10


def is_duration(text: str) -> bool:
    """What Go's time.ParseDuration takes, or the spelled-out form (`5 minutes`)."""
    return bool(text) and (_GO_DURATION.fullmatch(text) is not None or _SPACED_DURATION.fullmatch(text) is not None)


def is_ipv4(text: str) -> bool:
    """A dotted quad without leading zeros."""
    try:
        ipaddress.IPv4Address(text)
    except ValueError:
        return False
    return True


def is_ipv6(text: str) -> bool:
    """An IPv6 address; IPv4-mapped ones included."""
    try:
        ipaddress.IPv6Address(text)
    except ValueError:
        return False
    return "%" not in text


def is_cidr(text: str) -> bool:
    """address/prefix length."""
    address, slash, bits = text.partition("/")
    if not slash or not bits.isascii() or not bits.isdigit() or (len(bits) > 1 and bits[0] == "0"):
        return False
    return (is_ipv4(address) and int(bits) <= 32) or (is_ipv6(address) and int(bits) <= 128)


def _without_leading_zeros(text: str) -> str:
    """Formats read addresses as generously as ever: `010.0.0.1` is `10.0.0.1`."""
    address, slash, bits = text.partition("/")
    parts = address.split(".")
    if len(parts) != 4 or not all(p.isascii() and p.isdigit() for p in parts):
        return text
    return ".".join(p.lstrip("0") or "0" for p in parts) + slash + bits


def is_uri(text: str) -> bool:
    """What Go's url.ParseRequestURI takes: an absolute URI or an absolute path."""
    if not text or any(ord(c) < 0x20 or ord(c) == 0x7F for c in text):
        return False
    if text.startswith("/"):
        return True
    try:
        parts = urlsplit(text)
        _ = parts.port
    except ValueError:
        return False
    return bool(parts.scheme) and " " not in parts.netloc and re.fullmatch(r"[A-Za-z][A-Za-z0-9+.-]*", text.split(":", 1)[0]) is not None


def _is_isbn10(text: str) -> bool:
    digits = re.sub(r"[\s-]", "", text)
    if re.fullmatch(r"[0-9]{9}[0-9X]", digits) is None:
        return False
    return sum((i + 1) * (10 if d == "X" else int(d)) for i, d in enumerate(digits)) % 11 == 0


def _is_isbn13(text: str) -> bool:
    digits = re.sub(r"[\s-]", "", text)
    return re.fullmatch(r"[0-9]{13}", digits) is not None and sum(int(d) * (3 if i % 2 else 1) for i, d in enumerate(digits)) % 10 == 0


def _is_credit_card(text: str) -> bool:
    digits = re.sub(r"[^0-9]+", "", text)
    if _CREDIT_CARD.fullmatch(digits) is None:
        return False
    total = 0
    for i, d in enumerate(reversed(digits)):
        n = int(d) * (2 if i % 2 else 1)
        total += n - 9 if n > 9 else n
    return total % 10 == 0


def _uuid(version: str, variant: str) -> Callable[[str], bool]:
    return _matches(rf"[0-9a-f]{{8}}-?[0-9a-f]{{4}}-?{version}-?{variant}-?[0-9a-f]{{12}}", re.IGNORECASE)


FORMATS: Final[dict[str, Callable[[str], bool]]] = {
    "bsonobjectid": _matches(r"[0-9a-fA-F]{24}"),
    "uri": is_uri,
    "email": lambda t: _EMAIL.fullmatch(t) is not None,
    "hostname": lambda t: len(t) <= 255 and _HOSTNAME.fullmatch(t) is not None,
    "ipv4": lambda t: is_ipv4(_without_leading_zeros(t)),
    "ipv6": is_ipv6,
    "cidr": lambda t: is_cidr(_without_leading_zeros(t)),
    "mac": lambda t: _MAC.fullmatch(t) is not None,
    "uuid": _uuid("[0-9a-f]{4}", "[0-9a-f]{4}"),
    "uuid3": _uuid("3[0-9a-f]{3}", "[0-9a-f]{4}"),
    "uuid4": _uuid("4[0-9a-f]{3}", "[89ab][0-9a-f]{3}"),
    "uuid5": _uuid("5[0-9a-f]{3}", "[89ab][0-9a-f]{3}"),
    "isbn": lambda t: _is_isbn10(t) or _is_isbn13(t),
    "isbn10": _is_isbn10,
    "isbn13": _is_isbn13,
    "creditcard": _is_credit_card,
    "ssn": _matches(r"\d{3}[- ]?\d{2}[- ]?\d{4}"),
    "hexcolor": _matches(r"#?([0-9a-fA-F]{3}|[0-9a-fA-F]{6})"),
    "rgbcolor": lambda t: _RGB.fullmatch(t) is not None,
    "byte": lambda t: _BASE64.fullmatch(t) is not None,
    "password": lambda t: True,
    "date": _is_date,
    "duration": is_duration,
    "datetime": is_date_time,
    "k8sshortname": lambda t: len(t) <= 63 and SHORT_NAME.fullmatch(t) is not None,
    "k8slongname": lambda t: len(t) <= 253 and LONG_NAME.fullmatch(t) is not None,
}
"""By name without dashes."""


def format_check(name: str) -> Callable[[str], bool] | None:
    """The check of a named format, or None when the format is not known."""
    return FORMATS.get(name.replace("-", ""))
