"""The Paused condition: a pass over a paused object writes it and ends; any other pass writes it with what else it concludes.

Paused when the object's Cluster is, or when the object carries the annotation, whatever its value.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from clusterwright.api.meta import Condition, Object
from clusterwright.api.wellknown import PAUSED_ANNOTATION
from clusterwright.conditions import get, set_condition
from clusterwright.runtime.client import Original
from clusterwright.runtime.clock import Clock
from clusterwright.runtime.models import conditions_of, with_conditions
from clusterwright.runtime.patch import Patcher
from clusterwright.tables import OTHERWISE, Row, Table, false, guard, message, true

PAUSED = "Paused"

T = TypeVar("T", bound=Object)


@dataclass(frozen=True, slots=True)
class PauseView:
    """The facts that decide whether an object of a kind must be left alone."""

    kind: str
    cluster_paused: bool
    annotated: bool


@guard("the Cluster's spec.paused")
def cluster_paused(v: PauseView) -> bool:
    return v.cluster_paused


@guard(f"annotation {PAUSED_ANNOTATION} present")
def annotated(v: PauseView) -> bool:
    return v.annotated


@message(f"<Cluster spec.paused is set to true>, <Kind has the {PAUSED_ANNOTATION} annotation>")
def because(v: PauseView) -> str:
    texts = ((v.cluster_paused, "Cluster spec.paused is set to true"), (v.annotated, f"{v.kind} has the {PAUSED_ANNOTATION} annotation"))
    return ", ".join(text for holds, text in texts if holds)


PAUSE: Table[PauseView] = Table(
    PAUSED,
    Row("paused", cluster_paused | annotated, true("Paused", because)),
    Row("not-paused", OTHERWISE, false("NotPaused")),
    about="Decided before everything else. The pass ends if the object is paused.",
)


@dataclass(frozen=True, slots=True)
class PauseCheck(Generic[T]):
    """The result of the check. The pass continues with `object`, which has the right condition.

    Python 3.11: call PauseCheck(...), never PauseCheck[X](...).
    """

    object: T
    is_paused: bool
    is_news: bool
    """Whether the condition's status changes. A newer generation alone does not count."""

    @property
    def row(self) -> str:
        """The row of PAUSE that fired."""
        return "paused" if self.is_paused else "not-paused"


async def ensure_paused_condition(patcher: Patcher, clock: Clock, original: Original[T], *, cluster_paused: bool) -> PauseCheck[T]:
    """Update the condition: at once if the object is paused, because the pass ends then; else in the patch at its end."""
    obj = original.object
    old = get(conditions_of(obj), PAUSED)
    wanted = paused_condition(obj, cluster_paused=cluster_paused)
    after = with_conditions(obj, set_condition(conditions_of(obj), wanted, generation=obj.metadata.generation, now=clock.now()))
    is_paused = wanted.status == "True"
    if is_paused:
        await patcher.patch(original, after, owned_conditions=(PAUSED,))
    is_news = old is None or (old.status, old.reason, old.message) != (wanted.status, wanted.reason, wanted.message)
    return PauseCheck(after, is_paused, is_news)


def is_paused(obj: Any, *, cluster_paused: bool) -> bool:
    """Return whether the object must be left alone."""
    return cluster_paused or PAUSED_ANNOTATION in obj.metadata.annotations


def paused_condition(obj: Object, *, cluster_paused: bool) -> Condition:
    """Return the right condition."""
    said = PAUSE.decide(PauseView(obj.kind, cluster_paused, PAUSED_ANNOTATION in obj.metadata.annotations)).outcome
    assert said is not None
    return Condition(type=PAUSED, status=said.status, reason=said.reason, message=said.message)
