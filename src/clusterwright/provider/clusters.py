"""The cluster infrastructure of a provider: its steps, and its reported state."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, TypeVar

from clusterwright.api.core import Cluster, FailureDomain
from clusterwright.api.infrastructure import InfraCluster
from clusterwright.provider.base import Provider
from clusterwright.provider.machines import Pending
from clusterwright.runtime.reconcile import Watch

C = TypeVar("C", bound=InfraCluster)


@dataclass(frozen=True, slots=True, kw_only=True)
class Site:
    """Infrastructure that is ready for Machines, with the contract's fields."""

    host: str = ""
    """The host of the API server; empty: the control plane provides the endpoint, or the spec has it."""
    port: int = 6443
    failure_domains: Sequence[FailureDomain] = ()
    stopped: str = ""
    """Why it does not work at the moment, although it was created; empty: it works. `Ready` repeats it."""
    facts: Any = None
    """Facts for the provider's own conditions."""


class InfraClusters(Provider[C]):
    """A kind of InfraCluster. Derive from it. Both steps are run often, and may be interrupted."""

    kind: ClassVar[type[InfraCluster]]
    """The kind that is reconciled."""
    watches: ClassVar[Sequence[Watch]] = ()
    """Further watches that requeue objects, such as Machines behind a load balancer."""

    @abstractmethod
    async def provision(self, obj: C, cluster: Cluster) -> Site | Pending | None:
        """Create or update the infrastructure. Return it; Pending or None: it is not ready yet. Raises ProvisionFailed."""

    @abstractmethod
    async def remove(self, obj: C, cluster: Cluster | None) -> bool:
        """Remove everything that was created for it. Return True when all of it is gone. The Cluster may be gone already."""
