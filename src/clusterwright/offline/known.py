"""Everything known of a cluster, and the causes that detectors find in it. Both are immutable."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from clusterwright.api.meta import Condition, Json, Unstructured
from clusterwright.conditions import get
from clusterwright.offline.complaints import Complaint, references
from clusterwright.offline.observation import Running
from clusterwright.offline.ownership import name_of


@dataclass(frozen=True, slots=True, kw_only=True)
class Known:
    """The objects of a cluster, what they say, and what stands next to them."""

    objects: Mapping[str, Unstructured]
    """By `Kind/namespace/name`."""
    by_kind: Mapping[str, Sequence[str]]
    """The names in `objects`."""
    conditions: Callable[[str], Sequence[Condition]]
    """By the same name; those that a pass has found, or else those that were written."""
    complaints: Mapping[str, Sequence[Complaint]]
    events: Mapping[str, Sequence[Json]] = field(default_factory=dict)
    definitions: Mapping[tuple[str, str], Unstructured] = field(default_factory=dict)
    """The CRDs, by group and kind."""
    workload: Mapping[str, Unstructured] = field(default_factory=dict)
    """Objects of the workload cluster, where it was looked at."""
    cluster: Unstructured | None = None
    now: datetime | None = None
    running: Running | None = None
    """The controllers' report on themselves, where they could be asked."""
    seen: frozenset[str] = frozenset()
    """Kinds of which all objects are known."""
    suspicions: Mapping[str, str] = field(default_factory=dict)
    """By `Kind/namespace/name`: what the recorder found wrong with contents that it did not keep."""

    def of_kind(self, *kinds: str) -> Iterator[tuple[str, Unstructured]]:
        """Yield the objects of some kinds."""
        return ((name, self.objects[name]) for kind in kinds for name in self.by_kind.get(kind, ()))

    def said(self, name: str, type_: str) -> Condition | None:
        """Return a condition of an object."""
        return get(self.conditions(name), type_)

    def named(self, obj: Unstructured, field_name: str) -> str:
        """Return the name of the object in a reference of the spec, whether it is there or not; empty without one."""
        found = (r for r in references(obj.at("spec"), home=obj.key.namespace) if r.path.endswith(field_name))
        return next((name_of(r.kind, obj.key.namespace, r.name) for r in found), "")

    def owner(self, obj: Unstructured, kind: str) -> Unstructured | None:
        """Return the nearest owner of a kind: an owner, or an owner's owner. Owners may refer to each other in a circle."""
        seen: set[str] = set()
        queue = [obj]
        while queue:
            below = queue.pop(0)
            for reference in below.metadata.owner_references:
                name = name_of(reference.kind, obj.key.namespace, reference.name)
                above = self.objects.get(name)
                if above is None or name in seen:
                    continue
                if above.kind == kind:
                    return above
                seen.add(name)
                queue.append(above)
        return None


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """A cause that a detector found: what is wrong with an object, and whose trouble that explains."""

    object: str
    complaint: Complaint
    explains: Mapping[str, str] = field(default_factory=dict)
    """By object: how its trouble comes from this."""
    is_all: bool = False
    """Whether it says better what the object says itself."""


Detector = Callable[[Known], Iterator[Found]]
