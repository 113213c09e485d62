"""Times as Go's API machinery reads and writes them."""

from __future__ import annotations

from clusterwright.golang.times import RFC3339, parse_rfc3339


def second_time(text: str) -> str | None:
    """metav1.Time: RFC 3339 in, seconds in UTC out; None if it is not a time."""
    found = parse_rfc3339(text)
    return None if found is None else found.strftime("%Y-%m-%dT%H:%M:%SZ") if found.year >= 1000 else text


def micro_time(text: str) -> str | None:
    """metav1.MicroTime: a fraction of six digits is demanded; None if it is not one."""
    found, parts = parse_rfc3339(text), RFC3339.fullmatch(text)
    if found is None or parts is None or len(parts[3] or "") != 6:
        return None
    return found.strftime("%Y-%m-%dT%H:%M:%S.%fZ")
