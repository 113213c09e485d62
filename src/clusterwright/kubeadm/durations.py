"""Durations in Go's notation, which kubeadm reads and writes."""

from __future__ import annotations

import re
from fractions import Fraction

_UNITS = {
    "ns": Fraction(1, 10**9), "us": Fraction(1, 10**6), "µs": Fraction(1, 10**6), "μs": Fraction(1, 10**6), "ms": Fraction(1, 1000),
    "s": Fraction(1), "m": Fraction(60), "h": Fraction(3600),
}  # fmt: skip
_PART = re.compile(r"([0-9]+(?:\.[0-9]*)?|\.[0-9]+)(ns|us|µs|μs|ms|s|m|h)")


def format_duration(seconds: int) -> str:
    """`50s`, `1m0s`, `1h0m0s`; zero is `0s`."""
    minutes, rest = divmod(seconds, 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}h{minutes}m{rest}s" if hours else f"{minutes}m{rest}s" if minutes else f"{rest}s"


def parse_seconds(text: str) -> int:
    """Whole seconds of a duration, truncated towards zero. Raises ValueError."""
    body = text.lstrip("+-")
    if body == "0":
        return 0
    total, position = Fraction(0), 0
    while match := _PART.match(body, position):
        total += Fraction(match[1].rstrip(".") if match[1] != "." else "0") * _UNITS[match[2]]
        position = match.end()
    if position != len(body) or not body or len(text) - len(body) > 1:
        raise ValueError(f"{text!r} is not a duration")
    return -int(total) if text.startswith("-") else int(total)
