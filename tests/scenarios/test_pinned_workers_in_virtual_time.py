"""One group of workers stays behind while its Cluster is upgraded, and scales and heals meanwhile; then it catches up and follows."""

from __future__ import annotations

import pytest

from clusterwright.api.core import Cluster, MachineDeployment, MachineSet
from clusterwright.api.infrastructure import DevMachine
from clusterwright.api.meta import Json
from clusterwright.api.wellknown import SKIP_PREFLIGHT_CHECKS_ANNOTATION
from clusterwright.conditions import is_true
from clusterwright.inmemory import faults
from clusterwright.runtime.errors import ApiError
from clusterwright.simulation import samples
from clusterwright.simulation.plane import Plane
from clusterwright.testing import virtual_plane
from clusterwright.topology.pinning import GATE
from support.topologies import HOUR, VERSIONS, machines, topology, until_resting, virtual, written

OLD, NEXT, THIRD, NEWEST = VERSIONS
SKIP = {"metadata": {"annotations": {SKIP_PREFLIGHT_CHECKS_ANNOTATION: "KubeadmVersionSkew"}}}


def workers(pin: str = "", *, replicas: int = 2, pinned: Json | None = None) -> Json:
    base = {"class": "default-worker"}
    kept = base | {"name": "kept", "replicas": replicas} | ({"version": pin} if pin else {}) | (pinned or {})
    return {"machineDeployments": [kept, base | {"name": "free", "replicas": 1}]}


async def versions(p: Plane) -> dict[str, set[str]]:
    """The versions of ready Machines, by the topology name of their workers; the control plane's by an empty one."""
    label = "topology.cluster.x-k8s.io/deployment-name"
    found: dict[str, set[str]] = {}
    for machine in (await machines(p)).values():
        ready = machine.spec.version if is_true(machine.status.conditions, "Ready") else "not ready"
        found.setdefault(machine.metadata.labels.get(label, ""), set()).add(ready)
    return found


async def until_versions(p: Plane, *, control_plane: str, kept: str, free: str, count: int) -> None:
    async def holds() -> bool:
        wanted = {"": {control_plane}, "kept": {kept}, "free": {free}}
        return await versions(p) == wanted and len(await machines(p)) == count

    await p.until(holds, f"the control plane is at {control_plane}, the workers at {kept} and {free}", within=3 * HOUR, step=2.0)


async def refused(p: Plane, change: Json) -> str:
    with pytest.raises(ApiError) as caught:
        await topology(p, change)
    return str(caught.value)


async def of_pool(p: Plane, name: str) -> dict[str, str]:
    """The versions of a group's Machines, by name."""
    label = "topology.cluster.x-k8s.io/deployment-name"
    return {n: m.spec.version for n, m in (await machines(p)).items() if m.metadata.labels.get(label) == name}


def test_a_pinned_group_stays_behind_scales_heals_catches_up_and_follows() -> None:
    async def scenario() -> None:
        async with virtual_plane(features={GATE: True}) as p:
            check = {
                "checks": {
                    "nodeStartupTimeoutSeconds": 120,
                    "unhealthyNodeConditions": [{"type": "Ready", "status": "Unknown", "timeoutSeconds": 60}],
                }
            }
            objects = samples.cluster_class(seconds=1, kubernetesVersions=VERSIONS)
            objects[-1]["spec"]["workers"]["machineDeployments"][0]["healthCheck"] = check
            await p.apply(objects)
            await p.client.create(samples.topology("c", version=OLD))
            await topology(p, {"workers": workers()})
            await until_versions(p, control_plane=OLD, kept=OLD, free=OLD, count=4)
            await until_resting(p)
            before = await of_pool(p, "kept")

            # a pin at the present version changes nothing
            await topology(p, {"workers": workers(OLD)})
            await until_resting(p)
            assert await of_pool(p, "kept") == before

            # the rest is upgraded by two minor versions; nobody waits for the pinned group
            await topology(p, {"version": THIRD})
            await until_versions(p, control_plane=THIRD, kept=OLD, free=THIRD, count=4)
            await p.until_condition(Cluster, "c", "TopologyReconciled", "True")
            await until_resting(p)
            assert await of_pool(p, "kept") == before
            rest = written(p)
            await p.clock.sleep(2 * HOUR)
            assert written(p) == rest, "a pinned group at rest costs no write"

            # it scales; kubeadm of another minor version cannot join, unless its users see to that
            await topology(p, {"workers": workers(OLD, replicas=3)})

            async def told() -> bool:
                sets = await p.client.list(MachineSet)
                return any("KubeadmVersionSkew" in c.message for s in sets for c in s.status.conditions)

            await p.until(told, "the preflight check of kubeadm says why no Machine is made")
            assert await of_pool(p, "kept") == before
            await topology(p, {"workers": workers(OLD, replicas=3, pinned=SKIP)})
            await until_versions(p, control_plane=THIRD, kept=OLD, free=THIRD, count=5)
            assert before.keys() < (await of_pool(p, "kept")).keys()

            # it heals
            await until_resting(p)
            sick = min(before)
            await p.annotate(DevMachine, sick, {faults.FAULT: faults.KUBELET_STOPS})
            await p.until_gone(DevMachine, sick, within=HOUR)
            await until_versions(p, control_plane=THIRD, kept=OLD, free=THIRD, count=5)
            await until_resting(p)

            # it may be neither lowered, nor raised above the control plane, nor unpinned while it is behind
            text = await refused(p, {"workers": workers(NEWEST, replicas=3, pinned=SKIP)})
            assert "machineDeployments[kept].version" in text
            assert f"must not be newer than spec.topology.version {THIRD}" in text
            text = await refused(p, {"workers": workers(replicas=3, pinned=SKIP)})
            assert f"can be removed only when it equals spec.topology.version {THIRD}" in text

            # it is raised, rolls alone, is unpinned, and follows the next upgrade
            known = await of_pool(p, "free")
            await topology(p, {"workers": workers(THIRD, replicas=3, pinned=SKIP)})
            await until_versions(p, control_plane=THIRD, kept=THIRD, free=THIRD, count=5)
            assert await of_pool(p, "free") == known
            await until_resting(p)
            at_rest = await of_pool(p, "kept")
            await topology(p, {"workers": workers(replicas=3, pinned=SKIP)})
            await until_resting(p)
            assert await of_pool(p, "kept") == at_rest, "nothing rolls because a group is unpinned"
            await topology(p, {"version": NEWEST})
            await until_versions(p, control_plane=NEWEST, kept=NEWEST, free=NEWEST, count=5)

    virtual(scenario)


def test_an_upgrade_that_would_leave_a_pinned_group_too_far_behind_is_refused_and_names_it() -> None:
    async def scenario() -> None:
        known = ["v1.30.0", *VERSIONS]
        async with virtual_plane(features={GATE: True}) as p:
            await p.apply(samples.cluster_class(seconds=1, kubernetesVersions=known))
            await p.client.create(samples.topology("c", version=known[0]))
            await topology(p, {"workers": workers(known[0], replicas=1)})
            await until_versions(p, control_plane=known[0], kept=known[0], free=known[0], count=3)
            await until_resting(p)

            text = await refused(p, {"version": NEWEST})
            assert 'MachineDeployment "kept" is pinned to v1.30.0 and runs v1.30.0, which is more than 3 minor versions older' in text
            text = await refused(p, {"version": NEWEST, "workers": workers(OLD, replicas=1)})
            assert "newer than the control plane" in text, "one write may not do both: in between the group would be too old"

            await topology(p, {"version": THIRD})
            await until_versions(p, control_plane=THIRD, kept=known[0], free=THIRD, count=3)
            await until_resting(p)
            deployments = await p.client.list(MachineDeployment)
            assert sorted(d.spec.template.spec.version for d in deployments) == [known[0], THIRD]

    virtual(scenario)


def test_without_the_gate_a_version_is_refused_and_says_how_to_allow_it() -> None:
    async def scenario() -> None:
        async with virtual_plane() as p:
            await p.apply(samples.cluster_class(seconds=1))
            await p.client.create(samples.topology("c"))
            text = await refused(p, {"workers": workers(samples.VERSION)})
            assert (
                f"spec.topology.workers.machineDeployments[kept].version: Forbidden: can be changed only if the {GATE} feature flag is"
                in text
            )

    virtual(scenario)
