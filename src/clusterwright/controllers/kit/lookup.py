"""Objects of other providers, found by reference: what came of looking, as a closed union. Exactly one holds."""

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
    """Whether it exists could not be found out, or it could not be made ours: nothing is known of it."""

    error: str
    cause: Exception | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class Found:
    """The object, and the contract that its kind follows."""

    object: Unstructured
    contract: ContractVersion = "v1beta2"

    @property
    def deleting(self) -> bool:
        """Whether the object is being deleted."""
        return bool(self.object.at("metadata", "deletionTimestamp"))


Lookup = NotReferenced | Missing | Unreadable | Found

NOT_REFERENCED = NotReferenced()


def names_anything(reference: Reference | None) -> bool:
    """Return whether a reference names anything."""
    return reference is not None and bool(reference.kind or reference.name or reference.api_group)


def subject(reference: Reference | None, namespace: str) -> tuple[Subject, ...]:
    """Return what a reference names, for the `about` of a guard."""
    return () if reference is None else (Subject(reference.api_group, reference.kind, namespace, reference.name),)


def core_subject(kind: str, key: ObjectKey) -> Subject:
    """Return an object of Cluster API's core group, for the `about` of a guard."""
    return Subject(CORE_GROUP, kind, key.namespace, key.name)


class Awaited(NamedTuple):
    """An object that is referred to, in whatever version."""

    group: str
    kind: str
    key: ObjectKey


class Expectations:
    """Who refers to which object that nobody owns yet: its creation concerns them, although no owner reference tells so.

    Held in memory only: after a restart everything is looked at once, which is as good.
    """

    def __init__(self) -> None:
        self._awaited: dict[Awaited, set[ObjectKey]] = {}

    def expect(self, referrer: ObjectKey, what: Awaited) -> None:
        """The referrer may be waiting for the object. To be said before it is looked for, so that no change is missed."""
        self._awaited.setdefault(what, set()).add(referrer)

    def met(self, referrer: ObjectKey, what: Awaited) -> None:
        """The object is there, and its owner reference tells whom it concerns."""
        referrers = self._awaited.get(what, set())
        referrers.discard(referrer)
        if not referrers:
            self._awaited.pop(what, None)

    def forget(self, referrer: ObjectKey) -> None:
        """The referrer is gone."""
        for what in [w for w, referrers in self._awaited.items() if referrer in referrers]:
            self.met(referrer, what)

    async def referrers(self, obj: Unstructured, _reader: Reader) -> Sequence[ObjectKey]:
        """Return who waits for the object: a mapper for watches on kinds learned at run time."""
        gvk = obj.gvk
        return tuple(self._awaited.get(Awaited(gvk.group, gvk.kind, obj.key), ()))
