"""Edge cases 63 to 69 of the spec, and what the lock must stand: crashes, lost answers, stale caches. Named after their numbers."""

from __future__ import annotations

from typing import Any

import pytest

from clusterwright.api.codec import convert
from clusterwright.api.core import Cluster, Machine
from clusterwright.api.kubernetes import ConfigMap, Secret
from clusterwright.api.meta import ObjectKey
from clusterwright.controllers.kubeadmconfig.init_lock import InitLock, Lock, lock_config_map
from clusterwright.controllers.kubeadmconfig.snapshot import ClusterFacts

NS = "default"


async def _cluster(world: Any) -> ClusterFacts:
    return ClusterFacts.of(convert(await world.cluster(), Cluster))


async def test_a_free_lock_is_taken(world: Any) -> None:
    cluster = await _cluster(world)

    assert await InitLock(world.client).acquire(cluster, "m1") is Lock.FREE
    lock = await world.lock()
    assert lock.data == {"lock-information": '{"machineName":"m1"}'}
    assert lock.metadata.labels == {"cluster.x-k8s.io/cluster-name": "c1"}
    (owner,) = lock.metadata.owner_references
    assert (owner.api_version, owner.kind, owner.name, owner.uid) == ("cluster.x-k8s.io/v1beta2", "Cluster", "c1", cluster.reference.uid)
    assert (owner.controller, owner.block_owner_deletion) == (None, None)


@pytest.mark.parametrize(
    "data", [{}, {"lock-information": "no json"}, {"lock-information": "[]"}, {"lock-information": '{"machineName": 5}'}]
)
async def test_a_lock_without_a_holder_is_respected(world: Any, data: dict[str, str]) -> None:
    cluster = await _cluster(world)
    await world.put({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"namespace": NS, "name": "c1-lock"}, "data": data})

    assert await InitLock(world.client).acquire(cluster, "m1") is Lock.DENIED
    assert await world.lock() is not None


@pytest.mark.parametrize(("code", "reason"), [(500, "InternalError"), (409, "AlreadyExists"), (0, "")])
async def test_a_lock_that_cannot_be_created_is_not_held(world: Any, code: int, reason: str) -> None:
    cluster = await _cluster(world)
    world.refuse("POST", "/configmaps$", code, reason)

    assert await InitLock(world.client).acquire(cluster, "m1") is Lock.DENIED


async def test_a_living_holder_keeps_the_lock(world: Any) -> None:
    cluster = await _cluster(world)
    await world.machine("m1")
    lock = InitLock(world.client)
    await lock.acquire(cluster, "m1")

    assert [await lock.acquire(cluster, "m2") for _ in range(3)] == [Lock.HELD] * 3
    assert await world.holder() == "m1"


async def test_a_deleting_holder_keeps_the_lock_until_it_is_gone(world: Any) -> None:
    """Ruling: never steal from a live one."""
    cluster = await _cluster(world)
    machine = await world.machine("m1")
    await world.judge.patch(Machine, ObjectKey(NS, "m1"), {"metadata": {"finalizers": ["machine.cluster.x-k8s.io"]}})
    await world.delete(Machine, "m1")
    lock = InitLock(world.client)
    await lock.acquire(cluster, "m1")

    assert await lock.acquire(cluster, "m2") is Lock.HELD
    assert machine


async def test_the_lock_of_a_machine_that_is_gone_is_taken_over_at_once(world: Any) -> None:
    cluster = await _cluster(world)
    await world.put(lock_config_map(cluster, "gone"))

    assert await InitLock(world.client).acquire(cluster, "m2") is Lock.STALE
    assert await world.holder() == "m2"


@pytest.mark.parametrize(
    ("method", "code", "reason", "expected"),
    [("", 0, "", True), ("GET", 500, "InternalError", False), ("DELETE", 500, "InternalError", False), ("DELETE", 404, "NotFound", True)],
)
async def test_unlocking_frees_the_lock(world: Any, method: str, code: int, reason: str, expected: bool) -> None:
    cluster = await _cluster(world)
    await world.put(lock_config_map(cluster, "m1"))
    if method:
        world.refuse(method, "/configmaps/c1-lock$", code, reason)

    assert await InitLock(world.client).release(cluster) is expected


async def test_unlocking_a_free_lock_does_nothing(world: Any) -> None:
    assert await InitLock(world.client).release(await _cluster(world)) is True


async def test_the_holder_may_lock_again(world: Any) -> None:
    cluster = await _cluster(world)
    lock = InitLock(world.client)

    assert [await lock.acquire(cluster, "m1") for _ in range(3)] == [Lock.FREE, Lock.OURS, Lock.OURS]


# ---------------------------------------------------------------------------------- what must not happen


async def test_a_machine_releases_only_its_own_lock(world: Any) -> None:
    cluster = await _cluster(world)
    await world.put(lock_config_map(cluster, "m2"))

    assert await InitLock(world.client).release(cluster, held_by="m1") is True
    assert await world.holder() == "m2"


async def test_two_machines_that_both_see_a_dead_holder_do_not_both_take_over(world: Any) -> None:
    cluster = await _cluster(world)
    await world.put(lock_config_map(cluster, "gone"))
    for name in ("m2", "m3"):
        await world.machine(name)

    class Slow(InitLock):
        """Between its look at the lock and its delete, another Machine is quicker."""

        async def _is_gone(self, machine: ObjectKey) -> bool:
            answer = await super()._is_gone(machine)
            assert await InitLock(world.client).acquire(cluster, "m3") is Lock.STALE
            return answer

    assert await Slow(world.client).acquire(cluster, "m2") is Lock.DENIED
    assert await world.holder() == "m3"


async def test_a_stale_cluster_does_not_let_a_second_machine_init(world: Any) -> None:
    """The first join releases the lock: for a cache that lags behind, the lock is free and the Cluster not initialized."""
    await world.cluster()
    await world.certificates()
    await world.control_plane_machine("m3")
    stale = await world.judge.get(Cluster, ObjectKey(NS, "c1"))
    await world.set_initialized()

    class Lagging:
        """A client whose cache has not heard of it yet."""

        live = world.client

        def __getattr__(self, name: str) -> Any:
            return getattr(world.client, name)

        async def find(self, kind: Any, key: ObjectKey) -> Any:
            return stale if kind is Cluster else await world.client.find(kind, key)

    world.reconciler._kind._client = Lagging()
    assert await world.reconcile("m3") == 30
    assert not await world.has_data("m3")
    assert await world.lock() is None


@pytest.mark.parametrize("after", [False, True])
async def test_the_lock_is_kept_while_it_is_unknown_whether_the_data_was_stored(world: Any, after: bool) -> None:
    await world.cluster()
    await world.certificates()
    await world.control_plane_machine("m1")
    await world.control_plane_machine("m2")
    world.refuse("POST", "/secrets$", 0, times=1, after=after)

    await world.failing("m1")
    assert await world.holder() == "m1"
    assert await world.reconcile("m2") == 30
    assert await world.reconcile("m1") is None
    assert "kubeadm init" in await world.data("m1")


async def test_unreported_stored_data_is_deleted_before_the_lock(world: Any) -> None:
    """A pass stored the data and died; the next fails for another reason: nobody may find that data beside another Machine's."""
    await world.cluster()
    await world.certificates()
    await world.control_plane_machine("m1")
    world.refuse("PATCH", "/kubeadmconfigs/m1", 500)
    await world.failing("m1")
    assert await world.has_data("m1")
    assert await world.holder() == "m1"
    world.transport.refusals.clear()
    world.refuse("GET", "/secrets/c1-ca$", 500)

    await world.failing("m1")

    assert not await world.has_data("m1")
    assert await world.lock() is None


async def test_the_lock_stays_if_stored_data_cannot_be_deleted(world: Any) -> None:
    await world.cluster()
    await world.certificates()
    await world.control_plane_machine("m1")
    world.refuse("PATCH", "/kubeadmconfigs/m1", 500)
    await world.failing("m1")
    world.transport.refusals.clear()
    world.refuse("GET", "/secrets/c1-ca$", 500)
    world.refuse("DELETE", "/secrets/m1$", 500)

    await world.failing("m1")

    assert await world.holder() == "m1"


async def test_locks_are_not_shared_between_clusters(world: Any) -> None:
    for name in ("c1", "c2"):
        await world.cluster(name)
        await world.certificates(cluster=name)
        await world.control_plane_machine(f"{name}-m", cluster=name)
        await world.reconcile(f"{name}-m")

    assert [await world.holder(name) for name in ("c1", "c2")] == ["c1-m", "c2-m"]
    assert len(await world.judge.list(ConfigMap, namespace=NS)) == 2
    assert len([s for s in await world.judge.list(Secret, namespace=NS) if s.metadata.name.endswith("-m")]) == 2


class Crash(BaseException):
    """The process dies."""


class Crashing:
    """Dies at the n-th request: before it arrives, or after it took effect."""

    def __init__(self, inner: Any, n: int, *, after: bool) -> None:
        self.inner, self.n, self.after, self.count = inner, n, after, 0

    async def send(self, request: Any) -> Any:
        self.count += 1
        if self.count == self.n:
            if self.after:
                await self.inner.send(request)
            raise Crash
        return await self.inner.send(request)


async def _with_init_data(world: Any) -> set[str]:
    return {name for name in ("m1", "m2") if await world.has_data(name) and "kubeadm init" in await world.data(name)}


@pytest.mark.parametrize("stand_alone", [True, False])
@pytest.mark.parametrize("after", [True, False])
async def test_a_crash_at_any_request_never_lets_two_machines_init(new_world: Any, stand_alone: bool, after: bool) -> None:
    n = requests = 0
    while n <= requests:
        world = await new_world()
        await world.cluster(control_plane_ref=not stand_alone)
        if not stand_alone:
            await world.certificates()
        for name in ("m1", "m2"):
            await world.control_plane_machine(name)
        sound, world.transport.inner = world.transport.inner, Crashing(world.transport.inner, n, after=after)
        try:
            await world.reconcile("m1")
            requests = max(requests, world.transport.inner.count)
        except Crash:
            pass
        world.transport.inner = sound
        world.restart()
        for name in ("m2", "m1", "m2"):
            await world.reconcile(name)
            assert len(await _with_init_data(world)) <= 1, f"request {n}"
        (chosen,) = await _with_init_data(world)
        assert await world.holder() == chosen
        assert (await world.read(chosen)).status.data_secret_name == chosen
        n += 1
    assert requests > 8
