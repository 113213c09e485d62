"""Structured logs: a constant message and fields, as JSON or as text, and never a secret.

    log = get_logger("controller", controller="cluster")
    log.info("Reconciled", row="cp-missing")

Fields bound with `bound(...)` are added to every line that the same task writes meanwhile. Anything that looks like key material or a
credential is removed from the finished line, as the last of several protections.
"""

from __future__ import annotations

import logging
import re
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import UTC, datetime
from typing import Any, Literal, TextIO

import msgspec

from clusterwright.conditions import ConditionConflict
from clusterwright.runtime.errors import ApiError, Terminal

ROOT = "clusterwright"

_fields: ContextVar[Mapping[str, Any]] = ContextVar("log_fields", default={})  # noqa: B039  # never mutated, only replaced

_SECRETS = re.compile(
    r"-----BEGIN [A-Z ]*PRIVATE KEY-----.*?(?:-----END [A-Z ]*PRIVATE KEY-----|\Z)"
    r"|\beyJ[\w-]{8,}\.[\w-]{8,}\.[\w-]*"  # JSON web tokens
    r"|\b[a-z0-9]{6}\.[a-z0-9]{16}\b"  # bootstrap tokens
    r"|(?<=[Bb]earer )[\w.~+/=-]+"
    r"|(?<=://)[^/@\s:]+:[^/@\s]+(?=@)",  # user:password of a URL
    re.DOTALL,
)


def redact(text: str) -> str:
    """Return `text` without anything that looks like a credential."""
    return _SECRETS.sub("<redacted>", text)


class Logger:
    """A standard library logger with fields."""

    __slots__ = ("_fields", "_logger")

    def __init__(self, logger: logging.Logger, fields: Mapping[str, Any]) -> None:
        self._logger = logger
        self._fields = fields

    def bind(self, **fields: Any) -> Logger:
        """Return the same logger with more fields."""
        return Logger(self._logger, {**self._fields, **fields})

    def debug(self, message: str, **fields: Any) -> None:
        """Log for developers."""
        self._log(logging.DEBUG, message, fields)

    def info(self, message: str, **fields: Any) -> None:
        """Log a change."""
        self._log(logging.INFO, message, fields)

    def warning(self, message: str, **fields: Any) -> None:
        """Log a problem that is handled."""
        self._log(logging.WARNING, message, fields)

    def error(self, message: str, *, cause: BaseException | None = None, **fields: Any) -> None:
        """Log a failure. `cause` sets the field `error`, with a stack trace unless the failure is of an expected kind."""
        if cause is None:
            self._log(logging.ERROR, message, fields)
            return
        parts = list(leaves(cause))
        text = "; ".join(f"{type(part).__name__}: {part}" for part in parts)
        foreseen = all(is_foreseen(part) for part in parts)
        self._log(logging.ERROR, message, {**fields, "error": text}, None if foreseen else cause)

    def _log(self, level: int, message: str, fields: Mapping[str, Any], error: BaseException | None = None) -> None:
        if self._logger.isEnabledFor(level):
            merged = {**_fields.get(), **self._fields, **fields}
            self._logger.log(level, message, extra={"fields": merged}, exc_info=error)


def leaves(error: BaseException) -> Iterator[BaseException]:
    """Yield the error, or the members of an error group."""
    if isinstance(error, BaseExceptionGroup):
        for part in error.exceptions:
            yield from leaves(part)
    else:
        yield error


def is_foreseen(error: BaseException) -> bool:
    """Return whether the error is expected, such as an API server's answer or a deadline, and not a defect of ours."""
    return isinstance(error, ApiError | Terminal | ConditionConflict | TimeoutError)


def get_logger(name: str, **fields: Any) -> Logger:
    """Return a logger below the project's root."""
    return Logger(logging.getLogger(f"{ROOT}.{name}"), fields)


@contextmanager
def bound(**fields: Any) -> Iterator[None]:
    """Add fields to every line written in this context."""
    token = _fields.set({**_fields.get(), **fields})
    try:
        yield
    finally:
        _fields.reset(token)


def bound_fields() -> Mapping[str, Any]:
    """Return the fields that are added to every line in this context."""
    return _fields.get()


class Formatter(logging.Formatter):
    """Formats one line per record: JSON, or text with `key=value` fields. The stack trace is a field, too."""

    def __init__(self, form: Literal["json", "text"]) -> None:
        super().__init__()
        self._form = form

    def format(self, record: logging.LogRecord) -> str:
        """Return the line, without secrets."""
        at = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
        fields = dict(getattr(record, "fields", {}))
        if record.exc_info and record.exc_info[0] is not None:
            fields["stacktrace"] = self.formatException(record.exc_info)
        message = record.getMessage()
        if self._form == "json":
            line = {"ts": at, "level": record.levelname.lower(), "logger": record.name, "msg": message, **fields}
            return redact_json(line)
        texts = [f"{key}={_quoted(value)}" for key, value in fields.items()]
        return redact(" ".join([at, f"{record.levelname:<7}", message, *texts]))


def redact_json(line: Mapping[str, Any]) -> str:
    """Return the JSON text of `line`, with its strings redacted before they are escaped."""
    clean = {key: redact(value if isinstance(value, str) else str(value)) if _is_text(value) else value for key, value in line.items()}
    return msgspec.json.encode(clean).decode()


def _is_text(value: Any) -> bool:
    return not isinstance(value, bool | int | float | None)


def _quoted(value: Any) -> str:
    text = str(value)
    return msgspec.json.encode(text).decode() if not text or any(char in text for char in ' "=\n') else text


def configure(form: Literal["json", "text"] = "text", level: str = "INFO", stream: TextIO | None = None) -> None:
    """Send the project's logs to `stream` (standard error); called once, by the composition root."""
    handler = logging.StreamHandler(stream or sys.stderr)
    handler.setFormatter(Formatter(form))
    root = logging.getLogger(ROOT)
    root.handlers[:] = [handler]
    root.setLevel(level.upper())
    root.propagate = False
