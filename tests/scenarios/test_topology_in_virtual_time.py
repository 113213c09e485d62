"""Clusters that a ClusterClass describes, on simulated infrastructure, with admission: a whole life in virtual time.

They come up, rest without a write, follow variables and classes, are upgraded over three minor versions, move to another class, and go
when the hooks let them. Once more while everything between controllers and API server goes wrong.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Sequence
from contextlib import asynccontextmanager
from random import Random
from typing import Any

import pytest

from clusterwright import admission, app
from clusterwright.api.controlplane import KubeadmControlPlane
from clusterwright.api.core import Cluster, ClusterClass, Machine, MachineDeployment, MachineHealthCheck
from clusterwright.api.infrastructure import DevMachineTemplate
from clusterwright.api.meta import Json, ObjectKey
from clusterwright.api.wellknown import UPGRADE_STEP_ANNOTATION
from clusterwright.apiserver.server import ApiServer
from clusterwright.cli import samples
from clusterwright.conditions import get, is_true
from clusterwright.controllers.kit.features import EMBEDDED_FEATURES
from clusterwright.inmemory.cloud import Cloud
from clusterwright.runtime.clock import LoopClock
from clusterwright.runtime.keys import FixedKeySource
from clusterwright.simulation.faults import ALL_FAULTS, NO_FAULTS
from clusterwright.simulation.loop import run_virtual
from clusterwright.simulation.plane import Plane, management_server, plane, prepare
from clusterwright.simulation.world import START, Violation, World, run
from clusterwright.topology.extensions import CallAll, CallHandler, ExtensionError, ListHandlers
from clusterwright.webhooks import embedded

HOUR = 3600.0
CLUSTER = ObjectKey("default", "c")
VERSIONS = ["v1.31.2", "v1.32.1", "v1.33.0", "v1.34.1"]
SIZE = {
    "name": "size",
    "required": True,
    "schema": {"openAPIV3Schema": {"type": "string", "default": "small", "enum": ["small", "large"]}},
}
NOTE = {"name": "note", "required": False, "schema": {"openAPIV3Schema": {"type": "string", "default": "none"}}}
PATCHES = [
    {
        "name": "size",
        "definitions": [
            {
                "selector": {
                    "apiVersion": "bootstrap.cluster.x-k8s.io/v1beta2",
                    "kind": "KubeadmConfigTemplate",
                    "matchResources": {"machineDeploymentClass": {"names": ["default-worker"]}},
                },
                "jsonPatches": [
                    {
                        "op": "add",
                        "path": "/spec/template/spec/preKubeadmCommands",
                        "valueFrom": {"template": '- echo "{{ .size }} of {{ .builtin.cluster.name }}"\n'},
                    }
                ],
            }
        ],
    }
]


@asynccontextmanager
async def managed(*, extensions: Any = None, gates: dict[str, bool] | None = None) -> AsyncIterator[Plane]:
    clock = LoopClock(START)
    features = {**EMBEDDED_FEATURES, **(gates or {})}
    server = management_server(clock, Random(1), features)
    async with plane(clock, server=server, features=features, extensions=extensions) as p:
        yield p
    server.close()


def virtual(scenario: Callable[[], Coroutine[Any, Any, None]]) -> None:
    run_virtual(scenario())


async def topology(p: Plane, change: Json) -> None:
    await p.client.patch(Cluster, CLUSTER, {"spec": {"topology": change}})


async def machines(p: Plane) -> dict[str, Machine]:
    return {m.metadata.name: m for m in await p.client.list(Machine)}


async def settled(p: Plane, version: str, workers: int, control_plane: int = 1) -> bool:
    """Whether every Machine has the version, is ready and up to date, and nothing is left to do."""
    found = list((await machines(p)).values())
    cluster = await p.cluster("c")
    deployments = await p.client.list(MachineDeployment)
    return (
        len(found) == workers + control_plane
        and all(m.spec.version == version and is_true(m.status.conditions, "Ready") for m in found)
        and is_true(cluster.status.conditions, "TopologyReconciled")
        and is_true(cluster.status.conditions, "Available")
        and all((d.status.up_to_date_replicas or 0) == (d.spec.replicas or 0) == (d.status.replicas or 0) for d in deployments)
    )


async def until_settled(p: Plane, version: str = samples.VERSION, *, workers: int, within: float = HOUR) -> None:
    async def holds() -> bool:
        return await settled(p, version, workers)

    await p.until(holds, f"everything is at {version} with {workers} workers", within=within, step=2.0)


def written(p: Plane) -> dict[tuple[str, str], bytes]:
    """Every object as it is stored, but for Events and the tokens of pools, which have lives of their own."""
    return {
        (name, str(key)): entry.raw
        for name, table in p.server.store.tables.items()
        for key, entry in table.objects.items()
        if name != "events" and not (name.startswith(("secrets", "kubeadmconfigs.")) and "-mp-" in str(key))
    }


async def until_resting(p: Plane, *, within: float = HOUR) -> None:
    """Wait until nothing was written for five minutes."""
    seen = [p.server.store.revision, p.clock.monotonic()]

    async def holds() -> bool:
        if p.server.store.revision != seen[0]:
            seen[:] = [p.server.store.revision, p.clock.monotonic()]
        return p.clock.monotonic() - seen[1] >= 300

    await p.until(holds, "nothing is written for five minutes", within=within, step=5.0)


# ---------------------------------------------------------------------------------------------------------- in peace


def test_a_cluster_of_a_class_comes_up_and_an_unchanged_topology_is_not_written() -> None:
    async def scenario() -> None:
        async with managed() as p:
            # the Cluster is there before its class: the class's coming wakes it
            with pytest.raises(Exception, match="not found"):
                await p.client.get(ClusterClass, ObjectKey("default", "in-memory"))
            await p.client.create(samples.topology("c", workers={"md-0": 2, "md-1": 1}, pools={"mp": 1}))
            await p.apply(samples.cluster_class(seconds=1))
            await p.until_available("c", control_plane=1, workers=4)
            await until_resting(p)

            before = written(p)
            await p.clock.sleep(2 * HOUR)  # a dozen resyncs
            assert written(p) == before

            # an event wakes the pass, which finds nothing to do
            revision = p.server.store.revision
            await p.annotate(Cluster, "c", {"example.com/poke": "1"})
            await p.clock.sleep(60)
            assert p.server.store.revision == revision + 1
            assert [s for s in p.leftovers().get("secrets", []) if "shim" in str(s)] == []

    virtual(scenario)


def test_health_checks_come_from_the_class_and_go_with_it() -> None:
    async def scenario() -> None:
        check = {"checks": {"unhealthyNodeConditions": [{"type": "Ready", "status": "Unknown", "timeoutSeconds": 300}]}}
        objects = samples.cluster_class(seconds=1)
        objects[-1]["spec"]["controlPlane"]["healthCheck"] = check
        objects[-1]["spec"]["workers"]["machineDeployments"][0]["healthCheck"] = check
        async with managed() as p:
            await p.apply(objects)
            await p.client.create(samples.topology("c"))
            await p.until_available("c", workers=1)
            checks = await p.client.list(MachineHealthCheck)
            (deployment,) = await p.client.list(MachineDeployment)
            (control_plane,) = await p.client.list(KubeadmControlPlane)
            assert {c.metadata.name for c in checks} == {deployment.metadata.name, control_plane.metadata.name}

            await topology(p, {"controlPlane": {"replicas": 1, "healthCheck": {"enabled": False}}})
            await p.until_gone(MachineHealthCheck, control_plane.metadata.name)
            assert len(await p.client.list(MachineHealthCheck)) == 1

    virtual(scenario)


def test_a_variable_that_templates_use_rolls_workers_and_another_rolls_nothing() -> None:
    async def scenario() -> None:
        async with managed() as p:
            await p.apply(samples.cluster_class(seconds=1, variables=[SIZE, NOTE], patches=PATCHES))
            await p.client.create(samples.topology("c", workers={"md-0": 2}))
            await p.until_available("c", workers=2)
            await until_resting(p)
            cluster = await p.cluster("c")
            assert cluster.spec.topology is not None
            assert {v.name: v.value for v in cluster.spec.topology.variables} == {"size": "small", "note": "none"}
            before = await machines(p)

            await topology(p, {"variables": [{"name": "size", "value": "small"}, {"name": "note", "value": "something"}]})
            await until_resting(p)
            assert set(await machines(p)) == set(before)

            await topology(p, {"variables": [{"name": "size", "value": "large"}, {"name": "note", "value": "something"}]})
            await until_settled(p, workers=2)
            await until_resting(p)
            after = await machines(p)
            leaders = {n for n, m in before.items() if "cluster.x-k8s.io/control-plane" in m.metadata.labels}
            assert leaders <= set(after)
            assert not (set(before) - leaders) & set(after)
            templates = p.leftovers()["kubeadmconfigtemplates.bootstrap.cluster.x-k8s.io"]
            assert len(templates) == 2, "the class's and the one that is used; the one before is gone with its MachineSet"

    virtual(scenario)


def test_a_class_whose_template_changes_is_followed_without_a_rollout_where_only_labels_do() -> None:
    async def scenario() -> None:
        async with managed() as p:
            await p.apply(samples.cluster_class(seconds=1))
            await p.client.create(samples.topology("c", workers={"md-0": 1}))
            await p.until_available("c", workers=1)
            await until_resting(p)
            before = await machines(p)
            (used,) = [t for t in await p.client.list(DevMachineTemplate) if t.metadata.name.startswith("c-md-0-")]
            worker = ObjectKey("default", "in-memory-worker")

            await p.client.patch(DevMachineTemplate, worker, {"metadata": {"labels": {"example.com/x": "y"}}})
            await until_resting(p)
            changed = await p.client.get(DevMachineTemplate, used.key)
            assert changed.metadata.labels["example.com/x"] == "y"
            assert set(await machines(p)) == set(before)

            other = samples.cluster_class("other", seconds=2)
            await p.apply([o for o in other if o["kind"] == "DevMachineTemplate"])
            named = {"templateRef": {"apiVersion": "infrastructure.cluster.x-k8s.io/v1beta2", "kind": "DevMachineTemplate"}}
            worker_class = samples.cluster_class()[-1]["spec"]["workers"]["machineDeployments"][0]
            worker_class["infrastructure"] = {"templateRef": {**named["templateRef"], "name": "other-worker"}}
            pools = samples.cluster_class()[-1]["spec"]["workers"]["machinePools"]
            change = {"spec": {"workers": {"machineDeployments": [worker_class], "machinePools": pools}}}
            await p.client.patch(ClusterClass, ObjectKey("default", "in-memory"), change)
            await p.until_gone(DevMachineTemplate, used.metadata.name, within=HOUR)
            await until_settled(p, workers=1)
            assert len(set(await machines(p)) & set(before)) == 1, "the control plane stays, the worker is another"

    virtual(scenario)


def test_a_rebase_to_another_class() -> None:
    async def scenario() -> None:
        async with managed() as p:
            await p.apply(samples.cluster_class(seconds=1))
            await p.apply(samples.cluster_class("other", seconds=1, variables=[SIZE], patches=PATCHES))
            await p.client.create(samples.topology("c", workers={"md-0": 1}))
            await p.until_available("c", workers=1)
            await until_resting(p)
            before = await machines(p)

            await topology(p, {"classRef": {"name": "other"}})

            async def rebased() -> bool:
                (deployment,) = await p.client.list(MachineDeployment)
                templates = await p.client.list(DevMachineTemplate)
                own = [t for t in templates if t.metadata.name.startswith("c-")]
                from_other = all(t.metadata.annotations.get("cluster.x-k8s.io/cloned-from-name", "").startswith("other-") for t in own)
                return from_other and deployment.spec.template.spec.version == samples.VERSION

            await p.until(rebased, "every template is a clone of the other class's", within=HOUR)
            await until_settled(p, workers=1)
            assert not (set(before) & set(await machines(p))) - {n for n in before if "md-0" not in n}

    virtual(scenario)


def test_an_upgrade_over_three_minor_versions_goes_step_by_step() -> None:
    async def scenario() -> None:
        async with managed() as p:
            await p.apply(samples.cluster_class(seconds=1, kubernetesVersions=VERSIONS))
            await p.client.create(samples.topology("c", version=VERSIONS[0], workers={"md-0": 1, "md-1": 1}))
            await p.until_available("c", workers=2)
            await until_resting(p)
            seen: list[tuple[str, str, str]] = []

            async def watching() -> None:
                while True:
                    (plane_,) = await p.client.list(KubeadmControlPlane)
                    deployments = sorted(await p.client.list(MachineDeployment), key=lambda d: d.metadata.name)
                    state = (plane_.spec.version, *(d.spec.template.spec.version for d in deployments))
                    if not seen or seen[-1] != state:
                        seen.append(state)
                    await asyncio.sleep(0.5)

            task = asyncio.create_task(watching())
            await topology(p, {"version": VERSIONS[-1]})
            await until_settled(p, VERSIONS[-1], workers=2, within=3 * HOUR)
            task.cancel()

            one, two, three, four = VERSIONS
            assert seen == [(one, one, one), (two, one, one), (three, one, one), (four, one, one), (four, four, one), (four, four, four)]
            await until_resting(p)
            assert (await p.cluster("c")).metadata.annotations[UPGRADE_STEP_ANNOTATION] == ""

    virtual(scenario)


# ------------------------------------------------------------------------------------------------------------- hooks


class Scripted:
    """Extensions that answer as they are told; `asked` are the hooks that were, in order."""

    def __init__(self) -> None:
        self.blocking: set[str] = set()
        self.failing: set[str] = set()
        self.asked: list[str] = []

    async def call(self, question: CallHandler) -> Json:
        raise ExtensionError(f"no handler {question.handler}")

    async def call_all(self, question: CallAll) -> Json:
        self.asked.append(question.hook)
        if question.hook in self.failing:
            raise ExtensionError(f"{question.hook} is broken")
        return {"status": "Success", "message": "wait", "retryAfterSeconds": 5 if question.hook in self.blocking else 0}

    async def handlers(self, question: ListHandlers) -> Sequence[str]:
        return ("hook.ext",)


def test_hooks_hold_up_creation_upgrade_and_deletion() -> None:
    async def scenario() -> None:
        scripted = Scripted()
        async with managed(extensions=scripted, gates={"RuntimeSDK": True}) as p:

            async def said(text: str) -> bool:
                found = get((await p.cluster("c")).status.conditions, "TopologyReconciled")
                return found is not None and text in found.message

            async def until_said(text: str) -> None:
                await p.until(lambda: said(text), f"TopologyReconciled says {text!r}", within=HOUR)

            scripted.blocking = {"BeforeClusterCreate"}
            await p.apply(samples.cluster_class(seconds=1, kubernetesVersions=VERSIONS))
            await p.client.create(samples.topology("c", version=VERSIONS[-2]))
            await until_said("Following hooks are blocking Cluster topology creation: BeforeClusterCreate: wait")
            assert await p.client.list(KubeadmControlPlane) == []
            scripted.blocking = set()
            await p.until_available("c", workers=1)
            assert scripted.asked.count("AfterControlPlaneInitialized") == 1

            for hook in ("BeforeClusterUpgrade", "BeforeControlPlaneUpgrade"):
                scripted.blocking = {hook}
                if hook == "BeforeClusterUpgrade":
                    await topology(p, {"version": VERSIONS[-1]})
                await until_said(f"Following hooks are blocking upgrade: {hook}: wait")
                (plane_,) = await p.client.list(KubeadmControlPlane)
                assert plane_.spec.version == VERSIONS[-2]
            for hook in ("AfterControlPlaneUpgrade", "BeforeWorkersUpgrade"):
                scripted.blocking = {hook}
                await until_said(f"Following hooks are blocking upgrade: {hook}: wait")
                (deployment,) = await p.client.list(MachineDeployment)
                assert deployment.spec.template.spec.version == VERSIONS[-2]
            for hook in ("AfterWorkersUpgrade", "AfterClusterUpgrade"):
                scripted.blocking = {hook}
                await until_said(f"Following hooks are blocking upgrade: {hook}: wait")
            scripted.blocking = set()
            await until_settled(p, VERSIONS[-1], workers=1)
            assert "runtime.cluster.x-k8s.io/pending-hooks" not in (await p.cluster("c")).metadata.annotations

            scripted.failing = {"BeforeClusterDelete"}
            await p.client.delete(Cluster, CLUSTER)
            await until_said("BeforeClusterDelete is broken")
            scripted.failing, scripted.blocking = set(), {"BeforeClusterDelete"}
            await until_said("Cluster is deleting. Following hooks are blocking delete: BeforeClusterDelete: wait")
            assert len(await machines(p)) == 2
            scripted.blocking = set()
            await p.until_gone(Cluster, "c", within=HOUR)
            await p.until(lambda: _only_class_left(p), "nothing of the Cluster is left", within=HOUR)

    virtual(scenario)


async def _only_class_left(p: Plane) -> bool:
    found = {name: [str(key) for key in keys] for name, keys in p.leftovers().items()}
    return not any("/c-" in key or key.endswith("/c") for keys in found.values() for key in keys)


# -------------------------------------------------------------------------------------------------------- under faults


def life(first: str, workers: int) -> Callable[[World], Awaitable[None]]:
    """Created, upgraded to the last version, deleted. At no moment are there two objects where the topology wants one."""

    async def scenario(world: World) -> None:
        await _live(world, first, workers)

    return scenario


async def _live(world: World, first: str, workers: int) -> None:
    world.server.close()
    links, random = admission.chain(EMBEDDED_FEATURES), Random(world.random.getrandbits(64))
    server = world.server = ApiServer(now=world.clock.now, random=random, admission=links, converters=embedded.converters)
    prepare(server)
    cloud = Cloud(now=world.clock.now, random=Random(7), keys=FixedKeySource(7))
    p = Plane(server, cloud, world.clock)

    async def controllers(transport: Any, clock: Any, random: Random) -> None:
        manager = app.build_manager(transport, clock=clock, random=random, keys=FixedKeySource(8), cloud=cloud, features=EMBEDDED_FEATURES)
        await manager.run()

    async def no_twins() -> None:
        while True:
            for kind, most in ((KubeadmControlPlane, 1), (MachineDeployment, workers), (MachineHealthCheck, 0)):
                found = [o.metadata.name for o in await p.client.list(kind)]
                if len(found) > most:
                    world.violations.append(f"{kind.__name__}: {found}")
            await asyncio.sleep(1.0)

    process = world.start("controllers", controllers)
    judge = asyncio.create_task(no_twins())
    await p.apply(samples.cluster_class(seconds=1, kubernetesVersions=VERSIONS))
    await p.client.create(samples.topology("c", version=first, workers={f"md-{n}": 1 for n in range(workers)}))
    await until_settled(p, first, workers=workers, within=6 * HOUR)
    await topology(p, {"version": VERSIONS[-1]})
    await until_settled(p, VERSIONS[-1], workers=workers, within=12 * HOUR)
    await p.client.delete(Cluster, CLUSTER)
    await p.until_gone(Cluster, "c", within=6 * HOUR)
    judge.cancel()
    world.calm()

    async def is_clean() -> bool:
        return await _only_class_left(p)

    await p.until(is_clean, "nothing of the Cluster is left behind", within=HOUR)
    if world.violations:
        raise Violation("; ".join(dict.fromkeys(world.violations)))
    if process.failure is not None:
        raise Violation(f"the controllers ended: {process.failure}")
    await cloud.close()


def test_a_topology_lives_with_everything_going_wrong() -> None:
    outcome = run(3, life(VERSIONS[-2], 1), ALL_FAULTS.scaled(0.4))

    assert str(outcome.violation) == "None"
    assert outcome.crashes > 0


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(2, 12))
def test_the_same_life_many_times(seed: int) -> None:
    assert str(run(seed, life(VERSIONS[0], 2), ALL_FAULTS.scaled(0.4) if seed % 2 else NO_FAULTS).violation) == "None"
