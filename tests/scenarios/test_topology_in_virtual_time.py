"""Clusters that a ClusterClass describes, on simulated infrastructure, with admission: a whole life in virtual time.

They come up, rest without a write, follow variables and classes, are upgraded over three minor versions, move to another class, and go
when the hooks let them.
"""

from __future__ import annotations

import asyncio

import pytest

from clusterwright.api.controlplane import KubeadmControlPlane
from clusterwright.api.core import Cluster, ClusterClass, MachineDeployment, MachineHealthCheck
from clusterwright.api.infrastructure import DevMachineTemplate
from clusterwright.api.meta import ObjectKey
from clusterwright.api.wellknown import UPGRADE_STEP_ANNOTATION
from clusterwright.conditions import get
from clusterwright.simulation import samples
from clusterwright.testing import virtual_plane
from support.topologies import (
    CLUSTER,
    HOUR,
    NOTE,
    PATCHES,
    SIZE,
    VERSIONS,
    Scripted,
    machines,
    only_class_left,
    topology,
    until_resting,
    until_settled,
    virtual,
    written,
)

# ---------------------------------------------------------------------------------------------------------- in peace


def test_a_cluster_of_a_class_comes_up_and_an_unchanged_topology_is_not_written() -> None:
    async def scenario() -> None:
        async with virtual_plane() as p:
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


def test_refused_writes_are_retried_with_backoff() -> None:
    """The template that was made for a control plane that is refused is taken back; that must not wake the pass that did it."""

    async def scenario() -> None:
        objects = samples.cluster_class(seconds=1)
        template = next(o for o in objects if o["kind"] == "KubeadmControlPlaneTemplate")
        rolling = {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 0}}  # for which one Machine is too few
        template["spec"]["template"]["spec"]["rollout"] = {"strategy": rolling}
        async with virtual_plane() as p:
            await p.apply(objects)
            await p.client.create(samples.topology("c"))
            failed = await p.until_condition(Cluster, "c", "TopologyReconciled", "False", within=HOUR)
            assert failed.reason == "ReconcileFailed"
            before = p.server.store.revision
            await p.clock.sleep(HOUR)
            assert p.server.store.revision - before < 300

    virtual(scenario)


def test_health_checks_come_from_the_class_and_go_with_it() -> None:
    async def scenario() -> None:
        check = {"checks": {"unhealthyNodeConditions": [{"type": "Ready", "status": "Unknown", "timeoutSeconds": 300}]}}
        objects = samples.cluster_class(seconds=1)
        objects[-1]["spec"]["controlPlane"]["healthCheck"] = check
        objects[-1]["spec"]["workers"]["machineDeployments"][0]["healthCheck"] = check
        async with virtual_plane() as p:
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
        async with virtual_plane() as p:
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
        async with virtual_plane() as p:
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
        async with virtual_plane() as p:
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
        async with virtual_plane() as p:
            await p.apply(samples.cluster_class(seconds=1, kubernetesVersions=VERSIONS))
            await p.client.create(samples.topology("c", version=VERSIONS[0], workers={"md-0": 1, "md-1": 1}))
            await p.until_available("c", workers=2)
            await until_resting(p)
            seen: list[tuple[str, ...]] = []

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
            assert UPGRADE_STEP_ANNOTATION not in (await p.cluster("c")).metadata.annotations

    virtual(scenario)


# ------------------------------------------------------------------------------------------------------------- hooks


def test_hooks_hold_up_creation_upgrade_and_deletion() -> None:
    async def scenario() -> None:
        scripted = Scripted()
        async with virtual_plane(extensions=scripted, features={"RuntimeSDK": True}) as p:

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
            await p.until(lambda: only_class_left(p), "nothing of the Cluster is left", within=HOUR)

    virtual(scenario)
