"""Own writes that a watch has not shown yet, indexed by key and by label, because there may be many and every list needs them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from clusterwright.api.meta import ObjectKey
from clusterwright.api.selectors import Selector
from clusterwright.runtime.entries import Entry
from clusterwright.runtime.indexes import Index, of_label


@dataclass(slots=True)
class Own:
    """The outcome of an own write that the watch has not shown yet. `entry` None: we deleted it."""

    uid: str
    resource_version: str
    entry: Entry | None
    lists: int
    """The number of lists begun before the write: a later list includes it."""


class OwnWrites:
    """The last such write of each object."""

    def __init__(self) -> None:
        self._by_key: dict[ObjectKey, Own] = {}
        self._labels = Index(of_label)

    def __contains__(self, key: ObjectKey) -> bool:
        return key in self._by_key

    def get(self, key: ObjectKey) -> Own | None:
        """Return the write of an object."""
        return self._by_key.get(key)

    def put(self, key: ObjectKey, own: Own) -> None:
        """Keep the write, instead of an earlier one."""
        self.drop(key)
        self._by_key[key] = own
        if own.entry is not None:
            self._labels.add(own.entry)

    def drop(self, key: ObjectKey) -> None:
        """Drop a write that the watch has shown."""
        own = self._by_key.pop(key, None)
        if own is not None and own.entry is not None:
            self._labels.remove(own.entry)

    def drop_where(self, is_shown: Callable[[ObjectKey, Own], bool]) -> None:
        """Drop all writes that the watch has shown."""
        for key in [key for key, own in self._by_key.items() if is_shown(key, own)]:
            self.drop(key)

    def entries(self, labels: Selector) -> Iterator[Entry]:
        """Return objects that may have these labels, in no order."""
        every = (own.entry for own in self._by_key.values() if own.entry is not None)
        if not labels.equal:
            return every
        found = (self._by_key[key].entry for key in self._labels.keys(*labels.equal[0], every))
        return (entry for entry in found if entry is not None)
