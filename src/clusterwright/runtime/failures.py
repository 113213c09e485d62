"""The last error of every object whose passes fail: redacted, bounded, and gone as soon as a pass succeeds.

Kept in memory next to the row traces. A pass over an object that is gone succeeds, so nothing is kept of it either.
"""

from __future__ import annotations

import re
from collections import OrderedDict
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from clusterwright.api.meta import Json, ObjectKey
from clusterwright.runtime.clock import Clock
from clusterwright.runtime.logging import leaves, redact

MOST_OBJECTS: Final = 1000
MOST_TEXT: Final = 600
"""How many characters of an error are kept."""
_ENCODED: Final = re.compile(r"(?=[A-Za-z+]*\d)[A-Za-z0-9+]{40,}={0,2}")
"""A long run without a break is a key, a certificate or another base64 value, never a name."""
_VARYING: Final = re.compile(r"\d+")


@dataclass(frozen=True, slots=True)
class Failure:
    """The error in which the passes over an object end: the last `passes` of them, the first at `since`, the last at `at`."""

    since: datetime
    at: datetime
    passes: int
    same: int
    """How many of them, up to the last one, ended in this error; numbers in it may differ."""
    error: str
    retry_at: datetime | None
    """When the next pass starts without an event; None: it does not."""
    controller: str
    kind: str
    key: ObjectKey

    def to_json(self) -> Json:
        """Return the entry in its served form."""
        return {
            "since": _written(self.since),
            "at": _written(self.at),
            "passes": self.passes,
            "same": self.same,
            "error": self.error,
            "retryAt": _written(self.retry_at) if self.retry_at is not None else None,
            "controller": self.controller,
            "kind": self.kind,
            "namespace": self.key.namespace,
            "name": self.key.name,
        }


class Failures:
    """The objects whose last pass failed; of more than `objects`, those that failed last."""

    def __init__(self, clock: Clock, *, objects: int = MOST_OBJECTS) -> None:
        self._clock = clock
        self._objects = objects
        self._failures: OrderedDict[tuple[str, ObjectKey], Failure] = OrderedDict()

    def failed(self, controller: str, kind: str, key: ObjectKey, error: BaseException, retry_in: float | None) -> None:
        """Record a failed pass; the next one starts in `retry_in` seconds, or None."""
        now, of, text = self._clock.now(), (controller, key), told(error)
        before = self._failures.pop(of, None)
        is_same = before is not None and _VARYING.sub("0", before.error) == _VARYING.sub("0", text)
        retry_at = None if retry_in is None else now + timedelta(seconds=min(retry_in, 86400.0))
        self._failures[of] = Failure(
            since=before.since if before is not None else now,
            at=now,
            passes=before.passes + 1 if before is not None else 1,
            same=before.same + 1 if before is not None and is_same else 1,
            error=text,
            retry_at=retry_at,
            controller=controller,
            kind=kind,
            key=key,
        )
        if len(self._failures) > self._objects:
            self._failures.popitem(last=False)

    def forget(self, controller: str, key: ObjectKey) -> None:
        """Drop the error of an object: a pass over it succeeded, or another process handles it now."""
        self._failures.pop((controller, key), None)

    def selected(self, *, controller: str = "", kind: str = "", namespace: str = "", name: str = "") -> list[Failure]:
        """Return the failures that match the selectors, the longest first."""
        found = [
            failure
            for failure in self._failures.values()
            if controller in ("", failure.controller)
            and kind in ("", failure.kind)
            and namespace in ("", failure.key.namespace)
            and name in ("", failure.key.name)
        ]
        return sorted(found, key=lambda failure: (failure.since, failure.controller, failure.key))


def told(error: BaseException) -> str:
    """Return an error as text for display: all its parts, without anything that looks like a secret, of bounded length."""
    text = "; ".join(dict.fromkeys(str(part) or type(part).__name__ for part in leaves(error)))
    text = _ENCODED.sub("<redacted>", redact(text[: 10 * MOST_TEXT]))
    return text if len(text) <= MOST_TEXT else f"{text[: MOST_TEXT - 3]}..."


def _written(moment: datetime) -> str:
    return f"{moment:%Y-%m-%dT%H:%M:%SZ}"
