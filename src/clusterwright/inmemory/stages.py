"""How long each stage of a simulated machine takes. Pure."""

from __future__ import annotations

import re
from datetime import datetime, timedelta
from random import Random

_UNITS = {"ns": 1e-9, "us": 1e-6, "µs": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0, "h": 3600.0}
_PART = re.compile(r"(\d+(?:\.\d*)?|\.\d+)(ns|us|µs|ms|s|m|h)")


class BadDuration(ValueError):
    """A duration or jitter that cannot be read; the text names the field."""


def parse_duration(text: str, field: str) -> timedelta:
    """A Go duration (`1m30s`, `0`); empty means zero."""
    sign, body = (-1, text[1:]) if text.startswith("-") else (1, text.removeprefix("+"))
    if body in {"", "0"}:
        return timedelta()
    seconds, end = 0.0, 0
    for part in _PART.finditer(body):
        if part.start() != end:
            break
        seconds += float(part[1]) * _UNITS[part[2]]
        end = part.end()
    if end != len(body):
        raise BadDuration(f"{field}: {text!r} is not a duration such as 10s or 1m30s")
    return timedelta(seconds=sign * seconds)


def delay(startup_duration: str, startup_jitter: str, *, field: str, seed: str) -> timedelta:
    """The duration plus its jitter. The draw depends on `seed` alone, so that every pass sees the same delay."""
    duration = parse_duration(startup_duration, f"{field}.startupDuration")
    try:
        jitter = float(startup_jitter or "0")
    except ValueError as error:
        raise BadDuration(f"{field}.startupJitter: {startup_jitter!r} is not a number") from error
    return duration + Random(seed).random() * jitter * duration


def remaining(since: datetime, needed: timedelta, now: datetime) -> timedelta | None:
    """How much of a stage that began at `since` is left; None when it is over."""
    left = since + needed - now
    return left if left > timedelta() else None
