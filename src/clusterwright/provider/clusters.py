"""The cluster infrastructure of a provider: how it makes it, and what it says of it."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, TypeVar

from clusterwright.api.core import Cluster, FailureDomain
from clusterwright.api.infrastructure import InfraCluster
from clusterwright.provider.base import Provider
from clusterwright.provider.machines import Pending
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


class InfraClusters(Provider[C]):
    """A kind of InfraCluster. Derive from it. Both steps are run often, and may be interrupted."""

    kind: ClassVar[type[InfraCluster]]
    """The kind that is reconciled."""
    watches: ClassVar[Sequence[Watch]] = ()
    """Further changes that wake us, such as those of Machines behind a load balancer."""

    @abstractmethod
    async def provision(self, obj: C, cluster: Cluster) -> Site | Pending | None:
        """Have the infrastructure made and brought up to date. Return it; Pending or None: it is not ready yet. Raises ProvisionFailed."""

    @abstractmethod
    async def remove(self, obj: C, cluster: Cluster | None) -> bool:
        """Have everything removed that was made for it. Return True when all of it is gone. The Cluster may be gone already."""
