"""The cluster cache row by row: when it connects, probes, disconnects, and whom it tells; in virtual time."""

import asyncio
from base64 import b64encode
from datetime import timedelta
from random import Random
from typing import Any

import pytest

from clusterwright.api.core import Cluster
from clusterwright.api.kubernetes import Node, Secret
from clusterwright.api.meta import ObjectKey
from clusterwright.api.scheme import SCHEME
from clusterwright.api.wire import Response
from clusterwright.apiserver.schema.permissive import permissive_resource
from clusterwright.apiserver.server import ApiServer
from clusterwright.apiserver.serving.inprocess import InProcessTransport
from clusterwright.runtime.clock import LoopClock
from clusterwright.runtime.errors import ConnectionFailed, ServerError
from clusterwright.runtime.keys import FixedKeySource
from clusterwright.runtime.metrics import Registry
from clusterwright.runtime.rest import RestClient
from clusterwright.simulation.loop import run_virtual
from clusterwright.simulation.world import START
from clusterwright.workload.access import Health, NotConnected
from clusterwright.workload.clusters import ClusterCache, Source, connection_matters, mapped_source, secret_to_cluster

KEY = ObjectKey("default", "c")


class Remote:
    """A workload cluster that can be broken: refuses, hangs, or answers with a status."""

    def __init__(self, clock):
        self.server = ApiServer(now=clock.now, random=Random(1))
        self.inner = InProcessTransport(self.server)
        self.trouble = None
        self.connects = self.closes = self.gets = 0

    async def send(self, request):
        self.gets += 1
        if self.trouble == "refused":
            raise ConnectionFailed("connection refused")
        if self.trouble == "hangs":
            await asyncio.sleep(3600)
        if isinstance(self.trouble, int):
            return Response(status=self.trouble, body=b'{"kind":"Status","status":"Failure","message":"no","code":%d}' % self.trouble)
        return await self.inner.send(request)

    async def stream(self, request):
        if self.trouble is not None:
            raise ConnectionFailed("connection refused")
        return await self.inner.stream(request)

    async def forward(self, request, port):
        raise ConnectionFailed("not here")

    async def close(self):
        self.closes += 1
        self.server.close()


class Stage:
    """A cache, the API server that it reads Clusters from, and one workload cluster."""

    def __init__(self, **options):
        self.clock = LoopClock(START)
        self.server = ApiServer(now=self.clock.now, random=Random(1), require_namespaces=False)
        self.server.registry.add([permissive_resource(SCHEME.gvk(Cluster))])
        self.remote = Remote(self.clock)
        self.told = []
        self.woken = []
        self.registry = Registry()
        self.client = RestClient(InProcessTransport(self.server), clock=self.clock)
        self.cache = ClusterCache(
            client=options.pop("client", self.client),
            clock=self.clock,
            random=Random(1),
            keys=FixedKeySource(1),
            connect=self._connect,
            registry=self.registry,
            **options,
        )
        self.cache.bind(lambda key, reason: self.woken.append(reason))

    async def _connect(self, key, kubeconfig):
        self.remote.connects += 1
        if kubeconfig == b"garbled":
            raise ValueError("the kubeconfig cannot be read")
        return self.remote

    def listen(self, failing_for=None):
        async def tell(cluster, reason):
            self.told.append(reason)

        self.cache.add_source(Source(tell, failing_for))

    def have(self, *, provisioned=True, kubeconfig=b"one", labels=None):
        cluster: Any = {"apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Cluster", "metadata": {"name": "c", "namespace": "default"}}
        cluster["metadata"]["labels"] = labels or {}
        cluster["status"] = {"initialization": {"infrastructureProvisioned": provisioned}}
        self.server.load([cluster])
        if kubeconfig is not None:
            self.have_kubeconfig(kubeconfig)

    def have_kubeconfig(self, value):
        metadata = {"name": "c-kubeconfig", "namespace": "default", "labels": {"cluster.x-k8s.io/cluster-name": "c"}}
        data = {"value": b64encode(value).decode()} if value else {}
        self.server.load([{"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "data": data}])

    async def look(self):
        """One pass; the seconds until the next, None if only a change brings it."""
        result = await self.cache.reconcile(KEY)
        return None if result.requeue_after is None else round(result.requeue_after.total_seconds(), 3)

    @property
    def health(self):
        return self.cache.health(KEY)

    async def connect(self):
        self.have()
        assert await self.look() == 10
        assert self.health.connected
        self.told.clear()

    async def fail_probes(self, count, trouble="refused"):
        self.remote.trouble = trouble
        waits = []
        for _ in range(count):
            await asyncio.sleep(10)
            waits.append(await self.look())
        return waits


def staged(body, **options):
    async def main():
        stage = Stage(**options)
        try:
            return await body(stage)
        finally:
            await stage.cache.close()

    return run_virtual(main())


# ------------------------------------------------------------------------------------------------------------ rows


def test_a_cluster_that_is_gone_is_disconnected_and_forgotten():
    async def body(s):
        await s.connect()
        await s.client.delete(Cluster, KEY)
        assert await s.look() is None
        assert s.remote.closes == 1
        assert s.health == Health(untried=True)
        with pytest.raises(NotConnected):
            await s.cache.client(KEY)
        assert s.cache._accessors == {}

    staged(body)


def test_an_unreadable_cluster_is_retried_after_ten_seconds():
    class Broken:
        async def find(self, kind, key):
            raise ServerError("no")

    async def body(s):
        assert await s.look() == 10
        assert s.health == Health(untried=True)

    staged(body, client=Broken())


def test_clusters_beyond_the_watch_filter_are_left_alone_and_let_go():
    async def body(s):
        s.have(labels={"cluster.x-k8s.io/watch-filter": "mine"})
        assert await s.look() == 10
        s.have(labels={"cluster.x-k8s.io/watch-filter": "yours"})
        assert await s.look() is None
        assert s.remote.closes == 1
        assert s.health == Health()

    staged(body, watch_filter="mine")


def test_before_the_infrastructure_is_provisioned_nothing_is_tried():
    async def body(s):
        s.have(provisioned=False)
        assert await s.look() is None
        assert s.remote.connects == 0
        s.have(provisioned=True)
        assert await s.look() == 10
        assert s.health.connected

    staged(body)


def test_without_a_kubeconfig_it_waits_for_one_and_then_connects_at_once():
    async def body(s):
        s.have(kubeconfig=None)
        assert await s.look() == 30
        assert s.health.consecutive_failures == 1
        await asyncio.sleep(12)
        assert await s.look() == 18
        assert s.remote.connects == 0
        assert s.health.consecutive_failures == 1
        s.have_kubeconfig(b"one")
        assert await s.look() == 10
        assert s.health.connected

    staged(body)


@pytest.mark.parametrize("kubeconfig", [b"", b"garbled"])
def test_an_empty_kubeconfig_is_a_failed_attempt(kubeconfig):
    async def body(s):
        s.have(kubeconfig=kubeconfig)
        assert await s.look() == 30
        assert (s.health.connected, s.health.consecutive_failures) == (False, 1)

    staged(body)


@pytest.mark.parametrize("trouble", ["refused", 401, 500])
def test_after_a_failed_attempt_the_next_is_made_when_thirty_seconds_are_over(trouble):
    async def body(s):
        s.have()
        s.remote.trouble = trouble
        assert await s.look() == 30
        failed_at = s.clock.now()
        await asyncio.sleep(29)
        assert await s.look() == 1
        assert s.remote.connects == 1
        health = s.health
        assert health == Health(last_probe=failed_at, consecutive_failures=1)
        await asyncio.sleep(1)
        assert await s.look() == 30
        assert (s.remote.connects, s.health.consecutive_failures) == (2, 2)
        assert s.remote.closes == 2  # what was half open is closed

    staged(body)


def test_connecting_resets_the_health():
    async def body(s):
        s.have()
        s.remote.trouble = "refused"
        for _ in range(6):
            await s.look()
            await asyncio.sleep(30)
        assert s.health.consecutive_failures == 6
        s.remote.trouble = None
        await s.look()
        now = s.clock.now()
        assert s.health == Health(connected=True, last_probe=now, last_probe_success=now, consecutive_failures=0)
        connects = s.remote.connects
        assert await s.look() == 10
        assert s.remote.connects == connects  # it is connected already

    staged(body)


def test_the_probe_runs_every_ten_seconds():
    async def body(s):
        await s.connect()
        gets = s.remote.gets
        await asyncio.sleep(4)
        assert await s.look() == 6
        assert s.remote.gets == gets
        await asyncio.sleep(6)
        assert await s.look() == 10
        assert s.remote.gets == gets + 1
        assert s.health.last_probe_success == s.clock.now()

    staged(body)


def test_up_to_four_failed_probes_are_tolerated():
    async def body(s):
        await s.connect()
        connected_at = s.clock.now()
        assert await s.fail_probes(4) == [10] * 4
        assert (s.health.connected, s.health.consecutive_failures) == (True, 4)
        assert s.health.last_probe_success == connected_at
        assert s.health.last_probe > connected_at
        s.remote.trouble = None
        await asyncio.sleep(10)
        assert await s.look() == 10
        assert (s.health.connected, s.health.consecutive_failures) == (True, 0)

    staged(body)


@pytest.mark.parametrize("trouble", ["refused", 400, 500])
def test_the_fifth_failed_probe_disconnects(trouble):
    async def body(s):
        s.listen()
        await s.connect()
        assert (await s.fail_probes(5, trouble))[-1] == 30
        assert (s.health.connected, s.health.consecutive_failures) == (False, 5)
        assert s.remote.closes == 1
        assert s.told == ["workload cluster disconnected"]
        await asyncio.sleep(29)
        assert await s.look() == 1
        s.remote.trouble = None
        await asyncio.sleep(1)
        assert await s.look() == 10
        assert s.told[-1] == "workload cluster connected"

    staged(body)


def test_a_probe_that_hangs_is_a_failed_one():
    async def body(s):
        await s.connect()
        s.remote.trouble = "hangs"
        await asyncio.sleep(10)
        started = s.clock.monotonic()
        await s.look()
        assert s.clock.monotonic() - started == 5
        assert s.health.consecutive_failures == 1

    staged(body)


def test_an_unauthorized_probe_disconnects_at_once_and_the_next_attempt_follows():
    async def body(s):
        await s.connect()
        assert await s.fail_probes(1, 401) == [0.001]
        assert (s.health.connected, s.health.consecutive_failures) == (False, 1)
        assert s.health.last_probe_success is not None  # what was known is kept
        s.remote.trouble = None
        assert await s.look() == 10
        assert s.health.connected

    staged(body)


def test_another_kubeconfig_is_taken_at_once():
    async def body(s):
        await s.connect()
        s.have_kubeconfig(b"two")
        assert await s.look() == 10
        assert (s.remote.connects, s.remote.closes) == (2, 1)
        await s.client.delete(Secret, ObjectKey("default", "c-kubeconfig"))
        await s.look()
        assert s.health.connected  # one that is missing proves nothing

    staged(body)


def test_a_cluster_reported_as_changed_is_checked_without_waiting():
    async def body(s):
        s.have()
        s.remote.trouble = "refused"
        await s.look()
        s.remote.trouble = None
        s.cache.wake(KEY)
        assert s.woken == ["workload cluster changed"]
        assert await s.look() == 10
        assert s.health.connected
        gets = s.remote.gets
        s.cache.wake(KEY)
        await s.look()
        assert s.remote.gets > gets

    staged(body)


def test_a_paused_or_deleting_cluster_stays_connected():
    async def body(s):
        await s.connect()
        cluster: Any = {"apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Cluster", "metadata": {"name": "c", "namespace": "default"}}
        cluster["metadata"] |= {"deletionTimestamp": "2026-01-01T00:00:00Z", "finalizers": ["x"]}
        s.server.load([{**cluster, "spec": {"paused": True}, "status": {"initialization": {"infrastructureProvisioned": True}}}])
        await asyncio.sleep(10)
        assert await s.look() == 10
        assert s.health.connected

    staged(body)


# ---------------------------------------------------------------------------------------------------------- access


def test_without_a_connection_every_call_reports_that():
    async def body(s):
        s.have(kubeconfig=None)
        await s.look()
        with pytest.raises(NotConnected, match="error getting client: connection to the workload cluster is down"):
            await s.cache.client(KEY)
        with pytest.raises(NotConnected):
            await s.cache.etcd(KEY, ["n"])
        with pytest.raises(NotConnected):
            await s.cache.serving_certificate_expiry(KEY, "n")
        with pytest.raises(NotConnected, match="connection to the workload cluster is down"):
            await s.cache.watch(KEY, "me", Node, print)
        assert s.cache.health(ObjectKey("default", "never-seen")) == Health(untried=True)

    staged(body)


def test_the_client_reads_nodes_from_its_cache():
    async def body(s):
        await s.connect()
        client = await s.cache.client(KEY)
        gets = s.remote.gets
        remote = RestClient(s.remote.inner)
        await remote.create({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n"}})
        await asyncio.sleep(0.1)
        assert [n.metadata.name for n in await client.list(Node)] == ["n"]
        assert s.remote.gets == gets

    staged(body)


def test_a_watch_has_a_name_and_is_made_once_per_name_and_connection():
    async def body(s):
        await s.connect()
        heard = []
        with pytest.raises(ValueError, match="name"):
            await s.cache.watch(KEY, "", Node, heard.append)
        for _ in range(2):
            await s.cache.watch(KEY, "me", Node, heard.append)
        remote = RestClient(s.remote.inner)
        await remote.create({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n"}})
        await asyncio.sleep(0.1)
        assert len(heard) == 1
        # a new connection knows nothing of the old one's watches
        await s.fail_probes(1, 401)
        s.remote.trouble = None
        await s.look()
        await remote.patch(Node, ObjectKey("", "n"), {"metadata": {"labels": {"a": "b"}}})
        await asyncio.sleep(0.1)
        assert len(heard) == 1
        await s.cache.watch(KEY, "me", Node, heard.append)
        await asyncio.sleep(0.1)
        assert len(heard) == 2

    staged(body)


def test_requests_end_after_ten_seconds_however_long_they_had_to_wait_for_their_turn():
    async def body(s):
        await s.connect()
        client = (await s.cache.client(KEY)).live
        await asyncio.gather(*(client.find(Secret, ObjectKey("default", f"s{n}")) for n in range(300)))  # 13 s of turns, no failure
        s.remote.trouble = "hangs"
        started = s.clock.monotonic()
        with pytest.raises(ConnectionFailed, match="no answer within 10 s"):
            await (await s.cache.client(KEY)).create({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n"}})
        assert s.clock.monotonic() - started == pytest.approx(10, abs=0.1)

    staged(body)


def test_at_most_thirty_requests_at_once_and_twenty_a_second():
    async def body(s):
        await s.connect()
        client = await s.cache.client(KEY)
        await asyncio.sleep(10)
        started = s.clock.monotonic()
        await asyncio.gather(*(client.find(Secret, ObjectKey("default", f"s{n}")) for n in range(70)))
        return s.clock.monotonic() - started

    assert staged(body) == pytest.approx(2.0, abs=0.1)


# --------------------------------------------------------------------------------------------------------- sources


def test_sources_are_notified_only_of_connects_and_disconnects():
    async def body(s):
        s.listen()
        s.have()
        await s.look()
        assert s.told == ["workload cluster connected"]
        await asyncio.sleep(10)
        await s.look()
        await s.fail_probes(4)
        assert s.told == ["workload cluster connected"]
        await s.fail_probes(1)
        assert s.told == ["workload cluster connected", "workload cluster disconnected"]

    staged(body)


def test_a_cluster_that_never_answered_is_reported_once_it_counts_as_failed():
    async def body(s):
        s.listen(timedelta(seconds=50))
        s.have()
        s.remote.trouble = "refused"
        for _ in range(8):
            await s.look()
            await asyncio.sleep(30)
        assert s.told == ["workload cluster does not answer"]

    staged(body)


def test_a_lasting_failure_is_reported_after_its_time_limit():
    """Exactly then: the pass that would say so is asked for."""

    async def body(s):
        s.listen(timedelta(seconds=25))
        await s.connect()
        connected_at = s.clock.monotonic()
        _, wait = await s.fail_probes(2)
        assert s.told == []
        assert s.clock.monotonic() + wait - connected_at == pytest.approx(25.001)
        await asyncio.sleep(wait)
        await s.look()
        assert s.told == ["workload cluster probe fails"]
        await asyncio.sleep(10)
        await s.look()
        assert len(s.told) == 1  # once

    staged(body)


@pytest.mark.parametrize(
    ("seconds", "last_told", "is_told"),
    [(21, 40, True), (21, 39, False), (61, 40, False)],
    ids=["not heard since", "heard since", "not yet"],
)
def test_a_source_is_not_notified_twice_of_a_failure(seconds, last_told, is_told):
    """The probe was well 60 s ago; a source was last told of anything `last_told` seconds ago."""

    async def body(s):
        s.listen(timedelta(seconds=seconds))
        await s.connect()
        accessor = s.cache._accessors[KEY]
        await asyncio.sleep(60)
        s.remote.trouble = "refused"
        accessor.told[0] = s.clock.now() - timedelta(seconds=last_told)
        await s.look()
        assert bool(s.told) is is_told

    staged(body)


def test_a_failing_source_does_not_stop_notifications_of_others():
    async def body(s):
        async def broken(cluster, reason):
            raise RuntimeError("no")

        s.cache.add_source(Source(broken))
        s.listen()
        s.have()
        assert await s.look() == 10
        assert s.told == ["workload cluster connected"]

    staged(body)


def test_a_mapped_source_wakes_the_keys_of_a_cluster():
    async def body(s):
        woken = []

        async def machines(cluster, reader):
            return [ObjectKey("default", f"{cluster.metadata.name}-{n}") for n in range(2)]

        s.cache.add_source(mapped_source(s.client, machines, lambda key, reason: woken.append((str(key), reason)), None))
        s.have()
        await s.look()
        assert woken == [("default/c-0", "workload cluster connected"), ("default/c-1", "workload cluster connected")]

    staged(body)


def test_a_connection_whose_watch_ends_is_probed_at_once():
    async def body(s):
        await s.connect()
        connection = s.cache._accessors[KEY].connection
        connection._failed()
        assert s.woken == ["connection part ended"]
        gets = s.remote.gets
        await s.look()
        assert s.remote.gets == gets + 1

    staged(body)


# ---------------------------------------------------------------------------------------------------------- wiring


def test_the_kubeconfig_secret_wakes_its_cluster():
    async def body(s):
        s.have()
        secrets = await s.client.list(Secret)
        assert await secret_to_cluster(secrets[0], s.client) == [KEY]
        other: Any = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "c-ca", "namespace": "default"}}
        s.server.load([{**other, "metadata": {**other["metadata"], "labels": {"cluster.x-k8s.io/cluster-name": "c"}}}])
        found = await s.client.get(Secret, ObjectKey("default", "c-ca"))
        assert await secret_to_cluster(found, s.client) == []

    staged(body)


def test_only_changes_that_concern_the_connection_wake_the_cache():
    async def body(s):
        s.have(provisioned=False)
        before = await s.client.get(Cluster, KEY)
        s.have(provisioned=True)
        after = await s.client.get(Cluster, KEY)
        s.have(provisioned=True, labels={"a": "b"})
        labelled = await s.client.get(Cluster, KEY)
        assert connection_matters(None, before)
        assert connection_matters(after, None)
        assert connection_matters(before, after)
        assert connection_matters(after, labelled)
        assert not connection_matters(after, after)

    staged(body)


def test_metrics_show_connections_and_probes():
    async def body(s):
        await s.connect()
        await asyncio.sleep(10)
        await s.look()
        await s.fail_probes(5)
        text = s.registry.text() if hasattr(s.registry, "text") else s.registry.render()
        if isinstance(text, bytes):
            text = text.decode()
        labels = 'cluster_name="c",cluster_namespace="default"'
        assert f"capi_cluster_cache_connection_up{{{labels}}} 0" in text
        assert f"capi_cluster_cache_healthcheck{{{labels}}} 0" in text
        assert f'capi_cluster_cache_healthchecks_total{{{labels},status="success"}} 1' in text
        assert f'capi_cluster_cache_healthchecks_total{{{labels},status="error"}} 5' in text

    staged(body)
