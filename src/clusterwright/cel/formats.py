"""The string formats for CRD schemas, as kube-apiserver checks them. Others are ignored."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Callable
from datetime import date
from functools import lru_cache
from typing import Final
from unicodedata import category

from clusterwright.golang import times
from clusterwright.golang.regex import compile_go
from clusterwright.golang.times import LONGEST
from clusterwright.golang.urls import parse_request_uri

_CLOCK: Final = re.compile(r"([0-9]{2}):([0-9]{2}):([0-9]{2})(.[0-9]+)?(z|[+-][0-9]{2}:[0-9]{2})")
_FACTOR: Final = compile_go(r"([0-9]+)[\t\n\f\r ]*([A-Za-z\x{b5}]+)")
"""The cost factor. RE2 matches all patterns that could backtrack, so that no text makes a match slow."""
_SPELLED: Final = (
    (("ns",), "nano", 1), (("us", "\u00b5s"), "micro", 10**3), (("ms",), "milli", 10**6), (("s",), "sec", 10**9),
    (("m",), "min", 60 * 10**9), (("h", "hr"), "hour", 3600 * 10**9), (("d",), "day", 86400 * 10**9),
    (("w", "wk"), "week", 604800 * 10**9),
)  # fmt: skip
"""Units by their short names, the beginnings of their long names, and in nanoseconds."""
_BASE64: Final = re.compile(r"(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=|[A-Za-z0-9+/]{4})")
_OCTET: Final = "[0-9A-Fa-f]{2}"
_MAC: Final = re.compile(
    "|".join(
        [rf"{_OCTET}([:-]){_OCTET}(?:\{group}{_OCTET}){{{octets - 2}}}" for group, octets in ((1, 6), (2, 8), (3, 20))]
        + [rf"[0-9A-Fa-f]{{4}}(?:\.[0-9A-Fa-f]{{4}}){{{pairs - 1}}}|(?:[0-9A-Fa-f]{{4}}){{{pairs}}}" for pairs in (3, 4, 10)]
    )
)
_ATOM: Final = r"[^\x00-\x20\x7f()<>\[\]:;@\\,\".]+"
_QUOTED: Final = r'"(?:[^\x00-\x08\x0a-\x1f\x7f"\\]|\\[\t\x20-\x7e\x{80}-\x{10ffff}])+"'
_COMMENT: Final = r"(?:\((?:[^()\\]|\\.)*\)[ \t]*)*"
_ADDRESS: Final = rf"[ \t]*(?:{_ATOM}(?:\.{_ATOM})*|{_QUOTED})@[ \t]*(?:{_ATOM}(?:\.{_ATOM})*|\[([^\x00-\x20\x7f\[\]\\]+)\])"
_PHRASE: Final = rf"[ \t]*(?:(?:(?:{_ATOM}|\.)+|{_QUOTED})[ \t]*{_COMMENT})+"
_EMAIL: Final = compile_go(rf"{_ADDRESS}[ \t]*{_COMMENT}|(?:{_PHRASE})?[ \t]*<{_ADDRESS}>[ \t]*{_COMMENT}")
_SSN: Final = re.compile(r"[0-9]{3}[- ]?[0-9]{2}[- ]?[0-9]{4}")
_DAY: Final = re.compile(r"([0-9]{4})-([0-9]{2})-([0-9]{2})")
_CREDIT_CARD: Final = re.compile(
    r"(?:4[0-9]{12}(?:[0-9]{3})?|5[1-5][0-9]{14}|6(?:011|5[0-9][0-9])[0-9]{12}|3[47][0-9]{13}|3(?:0[0-5]|[68][0-9])[0-9]{11}|(?:2131|1800|35[0-9]{3})[0-9]{11})"
)
_RGB: Final = re.compile(
    r"rgb\(\s*(0|[1-9]\d?|1\d\d?|2[0-4]\d|25[0-5])\s*,\s*(0|[1-9]\d?|1\d\d?|2[0-4]\d|25[0-5])\s*,\s*(0|[1-9]\d?|1\d\d?|2[0-4]\d|25[0-5])\s*\)",
    re.ASCII,
)
SHORT_NAME: Final = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?")
LONG_NAME: Final = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")


def _matches(pattern: str, flags: int = 0) -> Callable[[str], bool]:
    compiled = re.compile(pattern, flags)
    return lambda text: compiled.fullmatch(text) is not None


@lru_cache(maxsize=4096)
def is_date_time(text: str) -> bool:
    """Return whether the text is a day, a `t` and a time of day with its zone; text after another `t` is ignored."""
    day, *rest = text.lower().split("t")
    found = _CLOCK.fullmatch(rest[0]) if rest and _is_date(day) else None
    return found is not None and found[1] <= "23" and found[2] <= "59" and found[3] <= "59"


def _is_date(text: str) -> bool:
    found = _DAY.fullmatch(text)
    if found is None:
        return False
    year, month, day = map(int, found.groups())
    try:
        date(year or 2000, month, day)  # Go knows a year 0, which is a leap year
    except ValueError:
        return False
    return True


def parse_duration(text: str) -> int | None:
    """Return nanoseconds from Go's notation or words (`5 minutes`) anywhere in the text; None if there are none."""
    plain = times.parse_duration(text)
    if plain is not None:
        return plain
    total = None
    for found in _FACTOR.finditer(text):
        factor, unit = found[1].lstrip("0") or "0", found[2].lower()
        if len(factor) > LONGEST or int(factor) >= 1 << 63:
            return None
        for short, long, size in _SPELLED:
            if unit in short or unit.startswith(long):
                total = (total or 0) + int(factor) * size
    return total


def is_ipv4(text: str) -> bool:
    """Return whether the text is a dotted quad without leading zeros."""
    try:
        ipaddress.IPv4Address(text)
    except ValueError:
        return False
    return True


def is_ipv6(text: str) -> bool:
    """Return whether the text is an IPv6 address, possibly IPv4-mapped."""
    try:
        ipaddress.IPv6Address(text)
    except ValueError:
        return False
    return "%" not in text


def _is_dotted_ip(text: str) -> bool:
    plain = _without_leading_zeros(text)
    return "." in text and (is_ipv4(plain) or is_ipv6(plain))


def is_cidr(text: str) -> bool:
    """Return whether the text is address/prefix length."""
    address, slash, bits = text.partition("/")
    if not slash or not bits.isascii() or not bits.isdigit() or len(bits) > 3 or (len(bits) > 1 and bits[0] == "0"):
        return False
    return (is_ipv4(address) and int(bits) <= 32) or (is_ipv6(address) and int(bits) <= 128)


def _without_leading_zeros(text: str) -> str:
    """Return an address without leading zeros, as the formats accept it: `010.0.0.1/08` is `10.0.0.1/8`."""
    address, slash, bits = text.partition("/")
    head, colon, tail = address.rpartition(":")
    parts = tail.split(".")
    if len(parts) == 4 and all(p.isascii() and p.isdigit() for p in parts):
        tail = ".".join(p.lstrip("0") or "0" for p in parts)
    return head + colon + tail + slash + ((bits.lstrip("0") or "0") if bits else "")


def is_uri(text: str) -> bool:
    """Return whether Go's url.ParseRequestURI accepts the text: an absolute URI or an absolute path."""
    try:
        parse_request_uri(text)
    except ValueError:
        return False
    return True


def _is_hostname(text: str) -> bool:
    """Return whether the text is one label with at most one dash, in second place; or several labels, the last with letters only."""
    *labels, last = text.split(".")
    if len(text.encode()) > 255 or not last or any(len(label.encode()) > 63 for label in (*labels, last)):
        return False
    if not labels:
        return _is_word(last[0]) and all(map(_is_word, last[1:].removeprefix("-")))
    is_well_ended = all(label and _is_word(label[0]) and _is_word(label[-1]) for label in labels)
    is_well_made = is_well_ended and all(char == "-" or _is_word(char) for label in labels for char in label)
    return is_well_made and len(last) >= 2 and all(category(char)[0] == "L" for char in last)


def _is_word(char: str) -> bool:
    """Return whether a character is a letter, a symbol, or an ASCII digit."""
    return char in "0123456789" or category(char)[0] in "LS"


def _is_email(text: str) -> bool:
    found = _EMAIL.fullmatch(text)
    return found is not None and all(is_ipv4(literal) or is_ipv6(literal) for literal in found.groups() if literal is not None)


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
    "email": _is_email,
    "hostname": _is_hostname,
    "ipv4": _is_dotted_ip,
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
    "ssn": lambda t: len(t) == 11 and _SSN.fullmatch(t) is not None,
    "hexcolor": _matches(r"#?([0-9a-fA-F]{3}|[0-9a-fA-F]{6})"),
    "rgbcolor": lambda t: _RGB.fullmatch(t) is not None,
    "byte": lambda t: _BASE64.fullmatch(t) is not None,
    "password": lambda t: True,
    "date": _is_date,
    "duration": lambda t: parse_duration(t) is not None,
    "datetime": is_date_time,
    "k8sshortname": lambda t: len(t) <= 63 and SHORT_NAME.fullmatch(t) is not None,
    "k8slongname": lambda t: len(t) <= 253 and LONG_NAME.fullmatch(t) is not None,
}
"""The checks by format name without dashes."""


def format_check(name: str) -> Callable[[str], bool] | None:
    """Return the check of a named format, or None for an unknown one."""
    return FORMATS.get(name.replace("-", ""))
