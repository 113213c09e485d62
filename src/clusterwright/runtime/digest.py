"""Logs for people at a terminal: one line per failing object, printed once and counted, instead of every retry.

A failed pass is retried, mostly with success. So an expected failure is printed only when it has lasted a while, and again when its reason
changes or after ten, a hundred repetitions. Stack traces of unexpected failures, and all omitted records, are in the full logs (`json`, or
the level `debug`).
"""

from __future__ import annotations

import logging
import re
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final

from clusterwright.runtime.logging import ROOT, redact

LASTING: Final = 3.0
"""Seconds after which a failure is printed."""
FORGOTTEN: Final = 120.0
"""Seconds without a failure, beyond the announced pause, after which the next one counts as new."""
LONGEST: Final = 300
"""The longest reason that is printed, in characters."""
_CLASS: Final = re.compile(r"^[A-Z]\w+: ")
_COUNTED: Final = ("failures", "retry_in_seconds", "reasons", "stacktrace", "error", "controller", "namespace", "name", "times")


@dataclass(slots=True)
class _Failing:
    first: float
    last: float
    pause: float = 0.0
    told: str = ""
    count: int = 0
    next_count: int = 10


class Digest(logging.Filter):
    """Passes on the records to print; a record for several has the field `times`."""

    def __init__(self) -> None:
        super().__init__()
        self._failing: dict[tuple[str, ...], _Failing] = {}

    def filter(self, record: logging.LogRecord) -> bool:
        """Return whether the record is printed."""
        fields: dict[str, Any] = getattr(record, "fields", {})
        if record.levelno < logging.WARNING or "error" not in fields:
            return True
        subject = (record.name, record.getMessage(), *(str(fields.get(f, "")) for f in ("controller", "namespace", "name", "kind")))
        self._forget(record.created)
        one = self._failing.setdefault(subject, _Failing(record.created, record.created))
        one.last, one.pause = record.created, float(fields.get("retry_in_seconds") or 0)
        text = _reason(fields)
        if record.exc_info is None and "failures" in fields and record.created - one.first < LASTING:
            one.count += 1
            return False
        if text == one.told:
            one.count += 1
            if one.count < one.next_count:
                return False
        else:
            one.count = 1 if one.told else one.count + 1
            one.told = text
        one.next_count = one.count * 10
        record.fields = {**fields, "times": one.count}
        return True

    def _forget(self, now: float) -> None:
        self._failing = {k: f for k, f in self._failing.items() if now - f.last < FORGOTTEN + f.pause}


class TerminalFormatter(logging.Formatter):
    """Formats one short line per record: time, level, object, reason."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the line, without secrets."""
        at = f"{datetime.fromtimestamp(record.created, UTC).astimezone():%H:%M:%S}"
        fields: dict[str, Any] = getattr(record, "fields", {})
        about = " ".join(filter(None, (str(fields.get("controller", "")), _object(fields))))
        why = _shortened(redact(_reason(fields)))  # redacted first: half a secret would not be known for one
        if record.exc_info and record.exc_info[0] is not None:
            why = f"unexpected {record.exc_info[0].__name__}: {why or record.exc_info[1]} (--log-level debug shows where)"
        message = record.getMessage()
        parts = [f"{about}: {why}"] if about and why else [" ".join(filter(None, (message, about))) + (f": {why}" if why else "")]
        parts += [f"{name}={value}" for name, value in fields.items() if name not in _COUNTED]
        parts += [f"({fields['times']} times)"] if fields.get("times", 1) > 1 else []
        return redact(f"{at} {record.levelname:<7} {' '.join(parts)}".replace("\n", " "))


def for_people() -> None:
    """Print the project's logs in the form for people, once they are configured."""
    for handler in logging.getLogger(ROOT).handlers:
        handler.addFilter(Digest())
        handler.setFormatter(TerminalFormatter())


def _object(fields: dict[str, Any]) -> str:
    return "/".join(str(fields[part]) for part in ("namespace", "name") if fields.get(part))


def _shortened(text: str) -> str:
    return text if len(text) <= LONGEST else f"{text[:LONGEST].rpartition(' ')[0] or text[:LONGEST]} ... (--log-level debug shows all)"


def _reason(fields: dict[str, Any]) -> str:
    return _CLASS.sub("", str(fields.get("error", "")))
