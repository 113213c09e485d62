"""Counters, gauges and histograms in the Prometheus text format. A registry is an argument, never a global."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Sequence
from typing import TypeVar

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
LATENCY_BUCKETS = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0, 60.0, 300.0)

_Labels = tuple[str, ...]


class _Metric:
    """The common parts of all metrics: a name, a help text, label names."""

    type = ""

    def __init__(self, name: str, help: str, labels: Sequence[str]) -> None:
        self.name, self.help, self.labels = name, help, tuple(labels)

    def lines(self) -> list[str]:
        """Return samples in exposition format."""
        raise NotImplementedError

    def _sample(self, suffix: str, values: _Labels, number: float, more: str = "") -> str:
        pairs = [f'{name}="{_escaped(value)}"' for name, value in zip(self.labels, values, strict=True)]
        if more:
            pairs.append(more)
        return f"{self.name}{suffix}{'{' + ','.join(pairs) + '}' if pairs else ''} {_number(number)}"


class Counter(_Metric):
    """A value that only grows."""

    type = "counter"

    def __init__(self, name: str, help: str, labels: Sequence[str] = ()) -> None:
        super().__init__(name, help, labels)
        self._values: dict[_Labels, float] = {}

    def add(self, *labels: str, by: float = 1) -> None:
        """Add to the count."""
        self._values[labels] = self._values.get(labels, 0) + by

    def remove(self, *labels: str) -> None:
        """Remove a series whose subject is gone."""
        self._values.pop(labels, None)

    def value(self, *labels: str) -> float:
        """Return the count so far."""
        return self._values.get(labels, 0)

    def total(self) -> float:
        """Return the sum over all labels."""
        return sum(self._values.values())

    def lines(self) -> list[str]:
        """Return samples in exposition format."""
        return [self._sample("", labels, value) for labels, value in sorted(self._values.items())]


class Gauge(_Metric):
    """A value that goes up and down, set or computed on demand."""

    type = "gauge"

    def __init__(self, name: str, help: str, labels: Sequence[str] = ()) -> None:
        super().__init__(name, help, labels)
        self._values: dict[_Labels, float | Callable[[], float]] = {}

    def set(self, value: float | Callable[[], float], *labels: str) -> None:
        """Set the value, or the function that returns it."""
        self._values[labels] = value

    def remove(self, *labels: str) -> None:
        """Remove a series whose subject is gone."""
        self._values.pop(labels, None)

    def value(self, *labels: str) -> float:
        """Return the current value."""
        found = self._values.get(labels, 0)
        return found() if callable(found) else found

    def lines(self) -> list[str]:
        """Return samples in exposition format."""
        return [self._sample("", labels, self.value(*labels)) for labels in sorted(self._values)]


class Histogram(_Metric):
    """Counts observations in buckets."""

    type = "histogram"

    def __init__(self, name: str, help: str, labels: Sequence[str] = (), buckets: Sequence[float] = LATENCY_BUCKETS) -> None:
        super().__init__(name, help, labels)
        self._bounds = tuple(buckets)
        self._counts: dict[_Labels, list[int]] = {}
        self._sums: dict[_Labels, float] = {}

    def observe(self, value: float, *labels: str) -> None:
        """Count one observation."""
        counts = self._counts.get(labels)
        if counts is None:
            counts = self._counts[labels] = [0] * (len(self._bounds) + 1)
            self._sums[labels] = 0.0
        counts[bisect_left(self._bounds, value)] += 1
        self._sums[labels] += value

    def count(self, *labels: str) -> int:
        """Return the number of observations."""
        return sum(self._counts.get(labels, ()))

    def lines(self) -> list[str]:
        """Return samples in exposition format."""
        lines: list[str] = []
        for labels, counts in sorted(self._counts.items()):
            running = 0
            for bound, count in zip((*self._bounds, float("inf")), counts, strict=True):
                running += count
                lines.append(self._sample("_bucket", labels, running, f'le="{_number(bound)}"'))
            lines += [self._sample("_sum", labels, self._sums[labels]), self._sample("_count", labels, running)]
        return lines


M = TypeVar("M", bound=_Metric)


class Registry:
    """The metrics of one process."""

    def __init__(self) -> None:
        self._metrics: dict[str, _Metric] = {}

    def add(self, metric: M) -> M:
        """Register a metric; return an existing one of the same name and type."""
        present = self._metrics.setdefault(metric.name, metric)
        if type(present) is not type(metric) or present.labels != metric.labels:
            raise ValueError(f"metric {metric.name} is registered as another type")
        return present

    def render(self) -> str:
        """Return the text that Prometheus scrapes."""
        lines: list[str] = []
        for name, metric in sorted(self._metrics.items()):
            lines += [f"# HELP {name} {_help(metric.help)}", f"# TYPE {name} {metric.type}", *metric.lines()]
        return "\n".join([*lines, ""])


class RuntimeMetrics:
    """The runtime's own metrics; names are those of controller-runtime and client-go, so that dashboards fit."""

    def __init__(self, registry: Registry) -> None:
        self.registry = registry
        self.depth = registry.add(Gauge("workqueue_depth", "Current depth of workqueue", ["name", "controller"]))
        self.adds = registry.add(Counter("workqueue_adds_total", "Total number of adds handled by workqueue", ["name", "controller"]))
        self.retries = registry.add(
            Counter("workqueue_retries_total", "Total number of retries handled by workqueue", ["name", "controller"])
        )
        self.queue_seconds = registry.add(
            Histogram(
                "workqueue_queue_duration_seconds", "How long an item stays in workqueue before being requested", ["name", "controller"]
            )
        )
        self.reconciles = registry.add(
            Counter("controller_runtime_reconcile_total", "Total number of reconciliations per controller", ["controller", "result"])
        )
        self.errors = registry.add(
            Counter("controller_runtime_reconcile_errors_total", "Total number of reconciliation errors per controller", ["controller"])
        )
        self.terminal = registry.add(
            Counter("controller_runtime_terminal_reconcile_errors_total", "Total number of terminal reconciliation errors", ["controller"])
        )
        self.panics = registry.add(
            Counter("controller_runtime_reconcile_panics_total", "Reconciliations that failed with an unexpected exception", ["controller"])
        )
        self.timeouts = registry.add(
            Counter("controller_runtime_reconcile_timeouts_total", "Reconciliations cut off by their deadline", ["controller"])
        )
        self.seconds = registry.add(
            Histogram("controller_runtime_reconcile_time_seconds", "Length of time per reconciliation per controller", ["controller"])
        )
        self.active = registry.add(
            Gauge("controller_runtime_active_workers", "Number of currently used workers per controller", ["controller"])
        )
        self.workers = registry.add(
            Gauge("controller_runtime_max_concurrent_reconciles", "Maximum number of concurrent reconciles per controller", ["controller"])
        )
        self.requests = registry.add(Counter("rest_client_requests_total", "HTTP requests by verb and status code", ["verb", "code"]))
        self.request_seconds = registry.add(Histogram("rest_client_request_duration_seconds", "Request latency by verb", ["verb"]))
        self.throttled_seconds = registry.add(
            Histogram("rest_client_rate_limiter_duration_seconds", "Time that requests waited for the client's own rate limit", ["verb"])
        )
        self.lists = registry.add(Counter("clusterwright_informer_lists_total", "Full lists by kind", ["kind"]))
        self.watches = registry.add(Counter("clusterwright_informer_watches_total", "Watches opened by kind", ["kind"]))
        self.events = registry.add(Counter("clusterwright_informer_events_total", "Watch events by kind", ["kind"]))
        self.objects = registry.add(Gauge("clusterwright_cache_objects", "Objects held by kind", ["kind"]))
        self.leader = registry.add(Gauge("leader_election_master_status", "1 if this process leads", ["name"]))
        self.slots = registry.add(Gauge("clusterwright_shard_slots", "Slots of the shared work that this process holds", ["group"]))


def _escaped(value: str) -> str:
    return value.replace("\\", r"\\").replace("\n", r"\n").replace('"', r"\"")


def _help(text: str) -> str:
    return text.replace("\\", r"\\").replace("\n", r"\n")


def _number(value: float) -> str:
    if value == float("inf"):
        return "+Inf"
    return str(int(value)) if float(value).is_integer() and abs(value) < 1e15 else repr(float(value))
