"""Objects as explanations see them."""

from __future__ import annotations

from dataclasses import dataclass, field

from clusterwright.api.meta import Unstructured
from clusterwright.offline.complaints import Complaint, Tier


@dataclass(slots=True)
class Node:
    """An object, or one that should be there, and what is wrong with it."""

    id: str
    kind: str
    namespace: str
    name: str
    object: Unstructured | None = None
    complaints: list[Complaint] = field(default_factory=list)
    because_of: dict[str, str] = field(default_factory=dict)
    """Where its trouble comes from: id of another node, and how that is known."""
    referrers: list[str] = field(default_factory=list)

    @property
    def deleting(self) -> bool:
        """It is being deleted."""
        return self.object is not None and bool(self.object.at("metadata", "deletionTimestamp"))

    @property
    def worst(self) -> Complaint | None:
        """The most telling complaint, the oldest of those."""
        return min(self.complaints, key=lambda c: (c.tier, c.secondary, c.since or "9")) if self.complaints else None

    @property
    def tier(self) -> Tier:
        """How telling the best evidence is."""
        return self.worst.tier if self.worst else Tier.PROGRESS
