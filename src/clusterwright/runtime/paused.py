"""The Paused condition: said before anything else is done, by a patch of its own that ends the pass.

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
    """What decides whether an object of a kind must be left alone."""

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
    about="Decided before everything else. The pass ends if the object is paused, or if the condition had to be written.",
)


@dataclass(frozen=True, slots=True)
class PauseCheck(Generic[T]):
    """What the check found. `object` goes on into the pass; its Paused condition may have been brought up to date in memory.

    Python 3.11: call PauseCheck(...), never PauseCheck[X](...).
    """

    object: T
    is_paused: bool
    ends_pass: bool

    @property
    def row(self) -> str:
        """The row of PAUSE that fired."""
        return "paused" if self.is_paused else "not-paused"


async def ensure_paused_condition(
    patcher: Patcher, clock: Clock, original: Original[T], *, cluster_paused: bool, apart: bool = True
) -> PauseCheck[T]:
    """Bring the condition up to date. The pass ends if the object is paused, or if the condition had to be written.

    If only its observedGeneration is behind and the object is not paused, nothing is written: the patch at the end carries it; so
    it does without `apart` for all that is not a pause.
    """
    obj = original.object
    present = conditions_of(obj)
    wanted = paused_condition(obj, cluster_paused=cluster_paused)
    is_paused = wanted.status == "True"
    old = get(present, PAUSED)
    after = with_conditions(obj, set_condition(present, wanted, generation=obj.metadata.generation, now=clock.now()))
    if old is not None and (old.status, old.reason, old.message) == (wanted.status, wanted.reason, wanted.message):
        if old.observed_generation == obj.metadata.generation:
            return PauseCheck(obj, is_paused, ends_pass=is_paused)
        if not is_paused:
            return PauseCheck(after, is_paused=False, ends_pass=False)
    if not is_paused and not apart:
        return PauseCheck(after, is_paused=False, ends_pass=False)
    await patcher.patch(original, after, owned_conditions=(PAUSED,))
    return PauseCheck(after, is_paused, ends_pass=True)


def is_paused(obj: Any, *, cluster_paused: bool) -> bool:
    """Return whether the object must be left alone."""
    return cluster_paused or PAUSED_ANNOTATION in obj.metadata.annotations


def paused_condition(obj: Object, *, cluster_paused: bool) -> Condition:
    """Return what the condition must say."""
    said = PAUSE.decide(PauseView(obj.kind, cluster_paused, PAUSED_ANNOTATION in obj.metadata.annotations)).outcome
    assert said is not None
    return Condition(type=PAUSED, status=said.status, reason=said.reason, message=said.message)
