"""The writes in an audit log of kube-apiserver's format, as `up --audit-log` and kube-apiserver itself write it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import Final

import msgspec

from clusterwright.api.wire import UNREADABLE
from clusterwright.conformance.evidence import Write

_WRITES: Final = frozenset({"create", "update", "patch"})


def writes(lines: Iterable[bytes], zero: float) -> Iterator[Write]:
    """Yield the writes; `zero` is the Unix time at which the clock of the run was 0. Lines that are not events are left out."""
    for line in lines:
        try:
            event = msgspec.json.decode(line)
            if event["stage"] != "ResponseComplete" or event["verb"] not in _WRITES:
                continue
            at = datetime.fromisoformat(event["requestReceivedTimestamp"]).timestamp()
            yield Write(at - zero, event["requestURI"].partition("?")[0], int((event.get("responseStatus") or {}).get("code", 0)))
        except (*UNREADABLE, LookupError, TypeError, ValueError, AttributeError):
            continue  # a line that is being written, or something else
