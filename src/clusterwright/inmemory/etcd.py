"""Membership of a simulated etcd cluster, stored on the etcd Pods, so that it survives restarts. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from random import Random

from clusterwright.streams import grpc

PREFIX = "etcd.inmemory.infrastructure.cluster.x-k8s.io/"
CLUSTER_ID = PREFIX + "cluster-id"
MEMBER_ID = PREFIX + "member-id"
LEADER_FROM = PREFIX + "leader-from"
REMOVED = PREFIX + "member-removed"
LEARNER = PREFIX + "learner"
UNNAMED = PREFIX + "unnamed"
"""kubeadm has added the member as a learner, but its process has not started yet: its name is not known."""
ALARMS = PREFIX + "alarms"
STOPPED = PREFIX + "stopped"
"""Marks a member whose process is down: it counts in the membership, but does not answer or vote."""


class EtcdRefused(Exception):
    """An etcd call failed; text and status are those of etcd."""

    def __init__(self, text: str, code: int = grpc.UNAVAILABLE) -> None:
        super().__init__(text)
        self.code = code


@dataclass(frozen=True, slots=True, kw_only=True)
class Member:
    """One member: an etcd Pod that has been registered and not removed."""

    id: str
    name: str
    cluster_id: str
    leader_from: str = ""
    is_learner: bool = False
    is_unnamed: bool = False
    is_stopped: bool = False
    alarms: tuple[str, ...] = ()


def members(pods: Iterable[tuple[str, Mapping[str, str]]]) -> tuple[Member, ...]:
    """Return the members among (Pod name, annotations), ordered by name."""
    found = [
        Member(
            id=annotations[MEMBER_ID],
            name=name.removeprefix("etcd-"),
            cluster_id=annotations.get(CLUSTER_ID, ""),
            leader_from=annotations.get(LEADER_FROM, ""),
            is_learner=LEARNER in annotations or UNNAMED in annotations,
            is_unnamed=UNNAMED in annotations,
            is_stopped=STOPPED in annotations or UNNAMED in annotations,
            alarms=tuple(a for a in annotations.get(ALARMS, "").split(",") if a),
        )
        for name, annotations in pods
        if MEMBER_ID in annotations and REMOVED not in annotations
    ]
    return tuple(sorted(found, key=lambda m: m.name))


def has_quorum(everyone: tuple[Member, ...]) -> bool:
    """Return whether more than half of the voting members answer."""
    voters = [m for m in everyone if not m.is_learner]
    return 2 * sum(not m.is_stopped for m in voters) > len(voters)


def leader(everyone: tuple[Member, ...]) -> Member | None:
    """Return the member with the newest claim among those that can lead; None without quorum."""
    able = [m for m in everyone if not m.is_learner and not m.is_stopped]
    if not able or not has_quorum(everyone):
        return None
    return max(able, key=lambda m: (m.leader_from, m.name))


def new_member(everyone: tuple[Member, ...], random: Random, now: datetime) -> dict[str, str]:
    """Return annotations that register one more member; the first founds the cluster and leads it."""
    taken = {m.id for m in everyone}
    member_id = str(random.randint(1, 2**32 - 1))
    while member_id in taken:
        member_id = str(random.randint(1, 2**32 - 1))
    if not everyone:
        stamp = now.strftime("%Y-%m-%dT%H:%M:%SZ")
        return {CLUSTER_ID: str(random.randint(1, 2**32 - 1)), MEMBER_ID: member_id, LEADER_FROM: stamp}
    return {CLUSTER_ID: everyone[0].cluster_id, MEMBER_ID: member_id}


def addressed(everyone: tuple[Member, ...], name: str) -> Member:
    """Return the member at an endpoint; fail as a dead or removed one does."""
    for member in everyone:
        if member.name == name and not member.is_stopped:
            return member
    raise EtcdRefused(f"etcd-{name}: connection refused")


def check_removal(everyone: tuple[Member, ...], target: Member) -> None:
    """Check whether etcd would allow the removal: the rest must have quorum (`strict-reconfig-check`)."""
    left = tuple(m for m in everyone if m.id != target.id)
    if not target.is_learner and left and not has_quorum(left):
        raise EtcdRefused("etcdserver: re-configuration failed due to not enough started members", grpc.FAILED_PRECONDITION)


def by_id(everyone: tuple[Member, ...], member_id: str) -> Member:
    """Return the member of an id; fail as etcd does."""
    for member in everyone:
        if member.id == member_id:
            return member
    raise EtcdRefused("etcdserver: member not found", grpc.NOT_FOUND)
