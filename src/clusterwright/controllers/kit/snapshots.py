"""The fields that snapshots of all kinds have. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any, Generic, TypeVar

from clusterwright.api.meta import Condition, Object, ObjectKey, ObjectMeta, V1Beta1Condition
from clusterwright.conditions import get
from clusterwright.controllers.kit.conditions import v1beta1_conditions

T = TypeVar("T", bound=Object)


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot(Generic[T]):
    """An object as it was read, and the moment of the pass. Derive from it, and add the facts that tables read.

    A type for what a pass does derives from that again, with the outcome of each step; `object` is then the object as the pass leaves it.
    """

    now: datetime
    object: T

    @property
    def key(self) -> ObjectKey:
        """The object's namespace and name."""
        return self.object.key

    @property
    def metadata(self) -> ObjectMeta:
        """The object's metadata."""
        return self.object.metadata

    @property
    def deleting(self) -> bool:
        """Whether the object is being deleted."""
        return self.object.metadata.deletion_timestamp is not None

    @property
    def conditions(self) -> tuple[Condition, ...]:
        """The object's conditions."""
        obj: Any = self.object
        found: tuple[Condition, ...] = obj.status.conditions
        return found

    @property
    def v1beta1_conditions(self) -> tuple[V1Beta1Condition, ...]:
        """The object's deprecated conditions."""
        return v1beta1_conditions(self.object)

    def condition(self, type: str) -> Condition | None:
        """Return the condition of this type."""
        return get(self.conditions, type)


@dataclass(frozen=True, slots=True, kw_only=True)
class ScaledSnapshot(Snapshot[T]):
    """A snapshot of a kind that has replicas."""

    @property
    def replicas(self) -> int | None:
        """`spec.replicas`."""
        obj: Any = self.object
        found: int | None = obj.spec.replicas
        return found

    @property
    def desired(self) -> int:
        """The desired number of replicas; none while deleting."""
        return 0 if self.deleting else self.replicas or 0
