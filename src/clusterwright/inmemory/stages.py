"""The duration of each stage of a simulated machine. Pure."""

from __future__ import annotations

import math
from datetime import datetime, timedelta
from random import Random
from typing import Final

from clusterwright.golang import times

_LONGEST: Final = timedelta(days=365 * 1000)
"""The longest stage; longer waits are not counted down."""


class BadDuration(ValueError):
    """A duration or jitter cannot be parsed; the text names the field."""


def parse_duration(text: str, field: str) -> timedelta:
    """Return a Go duration (`1m30s`, `0`); empty means zero."""
    found = times.parse_duration(text) if text else 0
    if found is None:
        raise BadDuration(f"{field}: {text!r} is not a duration such as 10s or 1m30s")
    return timedelta(microseconds=found / 1000)


def delay(startup_duration: str, startup_jitter: str, *, field: str, seed: str, slowness: float = 1.0) -> timedelta:
    """Return the duration plus its jitter, `slowness` times. The jitter depends only on `seed`, so that every pass gets the same delay."""
    duration = parse_duration(startup_duration, f"{field}.startupDuration")
    try:
        jitter = float(startup_jitter or "0")
        if not math.isfinite(jitter):
            raise ValueError(startup_jitter)
    except ValueError as error:
        raise BadDuration(f"{field}.startupJitter: {startup_jitter!r} is not a number") from error
    seconds = slowness * duration.total_seconds() * (1 + Random(seed).random() * jitter)
    return timedelta(seconds=max(-_LONGEST.total_seconds(), min(seconds, _LONGEST.total_seconds())))


def remaining(since: datetime, needed: timedelta, now: datetime) -> timedelta | None:
    """Return how much of a stage that began at `since` is left; None if it is over."""
    left = since + needed - now
    return left if left > timedelta() else None
