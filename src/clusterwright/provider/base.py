"""The part that providers of machines and of clusters share: the kind, and when its objects are looked at."""

from __future__ import annotations

from abc import ABC
from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import ClassVar, Generic, TypeVar

from clusterwright.api.meta import Object, ObjectKey
from clusterwright.runtime.client import Client

K = TypeVar("K", bound=Object)


class Provider(ABC, Generic[K]):
    """One kind of infrastructure objects."""

    finalizer: ClassVar[str]
    """Kept on the object until `remove` has said that all is gone."""
    makes: ClassVar[Sequence[type[Object]]] = ()
    """Kinds of the objects that `provision` makes, if it makes objects: a change of one that ours owns wakes us."""
    look: ClassVar[timedelta] = timedelta(seconds=10)
    """When to look again at an object that comes or goes. Never, where all is watched (`makes`)."""
    look_when_up: ClassVar[timedelta | None] = timedelta(minutes=1)
    """When to look again at an object that is up, for one that stops or is gone. None, or where all is watched: never."""
    longest_wait: ClassVar[timedelta] = timedelta(minutes=2)
    """The longest time between two attempts that raise ProvisionFailed. The first wait is `look`, each further one twice as long."""

    def __init__(self, client: Client) -> None:
        self.client = client
        self.wake: Callable[[ObjectKey, str], None] = lambda _key, _reason: None
        """Look at an object now, for a reason that traces show: for providers that are told of changes. Set by `add`."""

    def concerns(self, obj: K) -> bool:
        """Return whether the object is this provider's; others of the kind are left alone wholly."""
        return True
