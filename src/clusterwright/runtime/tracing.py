"""Spans, if OpenTelemetry is installed and wanted; otherwise nothing."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from typing import Any, Protocol


class Tracer(Protocol):
    """Opens spans."""

    def span(self, name: str, **attributes: str) -> AbstractContextManager[Any]:
        """Return a span around some work; an exception that leaves it is recorded."""


class NoTracer:
    """Opens no spans."""

    def span(self, name: str, **attributes: str) -> AbstractContextManager[Any]:
        """Return a context that does nothing."""
        return _NOTHING


_NOTHING: AbstractContextManager[Any] = nullcontext()


class OpenTelemetryTracer:
    """Opens spans of the process's OpenTelemetry tracer provider; needs the `otel` extra."""

    def __init__(self, component: str) -> None:
        from opentelemetry import trace

        self._tracer = trace.get_tracer(component)

    def span(self, name: str, **attributes: str) -> AbstractContextManager[Any]:
        """Return a span; its attributes carry the project's prefix."""
        named = {f"clusterwright.{key}": value for key, value in attributes.items()}
        return self._tracer.start_as_current_span(name, attributes=named)
