"""Metrics of the calls of extensions."""

from __future__ import annotations

from clusterwright.runtime.metrics import Counter, Histogram, Registry
from clusterwright.runtimesdk.registry import Handler


class CallMetrics:
    """Counts calls, including Discovery, and measures their duration."""

    def __init__(self, registry: Registry) -> None:
        labels = ["host", "group", "version", "hook"]
        self._requests = registry.add(
            Counter("capi_runtime_sdk_requests_total", "Number of HTTP requests to runtime extensions", ["code", *labels, "status"])
        )
        self._seconds = registry.add(
            Histogram("capi_runtime_sdk_request_duration_seconds", "Latency of requests to runtime extensions", labels)
        )

    def observe(self, handler: Handler, host: str, seconds: float, code: int | None, status: str) -> None:
        """Record a finished call: with a status code, if there was a response, and the response's status, if any."""
        labels = (host, handler.group, handler.api_version.partition("/")[2], handler.hook)
        self._requests.add("<error>" if code is None else str(code), *labels, status or "Unknown")
        self._seconds.observe(seconds, *labels)
