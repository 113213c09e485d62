"""Objects as nodes of an explanation's graph."""

from __future__ import annotations

from dataclasses import dataclass, field

from clusterwright.api.meta import Unstructured
from clusterwright.offline.complaints import Complaint, Tier


@dataclass(slots=True)
class Node:
    """An existing or missing object with its complaints."""

    id: str
    kind: str
    namespace: str
    name: str
    object: Unstructured | None = None
    complaints: list[Complaint] = field(default_factory=list)
    because_of: dict[str, str] = field(default_factory=dict)
    """The origins of its trouble: the id of another node, and the reason for the link."""
    referrers: list[str] = field(default_factory=list)

    @property
    def deleting(self) -> bool:
        """Whether it is being deleted."""
        return self.object is not None and bool(self.object.at("metadata", "deletionTimestamp"))

    @property
    def worst(self) -> Complaint | None:
        """The complaint with the strongest evidence, the oldest of several."""
        return min(self.complaints, key=lambda c: (c.tier, c.secondary, c.since or "9")) if self.complaints else None

    @property
    def tier(self) -> Tier:
        """The tier of the strongest complaint."""
        return self.worst.tier if self.worst else Tier.PROGRESS
