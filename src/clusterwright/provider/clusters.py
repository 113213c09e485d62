"""The cluster infrastructure of a provider: how it makes it, and what it says of it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import ClassVar, Generic, TypeVar

from clusterwright.api.core import Cluster, FailureDomain
from clusterwright.api.infrastructure import InfraCluster
from clusterwright.api.meta import Object, ObjectKey
from clusterwright.provider.machines import Pending
from clusterwright.runtime.client import Client
from clusterwright.runtime.reconcile import Watch

C = TypeVar("C", bound=InfraCluster)


@dataclass(frozen=True, slots=True, kw_only=True)
class Site:
    """Infrastructure that is ready for Machines, in the contract's words."""

    host: str = ""
    """Where the API server will be reached; empty: the control plane brings the endpoint, or the spec has it."""
    port: int = 6443
    failure_domains: Sequence[FailureDomain] = ()
    stopped: str = ""
    """Why it does not work at the moment, though it was made; empty: it works. `Ready` repeats it."""


class InfraClusters(ABC, Generic[C]):
    """A kind of InfraCluster. Derive from it. Both steps are run often, and may be interrupted."""

    kind: ClassVar[type[InfraCluster]]
    """The kind that is reconciled."""
    finalizer: ClassVar[str]
    """Kept on the object until `remove` has said that all is gone."""
    makes: ClassVar[Sequence[type[Object]]] = ()
    """Kinds of the objects that `provision` makes, if it makes objects: a change of one that ours owns wakes us."""
    watches: ClassVar[Sequence[Watch]] = ()
    """Further changes that wake us, such as those of Machines behind a load balancer."""
    look: ClassVar[timedelta] = timedelta(seconds=10)
    """When to look again at what comes or goes. Never, where all is watched (`makes`)."""
    look_when_up: ClassVar[timedelta | None] = timedelta(minutes=1)
    """When to look again at what is there. None, or where all is watched: never."""
    longest_wait: ClassVar[timedelta] = timedelta(minutes=2)
    """The longest time between two attempts that raise ProvisionFailed. The first wait is `look`, each further one twice as long."""

    def __init__(self, client: Client) -> None:
        self.client = client
        self.wake: Callable[[ObjectKey, str], None] = lambda _key, _reason: None
        """Look at an object now, for a reason that traces show: for providers that are told of changes. Set by `add`."""

    def concerns(self, obj: C) -> bool:
        """Return whether the object is this provider's; others of the kind are left alone wholly."""
        return True

    @abstractmethod
    async def provision(self, obj: C, cluster: Cluster) -> Site | Pending | None:
        """Have the infrastructure made and brought up to date. Return it; Pending or None: it is not ready yet. Raises ProvisionFailed."""

    @abstractmethod
    async def remove(self, obj: C, cluster: Cluster | None) -> bool:
        """Have everything removed that was made for it. Return True when all of it is gone. The Cluster may be gone already."""
