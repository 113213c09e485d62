"""Scalars as Go parses and prints them: durations, times, quantities, bootstrap tokens."""

from __future__ import annotations

import base64
import binascii
import re
from typing import Any, Final

from clusterwright.golang.quantities import parse_quantity
from clusterwright.golang.times import parse_duration, parse_rfc3339

SECOND: Final = 1_000_000_000
INT32: Final = (-(1 << 31), (1 << 31) - 1)
INT64: Final = (-(1 << 63), (1 << 63) - 1)
ZERO_TIME: Final = "0001-01-01T00:00:00Z"

_WHOLE_UTC: Final = len(ZERO_TIME)
_TOKEN: Final = re.compile(r"[a-z0-9]{6}\.[a-z0-9]{16}", re.ASCII)


class Unreadable(ValueError):
    """A value does not fit its type. `path` grows while the error propagates."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.text = text
        self.path = ""

    def under(self, step: str) -> Unreadable:
        """Return the same error with the parent's path in front."""
        self.path = step + self.path if self.path.startswith("[") or not self.path else f"{step}.{self.path}"
        return self

    def __str__(self) -> str:
        return f"{self.path}: {self.text}" if self.path else self.text


def duration(text: Any) -> int:
    """Return the nanoseconds of a Go duration such as `1h30m`."""
    if not isinstance(text, str):
        raise Unreadable("a duration is a string such as 10m0s")
    found = parse_duration(text)
    if found is None:
        raise Unreadable(f"{text!r} is not a duration such as 10m0s")
    return found


def seconds(nanoseconds: int) -> int:
    """Return whole seconds, truncated toward zero, within an int32."""
    whole = abs(nanoseconds) // SECOND
    return min(whole, INT32[1]) if nanoseconds >= 0 else max(-whole, INT32[0])


def time(text: Any) -> str:
    """Return an RFC 3339 time in UTC with whole seconds."""
    if not isinstance(text, str):
        raise Unreadable("a time is a string")
    moment = parse_rfc3339(text)
    if moment is None:
        raise Unreadable(f"{text!r} is not a time such as 2006-01-02T15:04:05Z")
    return text if len(text) == _WHOLE_UTC else moment.strftime("%Y-%m-%dT%H:%M:%SZ").rjust(_WHOLE_UTC, "0")


def time_text(text: str) -> str | None:
    """Return the printed form of a time: Go's zero time is null, even if it was given."""
    return None if text == ZERO_TIME else text


def token(text: Any) -> str:
    """Return a bootstrap token."""
    if not isinstance(text, str) or not _TOKEN.fullmatch(text):
        raise Unreadable("the bootstrap token is not 6 and 16 characters of [a-z0-9] joined by a dot")
    return text


def encoded_bytes(text: Any) -> str:
    """Return bytes in base64, as Go prints them."""
    if not isinstance(text, str):
        raise Unreadable("bytes are a string in base64")
    try:
        raw = base64.b64decode(text.replace("\n", "").replace("\r", ""), validate=True)
    except (binascii.Error, ValueError):
        raise Unreadable("bytes are not in base64") from None
    return base64.b64encode(raw).decode()


def quantity(value: Any) -> str:
    """Return a quantity in its canonical form."""
    text = value if isinstance(value, str) else str(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else ""
    try:
        return parse_quantity(text).canonical()
    except ValueError:
        raise Unreadable(f"{text[:64]!r} is not a quantity such as 500m") from None
