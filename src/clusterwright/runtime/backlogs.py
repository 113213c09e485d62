"""The queue of a controller, in the form that is served for diagnosis."""

from __future__ import annotations

from collections.abc import Mapping

from clusterwright.api.meta import Json
from clusterwright.runtime.controller import Controller


def waiting(controller: Controller, query: Mapping[str, str]) -> Json | None:
    """Return the waiting keys of a controller; None if there are none, or the query selects others."""
    kind, namespace, name = controller.kind.__name__, query.get("namespace", ""), query.get("name", "")
    if query.get("kind", "") not in ("", kind) or query.get("controller", "") not in ("", controller.name):
        return None
    backlog = controller.queue.backlog(lambda key: namespace in ("", key.namespace) and name in ("", key.name))
    if not backlog.length and not backlog.processing:
        return None
    return {
        "controller": controller.name,
        "kind": kind,
        "length": backlog.length,
        "oldestSeconds": round(backlog.oldest, 1),
        "processing": backlog.processing,
        "ahead": {str(key): ahead for key, ahead in backlog.ahead.items()},
        "atWork": sorted(map(str, backlog.at_work)),
    }
