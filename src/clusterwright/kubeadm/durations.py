"""Durations in Go's notation, which kubeadm reads and writes."""

from __future__ import annotations

from clusterwright.golang import times


def format_duration(seconds: int) -> str:
    """Return a duration as `50s`, `1m0s`, `1h0m0s`; zero is `0s`."""
    return times.format_duration(seconds * 10**9)


def parse_seconds(text: str) -> int:
    """Return the whole seconds of a duration, truncated towards zero. Raises ValueError."""
    found = times.parse_duration(text)
    if found is None:
        raise ValueError(f"{text!r} is not a duration")
    return abs(found) // 10**9 * (-1 if found < 0 else 1)
