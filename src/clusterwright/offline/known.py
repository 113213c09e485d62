"""The knowledge about a cluster that detectors read, and the causes that they find. Both are immutable."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from clusterwright.api.meta import Condition, Json, Unstructured
from clusterwright.api.wellknown import CONTROL_PLANE_LABEL
from clusterwright.conditions import get
from clusterwright.offline.complaints import Complaint, references, time_of
from clusterwright.offline.observation import Running
from clusterwright.offline.ownership import name_of


@dataclass(frozen=True, slots=True, kw_only=True)
class Known:
    """The objects of a cluster, their conditions, and facts from outside it."""

    objects: Mapping[str, Unstructured]
    """By `Kind/namespace/name`."""
    by_kind: Mapping[str, Sequence[str]]
    """The names in `objects`."""
    conditions: Callable[[str], Sequence[Condition]]
    """By the same name: the conditions that a pass has found, else those that were written."""
    complaints: Mapping[str, Sequence[Complaint]]
    events: Mapping[str, Sequence[Json]] = field(default_factory=dict)
    definitions: Mapping[tuple[str, str], Unstructured] = field(default_factory=dict)
    """The CRDs, by group and kind."""
    workload: Mapping[str, Unstructured] = field(default_factory=dict)
    """Objects of the workload cluster, if it was read."""
    cluster: Unstructured | None = None
    now: datetime | None = None
    running: Running | None = None
    """The controllers' report on themselves, if they could be asked."""
    seen: frozenset[str] = frozenset()
    """Kinds of which all objects are known."""
    suspicions: Mapping[str, str] = field(default_factory=dict)
    """By `Kind/namespace/name`: the faults that the recorder found in contents that it did not keep."""
    webhooks: Mapping[str, Unstructured] = field(default_factory=dict)
    """By the name of a webhook: the configuration that contains it."""
    extensions: Mapping[str, Unstructured] = field(default_factory=dict)
    """By name: the ExtensionConfigs, which belong to no cluster."""
    managers: Sequence[Unstructured] = ()
    """The Deployments of controllers."""
    is_initialized: bool = True
    """Whether the control plane has come up once."""
    is_reachable: bool = True
    """Whether controllers reach the workload cluster."""

    def of_kind(self, *kinds: str) -> Iterator[tuple[str, Unstructured]]:
        """Yield the objects of some kinds."""
        return ((name, self.objects[name]) for kind in kinds for name in self.by_kind.get(kind, ()))

    def everything_told(self) -> Iterator[tuple[str, Complaint]]:
        """Yield every complaint with the name of its object."""
        return ((name, complaint) for name, complaints in self.complaints.items() for complaint in complaints)

    def control_plane(self) -> list[str]:
        """Return the control-plane object, or the Machines that stand for it."""
        reference = self.cluster.at("spec", "controlPlaneRef") if self.cluster is not None else None
        if self.cluster is not None and isinstance(reference, Mapping) and reference.get("name"):
            return [name_of(str(reference.get("kind")), self.cluster.key.namespace, str(reference["name"]))]
        return [name for name, machine in self.of_kind("Machine") if CONTROL_PLANE_LABEL in machine.metadata.labels]

    def heard(self, name: str) -> str:
        """Return the time of the last Event about an object."""
        return max((time_of(e) for e in self.events.get(name, ())), default="")

    def said(self, name: str, type_: str) -> Condition | None:
        """Return a condition of an object."""
        return get(self.conditions(name), type_)

    def named(self, obj: Unstructured, field_name: str) -> str:
        """Return the name of the object in a reference of the spec, whether it exists or not; empty without a reference."""
        found = (r for r in references(obj.at("spec"), home=obj.key.namespace) if r.path.endswith(field_name))
        return next((name_of(r.kind, obj.key.namespace, r.name) for r in found), "")

    @staticmethod
    def is_direct_owner(obj: Unstructured, below: Unstructured) -> bool:
        """Return whether an object is named as the owner of another."""
        owners = [(r.kind, r.name) for r in below.metadata.owner_references]
        return (obj.kind, obj.key.name) in owners and obj.key.namespace == below.key.namespace

    def owner(self, obj: Unstructured, kind: str) -> Unstructured | None:
        """Return the nearest owner of a kind, direct or indirect. Owners may refer to each other in a circle."""
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
    """A cause that a detector found: the fault of an object, and the objects whose trouble it explains."""

    object: str
    complaint: Complaint
    explains: Mapping[str, str] = field(default_factory=dict)
    """By object: the reason why its trouble comes from this cause."""
    because: Mapping[str, str] = field(default_factory=dict)
    """By object: the reason why this one's trouble comes from it."""
    is_all: bool = False
    """Whether it replaces all complaints of the object itself."""
    replaces: Complaint | None = None
    """The complaint of the object in whose place it comes."""
    definition: Unstructured | None = None
    """The object, if it belongs to no cluster."""


Detector = Callable[[Known], Iterator[Found]]
