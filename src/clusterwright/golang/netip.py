"""The error messages of Go's `netip` about invalid addresses."""

from __future__ import annotations

import re
from typing import Final

from clusterwright.golang.quoting import quote

_GROUP: Final = re.compile(r"[0-9A-Fa-f]*")
_BYTES: Final = 16
_DIGITS: Final = 20
"""The length from which numbers are invalid in Go."""


class _Refused(Exception):
    """The error, and its position."""

    def __init__(self, why: str, at: str = "") -> None:
        super().__init__(f"{why} (at {quote(at)})" if at else why)


def address_problem(text: str) -> str:
    """Return Go's error about an invalid address; empty for a valid one."""
    first = next((char for char in text if char in ".:%"), "")
    try:
        match first:
            case ".":
                _ipv4(text)
            case ":":
                _ipv6(text)
            case "%":
                raise _Refused("missing IPv6 address")
            case _:
                raise _Refused("unable to parse IP")
    except _Refused as e:
        return f"ParseAddr({quote(text)}): {e}"
    return ""


def prefix_problem(text: str) -> str:
    """Return Go's error about an invalid prefix; empty for a valid one."""
    address, slash, bits = text.rpartition("/")
    why = "no '/'" if not slash else address_problem(address)
    if not why and not (bits.isascii() and bits.isdigit() and (len(bits) == 1 or bits[0] != "0") and len(bits) < _DIGITS):
        why = f"bad bits after slash: {quote(bits)}"
    if not why and int(bits) > (128 if ":" in address else 32):
        why = "prefix length out of range"
    return f"netip.ParsePrefix({quote(text)}): {why}" if why else ""


def _ipv4(text: str) -> None:
    field, dots = "", 0
    for i, char in enumerate(text):
        if char in "0123456789":
            if field == "0":
                raise _Refused("IPv4 field has octet with leading zero")
            field += char
            if int(field) > 255:
                raise _Refused("IPv4 field has value >255")
        elif char == ".":
            if not field or i == len(text) - 1:
                raise _Refused("IPv4 field must have at least one digit", text[i:])
            if dots == 3:
                raise _Refused("IPv4 address too long")
            field, dots = "", dots + 1
        else:
            raise _Refused("unexpected character", text[i:])
    if dots < 3:
        raise _Refused("IPv4 address too short")


def _ipv6(text: str) -> None:
    rest, mark, zone = text.partition("%")
    if mark and not zone:
        raise _Refused("zone must be a non-empty string")
    at, gap = 0, rest.startswith("::")
    if gap:
        rest = rest[2:]
        if not rest:
            return
    while at < _BYTES:
        group = _GROUP.match(rest)
        digits = group.end() if group else 0
        if digits > 4:
            raise _Refused("each group must have 4 or less digits", rest)
        if digits == 0:
            raise _Refused("each colon-separated field must have at least one digit", rest)
        if rest[digits : digits + 1] == ".":
            if not gap and at != 12:
                raise _Refused("embedded IPv4 address must replace the final 2 fields of the address", rest)
            if at > 12:
                raise _Refused("too many hex fields to fit an embedded IPv4 at the end of the address", rest)
            _ipv4(rest)
            rest, at = "", at + 4
            break
        at += 2
        rest = rest[digits:]
        if not rest:
            break
        if rest[0] != ":":
            raise _Refused("unexpected character, want colon", rest)
        if len(rest) == 1:
            raise _Refused("colon must be followed by more characters", rest)
        rest = rest[1:]
        if rest[0] == ":":
            if gap:
                raise _Refused("multiple :: in address", rest)
            gap, rest = True, rest[1:]
            if not rest:
                break
    if rest:
        raise _Refused("trailing garbage after address", rest)
    if at < _BYTES and not gap:
        raise _Refused("address string too short")
    if at == _BYTES and gap:
        raise _Refused("the :: must expand to at least one field of zeros")
