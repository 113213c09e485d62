"""Simulated clusters: ports, files, listeners, certificates, etcd behind port-forward."""

import asyncio
import socket
import sqlite3
import ssl
import threading
from typing import Any

import msgspec
import pytest

from clusterwright.api.kubernetes import ConfigMap, Lease, Node, Pod
from clusterwright.api.meta import ObjectKey
from clusterwright.api.wire import Request
from clusterwright.inmemory import cloud as cloud_module
from clusterwright.inmemory import etcd, objects
from clusterwright.inmemory.cloud import FIRST_PORT, EndpointRefused, NoPortLeft
from clusterwright.inmemory.listener import TlsListener
from clusterwright.runtime.errors import AlreadyExists, BadRequest, Conflict, ConnectionFailed, Forbidden, NotFound
from clusterwright.runtime.rest import RestClient
from clusterwright.workload.access import EtcdError
from clusterwright.workload.connection import forward
from clusterwright.workload.etcd import MemberClient, first_available
from support.clouds import CA, OTHER_CA, A, B, admin, clouds, etcd_client_context, loopback, now, over_tls, start

# ---------------------------------------------------------------------------------------------------------- ports


async def test_each_cluster_has_its_own_port_and_objects():
    async with clouds() as cloud:
        a, b = await cloud.ensure(A), await cloud.ensure(B)
        a.ensure(objects.node("n", is_control_plane=False, version="v1.34.1", address="10.0.0.1", now=now(), taints=None))

        assert (a.port, b.port) == (FIRST_PORT, FIRST_PORT + 1)
        assert await cloud.ensure(A) is a
        assert cloud.at("127.0.0.1", b.port) is b
        assert cloud.at("10.0.0.1", b.port) is None
        assert [n.metadata.name for n in await a.client.list(Node)] == ["n"]
        assert await b.client.list(Node) == []


async def test_a_cluster_comes_back_at_the_endpoint_it_had_and_new_ones_take_later_ports():
    async with clouds() as cloud:
        cloud.reserve(A, ("127.0.0.1", FIRST_PORT + 7))
        assert cloud.expects(A)
        new = await cloud.ensure(B)
        back = await cloud.ensure(A, ("127.0.0.1", FIRST_PORT + 7))

        assert (back.port, new.port) == (FIRST_PORT + 7, FIRST_PORT + 8)
        assert not cloud.expects(A)


async def test_clusters_that_want_the_same_port_have_an_address_each():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
        async with clouds(listener=TlsListener()) as cloud:
            a = await cloud.ensure(A, port=port)  # somebody else has it at the first address
            b = await cloud.ensure(B, port=port)
            assert (a.port, b.port) == (port, port)
            assert len({a.host, b.host, "127.0.0.1"}) == 3
            assert (cloud.at(a.host, port), cloud.at(b.host, port)) == (a, b)
            was = a.host
            await cloud.delete(A)
            assert cloud.at(was, port) is None
            assert (await cloud.ensure(A, (was, port))).host == was


async def test_another_host_and_a_port_of_another_cluster_are_refused():
    async with clouds() as cloud:
        await cloud.ensure(A)

        with pytest.raises(EndpointRefused, match=r"host 10\.0\.0\.1 is not that of this plane"):
            await cloud.ensure(B, ("10.0.0.1", 6443))
        with pytest.raises(EndpointRefused, match="belongs to the cluster of default/a"):
            await cloud.ensure(B, ("127.0.0.1", FIRST_PORT))
        assert cloud.find(B) is None


async def test_a_port_is_used_again_only_after_all_others_and_the_range_ends(monkeypatch):
    monkeypatch.setattr(cloud_module, "LAST_PORT", FIRST_PORT + 1)
    async with clouds() as cloud:
        await cloud.ensure(A)
        await cloud.delete(A)
        assert cloud.at("127.0.0.1", FIRST_PORT) is None

        assert (await cloud.ensure(A)).port == FIRST_PORT + 1
        assert (await cloud.ensure(B)).port == FIRST_PORT
        with pytest.raises(NoPortLeft):
            await cloud.ensure(ObjectKey("default", "c"))


async def test_the_search_for_ports_starts_at_the_configured_port(monkeypatch):
    monkeypatch.setattr(cloud_module, "LAST_PORT", FIRST_PORT + 9)
    async with clouds(first_port=FIRST_PORT + 9) as cloud:
        assert [(await cloud.ensure(key)).port for key in (A, B)] == [FIRST_PORT + 9, FIRST_PORT]


async def test_a_port_is_reserved_as_soon_as_it_is_chosen():
    """Two planes on one machine never choose the same port, though neither listens yet."""
    async with clouds(listener=TlsListener()) as one, clouds(listener=TlsListener()) as two:
        first, second = await one.ensure(A), await two.ensure(A)
        assert first.port != second.port
        assert not TlsListener().hold("127.0.0.1", first.port)
        assert not accepts(first.port)
        await start(first, "m0")
        assert accepts(first.port)
        port = second.port
        await two.delete(A)
        other = TlsListener()
        assert other.hold("127.0.0.1", port)
        other.release("127.0.0.1", port)


# ---------------------------------------------------------------------------------------------------------- files


def kept(folder):
    """The share and the key of every object that is in the file."""
    with sqlite3.connect(folder / "clusters.sqlite") as connection:
        return [(kind.rpartition(" ")[0], key) for kind, key in connection.execute("SELECT kind, key FROM objects")]


async def test_objects_survive_a_restart_and_deletion_takes_only_ones_own_files(tmp_path):
    longer = ObjectKey("default", "a-2")
    async with clouds(data_dir=tmp_path) as cloud:
        for key in (A, longer):
            await start(await cloud.ensure(key), "m0")
        before = (await cloud.ensure(A)).members()
    async with clouds(data_dir=tmp_path) as cloud:
        again = await cloud.ensure(A, ("127.0.0.1", FIRST_PORT))
        assert again.members() == before
        assert not again.is_serving
        await start(again, "m0")
        assert again.is_serving
        await cloud.delete(A)
    assert {share for share, _ in kept(tmp_path)} == {str(longer)}
    async with clouds(data_dir=tmp_path) as cloud:
        await cloud.delete(longer)  # not opened in this life
        assert not kept(tmp_path), "the deletion is durable when it ends"
    assert not kept(tmp_path)


async def test_clusters_share_one_writer_and_one_file(tmp_path):
    threads = threading.active_count()
    async with clouds(data_dir=tmp_path) as cloud:
        for key in (A, B):
            await start(await cloud.ensure(key), "m0")
        assert threading.active_count() == threads + 1
        assert {path.name for path in tmp_path.iterdir() if path.suffix == ".sqlite"} == {"clusters.sqlite"}
        a, b = await cloud.ensure(A), await cloud.ensure(B)
        before = a.server.store.revision
        await b.client.create({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "x", "namespace": "default"}})
        assert a.server.store.revision == before, "a write to another cluster does not show"
        assert b.server.store.revision > before
    assert {share for share, _ in kept(tmp_path)} == {str(A), str(B)}


async def test_no_revision_comes_back_after_a_restart(tmp_path):
    name = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "x", "namespace": "default"}}
    async with clouds(data_dir=tmp_path) as cloud:
        client = (await cloud.ensure(A)).client
        made = await client.create(name)
        await client.delete(made.gvk, made.key)
        last = (await cloud.ensure(A)).server.store.revision
    async with clouds(data_dir=tmp_path) as cloud:
        again = await (await cloud.ensure(A)).client.create(name)
        assert int(again.metadata.resource_version) > last


async def test_a_store_that_breaks_breaks_every_cluster_and_says_so(tmp_path):
    async with clouds(data_dir=tmp_path) as cloud:
        a, b = await cloud.ensure(A), await cloud.ensure(B)
        told = asyncio.Event()
        cloud.on_failure(told.set)
        connection = cloud._journal._journal._connection
        connection.execute("PRAGMA query_only=1")
        a.ensure(objects.node("n", is_control_plane=False, version="v1.34.1", address="10.0.0.1", now=now(), taints=None))
        await asyncio.wait_for(told.wait(), 60)
        assert "the store of the workload clusters can no longer be written" in cloud.broken
        assert a.server.store.is_broken
        assert b.server.store.is_broken


# ------------------------------------------------------------------------------------------------------- answering


def accepts(port):
    with socket.socket() as client:
        client.settimeout(1)
        return client.connect_ex(("127.0.0.1", port)) == 0


async def test_the_port_answers_from_the_first_api_server_to_the_last_and_again_later():
    async with clouds(listener=TlsListener()) as cloud:
        cluster = await cloud.ensure(A)
        assert not accepts(cluster.port)
        await start(cluster, "m0", "m1")
        assert accepts(cluster.port)
        await cluster.stop_api_server("m0")
        assert accepts(cluster.port)
        await cluster.stop_api_server("m1")
        assert not accepts(cluster.port)
        await cluster.start_api_server("m1", CA)
        assert accepts(cluster.port)
        port = cluster.port
        await cloud.delete(A)
        assert not accepts(port)


async def test_open_watches_end_with_the_last_api_server():
    async with clouds(listener=TlsListener()) as cloud:
        cluster = await cloud.ensure(A)
        await start(cluster, "m0")
        for transport in (loopback(cluster), await over_tls(cluster)):
            client = RestClient(transport)
            resource = await client.resources.of(Node)
            _, lines = await transport.stream(Request(method="GET", path=resource.path(""), query=(("watch", "true"),)))
            assert await anext(lines)
            await cluster.stop_api_server("m0")
            with pytest.raises((ConnectionFailed, StopAsyncIteration)):
                await anext(lines)
            with pytest.raises(ConnectionFailed, match=r"refused|connect"):
                await client.list(Node)
            await transport.close()
            await cluster.start_api_server("m0", CA)


async def test_changes_during_a_listener_switch_end_in_the_right_state():
    class Slow:
        open = False

        async def start(self, cluster, context):
            await asyncio.sleep(0.01)
            assert not self.open
            self.open = True

        async def stop(self, cluster):
            await asyncio.sleep(0.01)
            assert self.open
            self.open = False

        def hold(self, host, port):
            return True

        def release(self, host, port):
            pass

    slow = Slow()
    async with clouds(listener=slow) as cloud:
        cluster = await cloud.ensure(A)
        await cluster.start_api_server("m0", CA)
        await asyncio.gather(*(cluster.cut_off(cut=n % 2 == 0) for n in range(5)))
        assert not slow.open
        await cluster.cut_off(cut=False)
        assert slow.open


async def test_a_port_that_cannot_be_opened_is_an_error_each_time_until_it_can():
    class Taken:
        fails = True

        async def start(self, cluster, context):
            if self.fails:
                raise OSError("address already in use")

        async def stop(self, cluster):
            pass

        def hold(self, host, port):
            return True

        def release(self, host, port):
            pass

    listener = Taken()
    async with clouds(listener=listener) as cloud:
        cluster = await cloud.ensure(A)
        for _ in range(2):
            with pytest.raises(OSError, match="in use"):
                await cluster.start_api_server("m0", CA)
        listener.fails = False
        told = []
        cloud.subscribe("test", told.append)
        await cluster.start_api_server("m0", CA)
        assert told == [A]


# ----------------------------------------------------------------------------------------------------- certificates


async def test_clients_and_servers_know_each_other_by_the_clusters_authority():
    async with clouds(listener=TlsListener()) as cloud:
        cluster = await cloud.ensure(A)
        await start(cluster, "m0")
        for transport in (loopback(cluster), await over_tls(cluster)):
            assert len(await RestClient(transport).list(Node)) == 1
            await transport.close()
        for stranger in (loopback(cluster, ca=OTHER_CA), await over_tls(cluster, ca=OTHER_CA)):
            with pytest.raises(ConnectionFailed):
                await RestClient(stranger).list(Node)
            await stranger.close()
        forged = admin(OTHER_CA)
        for intruder in (loopback(cluster, certificate=forged), await over_tls(cluster, client=forged)):
            with pytest.raises(ConnectionFailed):
                await RestClient(intruder).list(Node)
            await intruder.close()
        nobody = admin(organizations=())
        for powerless in (loopback(cluster, certificate=nobody), await over_tls(cluster, client=nobody)):
            with pytest.raises(Forbidden):
                await RestClient(powerless).list(Node)
            await powerless.close()


async def test_the_served_certificate_names_the_loopback_addresses():
    async with clouds(listener=TlsListener()) as cloud:
        cluster = await cloud.ensure(A)
        await cluster.start_api_server("m0", CA, ("my.example",))
        context = ssl.create_default_context(cadata=CA.certificate.decode())
        for name in ("localhost", "127.0.0.1", "my.example"):
            _, writer = await asyncio.open_connection("127.0.0.1", cluster.port, ssl=context, server_hostname=name)
            writer.close()
            await writer.wait_closed()


# ------------------------------------------------------------------------------------------------------------ etcd


@pytest.mark.parametrize("way", ["loopback", "tls"])
async def test_etcd_is_reached_by_port_forward(way):
    context = etcd_client_context()
    async with clouds(listener=TlsListener()) as cloud:
        cluster = await cloud.ensure(A)
        await start(cluster, "m0", "m1", "m2")
        transport = loopback(cluster) if way == "loopback" else await over_tls(cluster)

        def dial(node):
            return forward(transport, "kube-system", f"etcd-{node}", 2379)

        client = await first_available(dial, ["m0"], context)
        members = {m.name: m for m in await client.members()}
        assert set(members) == {"m0", "m1", "m2"}
        assert client.status.leader_id == members["m0"].id
        assert await client.alarms() == []

        await client._call("Alarm", action="ACTIVATE", memberID=members["m2"].id, alarm="CORRUPT")
        assert await client.alarms() == [(members["m2"].id, "CORRUPT")]
        await client._call("Alarm", action="DEACTIVATE", memberID=members["m2"].id, alarm="CORRUPT")
        assert await client.alarms() == []
        assert "count" not in await client._call("Range", key="aGVhbHRo")
        with pytest.raises(EtcdError, match="not simulated"):
            await client._call("MemberAdd", peerURLs=["https://x:2380"])
        with pytest.raises(EtcdError, match="only promote a learner"):
            await client._call("MemberPromote", ID=members["m1"].id)
        await client.move_leader(members["m1"].id)
        await client.close()
        client = await first_available(dial, ["m1"], context)
        assert client.status.leader_id == members["m1"].id
        await client.remove_member(members["m0"].id)
        assert {m.name for m in await client.members()} == {"m1", "m2"}
        with pytest.raises(EtcdError, match="member not found"):
            await client.remove_member("12345")
        with pytest.raises(EtcdError, match="member not found"):
            await client.move_leader("12345")
        await client.close()
        with pytest.raises(EtcdError):  # a removed member does not answer
            await MemberClient.connect(dial, "m0", context)
        await transport.close()


async def test_only_the_leader_can_move_the_leadership():
    async with clouds() as cloud:
        cluster = await cloud.ensure(A)
        await start(cluster, "m0", "m1")
        transport = loopback(cluster)
        client = await first_available(lambda n: forward(transport, "kube-system", f"etcd-{n}", 2379), ["m1"], etcd_client_context())

        with pytest.raises(EtcdError, match="not leader"):
            await client.move_leader(cluster.members()[1].id)
        await client.close()


async def test_a_resumed_tls_session_skips_authentication():
    async with clouds() as cloud:
        cluster = await cloud.ensure(A)
        await start(cluster, "m0")
        transport, context = loopback(cluster), etcd_client_context()
        resumed = []
        for asking in (context, context, etcd_client_context()):
            client = await MemberClient.connect(lambda n: forward(transport, "kube-system", f"etcd-{n}", 2379), "m0", asking)
            resumed.append(client._stream.is_resumed())
            assert [m.name for m in await client.members()] == ["m0"]
            await client.close()

        assert resumed == [False, True, False]


async def test_etcd_and_its_client_know_each_other_by_etcds_authority():
    async with clouds() as cloud:
        cluster = await cloud.ensure(A)
        await start(cluster, "m0")
        transport = loopback(cluster)

        def dial(node):
            return forward(transport, "kube-system", f"etcd-{node}", 2379)

        for context in (etcd_client_context(trusted=CA), etcd_client_context(authority=CA)):
            with pytest.raises(EtcdError):
                await MemberClient.connect(dial, "m0", context)
        with pytest.raises(EtcdError, match='pods "etcd-m9" not found'):
            await MemberClient.connect(dial, "m9", etcd_client_context())


async def test_without_quorum_nothing_answers_and_with_it_everything_does_again():
    async with clouds() as cloud:
        cluster = await cloud.ensure(A)
        await start(cluster, "m0", "m1", "m2")
        await cluster.annotate_etcd("m0", {etcd.STOPPED: ""})
        assert cluster.is_serving
        await cluster.annotate_etcd("m1", {etcd.STOPPED: ""})
        assert not cluster.is_serving
        await cluster.annotate_etcd("m0", {etcd.STOPPED: None})
        assert cluster.is_serving


@pytest.mark.parametrize("has_begun", [True, False])
async def test_tunnels_end_with_the_cluster(has_begun):
    async with clouds() as cloud:
        cluster = await cloud.ensure(A)
        await start(cluster, "m0")
        tunnel = await forward(loopback(cluster), "kube-system", "etcd-m0", 2379)
        if has_begun:
            await asyncio.sleep(0)
        await cloud.delete(A)

        assert await tunnel.receive() is None
        assert [t for t in asyncio.all_tasks() if "port-forward" in t.get_name()] == []


# --------------------------------------------------------------------------------------------------------- objects


async def test_objects_behave_as_in_any_cluster():
    async with clouds() as cloud:
        cluster = await cloud.ensure(A)
        await start(cluster, "m0")
        client = RestClient(loopback(cluster))
        config: Any = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "x", "namespace": "default"}, "data": {"a": "1"}}
        created = await client.create(config)
        with pytest.raises(AlreadyExists):
            await client.create(config)
        same = await client.patch(ConfigMap, ObjectKey("default", "x"), {"data": {"a": "1"}})
        assert same.metadata.resource_version == created.metadata.resource_version
        await client.patch(ConfigMap, ObjectKey("default", "x"), {"data": {"a": "2"}})
        stale = {**config, "metadata": {**config["metadata"], "resourceVersion": created.metadata.resource_version}}
        with pytest.raises(Conflict):
            await client.update(stale)
        assert {p.metadata.name for p in await client.list(Pod, fields="spec.nodeName=m0")} == {"etcd-m0", "kube-apiserver-m0"}
        assert await client.list(Pod, fields="spec.nodeName=other") == []
        with pytest.raises(BadRequest):
            await client.list(Pod, fields="spec.color=red")
        with pytest.raises(NotFound):
            await client.patch(ConfigMap, ObjectKey("default", "missing"), {"data": {}})


async def test_addresses_are_unique_and_kept():
    async with clouds() as cloud:
        cluster = await cloud.ensure(A)
        machines = [f"m{n}" for n in range(600)]
        addresses = {m: cluster.address_of(m) for m in machines}

        assert len(set(addresses.values())) == 600
        assert cluster.address_of("m7") == addresses["m7"]
        assert cluster.address_of("back", "10.9.9.9") == "10.9.9.9"
        cluster.release_address("m7")
        assert cluster.address_of("new") == addresses["m7"]
        assert cluster.address_of("newer", others=["10.0.2.103"]) not in addresses.values()


async def test_kubelets_that_live_renew_their_leases():
    async with clouds() as cloud:
        cluster = await cloud.ensure(A)
        await start(cluster, "m0", "m1")
        for name in ("m0", "m1"):
            cluster.ensure(objects.node_lease(name, now().replace(year=2020)))
        await cluster.client.patch(Node, ObjectKey("", "m1"), {"metadata": {"annotations": {objects.KUBELET_STOPPED: ""}}})
        cluster.renew_leases(now())

        leases = {lease.metadata.name: lease.spec.renew_time for lease in await cluster.client.list(Lease)}
        assert not leases["m0"].startswith("2020")
        assert leases["m1"].startswith("2020")


async def test_dependents_go_with_their_owner_but_not_past_their_finalizers():
    async with clouds() as cloud:
        cluster = await cloud.ensure(A)
        client = cluster.client

        def config(name, owner=None, finalizers=()):
            metadata = {"name": name, "namespace": "default", "finalizers": list(finalizers)}
            if owner is not None:
                metadata["ownerReferences"] = [{"apiVersion": "v1", "kind": "ConfigMap", **owner}]
            return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata}

        async def gone(name):
            for _ in range(200):
                if await client.find(ConfigMap, ObjectKey("default", name)) is None:
                    return True
                await asyncio.sleep(0.01)
            return False

        owner = await client.create(config("owner"))
        reference = {"name": "owner", "uid": owner.metadata.uid}
        await client.create(config("held", reference, ["example.com/hold"]))
        await client.create(config("free", reference))
        await client.create(config("orphan", {"name": "never-was", "uid": "00000000-0000-0000-0000-000000000000"}))
        assert await gone("orphan")  # as in any cluster: an owner that is not there is an owner that is gone
        await client.delete(ConfigMap, ObjectKey("default", "owner"))
        assert await gone("free")
        held = await client.get(ConfigMap, ObjectKey("default", "held"))
        assert held.metadata.deletion_timestamp is not None
        await client.patch(ConfigMap, ObjectKey("default", "held"), {"metadata": {"finalizers": None}})
        assert await gone("held")


async def test_a_watch_reports_later_changes_in_order():
    async with clouds() as cloud:
        cluster = await cloud.ensure(A)
        await start(cluster, "m0")
        client = RestClient(loopback(cluster))
        first = await client.create({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "namespace": "default"}})
        query = (("watch", "true"), ("resourceVersion", first.metadata.resource_version), ("allowWatchBookmarks", "true"))
        _, lines = await loopback(cluster).stream(Request(method="GET", path="/api/v1/namespaces/default/configmaps", query=query))
        await client.create({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "b", "namespace": "default"}})
        await client.patch(ConfigMap, ObjectKey("default", "b"), {"data": {"x": "y"}})
        await client.delete(ConfigMap, ObjectKey("default", "b"))

        told = [msgspec.json.decode(await anext(lines)) for _ in range(3)]
        assert [(e["type"], e["object"]["metadata"]["name"]) for e in told] == [("ADDED", "b"), ("MODIFIED", "b"), ("DELETED", "b")]
