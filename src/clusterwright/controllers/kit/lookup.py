"""Provider objects, found by reference: the result as a closed union. Exactly one variant holds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, TypeVar

from clusterwright.api.contract import ContractVersion
from clusterwright.api.meta import ObjectKey, Unstructured
from clusterwright.api.wellknown import CORE_GROUP
from clusterwright.controllers.external import Reference
from clusterwright.runtime.client import Reader
from clusterwright.tables import Subject

S = TypeVar("S")


@dataclass(frozen=True, slots=True)
class NotReferenced:
    """There is no reference."""


@dataclass(frozen=True, slots=True)
class Missing:
    """The API server says that the object does not exist."""


@dataclass(frozen=True, slots=True)
class Unreadable:
    """The API server did not say whether the object exists, or adopting it failed: nothing is known about it."""

    error: str
    cause: Exception | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class Found:
    """The object, and the contract of its kind."""

    object: Unstructured
    contract: ContractVersion = "v1beta2"

    @property
    def deleting(self) -> bool:
        """Whether the object is being deleted."""
        return bool(self.object.at("metadata", "deletionTimestamp"))


Lookup = NotReferenced | Missing | Unreadable | Found

NOT_REFERENCED = NotReferenced()


def names_anything(reference: Reference | None) -> bool:
    """Return whether the reference names an object."""
    return reference is not None and bool(reference.kind or reference.name or reference.api_group)


def subject(reference: Reference | None, namespace: str) -> tuple[Subject, ...]:
    """Return the object that a reference names, for the `about` of a guard."""
    return () if reference is None else (Subject(reference.api_group, reference.kind, namespace, reference.name),)


def core_subject(kind: str, key: ObjectKey) -> Subject:
    """Return an object of Cluster API's core group, for the `about` of a guard."""
    return Subject(CORE_GROUP, kind, key.namespace, key.name)


class Awaited(NamedTuple):
    """An object that is referred to, in any version."""

    group: str
    kind: str
    key: ObjectKey


class Expectations:
    """References to objects that have no owner yet: a created object concerns its referrers although it has no owner reference.

    The references are kept in memory only: after a restart every object is reconciled once anyway.
    """

    def __init__(self) -> None:
        self._awaited: dict[Awaited, set[ObjectKey]] = {}

    def expect(self, referrer: ObjectKey, what: Awaited) -> None:
        """Record that the referrer may wait for the object. Call this before reading the object, so that no change is missed."""
        self._awaited.setdefault(what, set()).add(referrer)

    def met(self, referrer: ObjectKey, what: Awaited) -> None:
        """Forget the references to an object that exists: its owner reference names the objects that it concerns."""
        referrers = self._awaited.get(what, set())
        referrers.discard(referrer)
        if not referrers:
            self._awaited.pop(what, None)

    def forget(self, referrer: ObjectKey) -> None:
        """Forget a referrer that is gone."""
        for what in [w for w, referrers in self._awaited.items() if referrer in referrers]:
            self.met(referrer, what)

    async def referrers(self, obj: Unstructured, _reader: Reader) -> Sequence[ObjectKey]:
        """Return the objects that wait for the object: a mapper for watches on kinds learned at run time."""
        gvk = obj.gvk
        return tuple(self._awaited.get(Awaited(gvk.group, gvk.kind, obj.key), ()))
