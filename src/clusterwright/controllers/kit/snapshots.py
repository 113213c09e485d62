"""What snapshots of all kinds have in common. Pure."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Generic, TypeVar

from clusterwright.api.meta import Condition, Object, ObjectKey, ObjectMeta, V1Beta1Condition
from clusterwright.conditions import get
from clusterwright.controllers.kit.conditions import v1beta1_conditions

T = TypeVar("T", bound=Object)
V = TypeVar("V")


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot(Generic[T]):
    """An object as this pass would leave it so far, and the moment of the pass. Derive from it, and add the facts that tables ask for."""

    now: datetime
    object: T

    @property
    def key(self) -> ObjectKey:
        """Its namespace and name."""
        return self.object.key

    @property
    def metadata(self) -> ObjectMeta:
        """Its metadata."""
        return self.object.metadata

    @property
    def deleting(self) -> bool:
        """Whether it is being deleted."""
        return self.object.metadata.deletion_timestamp is not None

    @property
    def conditions(self) -> tuple[Condition, ...]:
        """Its conditions, as decided so far."""
        obj: Any = self.object
        found: tuple[Condition, ...] = obj.status.conditions
        return found

    @property
    def v1beta1_conditions(self) -> tuple[V1Beta1Condition, ...]:
        """Its deprecated conditions, as decided so far."""
        return v1beta1_conditions(self.object)

    def condition(self, type: str) -> Condition | None:
        """Return its condition of this type, as decided so far."""
        return get(self.conditions, type)


@dataclass(frozen=True, slots=True, kw_only=True)
class ScaledSnapshot(Snapshot[T]):
    """Of what has replicas."""

    @property
    def replicas(self) -> int | None:
        """`spec.replicas`."""
        obj: Any = self.object
        found: int | None = obj.spec.replicas
        return found

    @property
    def desired(self) -> int:
        """How many there shall be; none while deleting."""
        return 0 if self.deleting else self.replicas or 0


class Memo:
    """Answers that several guards ask for, each computed once for what it was computed from. It holds no fact: it may be empty."""

    def __init__(self) -> None:
        self._answers: dict[str, tuple[tuple[object, ...], Any]] = {}

    def answer(self, name: str, sources: tuple[object, ...], make: Callable[[], V]) -> V:
        """Return the answer of this name, made again if it was made from other objects."""
        known = self._answers.get(name)
        if known is None or len(known[0]) != len(sources) or any(a is not b for a, b in zip(known[0], sources, strict=True)):
            known = self._answers[name] = (sources, make())
        found: V = known[1]
        return found
