"""Index entries by a value in them: a label, a field."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping
from typing import Generic, TypeVar

from clusterwright.api.meta import ObjectKey
from clusterwright.runtime.entries import Entry

P = TypeVar("P", bound=Hashable)

_NONE: Mapping[ObjectKey, None] = {}


class Index(Generic[P]):
    """The keys of entries by the values that `values` returns for a place in them. A place is indexed on its first use."""

    def __init__(self, values: Callable[[Entry, P], Iterable[str]]) -> None:
        self._values = values
        self._places: dict[P, dict[str, dict[ObjectKey, None]]] = {}

    def keys(self, place: P, value: str, entries: Iterable[Entry]) -> Mapping[ObjectKey, None]:
        """Return the keys with this value at a place. `entries` are all entries, needed on the first use of the place."""
        if place not in self._places:
            self._places[place] = {}
            for entry in entries:
                self._add(place, entry)
        return self._places[place].get(value, _NONE)

    def add(self, entry: Entry) -> None:
        """Add an entry."""
        for place in self._places:
            self._add(place, entry)

    def remove(self, entry: Entry) -> None:
        """Remove an entry."""
        for place, index in self._places.items():
            for value in self._values(entry, place):
                if (keys := index.get(value)) is not None:
                    keys.pop(entry.key, None)
                    if not keys:
                        del index[value]

    def _add(self, place: P, entry: Entry) -> None:
        index = self._places[place]
        for value in self._values(entry, place):
            index.setdefault(value, {})[entry.key] = None


def of_label(entry: Entry, name: str) -> Iterable[str]:
    """Return the value of a label."""
    return (entry.labels[name],) if name in entry.labels else ()
