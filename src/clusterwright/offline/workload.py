"""Workload clusters as an Observation describes them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from clusterwright.api.copying import replace
from clusterwright.api.meta import Object, ObjectKey
from clusterwright.offline.observation import EtcdErrors, Member, WorkloadCluster
from clusterwright.offline.observed import Action, Journal
from clusterwright.runtime.client import Client
from clusterwright.workload.access import EtcdError, EtcdMember, EtcdStatus, Health, NotConnected


class ObservedEtcd:
    """An etcd endpoint that answers what was observed; removals and leadership moves go to the journal and take effect."""

    def __init__(self, members: dict[str, Member], errors: EtcdErrors, journal: Journal) -> None:
        self._members = members
        self._errors = errors
        self._journal = journal
        self.status = EtcdStatus(leader_id=next((m.id for m in members.values() if m.leader), ""), errors=errors.status)

    async def members(self) -> Sequence[EtcdMember]:
        """Return the member list."""
        _fail(self._errors.members)
        return [
            EtcdMember(id=m.id, name=m.name, is_learner=m.is_learner, is_leader=m.leader, alarms=m.alarms) for m in self._members.values()
        ]

    async def alarms(self) -> Sequence[tuple[str, str]]:
        """Return (member id, alarm type) of every active alarm."""
        _fail(self._errors.alarms)
        return [(m.id, alarm) for m in self._members.values() for alarm in m.alarms]

    async def remove_member(self, member_id: str) -> None:
        """Remove a member."""
        _fail(self._errors.remove)
        member = self._find(member_id)
        del self._members[member_id]
        self._journal.actions.append(Action("delete", "EtcdMember", "", member.name or member.id))

    async def move_leader(self, member_id: str) -> None:
        """Move the leadership."""
        _fail(self._errors.move_leader)
        member = self._find(member_id)
        for other in list(self._members.values()):
            self._members[other.id] = Member(
                name=other.name, id=other.id, is_learner=other.is_learner, leader=other.id == member_id, alarms=other.alarms
            )
        self.status = EtcdStatus(leader_id=member_id, errors=self.status.errors)
        self._journal.actions.append(Action("patch", "EtcdMember", "", member.name or member.id))

    async def close(self) -> None:
        """Do nothing: there is nothing to release."""

    def _find(self, member_id: str) -> Member:
        if member_id not in self._members:
            raise EtcdError("etcdserver: member not found")
        return self._members[member_id]


def _fail(error: str) -> None:
    if error:
        raise EtcdError(error)


class ObservedWorkloadClusters:
    """`WorkloadClusters` of a bundle. A Cluster that the Observation does not name was never connected."""

    def __init__(self, clusters: Mapping[ObjectKey, WorkloadCluster], clients: Mapping[ObjectKey, Client], journal: Journal) -> None:
        self._clusters = clusters
        self._clients = clients
        self._journal = journal
        self._members = {key: {m.id: m for m in c.etcd_members} for key, c in clusters.items() if c.etcd_members is not None}

    def _connected(self, cluster: ObjectKey, what: str = "error getting client") -> WorkloadCluster:
        found = self._clusters.get(cluster)
        if found is None or not found.connected:
            raise NotConnected(what)
        return found

    async def client(self, cluster: ObjectKey) -> Client:
        """Return the workload cluster's client; raises NotConnected."""
        self._connected(cluster)
        return self._clients[cluster]

    def health(self, cluster: ObjectKey) -> Health:
        """Return the recorded result of the probe."""
        found = self._clusters.get(cluster)
        if found is None:
            return Health()
        success = found.last_probe_success.astimezone(UTC) if found.last_probe_success is not None else None
        return Health(
            connected=found.connected,
            last_probe=success,
            last_probe_success=success,
            consecutive_failures=found.consecutive_failures,
            refusal=found.refusal,
            inspected=found.inspected,
        )

    async def etcd(self, cluster: ObjectKey, nodes: Sequence[str]) -> ObservedEtcd:
        """Return the etcd cluster; fails as observed, or when its members could not be listed."""
        found = self._connected(cluster)
        _fail(found.etcd_errors.connect)
        if not nodes:
            raise EtcdError("no etcd member to connect to")
        if cluster not in self._members:
            errors = found.etcd_errors
            if not errors.members:
                errors = replace(errors, members="the etcd members could not be listed")
            return ObservedEtcd({}, errors, self._journal)
        return ObservedEtcd(self._members[cluster], found.etcd_errors, self._journal)

    async def serving_certificate_expiry(self, cluster: ObjectKey, node: str, port: int = 6443) -> datetime:
        """Return the observed expiry. A Node that the Observation does not name cannot be reached."""
        found = self._connected(cluster)
        if node not in found.api_server_certificate_expiry:
            raise NotConnected(f"error reaching the API server on Node {node}")
        return found.api_server_certificate_expiry[node].astimezone(UTC)

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
        """Do nothing: one pass sees no changes."""
        self._connected(cluster, "error creating watch")

    def unwatch(self, cluster: ObjectKey, watcher: str, kind: type[Object]) -> None:
        """Do nothing: there is nothing to end."""
