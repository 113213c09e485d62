"""Writes of ours that a watch has not shown yet, found by key and by label. While much is written they are many, and every list asks."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from clusterwright.api.meta import ObjectKey
from clusterwright.runtime.entries import Entry
from clusterwright.runtime.selectors import Selector


@dataclass(slots=True)
class Own:
    """The outcome of a write of ours that the watch has not shown yet. `entry` None: we deleted it."""

    uid: str
    resource_version: str
    entry: Entry | None
    lists: int
    """How many lists had begun when it was written: a list that began later knows of it."""


class OwnWrites:
    """The last such write of each object."""

    def __init__(self) -> None:
        self._by_key: dict[ObjectKey, Own] = {}
        self._labels: dict[str, dict[str, dict[ObjectKey, None]]] = {}
        """Of the labels that were asked for: by value, the objects that have it."""

    def __contains__(self, key: ObjectKey) -> bool:
        return key in self._by_key

    def get(self, key: ObjectKey) -> Own | None:
        """What became of the object."""
        return self._by_key.get(key)

    def put(self, key: ObjectKey, own: Own) -> None:
        """Keep it, instead of an earlier one."""
        self.drop(key)
        self._by_key[key] = own
        if own.entry is not None:
            for name, values in self._labels.items():
                if name in own.entry.labels:
                    values.setdefault(own.entry.labels[name], {})[key] = None

    def drop(self, key: ObjectKey) -> None:
        """The watch has shown it."""
        own = self._by_key.pop(key, None)
        if own is None or own.entry is None:
            return
        for name, values in self._labels.items():
            value = own.entry.labels.get(name)
            if value is not None and (keys := values.get(value)) is not None:
                keys.pop(key, None)
                if not keys:
                    del values[value]

    def drop_where(self, is_shown: Callable[[ObjectKey, Own], bool]) -> None:
        """The watch has shown these."""
        for key in [key for key, own in self._by_key.items() if is_shown(key, own)]:
            self.drop(key)

    def entries(self, labels: Selector) -> Iterator[Entry]:
        """Objects that may have these labels, in no order."""
        if not labels.equal:
            return (own.entry for own in self._by_key.values() if own.entry is not None)
        name, value = labels.equal[0]
        if name not in self._labels:
            values = self._labels[name] = {}
            for key, own in self._by_key.items():
                if own.entry is not None and name in own.entry.labels:
                    values.setdefault(own.entry.labels[name], {})[key] = None
        found = (self._by_key[key].entry for key in self._labels[name].get(value, ()))
        return (entry for entry in found if entry is not None)
