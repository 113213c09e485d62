"""The access of controllers to workload clusters, through the cluster cache or a bundle's Observation."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Protocol

from clusterwright.api.meta import Object, ObjectKey
from clusterwright.runtime.client import Client
from clusterwright.runtime.errors import ConnectionFailed


class NotConnected(ConnectionFailed):
    """The workload cluster is not connected now; a connect or disconnect wakes everything that asked for it."""

    is_expected = True

    def __init__(self, what: str = "error getting client") -> None:
        super().__init__(f"{what}: connection to the workload cluster is down")


class PortRefused(ConnectionFailed):
    """Nothing listens at a port of a Pod; while a machine comes up or goes, that is how it is."""

    is_expected = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Health:
    """The results of the connection probe. Kept across disconnects."""

    connected: bool = False
    last_probe: datetime | None = None
    last_probe_success: datetime | None = None
    consecutive_failures: int = 0
    refusal: str = ""
    """Why the kubeconfig in the Secret is not used, with the field to blame; empty: it is, or there is none."""
    untried: bool = False
    """Nobody has tried to connect since this process began, or came to be in charge: soon somebody will."""
    inspected: bool = False
    """A record instead of a cluster: the conditions of the Machines already contain the findings about Pods and etcd."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EtcdMember:
    """A member as the etcd cluster lists it. `id` is decimal text; `name` is empty until it has started."""

    id: str
    name: str = ""
    is_learner: bool = False
    is_leader: bool = False
    peer_urls: tuple[str, ...] = ()
    alarms: tuple[str, ...] = ()  # "NOSPACE", "CORRUPT"


@dataclass(frozen=True, slots=True, kw_only=True)
class EtcdStatus:
    """The status that one endpoint reports."""

    leader_id: str = ""
    errors: tuple[str, ...] = ()


class EtcdClient(Protocol):
    """A connection to one etcd endpoint. Every call has a deadline; failures are `EtcdError`s."""

    status: EtcdStatus

    async def members(self) -> Sequence[EtcdMember]:
        """Return the member list (alarms not filled in)."""

    async def alarms(self) -> Sequence[tuple[str, str]]:
        """(member id, alarm type) of every active alarm."""

    async def remove_member(self, member_id: str) -> None:
        """Remove a member for good."""

    async def move_leader(self, member_id: str) -> None:
        """Make a member the leader; this endpoint must be the present one."""

    async def close(self) -> None:
        """Release the connection."""


class EtcdError(Exception):
    """An etcd call failed."""


class WorkloadClusters(Protocol):
    """The workload clusters that this process is connected to, by key of their Cluster."""

    async def client(self, cluster: ObjectKey) -> Client:
        """Return a client of the workload cluster (Nodes cached); raises NotConnected."""

    def health(self, cluster: ObjectKey) -> Health:
        """Return what the connection probe found; the default Health for a Cluster never seen."""

    async def etcd(self, cluster: ObjectKey, nodes: Sequence[str]) -> EtcdClient:
        """Return a client of the first etcd member, in the order of `nodes`, that answers a status call."""

    async def serving_certificate_expiry(self, cluster: ObjectKey, node: str, port: int = 6443) -> datetime:
        """NotAfter of the certificate that the API server on `node` serves at `port`; raises ApiError."""

    async def watch(
        self,
        cluster: ObjectKey,
        watcher: str,
        kind: type[Object],
        notify: Callable[[Any], None],
        *,
        namespace: str = "",
        labels: str = "",
    ) -> None:
        """Call `notify` for what is there and every change, of a namespace and with labels where given.

        Once per watcher name, selection and connection; raises NotConnected.
        """

    def unwatch(self, cluster: ObjectKey, watcher: str, kind: type[Object]) -> None:
        """End the watches of this name and kind; what was kept for them alone is dropped. Having none is not an error."""
