"""Admission of ClusterResourceSet and ClusterResourceSetBinding."""

from __future__ import annotations

from typing import Any, Final

from clusterwright.admission import selectors
from clusterwright.admission.hook import Hook
from clusterwright.admission.rule import UPDATE, Default, Review, Rule, at
from clusterwright.admission.sets import IMMUTABLE, INVALID, below
from clusterwright.api.addons import ClusterResourceSet, ClusterResourceSetBinding
from clusterwright.api.meta import Json


def _strategy(obj: Json, review: Review) -> None:
    del review
    spec = below(obj, "spec")
    spec["strategy"] = spec.get("strategy") or "ApplyOnce"


def _was_set_and_changed(key: str) -> Any:
    def guard(review: Review, value: Any) -> bool:
        before = at(review.old, "spec", key)
        return bool(before) and before != value

    return guard


def _selects_others(review: Review, value: Any) -> bool:
    return _parts(value) != _parts(at(review.old, "spec", "clusterSelector"))


def _parts(selector: Any) -> tuple[Any, Any]:
    return at(selector, "matchLabels") or {}, at(selector, "matchExpressions") or []


CLUSTER_RESOURCE_SET: Final = Hook(
    model=ClusterResourceSet,
    defaults=(Default("CRS-D1", "spec.strategy", _strategy),),
    rules=(
        selectors.valid_selector("CRS-1", "spec.clusterSelector"),
        Rule("CRS-2", INVALID, "spec.clusterSelector", lambda _, v: selectors.is_empty(v), "selector must not be empty"),
        Rule("CRS-3", INVALID, "spec.strategy", _was_set_and_changed("strategy"), IMMUTABLE, on=UPDATE),
        Rule("CRS-4", INVALID, "spec.clusterSelector", _selects_others, IMMUTABLE, on=UPDATE),
    ),
)

CLUSTER_RESOURCE_SET_BINDING: Final = Hook(
    model=ClusterResourceSetBinding,
    rules=(Rule("CRB-1", INVALID, "spec.clusterName", _was_set_and_changed("clusterName"), IMMUTABLE, on=UPDATE),),
)
