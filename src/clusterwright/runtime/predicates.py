"""Which changes count. A predicate is asked with the old and the new object, None where there is none."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from clusterwright.api.wellknown import WATCH_FILTER_LABEL
from clusterwright.runtime.reconcile import Predicate


def all_of(*predicates: Predicate | None) -> Predicate | None:
    """Return all of those that are given; None where there are none, so that nothing need be decoded."""
    given = tuple(predicate for predicate in predicates if predicate is not None)
    if len(given) < 2:
        return given[0] if given else None
    return lambda old, new: all(predicate(old, new) for predicate in given)


def any_of(*predicates: Predicate) -> Predicate:
    """At least one of them."""
    return lambda old, new: any(predicate(old, new) for predicate in predicates)


def has_watch_filter(value: str) -> Predicate | None:
    """Return the object carries the watch-filter label with this value; no value, no filter."""
    if not value:
        return None
    return lambda old, new: any(obj is not None and obj.metadata.labels.get(WATCH_FILTER_LABEL) == value for obj in (old, new))


def changed(what: Callable[[Any], Any]) -> Predicate:
    """Return what `what` makes of the object is different now; coming and going always count."""
    return lambda old, new: old is None or new is None or what(old) != what(new)


resource_version_changed: Predicate = changed(lambda obj: obj.metadata.resource_version)
"""Drops events that tell nothing new."""
