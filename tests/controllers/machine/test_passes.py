"""Several passes in a row: a Machine's life from the first reference to the last finalizer, and what happens in between."""

from __future__ import annotations

from typing import Any

import pytest

from clusterwright.api.core import Machine
from clusterwright.api.kubernetes import Node, Pod
from clusterwright.api.meta import GroupVersionKind, ObjectKey
from clusterwright.controllers.kit.passing import PassFailed
from clusterwright.runtime.errors import Conflict, ServerError

KEY = ObjectKey("ns1", "m1")
INFRA = GroupVersionKind("infrastructure.cluster.x-k8s.io", "v1beta2", "GenericInfrastructureMachine")
BOOTSTRAP = GroupVersionKind("bootstrap.cluster.x-k8s.io", "v1beta2", "GenericBootstrapConfig")


async def deleting(running: Any) -> tuple[str, str]:
    machine = await running.machine()
    found = next(c for c in machine.status.conditions if c.type == "Deleting")
    return found.reason, found.message


async def test_the_life_of_a_machine(a: Any) -> None:
    machine = a.fresh(metadata={"finalizers": None, "ownerReferences": None})
    del machine["status"]
    running = a.Build(
        machine=machine,
        bootstrap=a.bootstrap(metadata={"ownerReferences": None, "finalizers": None}, status=None),
        infra=a.infra(metadata={"ownerReferences": None, "finalizers": None}, spec=None, status=None),
        node=None,
        more=[a.other_control_plane()],
    ).start()
    here, phases = running.world.client, []

    async def step(**later: float) -> Any:
        result = await running.run(**later)
        found = await here.find(Machine, KEY)
        phases.append(found.status.phase if found else "gone")
        return result

    await step()  # the finalizer
    await step()
    await here.patch(
        BOOTSTRAP, KEY, {"status": {"dataSecretName": "s", "initialization": {"dataSecretCreated": True}}}, subresource="status"
    )
    await step()
    await here.patch(INFRA, KEY, {"spec": {"providerID": "generic:///m1"}})
    await here.patch(INFRA, KEY, {"status": {"initialization": {"provisioned": True}}}, subresource="status")
    await step()
    there = await running.remote()
    await there.create(a.node(metadata={"uid": None, "annotations": None}))
    await there.patch(Node, ObjectKey("", "node-1"), {"status": a.node()["status"]}, subresource="status")
    running.notify["machine-nodes"](await running.remote_node())
    woken = list(running.woken)
    await step()
    available = {c.type: c.status for c in (await running.machine()).status.conditions}["Available"]
    quiet = (await running.run(), list(running.world.journal.actions))
    await there.create(a.pod("web", metadata={"uid": None, "finalizers": ["kubelet/busy"]}))
    await here.delete(Machine, KEY)
    drained = await step(seconds=1)
    pod = await running.remote_pod("web")
    await there.patch(Pod, ObjectKey("default", "web"), {"metadata": {"finalizers": None}})
    await step(seconds=20)
    await step()
    await step()

    assert phases == ["", "Pending", "Provisioning", "Provisioned", "Running", "Deleting", "Deleting", "Deleting", "gone"]
    assert woken == [(KEY, "Node node-1 changed")]
    assert available == "True"
    assert (quiet[0].requeue_after, quiet[1]) == (None, [])
    assert drained.requeue_after.total_seconds() == 20
    assert pod.metadata.deletion_timestamp is not None
    assert await here.find(INFRA, KEY) is None
    assert await here.find(BOOTSTRAP, KEY) is None
    assert await there.find(Node, ObjectKey("", "node-1")) is None


async def test_a_pass_that_finds_nothing_to_do_writes_nothing(a: Any) -> None:
    running = a.Build().start()
    await running.run()
    before = (await running.machine()).metadata.resource_version
    result = await running.run(seconds=30)

    assert (await running.machine()).metadata.resource_version == before
    assert (running.actions, result.requeue_after) == ([], None)


async def test_a_machine_that_is_gone_needs_nothing(a: Any) -> None:
    build = a.Build()
    build.machine = a.machine(metadata={"name": "another"})

    assert (await build.start().run()).requeue_after is None


# ------------------------------------------------------------------------------------------------------------ drain


async def test_the_start_of_a_drain_is_written_before_anything_is_evicted(a: Any) -> None:
    running = a.Build(machine=a.deleted(), remote=[a.pod("web")], more=[a.other_control_plane()]).start()
    client = await running.remote()
    seen = []

    async def failing(*_: Any) -> Any:
        seen.append((await running.machine()).status.deletion)
        raise ServerError("died")

    client.create_subresource = failing
    await running.run()

    assert seen[0].node_drain_start_time == a.NOW


async def test_evictions_stop_after_ten_seconds(a: Any) -> None:
    running = a.Build(machine=a.deleted(), remote=[a.pod(f"p{n}") for n in range(4)], more=[a.other_control_plane()]).start()
    client = await running.remote()
    inner = client.create_subresource

    async def slow(*arguments: Any) -> Any:
        await running.clock.sleep(6)
        return await inner(*arguments)

    client.create_subresource = slow
    await running.run()

    assert (await deleting(running))[1].splitlines()[1:] == [
        "* Pods default/p0, default/p1: deletionTimestamp set, but still not removed from the Node",
        "* Pods default/p2, default/p3: failed to evict Pod, eviction timeout of 10s reached, eviction will be retried",
    ]


async def test_a_pod_that_leaves_ends_the_rest(a: Any) -> None:
    lingering = a.pod("web", metadata={"finalizers": ["kubelet/busy"]})
    running = a.Build(machine=a.deleted(), remote=[lingering], more=[a.other_control_plane()]).start()
    await running.run()
    pod = await running.remote_pod("web")
    await (await running.remote()).patch(Pod, ObjectKey("default", "web"), {"metadata": {"finalizers": None}})
    running.notify["machine-pods"](pod)
    woken, watched = list(running.woken), set(running.notify)
    await running.run(seconds=1)

    assert woken == [(KEY, "Pod default/web changed")]
    assert (watched, set(running.notify)) == ({"machine-nodes", "machine-pods"}, {"machine-nodes"})
    assert (await deleting(running))[0] == "WaitingForInfrastructureDeletion"


async def test_excluding_the_drain_takes_effect_at_once(a: Any) -> None:
    lingering = a.pod("web", metadata={"finalizers": ["kubelet/busy"]})
    running = a.Build(machine=a.deleted(), remote=[lingering], more=[a.other_control_plane()]).start()
    await running.run()
    patch = {"metadata": {"annotations": {"machine.cluster.x-k8s.io/exclude-node-draining": ""}}}
    await running.world.client.patch(Machine, KEY, patch)
    await running.run(seconds=1)

    assert (await deleting(running))[0] == "WaitingForInfrastructureDeletion"


async def test_volumes_that_change_end_the_rest(a: Any) -> None:
    node = a.node(status={"volumesAttached": [{"name": "v1", "devicePath": ""}, {"name": "v2", "devicePath": ""}]})
    running = a.Build(machine=a.deleted(), node=node, more=[a.other_control_plane()]).start()
    first = await running.run()
    resting = await running.run(seconds=5)
    status = {"status": {"volumesAttached": [{"name": "v2", "devicePath": ""}]}}
    await (await running.remote()).patch(Node, ObjectKey("", "node-1"), status, subresource="status")
    await running.run(seconds=1)

    assert [r.requeue_after.total_seconds() for r in (first, resting)] == [20, 15]
    assert (await deleting(running))[1].endswith("not matching a PersistentVolume: v2")


async def test_a_dead_workload_cluster_holds_the_deletion_only_until_the_timeouts(a: Any) -> None:
    limits = {"nodeDrainTimeoutSeconds": 60, "nodeVolumeDetachTimeoutSeconds": 60, "nodeDeletionTimeoutSeconds": 10}
    running = a.Build(
        machine=a.deleted(spec={"deletion": limits}),
        bootstrap=None,
        infra=a.infra(metadata={"finalizers": None}),
        workload={"connected": False},
        more=[a.other_control_plane()],
    ).start()
    stages = []
    for seconds in (0, 61, 61, 1):
        with pytest.raises(Exception, match="connection to the workload cluster is down"):
            await running.run(seconds=seconds)
        found = await running.world.client.find(Machine, KEY)
        stages.append(next(c.reason for c in found.status.conditions if c.type == "Deleting") if found else "gone")

    assert stages == ["DrainingNode", "WaitingForVolumeDetach", "WaitingForInfrastructureDeletion", "gone"]


async def test_deleting_a_whole_cluster_never_asks_its_api_server(a: Any) -> None:
    running = a.Build(
        machine=a.deleted(),
        cluster=a.cluster(metadata={"deletionTimestamp": a.ago()}, status={"conditions": []}),
        infra=None,
        bootstrap=None,
        node=None,
        workload={"connected": False},
    ).start()
    with pytest.raises(Exception, match="connection to the workload cluster is down"):
        await running.run()

    assert await running.world.client.find(Machine, KEY) is None


# ------------------------------------------------------------------------------------------------------------- Node


async def test_a_node_that_its_kubelet_changes_meanwhile_is_still_synced(a: Any) -> None:
    running = a.Build(node=a.node(metadata={"annotations": None})).start()
    client = await running.remote()
    inner, conflicts = client.patch, []

    async def racing(kind: Any, key: Any, patch: Any, **options: Any) -> Any:
        if not conflicts:
            conflicts.append(key)
            raise Conflict("changed")
        return await inner(kind, key, patch, **options)

    client.patch = racing
    await running.run()

    assert (await running.remote_node()).metadata.annotations["cluster.x-k8s.io/machine"] == "m1"


async def test_a_failed_node_deletion_is_retried_within_the_pass(a: Any) -> None:
    running = a.Build(machine=a.deleted(), bootstrap=None, infra=None, more=[a.other_control_plane()]).start()
    client = await running.remote()
    inner, tries = client.delete, []

    async def stubborn(*arguments: Any, **options: Any) -> None:
        tries.append(running.clock.monotonic())
        if len(tries) < 3:
            raise ServerError("not now")
        await inner(*arguments, **options)

    client.delete = stubborn
    await running.run()

    assert tries == [0, 2, 4]
    assert await running.world.client.find(Machine, KEY) is None


# ------------------------------------------------------------------------------------------------- provider objects


async def test_an_object_that_appears_later_wakes_the_machine(a: Any) -> None:
    running = a.Build(machine=a.fresh(), infra=None, node=None).start()
    mappers: dict[str, Any] = {}

    async def ensure(kind: GroupVersionKind, also: Any = None) -> None:
        mappers[kind.kind] = also

    running.world.ensure = ensure
    await running.run()
    infra = await running.world.client.create(a.infra(metadata={"uid": None, "ownerReferences": None}))
    woken = await mappers[infra.kind](infra, running.world.client)
    await running.run()

    assert list(woken) == [KEY]
    assert list(await mappers[infra.kind](infra, running.world.client)) == []


async def test_nodes_are_watched_before_the_control_plane_is_initialized(a: Any) -> None:
    uninitialized = a.cluster(status={"conditions": []})
    running = a.Build(machine=a.machine(status={"nodeRef": None}), cluster=uninitialized, node=None).start()
    await running.run()
    there = await running.remote()
    await there.create(a.node(metadata={"uid": None, "annotations": None}))
    running.notify["machine-nodes"](await running.remote_node())
    woken = list(running.woken)
    await running.run()

    assert woken == [(KEY, "Node node-1 changed")]
    assert (await running.machine()).status.node_ref.name == "node-1"


# ----------------------------------------------------------------------------------------------------------- events


def recorded(running: Any) -> list[tuple[str, str]]:
    """Type and reason of the Events since the last look."""
    found = [(e["type"], e["reason"]) for e in running.world.events]
    running.world.events.clear()
    return found


async def test_a_found_node_is_reported_once(a: Any) -> None:
    running = a.Build(machine=a.machine(status={"nodeRef": None})).start()
    await running.run()
    first = recorded(running)
    await running.run()

    assert (first, recorded(running)) == ([("Normal", "SuccessfulSetNodeRef")], [])


async def test_a_drain_and_detached_volumes_are_reported_once(a: Any) -> None:
    running = a.Build(machine=a.deleted(), more=[a.other_control_plane()]).start()
    await running.run()
    first = recorded(running)
    await running.run()

    assert (first, recorded(running)) == ([("Normal", "SuccessfulDrainNode"), ("Normal", "NodeVolumesDetached")], [])


@pytest.mark.parametrize(
    ("faults", "reason"),
    [
        pytest.param({"unlistable": ["Pod"]}, "FailedDrainNode", id="drain"),
        pytest.param({"unlistable": ["VolumeAttachment"]}, "FailedWaitForVolumeDetach", id="volumes"),
        pytest.param({"unwritable": [{"verb": "delete", "kind": "Node"}]}, "FailedDeleteNode", id="node"),
    ],
)
async def test_failures_on_the_node_are_reported(a: Any, faults: Any, reason: str) -> None:
    running = a.Build(
        machine=a.deleted(metadata={"finalizers": ["machine.cluster.x-k8s.io", "x/y"]}),
        bootstrap=None,
        infra=None if reason == "FailedDeleteNode" else a.infra(),
        more=[a.other_control_plane()],
        workload=faults,
    ).start()
    with pytest.raises(PassFailed, match=r"cannot be listed|is refused"):
        await running.run()

    assert ("Warning", reason) in recorded(running)


async def test_a_node_that_has_become_another_machines_is_neither_drained_nor_deleted(a: Any) -> None:
    newcomer = a.node(spec={"providerID": "generic:///newcomer"}, status={"volumesAttached": [{"name": "v", "devicePath": ""}]})
    running = a.Build(
        machine=a.deleted(), node=newcomer, bootstrap=None, infra=None, remote=[a.pod("web")], more=[a.other_control_plane()]
    ).start()
    await running.run()

    assert await running.world.client.find(Machine, KEY) is None
    assert (await running.remote_node()).spec.unschedulable is False
    assert (await running.remote_pod("web")).metadata.deletion_timestamp is None
