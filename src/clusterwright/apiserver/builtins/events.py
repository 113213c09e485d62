"""Events are one kind in two groups: stored as core/v1, also served as events.k8s.io/v1."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from clusterwright.api.meta import Json
from clusterwright.apiserver.builtins import validation
from clusterwright.apiserver.builtins.handler import Builtin
from clusterwright.apiserver.schema.gotypes import struct
from clusterwright.apiserver.status import FieldError

MODERN: Final = "events.k8s.io/v1"
_RENAMED: Final = {
    "involvedObject": "regarding",
    "message": "note",
    "source": "deprecatedSource",
    "firstTimestamp": "deprecatedFirstTimestamp",
    "lastTimestamp": "deprecatedLastTimestamp",
    "count": "deprecatedCount",
    "reportingComponent": "reportingController",
}
_BACK: Final = {v: k for k, v in _RENAMED.items()}


def _renamed(obj: Json, names: dict[str, str], api_version: str, go_type: str) -> Json:
    made = struct(go_type).decode({names.get(k, k): v for k, v in obj.items() if k not in ("kind", "apiVersion")}, "", [])
    obj.clear()
    obj.update({"kind": "Event", "apiVersion": api_version, **made})
    return obj


def to_core(obj: Json) -> Json:
    """Return an event in the form of core/v1, in place."""
    return obj if obj.get("apiVersion") == "v1" else _renamed(obj, _BACK, "v1", "core.v1.Event")


def to_modern(obj: Json) -> Json:
    """Return an event in the form of events.k8s.io/v1, in place."""
    return obj if obj.get("apiVersion") == MODERN else _renamed(obj, _RENAMED, MODERN, "events.v1.Event")


class EventHandler(Builtin):
    """The handler of both forms."""

    def convert(self, obj: Json, api_version: str) -> Json:
        """Convert between the two forms."""
        return to_modern(obj) if api_version == MODERN else to_core(obj)

    @property
    def _modern(self) -> bool:
        return self.gvk.group != ""

    def validate_create(self, obj: Json) -> Sequence[FieldError]:
        """Validate events in the core form, those of events.k8s.io more strictly."""
        return validation.event(to_core(dict(obj)), modern=self._modern)

    def validate_update(self, obj: Json, old: Json, *, subresource: str = "") -> Sequence[FieldError]:
        """Check that only the series of an event of events.k8s.io changes."""
        new, before = to_core(dict(obj)), to_core(dict(old))
        if not self._modern:
            return validation.event(new, modern=False)
        return [*validation.event_update(new, before), *validation.event(new, modern=True)]
