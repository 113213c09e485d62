"""Metrics in Prometheus' text form, with kube-apiserver's names."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Mapping
from typing import Final

from clusterwright.apiserver.requestinfo import RequestInfo

_BUCKETS: Final = (0.005, 0.025, 0.05, 0.1, 0.2, 0.4, 0.6, 0.8, 1.0, 1.25, 1.5, 2, 3, 4, 5, 6, 8, 10, 15, 20, 30, 45, 60)
Labels = tuple[str, ...]


_VERBS: Final = {"get": "GET", "list": "LIST", "watch": "WATCH", "create": "POST", "update": "PUT", "patch": "PATCH", "delete": "DELETE",
            "deletecollection": "DELETECOLLECTION", "post": "POST", "put": "PUT", "head": "HEAD", "options": "OPTIONS"}  # fmt: skip
_SUBRESOURCES: Final = frozenset({"status", "scale", "eviction", "binding", "token", "finalize", "log", "exec", "portforward", "approval"})


def escaped(value: str) -> str:
    """Escape the value of a label."""
    return value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


def _scope(info: RequestInfo) -> str:
    if not info.is_resource:
        return ""
    if info.name or info.verb == "create":
        return "resource"
    return "namespace" if info.namespace else "cluster"


class Metrics:
    """Counts requests of one server."""

    def __init__(self) -> None:
        self._total: dict[Labels, int] = {}
        self._durations: dict[Labels, list[float]] = {}
        self.watches: dict[Labels, int] = {}
        self.further: list[Callable[[], Iterable[str]]] = []
        """Functions that return further lines."""

    def observe(self, info: RequestInfo, code: int, seconds: float, *, dry_run: bool, is_known: bool) -> None:
        """Count an answered request. Requests for unknown resources add no series, so the number of labels is bounded."""
        group, resource, version = (info.group, info.resource, info.version) if is_known else ("", "", "")
        subresource = info.subresource if is_known and info.subresource in _SUBRESOURCES else ""
        dry = "All" if dry_run else ""
        key = (str(code), dry, group, resource, _scope(info) if is_known else "", subresource, _VERBS.get(info.verb, "other"), version)
        self._total[key] = self._total.get(key, 0) + 1
        if info.verb == "watch":
            return
        bare = key[1:]
        series = self._durations.get(bare)
        if series is None:
            series = self._durations[bare] = [0.0] * (len(_BUCKETS) + 2)
        series[bisect_left(_BUCKETS, seconds)] += 1
        series[-1] += seconds

    def text(self, *, watches: Mapping[str, int], objects: Mapping[str, int], inflight: Mapping[str, int]) -> bytes:
        """Return all metrics: of requests, open watches, stored objects by table, and current requests."""
        lines = list(self._request_total())
        lines += self._request_duration()
        lines.append("# HELP apiserver_longrunning_requests Watches that are open.")
        lines.append("# TYPE apiserver_longrunning_requests gauge")
        for name, count in watches.items():
            plural, _, group = name.partition(".")
            lines.append(f'apiserver_longrunning_requests{{group="{group}",resource="{plural}",verb="WATCH"}} {count}')
        lines.append("# HELP apiserver_storage_objects Objects stored, by kind.")
        lines.append("# TYPE apiserver_storage_objects gauge")
        lines += [f'apiserver_storage_objects{{resource="{n}"}} {count}' for n, count in sorted(objects.items())]
        lines.append("# HELP apiserver_current_inflight_requests Requests being served.")
        lines.append("# TYPE apiserver_current_inflight_requests gauge")
        lines.append(f'apiserver_current_inflight_requests{{request_kind="mutating"}} {inflight["mutating"]}')
        lines.append(f'apiserver_current_inflight_requests{{request_kind="readOnly"}} {inflight["readOnly"]}')
        for more in self.further:
            lines += more()
        return ("\n".join(lines) + "\n").encode()

    def _request_total(self) -> Iterable[str]:
        yield "# HELP apiserver_request_total Requests, by verb, resource and code."
        yield "# TYPE apiserver_request_total counter"
        for labels, count in sorted(self._total.items()):
            code, dry, group, resource, scope, sub, verb, version = map(escaped, labels)
            yield (
                f'apiserver_request_total{{code="{code}",component="apiserver",dry_run="{dry}",group="{group}",resource="{resource}",'
                f'scope="{scope}",subresource="{sub}",verb="{verb}",version="{version}"}} {count}'
            )

    def _request_duration(self) -> Iterable[str]:
        yield "# HELP apiserver_request_duration_seconds How long requests took, watches excepted."
        yield "# TYPE apiserver_request_duration_seconds histogram"
        for labels, series in sorted(self._durations.items()):
            dry, group, resource, scope, sub, verb, version = map(escaped, labels)
            shown = (
                f'component="apiserver",dry_run="{dry}",group="{group}",resource="{resource}",scope="{scope}",subresource="{sub}",'
                f'verb="{verb}",version="{version}"'
            )
            total = 0
            for bound, count in zip((*_BUCKETS, "+Inf"), series[:-1], strict=True):
                total += int(count)
                yield f'apiserver_request_duration_seconds_bucket{{{shown},le="{bound}"}} {total}'
            yield f"apiserver_request_duration_seconds_sum{{{shown}}} {series[-1]:.6f}"
            yield f"apiserver_request_duration_seconds_count{{{shown}}} {total}"
