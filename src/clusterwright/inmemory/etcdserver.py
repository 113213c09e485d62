"""Answer for a simulated etcd member: its cluster's membership, leadership and alarms. It holds no keys."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from datetime import datetime
from typing import Any

from clusterwright.api.meta import Json
from clusterwright.inmemory import etcd, objects
from clusterwright.inmemory.etcd import EtcdRefused, Member
from clusterwright.streams import grpc

Annotate = Callable[[str, Mapping[str, str | None]], Awaitable[None]]
"""Changes the state of the member on a machine."""


class EtcdServer:
    """The member on one machine."""

    def __init__(self, machine: str, *, members: Callable[[], tuple[Member, ...]], annotate: Annotate, now: Callable[[], datetime]) -> None:
        self._machine = machine
        self.members = members
        self._annotate = annotate
        self._now = now

    async def call(self, method: str, body: Json) -> Json:
        """Answer a call by the method's name in `streams.etcdrpc.METHODS`; raises EtcdRefused."""
        everyone = self.members()
        me = etcd.addressed(everyone, self._machine)
        leader = etcd.leader(everyone)
        header = {"cluster_id": me.cluster_id, "member_id": me.id}
        match method:
            case "Status":
                status: Json = {"header": header, "version": objects.ETCD_VERSION, "leader": leader.id if leader else "0"}
                return {**status, "errors": [] if leader else ["etcdserver: no leader"], "isLearner": me.is_learner}
            case "Alarm":
                return {"header": header, "alarms": await self._alarms(everyone, body)}
            case "MemberList":
                _require(leader)
                return {"header": header, "members": [_member(m) for m in everyone]}
            case "MemberRemove":
                _require(leader)
                target = etcd.by_id(everyone, body.get("ID", "0"))
                etcd.check_removal(everyone, target)
                await self._annotate(target.name, {etcd.REMOVED: "", etcd.LEADER_FROM: None})
                return {"header": header, "members": [_member(m) for m in everyone if m.id != target.id]}
            case "MemberPromote":
                _require(leader)
                target = etcd.by_id(everyone, body.get("ID", "0"))
                if target.is_unnamed:
                    raise EtcdRefused(
                        "etcdserver: can only promote a learner member which is in sync with leader", grpc.FAILED_PRECONDITION
                    )
                if not target.is_learner:
                    raise EtcdRefused("etcdserver: can only promote a learner member", grpc.FAILED_PRECONDITION)
                await self._annotate(target.name, {etcd.LEARNER: None})
                return {"header": header, "members": [_member(m) for m in self.members()]}
            case "MoveLeader":
                await self._move_leader(everyone, me, leader, body.get("targetID", "0"))
                return {"header": header}
            case "Range":
                _require(leader)
                return {"header": header}
            case "Defragment":
                return {"header": header}
            case _:
                raise EtcdRefused(f"{method} is not simulated: members are added and removed with machines", grpc.UNIMPLEMENTED)

    async def _move_leader(self, everyone: tuple[Member, ...], me: Member, leader: Member | None, target_id: str) -> None:
        if leader is None or leader.id != me.id:
            raise EtcdRefused("etcdserver: not leader", grpc.FAILED_PRECONDITION)
        target = etcd.by_id(everyone, target_id)
        if target.is_learner or target.is_stopped:
            raise EtcdRefused("etcdserver: bad leader transferee", grpc.FAILED_PRECONDITION)
        await self._annotate(me.name, {etcd.LEADER_FROM: None})
        await self._annotate(target.name, {etcd.LEADER_FROM: objects.timestamp(self._now())})

    async def _alarms(self, everyone: tuple[Member, ...], body: Json) -> list[dict[str, Any]]:
        """Return the raised alarms; or the one that was raised or cleared now."""
        action, alarm = body.get("action", "GET"), body.get("alarm", "NONE")
        if action == "GET":
            wanted = {alarm} if alarm != "NONE" else {a for m in everyone for a in m.alarms}
            return [{"memberID": m.id, "alarm": a} for m in everyone for a in m.alarms if a in wanted]
        target = etcd.by_id(everyone, body.get("memberID", "0"))
        if alarm == "NONE" or (action == "DEACTIVATE" and alarm not in target.alarms):
            return []
        left = [a for a in target.alarms if a != alarm] + ([alarm] if action == "ACTIVATE" else [])
        await self._annotate(target.name, {etcd.ALARMS: ",".join(left) or None})
        return [{"memberID": target.id, "alarm": alarm}]


def _require(leader: Member | None) -> None:
    if leader is None:
        raise EtcdRefused("etcdserver: request timed out")


def _member(member: Member) -> Json:
    if member.is_unnamed:
        return {"ID": member.id, "peerURLs": [f"https://{member.name}:2380"], "isLearner": True}
    urls = {"peerURLs": [f"https://{member.name}:2380"], "clientURLs": [f"https://{member.name}:2379"]}
    return {"ID": member.id, "name": member.name, **urls, "isLearner": member.is_learner}
