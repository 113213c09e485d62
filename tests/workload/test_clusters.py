"""The cluster cache in virtual time: connect, probe, back off, disconnect, tell; and what it hands out."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from random import Random
from typing import Any

import pytest

from clusterwright.api.core import Cluster
from clusterwright.api.kubernetes import Node
from clusterwright.api.meta import ObjectKey
from clusterwright.api.scheme import SCHEME
from clusterwright.api.wire import Duplex, Request, Response, Transport
from clusterwright.apiserver.schema.permissive import permissive_resource
from clusterwright.apiserver.server import ApiServer
from clusterwright.apiserver.serving.inprocess import InProcessTransport
from clusterwright.kubeadm import certificates as pki
from clusterwright.runtime.clock import LoopClock
from clusterwright.runtime.errors import ConnectionFailed
from clusterwright.runtime.keys import sample_keys
from clusterwright.runtime.metrics import Registry
from clusterwright.runtime.rest import RestClient
from clusterwright.simulation.loop import run_virtual
from clusterwright.workload.access import EtcdError, Health, NotConnected
from clusterwright.workload.clusters import ClusterCache, Source, mapped_source, secret_to_cluster
from clusterwright.workload.credentials import EtcdAccess

KEY = ObjectKey("default", "c1")
START = datetime(2026, 1, 1, tzinfo=UTC)


class Switch:
    """A workload cluster that can be cut off, or stop believing us; requests are counted."""

    def __init__(self, server: ApiServer) -> None:
        self._inner = InProcessTransport(server)
        self.mode = "up"
        self.paths: list[str] = []
        self.closed = 0

    def _check(self, request: Request) -> Response | None:
        self.paths.append(request.path)
        if self.mode == "down":
            raise ConnectionFailed("dial tcp: connection refused")
        if self.mode == "unauthorized":
            body = b'{"kind":"Status","apiVersion":"v1","status":"Failure","message":"Unauthorized","reason":"Unauthorized","code":401}'
            return Response(status=401, body=body)
        return None

    async def send(self, request: Request) -> Response:
        if self.mode == "hung":
            await asyncio.Event().wait()
        return self._check(request) or await self._inner.send(request)

    async def stream(self, request: Request) -> tuple[Response, AsyncIterator[bytes]]:
        self._check(request)
        return await self._inner.stream(request)

    async def forward(self, request: Request, port: int) -> Duplex:
        self._check(request)
        return await self._inner.forward(request, port)

    async def close(self) -> None:
        self.closed += 1


@dataclass
class World:
    cache: ClusterCache
    client: RestClient
    workload: RestClient
    switch: Switch
    clock: LoopClock
    registry: Registry
    told: list[str] = field(default_factory=list)
    woken: list[tuple[ObjectKey, str]] = field(default_factory=list)
    connects: list[bytes] = field(default_factory=list)

    async def turn(self) -> float | None:
        """One pass; the seconds after which it wants the next."""
        result = await self.cache.reconcile(KEY)
        return result.requeue_after.total_seconds() if result.requeue_after else None

    async def later(self, seconds: float) -> float | None:
        await self.clock.sleep(seconds)
        return await self.turn()


Story = Callable[[World], Awaitable[None]]


def play(
    story: Story, *, provisioned: bool = True, kubeconfig: bool = True, failing_for: float | None = 50.0, watch_filter: str = ""
) -> None:
    async def main() -> None:
        clock, random = LoopClock(START), Random(1)
        management, remote = ApiServer(now=clock.now, random=random), ApiServer(now=clock.now, random=random)
        management.registry.add([permissive_resource(SCHEME.gvk(Cluster))])  # no CRDs to be installed: the cache only reads Clusters
        for server in (management, remote):
            server.ensure_namespaces()
        client = RestClient(InProcessTransport(management), clock=clock)
        await client.create(
            {
                "apiVersion": "cluster.x-k8s.io/v1beta2",
                "kind": "Cluster",
                "metadata": {"name": "c1", "namespace": "default"},
                "spec": {"infrastructureRef": {"apiGroup": "x.y", "kind": "X", "name": "x"}},
            }
        )
        if provisioned:
            await client.patch(Cluster, KEY, {"status": {"initialization": {"infrastructureProvisioned": True}}}, subresource="status")
        if kubeconfig:
            await create_kubeconfig(client, b"one")
        switch, registry = Switch(remote), Registry()
        connects: list[bytes] = []

        async def connect(_cluster: ObjectKey, content: bytes) -> Transport:
            connects.append(content)
            return switch

        cache = ClusterCache(
            client=client, clock=clock, random=random, keys=sample_keys(), connect=connect, watch_filter=watch_filter, registry=registry
        )
        world = World(cache, client, RestClient(InProcessTransport(remote), clock=clock), switch, clock, registry, connects=connects)
        cache.bind(lambda key, reason: world.woken.append((key, reason)))

        async def tell(_cluster: Cluster, reason: str) -> None:
            world.told.append(reason)

        cache.add_source(Source(tell, timedelta(seconds=failing_for) if failing_for else None))
        try:
            await story(world)
        finally:
            await cache.close()
            management.close()
            remote.close()

    run_virtual(main())


async def create_kubeconfig(client: RestClient, content: bytes) -> None:
    labels = {"cluster.x-k8s.io/cluster-name": "c1"}
    data = {"value": base64.b64encode(content).decode()}
    await client.create(
        {
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": {"name": "c1-kubeconfig", "namespace": "default", "labels": labels},
            "data": data,
        }
    )


def test_no_connection_is_tried_before_the_infrastructure_exists() -> None:
    async def story(world: World) -> None:
        assert await world.turn() is None
        assert world.connects == []
        assert world.cache.health(KEY) == Health(untried=True)

    play(story, provisioned=False)


def test_a_connection_is_created_reported_and_probed_every_ten_seconds() -> None:
    async def story(world: World) -> None:
        assert await world.turn() == 10
        assert world.told == ["workload cluster connected"]
        assert world.cache.health(KEY).connected
        assert world.cache.health(KEY).last_probe_success == START
        world.switch.paths.clear()

        assert await world.later(4) == pytest.approx(6)
        assert world.switch.paths == []
        assert await world.later(6) == 10
        assert world.switch.paths == ["/"]
        assert world.cache.health(KEY).last_probe_success == START + timedelta(seconds=10)

    play(story)


def test_a_failed_connect_counts_and_is_tried_again_after_thirty_seconds() -> None:
    async def story(world: World) -> None:
        world.switch.mode = "down"
        assert await world.turn() == 30
        assert world.cache.health(KEY).consecutive_failures == 1
        assert not world.cache.health(KEY).connected
        assert world.cache.health(KEY).last_probe_success is None

        assert await world.later(10) == pytest.approx(20, abs=1)
        assert len(world.connects) == 1
        world.switch.mode = "up"
        assert await world.later(21) == 10
        assert world.cache.health(KEY).consecutive_failures == 0

    play(story)


def test_a_missing_kubeconfig_is_a_failed_connect_and_its_arrival_wakes_us() -> None:
    async def story(world: World) -> None:
        assert await world.turn() == 30
        assert world.connects == []
        from clusterwright.api.kubernetes import Secret

        await create_kubeconfig(world.client, b"one")
        secret = await world.client.get(Secret, ObjectKey("default", "c1-kubeconfig"))
        assert list(await secret_to_cluster(secret, world.client)) == [KEY]
        world.cache.wake(KEY)
        assert world.woken == [(KEY, "workload cluster changed")]
        assert await world.turn() == 10

    play(story, kubeconfig=False)


def test_other_secrets_wake_no_cluster() -> None:
    from clusterwright.api.kubernetes import Secret
    from clusterwright.api.meta import ObjectMeta

    async def main() -> list[Any]:
        found = []
        for name, labels in (("c1-ca", {"cluster.x-k8s.io/cluster-name": "c1"}), ("c1-kubeconfig", {})):
            found += await secret_to_cluster(Secret(metadata=ObjectMeta(name=name, namespace="default", labels=labels)), None)  # type: ignore[arg-type]
        return found

    assert run_virtual(main()) == []


def test_four_failed_probes_are_tolerated_the_fifth_disconnects() -> None:
    async def story(world: World) -> None:
        await world.turn()
        client = await world.cache.client(KEY)
        world.switch.mode = "down"
        for failures in range(1, 5):
            assert await world.later(10) == 10
            assert world.cache.health(KEY).consecutive_failures == failures
            assert await world.cache.client(KEY) is client

        assert await world.later(10) == 30
        assert world.told[-1] == "workload cluster disconnected"
        assert world.switch.closed == 1
        with pytest.raises(NotConnected, match="error getting client: connection to the workload cluster is down"):
            await world.cache.client(KEY)
        health = world.cache.health(KEY)
        assert (health.connected, health.consecutive_failures) == (False, 5)
        assert health.last_probe_success == START

    play(story, failing_for=None)


def test_the_health_state_survives_the_disconnect_until_a_connect_succeeds() -> None:
    async def story(world: World) -> None:
        await world.turn()
        world.switch.mode = "down"
        for _ in range(5):
            await world.later(10)
        await world.later(31)
        assert world.cache.health(KEY).consecutive_failures == 6
        world.switch.mode = "up"
        assert await world.later(31) == 10
        assert world.cache.health(KEY).consecutive_failures == 0
        assert world.told.count("workload cluster connected") == 2

    play(story)


def test_being_unauthorized_disconnects_at_once_and_tries_again_at_once() -> None:
    async def story(world: World) -> None:
        await world.turn()
        world.switch.mode = "unauthorized"
        assert await world.later(10) == 0.001
        assert world.told[-1] == "workload cluster disconnected"

    play(story)


def test_a_source_is_notified_once_when_probes_have_failed_for_long() -> None:
    async def story(world: World) -> None:
        await world.turn()
        world.told.clear()
        world.switch.mode = "down"
        await world.later(10)
        await world.later(10)
        assert world.told == []
        await world.later(11)
        assert world.told == ["workload cluster probe fails"]
        await world.later(10)
        assert world.told == ["workload cluster probe fails"]

    play(story, failing_for=30)


@pytest.mark.parametrize("outage", [0, 31])
def test_a_source_is_notified_when_a_probe_succeeds_after_becoming_too_old(outage: int) -> None:
    """Whoever looked meanwhile saw the connection lost, and nothing else would wake it: a probe may be late without ever failing."""

    async def story(world: World) -> None:
        await world.turn()
        if outage:
            world.switch.mode = "down"
            await world.later(outage)
            world.switch.mode = "up"
        world.told.clear()
        await world.later(10 if outage else 40)
        assert world.told == ["workload cluster answers again"]
        await world.later(10)
        assert world.told == ["workload cluster answers again"]

    play(story, failing_for=30)


def test_the_fifth_failed_connect_is_reported_even_without_a_connection() -> None:
    async def story(world: World) -> None:
        world.switch.mode = "down"
        await world.turn()
        for _ in range(4):
            await world.later(31)
        assert world.told == ["workload cluster does not answer"]

    play(story)


def test_a_failing_source_does_not_disturb_the_others() -> None:
    async def story(world: World) -> None:
        async def broken(_cluster: Cluster, _reason: str) -> None:
            raise RuntimeError("no")

        world.cache._sources.insert(0, Source(broken))
        assert await world.turn() == 10
        assert world.told == ["workload cluster connected"]

    play(story)


def test_a_mapped_source_wakes_the_keys_of_the_cluster() -> None:
    async def story(world: World) -> None:
        woken: list[tuple[ObjectKey, str]] = []

        async def mapper(cluster: Cluster, _reader: Any) -> list[ObjectKey]:
            return [ObjectKey(cluster.metadata.namespace, "a"), ObjectKey(cluster.metadata.namespace, "b")]

        world.cache.add_source(mapped_source(world.client, mapper, lambda key, reason: woken.append((key, reason)), None))
        await world.turn()
        assert [key.name for key, _ in woken] == ["a", "b"]

    play(story)


def test_a_cluster_that_is_gone_is_dropped() -> None:
    async def story(world: World) -> None:
        await world.turn()
        await world.client.delete(Cluster, KEY)
        assert await world.turn() is None
        assert world.cache.health(KEY) == Health(untried=True)
        assert world.switch.closed == 1

    play(story)


def test_a_cluster_outside_of_the_watch_filter_is_left_alone() -> None:
    async def story(world: World) -> None:
        assert await world.turn() is None
        assert world.connects == []

    play(story, watch_filter="mine")


def test_a_new_kubeconfig_makes_a_new_connection() -> None:
    async def story(world: World) -> None:
        from clusterwright.api.kubernetes import Secret

        await world.turn()
        before = await world.cache.client(KEY)
        await world.client.patch(Secret, ObjectKey("default", "c1-kubeconfig"), {"data": {"value": base64.b64encode(b"two").decode()}})
        assert await world.turn() == 10
        assert world.connects == [b"one", b"two"]
        assert await world.cache.client(KEY) is not before

    play(story)


def test_nodes_are_read_from_the_cache_and_a_watch_reports_each_once() -> None:
    async def story(world: World) -> None:
        await world.workload.create({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n1"}})
        await world.turn()
        client = await world.cache.client(KEY)
        world.switch.paths.clear()
        assert [n.metadata.name for n in await client.list(Node)] == ["n1"]
        assert world.switch.paths == []

        seen: list[tuple[str, bool]] = []

        def notify(node: Any) -> None:
            seen.append((node.metadata.name, node.metadata.deletion_timestamp is not None))

        await world.cache.watch(KEY, "test", Node, notify)
        await world.cache.watch(KEY, "test", Node, notify)
        assert seen == [("n1", False)]
        await world.workload.create({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n2"}})
        await world.clock.sleep(1)
        await world.workload.delete(Node, ObjectKey("", "n2"))
        await world.clock.sleep(1)
        assert seen == [("n1", False), ("n2", False), ("n2", True)]

    play(story)


def test_a_watch_may_be_narrowed_to_a_namespace_and_labels() -> None:
    async def story(world: World) -> None:
        from clusterwright.api.kubernetes import ConfigMap

        await world.turn()
        seen: list[str] = []
        await world.cache.watch(
            KEY,
            "test",
            ConfigMap,
            lambda c: seen.append(f"{c.metadata.namespace}/{c.metadata.name}"),
            namespace="kube-system",
            labels="a=b",
        )
        for namespace, name, labels in (("kube-system", "x", {"a": "b"}), ("kube-system", "y", {}), ("default", "z", {"a": "b"})):
            await world.workload.create(
                {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": namespace, "labels": labels}}
            )
        await world.clock.sleep(1)
        assert seen == ["kube-system/x"]

    play(story)


def test_a_watch_has_a_name_and_needs_a_connection() -> None:
    async def story(world: World) -> None:
        with pytest.raises(NotConnected, match="error creating watch"):
            await world.cache.watch(KEY, "test", Node, lambda _: None)
        await world.turn()
        with pytest.raises(ValueError, match="name"):
            await world.cache.watch(KEY, "", Node, lambda _: None)

    play(story)


def test_a_cluster_that_hangs_fails_its_probe_and_its_requests_in_time() -> None:
    async def story(world: World) -> None:
        await world.turn()
        client = await world.cache.client(KEY)
        world.switch.mode = "hung"
        started = world.clock.monotonic()
        await world.later(10)
        assert world.cache.health(KEY).consecutive_failures == 1
        assert world.clock.monotonic() - started == pytest.approx(15, abs=1)
        with pytest.raises(ConnectionFailed, match="no answer within 10 s"):
            await client.live.get(Node, ObjectKey("", "n1"))
        assert world.clock.monotonic() - started < 60

    play(story)


def test_metrics_say_whether_the_connection_is_up() -> None:
    async def story(world: World) -> None:
        await world.turn()
        text = world.registry.render()
        assert 'capi_cluster_cache_connection_up{cluster_name="c1",cluster_namespace="default"} 1' in text
        await world.later(10)
        assert (
            'capi_cluster_cache_healthchecks_total{cluster_name="c1",cluster_namespace="default",status="success"} 1'
            in world.registry.render()
        )

    play(story)


def test_metrics_of_a_deleted_cluster_are_removed() -> None:
    """cluster-api#13660: they would stay for as long as the process runs, and alerts on them, too."""

    async def story(world: World) -> None:
        await world.turn()
        await world.later(10)
        assert 'cluster_name="c1"' in world.registry.render()
        await world.client.delete(Cluster, KEY)
        await world.turn()
        assert 'cluster_name="c1"' not in world.registry.render()

    play(story)


# ---------------------------------------------------------------------------------------- credentials


def secret(purpose: pki.Purpose, pair: pki.KeyPair) -> dict[str, Any]:
    return pki.pair_secret(namespace="default", cluster="c1", purpose=purpose, pair=pair)


def with_access(story: Callable[[EtcdAccess, RestClient, LoopClock], Awaitable[None]]) -> None:
    async def main() -> None:
        clock, random = LoopClock(START), Random(1)
        server = ApiServer(now=clock.now, random=random)
        server.ensure_namespaces()
        client = RestClient(InProcessTransport(server), clock=clock)
        await story(EtcdAccess(client, clock=clock, random=random, keys=sample_keys()), client, clock)
        server.close()

    run_virtual(main())


def test_without_the_authority_etcd_cannot_be_reached() -> None:
    async def story(access: EtcdAccess, _client: RestClient, _clock: LoopClock) -> None:
        with pytest.raises(EtcdError, match="Secret c1-etcd does not exist"):
            await access.context(KEY)

    with_access(story)


def test_the_client_certificate_is_kept_for_a_day() -> None:
    async def story(access: EtcdAccess, client: RestClient, clock: LoopClock) -> None:
        key = await sample_keys().new_key("RSA-2048")
        await client.create(secret(pki.Purpose.ETCD_CA, pki.new_ca(key, now=START, serial=1)))
        first = await access.context(KEY)
        await clock.sleep(86399)
        assert await access.context(KEY) is first
        await clock.sleep(2)
        assert await access.context(KEY) is not first

    with_access(story)


def test_an_authority_without_key_needs_the_client_certificate_of_the_user() -> None:
    async def story(access: EtcdAccess, client: RestClient, _clock: LoopClock) -> None:
        keys = sample_keys()
        ca = pki.new_ca(await keys.new_key("RSA-2048"), now=START, serial=1)
        await client.create(secret(pki.Purpose.ETCD_CA, pki.KeyPair(ca.certificate, b"")))
        with pytest.raises(EtcdError, match="c1-apiserver-etcd-client does not exist"):
            await access.context(KEY)
        pair = pki.sign(
            ca,
            await keys.new_key("RSA-2048"),
            common_name="x",
            serial=2,
            not_before=START,
            not_after=START + timedelta(days=1),
            client=True,
        )
        await client.create(secret(pki.Purpose.API_SERVER_ETCD_CLIENT, pair))
        assert await access.context(KEY)

    with_access(story)


# ------------------------------------------------------------------------------------------ certificates


def test_only_an_api_servers_certificate_has_an_expiry_for_us() -> None:
    from cryptography.hazmat.primitives.serialization import Encoding

    from clusterwright.workload.connection import certificate_expiry

    async def pair(name: str) -> bytes:
        keys = sample_keys()
        ca = pki.new_ca(await keys.new_key("RSA-2048"), now=START, serial=1)
        signed = pki.sign(
            ca,
            await keys.new_key("RSA-2048"),
            common_name=name,
            serial=2,
            not_before=START,
            not_after=START + timedelta(days=9),
            server=True,
        )
        return pki.decode_certificate(signed.certificate).public_bytes(Encoding.DER)

    assert certificate_expiry(run_virtual(pair("kube-apiserver"))) == START + timedelta(days=9)
    with pytest.raises(ValueError, match="not an API server's"):
        certificate_expiry(run_virtual(pair("somebody")))
