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
    """The workload cluster is not connected now; a connect or disconnect requeues all keys that asked for it."""

    is_expected = True

    def __init__(self, what: str = "error getting client") -> None:
        super().__init__(f"{what}: connection to the workload cluster is down")


class PortRefused(ConnectionFailed):
    """Nothing listens at a port of a Pod; this is normal while a machine comes up or goes."""

    is_expected = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Health:
    """The results of the connection probe, kept across disconnects."""

    connected: bool = False
    last_probe: datetime | None = None
    last_probe_success: datetime | None = None
    consecutive_failures: int = 0
    refusal: str = ""
    """Why the kubeconfig in the Secret is not used, with the field at fault; empty: it is used, or there is none."""
    untried: bool = False
    """Whether no connection was tried since this process began, or took over; one will be tried soon."""
    inspected: bool = False
    """Whether this is a record instead of a cluster: the conditions of the Machines already contain the findings about Pods and etcd."""


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
        """Return the members (without alarms)."""

    async def alarms(self) -> Sequence[tuple[str, str]]:
        """Return (member id, alarm type) of every active alarm."""

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
        """Return a client of the workload cluster (with cached Nodes); raises NotConnected."""

    def health(self, cluster: ObjectKey) -> Health:
        """Return the result of the connection probe; the default Health for an unknown Cluster."""

    async def etcd(self, cluster: ObjectKey, nodes: Sequence[str]) -> EtcdClient:
        """Return a client of the first etcd member, in the order of `nodes`, that answers a status call."""

    async def serving_certificate_expiry(self, cluster: ObjectKey, node: str, port: int = 6443) -> datetime:
        """Return NotAfter of the certificate that the API server on `node` serves at `port`; raises ApiError."""

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
        """Call `notify` for existing objects and every change, of a namespace and with labels if given.

        Only once per watcher name, selection and connection; raises NotConnected.
        """

    def unwatch(self, cluster: ObjectKey, watcher: str, kind: type[Object]) -> None:
        """End the watches of this name and kind; caches only for them are dropped. It is not an error if there are none."""
