"""The common part of providers for machines and for clusters: the kind, and the intervals of its passes."""

from __future__ import annotations

from abc import ABC
from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Any, ClassVar, Generic, TypeVar

from clusterwright.api.meta import Object, ObjectKey
from clusterwright.runtime.client import Client
from clusterwright.tables import Table

K = TypeVar("K", bound=Object)


class Provider(ABC, Generic[K]):
    """One kind of infrastructure objects."""

    finalizer: ClassVar[str]
    """The finalizer; it stays on the object until `remove` reports that everything is gone."""
    makes: ClassVar[Sequence[type[Object]]] = ()
    """The kinds of objects that `provision` creates, if any: a change of an owned one requeues the owner."""
    look: ClassVar[timedelta] = timedelta(seconds=10)
    """The interval of passes over an object that is created or deleted; unused if all changes are watched (`makes`)."""
    look_when_up: ClassVar[timedelta | None] = timedelta(minutes=1)
    """The interval of passes over an object that is up, to detect that it stopped or is gone; None, or if all is watched: none."""
    longest_wait: ClassVar[timedelta] = timedelta(minutes=2)
    """The longest time between two attempts that raise ProvisionFailed. The first wait is `look`, each further one twice as long."""
    conditions: ClassVar[Sequence[Table[Any]]] = ()
    """Tables of further conditions, decided on `provider.conditions.Answered` before `Ready`; its `facts` are those of the last answer."""

    def __init__(self, client: Client) -> None:
        self.client = client
        self.wake: Callable[[ObjectKey, str], None] = lambda _key, _reason: None
        """Requeue an object now, with a reason for traces: for providers that receive events. Set by `add`."""

    def concerns(self, obj: K) -> bool:
        """Return whether the object is this provider's; others of the kind are left alone completely."""
        return True
