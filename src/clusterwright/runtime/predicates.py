"""Predicates of changes. Each is called with the old and the new object, None if there is none."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from clusterwright.api.wellknown import WATCH_FILTER_LABEL
from clusterwright.runtime.reconcile import Predicate


def all_of(*predicates: Predicate | None) -> Predicate | None:
    """Return a predicate that requires all of these; None for none, so that nothing need be decoded."""
    given = tuple(predicate for predicate in predicates if predicate is not None)
    if len(given) < 2:
        return given[0] if given else None
    return lambda old, new: all(predicate(old, new) for predicate in given)


def any_of(*predicates: Predicate) -> Predicate:
    """Return a predicate that requires at least one of these."""
    return lambda old, new: any(predicate(old, new) for predicate in predicates)


def has_watch_filter(value: str) -> Predicate | None:
    """Return a predicate of objects whose watch-filter label has this value; without a value, None."""
    if not value:
        return None
    return lambda old, new: any(obj is not None and obj.metadata.labels.get(WATCH_FILTER_LABEL) == value for obj in (old, new))


@dataclass(frozen=True, slots=True)
class Changed:
    """A predicate: the facts of an object differ. A new object always counts, a deleted one if `going`."""

    facts: Callable[[Any], Any]
    going: bool = True

    def __call__(self, old: Any | None, new: Any | None) -> bool:
        """Return whether the change counts."""
        if new is None:
            return self.going
        return old is None or self.facts(old) != self.facts(new)


def changed(facts: Callable[[Any], Any]) -> Changed:
    """Count objects that appear, go, or have changed facts."""
    return Changed(facts)


def appeared_or_changed(facts: Callable[[Any], Any]) -> Changed:
    """Count objects that appear or have changed facts; an object that goes does not count."""
    return Changed(facts, going=False)


def gone(old: Any | None, new: Any | None) -> bool:
    """Count objects that go."""
    return new is None


resource_version_changed: Predicate = changed(lambda obj: obj.metadata.resource_version)
"""A predicate that drops events without a change."""
