"""The etcd client against three real members with TLS: what it reads, what it changes, and how it fails."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest

from clusterwright.api.meta import ObjectKey
from clusterwright.api.wire import Duplex
from clusterwright.controllers.kubeadmcontrolplane.etcd.membership import Membership, NotSafe
from clusterwright.kubeadm import certificates as pki
from clusterwright.streams.pipe import duplex_pair
from clusterwright.workload.access import EtcdError, EtcdMember
from clusterwright.workload.etcd import EtcdCredentials, MemberClient, client_context, first_available

from .conftest import NODES, NOW, EtcdCluster, new_key


async def members_of(etcd: EtcdCluster, node: str) -> dict[str, EtcdMember]:
    client = await etcd.connect(node)
    try:
        return {m.name: m for m in await client.members()}
    finally:
        await client.close()


async def test_members_are_listed_with_names_and_exactly_one_leader(shared_etcd: EtcdCluster) -> None:
    members = await members_of(shared_etcd, "n1")

    assert sorted(members) == NODES
    assert [m.is_learner for m in members.values()] == [False] * 3
    assert sum(m.is_leader for m in members.values()) == 1
    assert all(m.id.isdigit() for m in members.values())
    assert members["n2"].peer_urls == (shared_etcd.peer_url("n2"),)


async def test_every_endpoint_names_the_same_leader_and_no_errors(shared_etcd: EtcdCluster) -> None:
    clients = [await shared_etcd.connect(n) for n in NODES]

    assert len({c.status.leader_id for c in clients}) == 1
    assert [c.status.errors for c in clients] == [(), (), ()]
    assert [c.endpoint for c in clients] == ["etcd-n1", "etcd-n2", "etcd-n3"]
    for client in clients:
        await client.close()


async def test_a_follower_refuses_what_only_the_leader_can_do(shared_etcd: EtcdCluster) -> None:
    leader = await shared_etcd.leader(NODES)
    client = await shared_etcd.connect(next(n for n in NODES if n != leader))

    with pytest.raises(EtcdError, match=r"^etcdserver: member not found$"):
        await client.remove_member("12345")
    with pytest.raises(EtcdError, match=r"^etcdserver: not leader$"):
        await client.move_leader(client.status.leader_id)
    await client.close()


async def test_a_connection_without_http2_is_an_error(shared_etcd: EtcdCluster) -> None:
    context = client_context(shared_etcd.credentials())
    context.set_alpn_protocols(["http/1.1"])

    with pytest.raises(EtcdError, match="does not offer HTTP/2"):
        await shared_etcd.connect(NODES[0], context)


async def test_a_resumed_tls_session_skips_authentication(shared_etcd: EtcdCluster) -> None:
    context = client_context(shared_etcd.credentials())
    resumed = []
    for _ in range(2):
        client = await shared_etcd.connect("n1", context)
        resumed.append(client._stream.is_resumed())
        assert len(await client.members()) == len(NODES)
        await client.close()

    assert resumed == [False, True]


async def test_one_connection_serves_many_calls(shared_etcd: EtcdCluster) -> None:
    client = await shared_etcd.connect("n1")

    for _ in range(20):
        assert len(await client.members()) == 3
        assert await client.alarms() == []
    await client.close()


async def test_only_the_leader_moves_the_leadership(shared_etcd: EtcdCluster) -> None:
    before = await shared_etcd.leader(NODES)
    target = next(n for n in NODES if n != before)
    other = next(n for n in NODES if n not in {before, target})
    ids = {name: m.id for name, m in (await members_of(shared_etcd, before)).items()}

    follower = await shared_etcd.connect(other)
    with pytest.raises(EtcdError, match="not leader"):
        await follower.move_leader(ids[target])
    await follower.close()
    leader = await shared_etcd.connect(before)
    await leader.move_leader(ids[target])
    await leader.close()

    await shared_etcd.until(lambda: _leads(shared_etcd, target), "the leadership has moved")


async def _leads(etcd: EtcdCluster, node: str) -> bool:
    return await etcd.leader([node]) == node


async def test_moving_the_leadership_to_itself_is_not_an_error(shared_etcd: EtcdCluster) -> None:
    node = await shared_etcd.leader(NODES)
    leader = await shared_etcd.connect(node)

    await leader.move_leader(leader.status.leader_id)

    await leader.close()
    assert await shared_etcd.leader(NODES) == node


async def test_a_removed_member_is_gone_for_good_and_removing_it_again_fails(etcd: EtcdCluster) -> None:
    leader = await etcd.leader(NODES)  # who stays, so that no election disturbs the calls
    victim = next(n for n in NODES if n != leader)
    member = (await members_of(etcd, leader))[victim]
    client = await etcd.connect(leader)

    await client.remove_member(member.id)

    assert sorted(m.name for m in await client.members()) == [n for n in NODES if n != victim]
    with pytest.raises(EtcdError, match="member not found"):
        await client.remove_member(member.id)
    await client.close()
    await etcd.until(lambda: etcd.processes[victim].poll() is not None, "the removed member ends")
    with pytest.raises(EtcdError, match="failed to get etcd status"):
        await etcd.connect(victim)


async def test_a_member_that_joins_is_an_unnamed_learner_until_it_starts_and_is_promoted(etcd: EtcdCluster) -> None:
    client = await etcd.connect("n1")

    etcd.prepare("n4")
    added = await client._call("MemberAdd", peerURLs=[etcd.peer_url("n4")], isLearner=True)
    member_id = str(added["member"]["ID"])

    unnamed = next(m for m in await client.members() if m.id == member_id)
    assert (unnamed.name, unnamed.is_learner) == ("", True)

    etcd.start("n4", [*NODES, "n4"], state="existing")
    await etcd.until(lambda: _is_named(client, member_id), "the learner has started")

    async def promoted() -> bool:
        await client._call("MemberPromote", ID=member_id)
        return True

    await etcd.until(promoted, "the learner has caught up and is promoted")
    assert {m.name: m.is_learner for m in await client.members()} == {"n1": False, "n2": False, "n3": False, "n4": False}
    await client.close()


async def _is_named(client: MemberClient, member_id: str) -> bool:
    return any(m.id == member_id and m.name == "n4" for m in await client.members())


async def test_alarms_name_the_member_that_raised_them(shared_etcd: EtcdCluster) -> None:
    client = await shared_etcd.connect("n1")
    members = {m.name: m.id for m in await client.members()}

    await client._call("Alarm", action="ACTIVATE", memberID=members["n2"], alarm="NOSPACE")
    assert await client.alarms() == [(members["n2"], "NOSPACE")]

    await client._call("Alarm", action="DEACTIVATE", memberID=members["n2"], alarm="NOSPACE")
    assert await client.alarms() == []
    await client.close()


async def test_without_quorum_the_endpoint_reports_it_and_members_cannot_be_listed(etcd: EtcdCluster) -> None:
    etcd.stop("n2")
    etcd.stop("n3")

    async def leaderless() -> bool:
        client = await etcd.connect("n1")
        await client.close()
        return "etcdserver: no leader" in client.status.errors

    await etcd.until(leaderless, "the survivor notices that it is alone")
    client = await etcd.connect("n1")
    with pytest.raises(EtcdError, match=r"timed out|deadline|no leader"):
        await client.members()
    await client.close()


async def test_the_first_node_that_answers_is_used_and_all_failures_are_named(etcd: EtcdCluster) -> None:
    etcd.stop("n1")

    client = await first_available(etcd.dial, ["n1", "n2", "n3"], etcd.context)
    assert client.endpoint == "etcd-n2"
    await client.close()

    etcd.stop("n2")
    etcd.stop("n3")
    with pytest.raises(EtcdError, match="could not establish a connection to etcd members hosted on n2,n3"):
        await first_available(etcd.dial, ["n2", "n3"], etcd.context)


async def test_no_nodes_is_an_error() -> None:
    async def dial(_: str) -> Any:
        raise AssertionError("nobody to dial")

    with pytest.raises(EtcdError, match="no Nodes"):
        await first_available(dial, [], client_context(some_credentials()))


async def test_a_client_certificate_of_another_authority_is_refused(shared_etcd: EtcdCluster) -> None:
    stranger = some_credentials()
    mixed = client_context(EtcdCredentials(shared_etcd.ca.certificate, stranger.certificate, stranger.key))

    with pytest.raises(EtcdError):
        await shared_etcd.connect("n1", mixed)


async def test_a_server_of_another_authority_is_not_trusted(shared_etcd: EtcdCluster) -> None:
    own = shared_etcd.credentials()
    mixed = client_context(EtcdCredentials(some_credentials().authority, own.certificate, own.key))

    with pytest.raises(EtcdError, match="certificate verify failed"):
        await shared_etcd.connect("n1", mixed)


async def test_a_hung_endpoint_fails_at_the_deadline(monkeypatch: pytest.MonkeyPatch) -> None:
    from clusterwright.workload import etcd as module

    class Silent:
        async def send(self, _: bytes) -> None: ...

        async def receive(self) -> bytes | None:
            await asyncio.Event().wait()
            return None

        async def close(self) -> None: ...

    async def dial(_: str) -> Silent:
        return Silent()

    monkeypatch.setattr(module, "DIAL_TIMEOUT", 0.05)
    with pytest.raises(EtcdError, match="context deadline exceeded"):
        await MemberClient.connect(dial, "n1", client_context(some_credentials()))


async def test_a_cancelled_connect_leaves_no_stream_open() -> None:
    near, far = duplex_pair()

    async def dial(_: str) -> Duplex:
        return near

    connecting = asyncio.ensure_future(MemberClient.connect(dial, "n1", client_context(some_credentials())))
    assert await far.receive()  # the beginning of a handshake that is not answered
    connecting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await connecting
    assert await far.receive() is None


def some_credentials() -> EtcdCredentials:
    from datetime import timedelta

    ca = pki.new_ca(new_key(), now=NOW, serial=7)
    pair = pki.sign(ca, new_key(), common_name="x", serial=8, not_before=NOW, not_after=NOW + timedelta(hours=1), client=True)
    return EtcdCredentials(ca.certificate, pair.certificate, pair.key)


def test_credentials_never_show_in_their_repr() -> None:
    assert "PRIVATE" not in repr(some_credentials())


# ------------------------------------------------------------------- the control plane's acts, on real members


def membership_of(etcd: EtcdCluster, *, unreachable: str = "") -> Any:
    """As much of a pass as changing the membership needs; only the peers of `unreachable` reach it."""

    class Workload:
        async def etcd(self, _cluster: ObjectKey, nodes: Sequence[str]) -> MemberClient:
            return await first_available(etcd.dial, [n for n in nodes if n != unreachable], etcd.context)

    workload: Any = Workload()
    return Membership(workload, ObjectKey("ns", "c1"), NODES)


async def test_a_leaving_leader_hands_over_and_is_removed(etcd: EtcdCluster) -> None:
    leaving = await etcd.leader(NODES)
    heir = next(n for n in NODES if n != leaving)
    scope = membership_of(etcd)

    await scope.forward_leadership(leaving, [heir])
    await etcd.until(lambda: _leads(etcd, heir), "the heir leads")
    await scope.remove((await members_of(etcd, heir))[leaving])

    assert sorted(await members_of(etcd, heir)) == sorted(n for n in NODES if n != leaving)


async def test_a_leader_that_only_its_peers_reach_is_removed_and_they_elect_another(etcd: EtcdCluster) -> None:
    leader = await etcd.leader(NODES)
    others = [n for n in NODES if n != leader]
    members = await members_of(etcd, leader)
    scope = membership_of(etcd, unreachable=leader)  # its kubelet is dead, and with it the way through the API server

    await scope.forward_leadership(leader, others)
    await scope.remove(members[leader])

    async def another_leads() -> bool:
        return sorted(await members_of(etcd, others[0])) == sorted(others)

    await etcd.until(another_leads, "the others have elected a leader")


async def test_no_member_is_removed_if_the_rest_would_have_no_quorum(etcd: EtcdCluster) -> None:
    leader = await etcd.leader(NODES)  # who stays, so that no election disturbs the calls
    silent, other = (n for n in NODES if n != leader)
    members = await members_of(etcd, leader)
    etcd.stop(silent)

    with pytest.raises(NotSafe, match="1 of 2 remaining etcd members answer, at least 2 required"):
        await membership_of(etcd).remove(members[other])

    assert len(await members_of(etcd, leader)) == 3
    await membership_of(etcd).remove(members[silent])
    assert sorted(await members_of(etcd, leader)) == sorted([leader, other])
