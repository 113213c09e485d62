"""Workers that the topology pins to a version, pass by pass. Whole upgrades in time are in `tests/scenarios`."""

from __future__ import annotations

from typing import Any

import pytest

from clusterwright.api.meta import GroupVersionKind, Json, ObjectKey
from clusterwright.topology.pinning import GATE
from controllers.topology.test_edges_of_upgrades import NEW, OLD, PENDING, Hooks, Upgrade, hooked, plans

ON = {"features": {GATE: True}}
CHAIN = ["v1.31.0", "v1.32.0", "v1.33.0", "v1.34.1"]


def workers(**pins: str) -> Json:
    """MachineDeployments by name, with their pinned versions; an empty one is not pinned."""
    base = {"class": "default-worker", "replicas": 1}
    return {"machineDeployments": [base | {"name": name} | ({"version": pin} if pin else {}) for name, pin in pins.items()]}


def listed(objects: list[Json], _cluster: Json) -> None:
    objects[-1]["spec"]["kubernetesVersions"] = CHAIN


async def of(version: str = OLD, *, on: bool = True, alter: Any = lambda *_: None, **pins: str) -> Upgrade:
    p = Upgrade(version=version, alter=alter, observation=ON if on else None)
    await p.topology(workers=workers(**pins))
    return await p.begin(version)


def with_hooks(*hooks: str, answers: dict[str, Json] | None = None, **more: Any) -> Hooks:
    config, observation = hooked(*hooks, **(answers or {}))
    return Hooks(config, observation=observation | {"features": {"RuntimeSDK": True, GATE: True}}, version=OLD, **more)


async def test_an_upgrade_leaves_pinned_workers_where_they_are_and_does_not_wait_for_them() -> None:
    p = await of(pinned=OLD, free="")
    for name in ("pinned", "free"):
        await p.machine(name, OLD)
    await (await p.to()).plane_done()
    assert await p.deployments() == {"pinned": OLD, "free": NEW}
    _, reason, message = await p.condition()
    assert reason == "ClusterUpgrading"
    assert "MachineDeployment of topology name pinned is pinned to version v1.33.0" in message
    await p.machine("free", NEW)
    await p.run()

    assert await p.deployments() == {"pinned": OLD, "free": NEW}
    assert await p.condition() == ("True", "ReconcileSucceeded", "")
    assert plans(await p.cluster()) == [[], []]


async def test_pinned_workers_change_and_scale_while_the_rest_waits_for_its_upgrade() -> None:
    p = await of(pinned=OLD, free="")
    await p.to()
    changed = workers(pinned=OLD, free="")
    for entry in changed["machineDeployments"]:
        entry |= {"replicas": 4, "metadata": {"labels": {"example.com/a": "b"}}}
    await p.topology(workers=changed)
    await p.run()

    label = "topology.cluster.x-k8s.io/deployment-name"
    found = {d["metadata"]["labels"][label]: d for d in await p.all("MachineDeployment")}
    assert {name: d["spec"]["replicas"] for name, d in found.items()} == {"pinned": 4, "free": 1}
    assert found["pinned"]["spec"]["template"]["metadata"]["labels"]["example.com/a"] == "b"


async def test_a_raised_pin_rolls_its_workers_at_once_and_holds_up_nobody() -> None:
    p = await of(pinned=OLD, free="")
    for name in ("pinned", "free"):
        await p.machine(name, OLD)
    await p.to(workers=workers(pinned="v1.33.7", free=""))
    assert await p.deployments() == {"pinned": "v1.33.7", "free": OLD}, "its Machine has another version from now on"
    await p.plane_done()

    assert await p.deployments() == {"pinned": "v1.33.7", "free": NEW}, "it does not count against the concurrency of the upgrade"


async def test_a_control_plane_does_not_wait_for_pinned_workers_that_roll() -> None:
    p = await of(pinned=OLD)
    await p.machine("pinned", "v1.32.9")
    await p.to()

    assert (await p.plane())["spec"]["version"] == NEW


async def test_workers_that_are_no_longer_pinned_follow() -> None:
    p = await of(pinned=OLD)
    await p.machine("pinned", OLD)
    await (await p.to()).plane_done()
    assert await p.deployments() == {"pinned": OLD}

    await p.topology(workers=workers(pinned=""))
    await p.run()
    assert await p.deployments() == {"pinned": NEW}


async def test_a_chained_upgrade_skips_pinned_workers_and_its_plan_is_that_of_the_others() -> None:
    p = await of(CHAIN[0], alter=listed, pinned=CHAIN[0])
    await p.machine("pinned", CHAIN[0])
    await p.to(CHAIN[-1])
    assert plans(await p.cluster()) == [CHAIN[1:], []]
    for step in CHAIN[1:]:
        assert (await p.plane())["spec"]["version"] == step
        await p.plane_done(step)

    assert await p.deployments() == {"pinned": CHAIN[0]}
    assert await p.condition() == ("True", "ReconcileSucceeded", "")


async def test_the_lowest_version_of_a_plan_is_that_of_workers_that_follow() -> None:
    """Otherwise one pinned pool would make the others stop on the way."""
    versions = ["v1.30.0", *CHAIN]

    def alter(objects: list[Json], _cluster: Json) -> None:
        objects[-1]["spec"]["kubernetesVersions"] = versions

    p = await of("v1.33.0", alter=alter, pinned="v1.31.0", free="")
    assert await p.deployments() == {"pinned": "v1.31.0", "free": "v1.33.0"}
    await p.to(NEW)

    assert plans(await p.cluster()) == [[NEW], [NEW]]


async def test_no_hook_of_workers_is_asked_where_all_are_pinned() -> None:
    p = with_hooks("BeforeWorkersUpgrade", "AfterWorkersUpgrade", "AfterClusterUpgrade")
    await p.topology(workers=workers(pinned=OLD))
    await p.begin()
    await p.machine("pinned", OLD)
    await (await p.to()).plane_done()
    await p.run()

    assert p.asked == ["AfterClusterUpgrade"]
    assert "AfterClusterUpgrade" not in (await p.annotations())[PENDING]


async def test_new_pinned_workers_wait_only_while_the_control_plane_changes() -> None:
    p = await of(free="")
    await p.to()
    await p.topology(workers=workers(free="", late=OLD))
    await p.run()
    assert await p.deployments() == {"free": OLD}
    assert "creation deferred while control plane upgrade is in progress" in (await p.condition())[2]

    await p.plane_done()
    assert (await p.deployments())["late"] == OLD


@pytest.mark.parametrize("blocked", [False, True])
async def test_new_pinned_workers_do_not_wait_for_a_hook_that_holds_the_upgrade(blocked: bool) -> None:
    answers = {"BeforeClusterUpgrade": {"retryAfterSeconds": 10, "message": "m"}} if blocked else {}
    p = with_hooks("BeforeClusterUpgrade", workers={}, answers=answers)
    await p.begin()
    await p.to(workers=workers(late=OLD, free=""))

    assert await p.deployments() == ({"late": OLD} if blocked else {})


@pytest.mark.parametrize("on", [True, False])
async def test_without_the_gate_a_pinned_version_is_ignored_and_stays(on: bool) -> None:
    p = await of(on=on, pinned=OLD)
    await p.machine("pinned", OLD)
    await (await p.to()).plane_done()

    assert await p.deployments() == {"pinned": OLD if on else NEW}
    (entry,) = (await p.cluster())["spec"]["topology"]["workers"]["machineDeployments"]
    assert entry["version"] == OLD


async def test_pinned_machine_pools_keep_their_version_while_others_follow() -> None:
    pools = [{"class": "default-pool", "name": name, "replicas": 1} for name in ("pinned", "free")]
    pools[0]["version"] = OLD
    p = Upgrade(version=OLD, workers={}, observation=ON)
    await p.topology(workers={"machinePools": pools})
    await p.begin()
    await (await p.to()).plane_done()
    await p.run()

    label = "topology.cluster.x-k8s.io/pool-name"
    found = {o["metadata"]["labels"][label]: o["spec"]["template"]["spec"]["version"] for o in await p.all("MachinePool")}
    assert found == {"pinned": OLD, "free": NEW}
    assert await p.condition() == ("True", "ReconcileSucceeded", "")


async def test_patches_see_the_pinned_version() -> None:
    def alter(objects: list[Json], _cluster: Json) -> None:
        path, template = "/spec/template/spec/preKubeadmCommands", "- echo {{ .builtin.machineDeployment.version }}\n"
        selector = {
            "apiVersion": "bootstrap.cluster.x-k8s.io/v1beta2",
            "kind": "KubeadmConfigTemplate",
            "matchResources": {"machineDeploymentClass": {"names": ["default-worker"]}},
        }
        patch = {"op": "add", "path": path, "valueFrom": {"template": template}}
        objects[-1]["spec"]["patches"] = [{"name": "echo", "definitions": [{"selector": selector, "jsonPatches": [patch]}]}]

    p = await of(NEW, alter=alter, pinned=OLD, free="")
    bootstrap = "bootstrap.cluster.x-k8s.io/v1beta2"
    seen = {}
    for deployment in await p.all("MachineDeployment"):
        name = deployment["spec"]["template"]["spec"]["bootstrap"]["configRef"]["name"]
        found = await p.client.get(GroupVersionKind.of(bootstrap, "KubeadmConfigTemplate"), ObjectKey("default", name))
        version = deployment["spec"]["template"]["spec"]["version"]
        seen[version] = found.json["spec"]["template"]["spec"]["preKubeadmCommands"]

    assert seen == {OLD: [f"echo {OLD}"], NEW: [f"echo {NEW}"]}
