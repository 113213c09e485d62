"""Versions and hooks, at their edges. Whole upgrades in time are in `tests/scenarios`."""

from __future__ import annotations

from typing import Any, Self

import pytest

from clusterwright.api.core import Cluster
from clusterwright.api.meta import GroupVersionKind, Json, ObjectKey
from clusterwright.topology.planning import PlanError, checked
from clusterwright.topology.upgrading import concurrency
from controllers.topology.passes import CORE, KEY, Passes
from support.extension import extension_config

PLANE = "controlplane.cluster.x-k8s.io/v1beta2"
OLD, NEW = "v1.33.0", "v1.34.1"
STEP = "topology.internal.cluster.x-k8s.io/upgrade-step"
PENDING = "runtime.cluster.x-k8s.io/pending-hooks"
DEFER = "topology.cluster.x-k8s.io/defer-upgrade"
HOLD = "topology.cluster.x-k8s.io/hold-upgrade-sequence"


class Upgrade(Passes):
    """A Cluster at the old version whose parts can be told how far they are."""

    async def begin(self, version: str = OLD) -> Self:
        await self.run()
        await self.plane_at(version)
        return self

    async def plane(self) -> Json:
        return await self.one("KubeadmControlPlane", PLANE)

    async def plane_at(self, version: str, **status: Any) -> None:
        plane = await self.plane()
        key = ObjectKey("default", plane["metadata"]["name"])
        gvk = GroupVersionKind.of(PLANE, "KubeadmControlPlane")
        await self.client.patch(gvk, key, {"status": {"version": version, **status}}, subresource="status")

    async def deployments(self) -> dict[str, str]:
        """Version by the name in the topology."""
        found = await self.all("MachineDeployment")
        label = "topology.cluster.x-k8s.io/deployment-name"
        return {d["metadata"]["labels"][label]: d["spec"]["template"]["spec"]["version"] for d in found}

    async def machine(self, deployment: str, version: str) -> None:
        """A Machine of a deployment that has a version."""
        labels = {"cluster.x-k8s.io/cluster-name": "c", "cluster.x-k8s.io/deployment-name": deployment}
        (found,) = [d for d in await self.all("MachineDeployment") if deployment in d["metadata"]["name"]]
        labels |= found["spec"]["selector"].get("matchLabels", {})
        metadata = {"name": f"m-{deployment}", "namespace": "default", "labels": labels}
        spec = {"clusterName": "c", "version": version, "bootstrap": {}, "infrastructureRef": {}}
        gvk, key = GroupVersionKind.of(CORE, "Machine"), ObjectKey("default", f"m-{deployment}")
        if await self.client.find(gvk, key) is None:
            await self.client.create({"apiVersion": CORE, "kind": "Machine", "metadata": metadata, "spec": spec})
        else:
            await self.client.patch(gvk, key, {"spec": {"version": version}})

    async def to(self, version: str = NEW, **change: Any) -> Self:
        await self.topology(version=version, **change)
        await self.run()
        return self

    async def plane_done(self, version: str = NEW) -> Self:
        """The control plane has taken its step."""
        await self.plane_at(version)
        await self.run()
        return self

    async def annotations(self) -> Json:
        found: Json = (await self.cluster())["metadata"].get("annotations") or {}
        return found


def entries(**annotations: dict[str, str]) -> Json:
    """Workers by name, with annotations in the topology."""
    made = []
    for name, given in annotations.items():
        entry: Json = {"class": "default-worker", "name": name, "replicas": 1}
        made.append({**entry, "metadata": {"annotations": given}} if given else entry)
    return {"machineDeployments": made}


# ------------------------------------------------------------------------------------------------------------- versions


async def test_while_the_control_plane_comes_up_nothing_is_upgraded() -> None:
    p = Upgrade(workers={"a": 1}, version=OLD)
    await p.run()
    before = (await p.plane())["metadata"]["resourceVersion"]
    await p.to()

    assert ((await p.plane())["metadata"]["resourceVersion"], (await p.plane())["spec"]["version"]) == (before, OLD)
    assert await p.deployments() == {"a": OLD}
    assert "pending upgrade to version" in (await p.condition())[2]


async def test_workers_behind_the_control_plane_upgrade_and_workers_ahead_do_not() -> None:
    p = await Upgrade(workers={"a": 1}, version=OLD).begin()
    await p.to()
    assert (await p.plane())["spec"]["version"] == NEW
    assert await p.deployments() == {"a": OLD}
    assert "KubeadmControlPlane upgrading to version v1.34.1" in (await p.condition())[2]

    await p.plane_done("v1.99.0")
    assert await p.deployments() == {"a": NEW}, "a status above the spec is no upgrade"


@pytest.mark.parametrize(
    ("versions", "upgrading"),
    [
        ([OLD, NEW], True),
        ([NEW], False),
        ([f"{NEW}-eks-113cf36"], False),
        ([f"{NEW}+k3s1"], False),
        ([OLD], True),
    ],
)
async def test_13341_status_versions_tell_whether_the_control_plane_is_upgrading(versions: list[str], upgrading: bool) -> None:
    """They are preferred to status.version, and suffixes of distributions do not count (#14086)."""
    p = await Upgrade(workers={"a": 1}, version=OLD).begin()
    await p.to()

    await p.plane_at(OLD if upgrading else NEW, versions=[{"version": v, "replicas": 1} for v in versions])
    await p.run()

    assert await p.deployments() == {"a": OLD if upgrading else NEW}


async def test_13341_versions_in_the_wrong_order_are_an_error_that_says_so() -> None:
    p = await Upgrade(workers={"a": 1}, version=OLD).begin()
    await p.to()

    await p.plane_at(OLD, versions=[{"version": NEW, "replicas": 1}, {"version": OLD, "replicas": 1}])
    await p.run()

    assert f'version "{NEW}" and "{OLD}" are in the wrong order' in (await p.condition())[2]


@pytest.mark.parametrize(("kubelet", "upgrading"), [(NEW, False), (OLD, True), (f"{NEW}-eks-113cf36", False), (f"{NEW}+k3s1", False)])
async def test_13876_a_deployment_is_upgrading_while_a_kubelet_runs_another_release(kubelet: str, upgrading: bool) -> None:
    p = await Upgrade(workers={"a": 1}, version=OLD).begin()
    await p.to()
    await p.plane_done()
    await p.machine("a", NEW)
    gvk, key = GroupVersionKind.of(CORE, "Machine"), ObjectKey("default", "m-a")
    info = dict.fromkeys(("machineID", "systemUUID", "bootID", "kernelVersion", "osImage", "containerRuntimeVersion"), "")
    info |= {"kubeletVersion": kubelet, "kubeProxyVersion": "", "operatingSystem": "", "architecture": ""}
    await p.client.patch(gvk, key, {"status": {"nodeInfo": info}}, subresource="status")
    await p.run()

    assert ((await p.condition())[1] == "ReconcileSucceeded") is not upgrading


async def test_a_control_plane_that_scales_may_be_upgraded() -> None:
    p = await Upgrade(workers={"a": 1}, version=OLD).begin()
    await p.plane_at(OLD, replicas=3, readyReplicas=1)
    await p.to()

    assert (await p.plane())["spec"]["version"] == NEW


async def test_one_deployment_at_a_time_in_the_order_of_the_topology() -> None:
    p = await Upgrade(workers={"b": 1, "a": 1}, version=OLD).begin()
    for name in "ab":
        await p.machine(name, OLD)
    await (await p.to()).plane_done()
    assert await p.deployments() == {"a": OLD, "b": NEW}
    await p.run()
    assert await p.deployments() == {"a": OLD, "b": NEW}, "its Machine is not there yet"
    await p.machine("b", NEW)
    await p.run()
    assert await p.deployments() == {"a": NEW, "b": NEW}


async def test_a_worker_that_holds_the_sequence_holds_all_that_follow() -> None:
    def alter(_objects: list[Json], cluster: Json) -> None:
        cluster["metadata"]["annotations"] = {"topology.cluster.x-k8s.io/upgrade-concurrency": "2"}
        cluster["spec"]["topology"]["workers"] = entries(a={HOLD: ""}, b={}, d={})

    p = await Upgrade(version=OLD, alter=alter).begin()
    await (await p.to()).plane_done()

    assert set((await p.deployments()).values()) == {OLD}
    assert (await p.condition())[1] == "MachineDeploymentsUpgradeDeferred"
    assert (await p.condition())[2].count("c-") == 3, "all three are named"


async def test_a_worker_that_defers_lets_the_others_go() -> None:
    def alter(_objects: list[Json], cluster: Json) -> None:
        cluster["metadata"]["annotations"] = {"topology.cluster.x-k8s.io/upgrade-concurrency": "3"}
        cluster["spec"]["topology"]["workers"] = entries(a={}, b={DEFER: ""}, d={})

    p = await Upgrade(version=OLD, alter=alter).begin()
    await (await p.to()).plane_done()
    await p.run()

    assert await p.deployments() == {"a": NEW, "b": OLD, "d": NEW}
    assert (await p.condition())[1] == "MachineDeploymentsUpgradeDeferred"


async def test_a_deployment_without_machines_takes_its_version_at_once() -> None:
    p = await Upgrade(workers={"a": 0, "b": 0}, version=OLD).begin()
    await (await p.to()).plane_done()
    await p.run(2)

    assert await p.deployments() == {"a": NEW, "b": NEW}
    assert await p.condition() == ("True", "ReconcileSucceeded", "")


async def test_a_deployment_that_leaves_the_topology_is_deleted_although_others_upgrade() -> None:
    p = await Upgrade(workers={"a": 1, "b": 1}, version=OLD).begin()
    for name in "ab":
        await p.machine(name, OLD)
    await (await p.to()).plane_done()
    assert await p.deployments() == {"a": NEW, "b": OLD}
    await p.topology(workers=entries(a={}))
    await p.run()

    assert await p.deployments() == {"a": NEW}


async def test_a_deployment_that_comes_meanwhile_waits_for_the_control_plane() -> None:
    p = await Upgrade(workers={}, version=OLD).begin()
    await p.to()
    await p.topology(workers=entries(late={}))
    await p.run()
    assert await p.deployments() == {}
    assert "creation deferred while control plane upgrade is in progress" in (await p.condition())[2]
    await p.plane_done()
    assert await p.deployments() == {"late": NEW}

    fresh = Upgrade(workers={}, version=OLD)
    await fresh.run()
    await fresh.topology(workers=entries(late={}))
    await fresh.run()
    assert await fresh.deployments() == {}
    assert (await fresh.condition())[1] == "ClusterUpgrading"


async def test_a_health_check_changes_while_its_deployment_waits() -> None:
    checks = {"nodeStartupTimeoutSeconds": 60}
    p = await Upgrade(workers={"a": 1}, version=OLD).begin()
    entry = {"class": "default-worker", "name": "a", "replicas": 1, "healthCheck": {"checks": checks}}
    await p.to(workers={"machineDeployments": [entry]})

    assert await p.deployments() == {"a": OLD}
    assert (await p.one("MachineHealthCheck"))["spec"]["checks"]["nodeStartupTimeoutSeconds"] == 60


@pytest.mark.parametrize(
    ("number", "own", "target", "listed", "plan"),
    [
        (105, "v1.30.0", "v1.32.0", None, "cannot compute an upgrade plan from v1.30.0 to v1.32.0"),
        (106, "v1.34.1+a", "v1.34.1+b", None, ["v1.34.1+b"]),
        (106, "v1.34.1+a", "v1.34.1+b", ["v1.34.1+a", "v1.34.1+b"], ["v1.34.1+b"]),
        (107, "v1.34.1+b.2", "v1.34.1+b.1", None, "must be greater than"),
        (110, "v1.31.2", "v1.33.0", ["v1.31.2", "v1.32.1", "v1.33.0"], ["v1.32.1", "v1.33.0"]),
    ],
)
async def test_an_upgrade_plan_lists_every_step(
    number: int, own: str, target: str, listed: list[str] | None, plan: list[str] | str
) -> None:
    def alter(objects: list[Json], _cluster: Json) -> None:
        if listed:
            objects[-1]["spec"]["kubernetesVersions"] = listed

    p = await Upgrade(workers={}, version=own, alter=alter).begin(own)
    await p.to(target)

    if isinstance(plan, str):
        assert plan in p.error
        assert (await p.plane())["spec"]["version"] == own
        return
    for step in plan:
        assert (await p.plane())["spec"]["version"] == step
        await p.plane_done(step)
    assert await p.condition() == ("True", "ReconcileSucceeded", "")


async def test_workers_that_are_far_behind_go_first() -> None:
    versions = ["v1.30.0", "v1.31.0", "v1.32.0", "v1.33.0", "v1.34.1"]

    def alter(objects: list[Json], _cluster: Json) -> None:
        objects[-1]["spec"]["kubernetesVersions"] = versions

    p = await Upgrade(workers={"a": 1}, version=versions[0], alter=alter).begin(versions[0])
    await p.machine("a", versions[0])
    await p.to(versions[-1])
    for step in versions[1:4]:
        assert ((await p.plane())["spec"]["version"], await p.deployments()) == (step, {"a": versions[0]})
        await p.plane_done(step)
    await p.run()
    assert ((await p.plane())["spec"]["version"], await p.deployments()) == (versions[3], {"a": versions[3]})


def plans(cluster: Json) -> list[list[str]]:
    """The steps before control plane and workers."""
    parts = [cluster.get("status", {}).get(part, {}).get("upgradePlan", []) for part in ("controlPlane", "workers")]
    return [[step["version"] for step in steps] for steps in parts]


async def test_13923_the_upgrade_plan_is_shown_only_while_there_is_something_before_the_cluster() -> None:
    versions = ["v1.32.0", "v1.33.0", "v1.34.1"]

    def alter(objects: list[Json], _cluster: Json) -> None:
        objects[-1]["spec"]["kubernetesVersions"] = versions

    p = await Upgrade(workers={"a": 1}, version=versions[0], alter=alter).begin(versions[0])
    await p.machine("a", versions[0])
    await p.run()
    assert plans(await p.cluster()) == [[], []]

    await p.to(versions[-1])
    assert plans(await p.cluster()) == [versions[1:], versions[2:]]

    await p.plane_done(versions[1])
    assert plans(await p.cluster()) == [versions[2:], versions[2:]]

    await p.plane_done(versions[2])
    await p.machine("a", versions[2])
    await p.run(times=2)
    assert plans(await p.cluster()) == [[], []]


async def test_13923_the_upgrade_plan_stays_where_it_cannot_be_computed_and_not_where_something_later_fails() -> None:
    def alter(objects: list[Json], _cluster: Json) -> None:
        objects[-1]["spec"]["kubernetesVersions"] = [OLD, NEW]

    p = await Upgrade(workers={"a": 1}, version=OLD, alter=alter).begin()
    counters = {"controlPlane": {"replicas": 3, "upgradePlan": [{"version": "v1.99.0"}]}}
    await p.client.patch(GroupVersionKind.of(CORE, "Cluster"), ObjectKey("default", "c"), {"status": counters}, subresource="status")

    await p.to("v1.98.0")  # the class does not know this version
    assert (await p.condition())[1] == "ReconcileFailed"
    assert plans(await p.cluster())[0] == ["v1.99.0"]

    (found,) = await p.all("MachineDeployment")
    await p.change(found, {"spec": {"template": {"spec": {"version": OLD}}}})
    plane = await p.plane()
    await p.plane_at("not a version")
    await p.to(NEW)
    assert (await p.condition())[1] == "ReconcileFailed"
    assert plans(await p.cluster())[0] == [NEW]
    assert (await p.cluster())["status"]["controlPlane"]["replicas"] == 3
    assert plane["spec"]["version"] == OLD


def test_a_plan_for_workers_that_need_none_is_refused() -> None:
    with pytest.raises(PlanError):
        checked("v1.34.1", "v1.33.0", "v1.34.1", ["v1.34.1"], ["v1.34.1"])


@pytest.mark.parametrize(("text", "number"), [("0", 1), ("x", 1), ("", 1), ("-3", 1), ("4", 4)])
def test_the_annotation_sets_how_many_workers_upgrade_at_a_time(text: str, number: int) -> None:
    annotations = {"topology.cluster.x-k8s.io/upgrade-concurrency": text}

    assert concurrency({"metadata": {"annotations": annotations}}) == number


async def test_without_extensions_the_step_is_the_version_that_the_control_plane_gets() -> None:
    p = await Upgrade(workers={"a": 0}, version=OLD).begin()
    await p.to()
    assert (await p.annotations())[STEP] == NEW
    await p.plane_done()
    await p.run()
    assert STEP not in await p.annotations()


# ----------------------------------------------------------------------------------------------------------------- hooks


def hooked(*hooks: str, **answers: Json) -> tuple[Json, Json]:
    """An ExtensionConfig with a handler for each hook, and what they answer: done, unless another answer is given."""
    config = extension_config("ext", "https://h/", "", {h.lower(): h for h in hooks})
    said = {h.lower(): {"response": {"status": "Success", **answers.get(h, {})}} for h in hooks}
    return config, {"features": {"RuntimeSDK": True}, "runtimeExtensions": said}


class Hooks(Upgrade):
    """A Cluster with hooks; answers may change between passes."""

    @classmethod
    def of(cls, *hooks: str, answers: dict[str, Json] | None = None, **more: Any) -> Self:
        config, observation = hooked(*hooks, **(answers or {}))
        return cls(config, observation=observation, **more)

    def say(self, hook: str, **answer: Any) -> None:
        config, observation = hooked(hook, **{hook: answer})
        other = Passes(config, observation=observation)
        self.world.canned._answers = {**self.world.canned._answers, **other.world.canned._answers}

    @property
    def asked(self) -> list[str]:
        return [call["body"]["kind"].removesuffix("Request") for call in self.world.canned.calls]


WAIT = {"retryAfterSeconds": 10, "message": "m"}


async def test_a_hook_may_block_creation() -> None:
    p = Hooks.of("BeforeClusterCreate", answers={"BeforeClusterCreate": WAIT})
    await p.run()
    assert (p.requeue, p.actions) == (10, [])
    assert (await p.condition())[:2] == ("False", "ClusterCreating")
    await p.run(3)
    assert p.asked == ["BeforeClusterCreate"], "within that time nobody is asked again"


async def test_failing_hooks_are_reported() -> None:
    p = Hooks.of("BeforeClusterCreate")
    p.say("BeforeClusterCreate", status="Failure")
    await p.run()
    assert ((await p.condition())[1], p.actions) == ("ReconcileFailed", [])

    q = Hooks.of("AfterControlPlaneInitialized", workers={})
    await q.run()
    assert "AfterControlPlaneInitialized" in (await q.annotations())[PENDING]
    q.say("AfterControlPlaneInitialized", status="Failure")
    said = [{"type": "ControlPlaneInitialized", "status": "True", "reason": "X", "lastTransitionTime": "2026-05-01T11:00:00Z"}]
    await q.client.patch(Cluster, KEY, {"status": {"conditions": said}}, subresource="status")
    await q.topology(controlPlane={"replicas": 3})
    await q.run()
    assert (q.error != "", q.actions) == (True, [])
    assert "AfterControlPlaneInitialized" in (await q.annotations())[PENDING]


async def test_the_initialized_hook_is_not_called_for_a_cluster_older_than_the_gate() -> None:
    p = await Upgrade(workers={}).begin("v1.34.1")
    assert PENDING not in await p.annotations()


async def test_annotations_block_an_upgrade_without_any_extension() -> None:
    name = "before-upgrade.hook.cluster.cluster.x-k8s.io/x"

    def alter(_objects: list[Json], cluster: Json) -> None:
        cluster["metadata"]["annotations"] = {name: ""}

    p = await Hooks.of("AfterClusterUpgrade", workers={"a": 0}, version=OLD, alter=alter).begin()
    await p.to()
    assert f"BeforeClusterUpgrade: annotation {name} is set" in (await p.condition())[2]
    assert (await p.plane())["spec"]["version"] == OLD
    await p.patch({"metadata": {"annotations": {name: None}}})
    await p.run()
    assert (await p.plane())["spec"]["version"] == NEW
    await p.patch({"metadata": {"annotations": {name: ""}}})
    await p.plane_done()
    assert await p.deployments() == {"a": NEW}, "an upgrade that has begun is not stopped"


async def test_the_second_hook_blocks_and_the_first_is_not_asked_again() -> None:
    hooks = ("BeforeClusterUpgrade", "BeforeControlPlaneUpgrade", "AfterClusterUpgrade")
    p = await Hooks.of(*hooks, workers={}, version=OLD, answers={"BeforeControlPlaneUpgrade": WAIT}).begin()
    await p.to()
    annotations = await p.annotations()
    assert "AfterClusterUpgrade" in annotations[PENDING]
    assert (annotations[STEP], (await p.plane())["spec"]["version"]) == (OLD, OLD)
    await p.clock.sleep(11)
    await p.run()
    assert p.asked == ["BeforeClusterUpgrade", "BeforeControlPlaneUpgrade", "BeforeControlPlaneUpgrade"]


async def test_workers_wait_for_what_follows_the_control_plane() -> None:
    p = await Hooks.of("AfterControlPlaneUpgrade", workers={"a": 1}, version=OLD, answers={"AfterControlPlaneUpgrade": WAIT}).begin()
    await (await p.to(workers=entries(a={}, late={}))).plane_done()

    assert (await p.plane())["spec"]["version"] == NEW
    assert await p.deployments() == {"a": OLD}
    assert "AfterControlPlaneUpgrade: m" in (await p.condition())[2]


async def test_what_must_follow_a_step_is_noted_again_while_the_control_plane_takes_it() -> None:
    """Cluster API v1.14 notes it only after the control plane is written, and may end between the two."""
    p = await Hooks.of("AfterControlPlaneUpgrade", workers={"a": 1}, version=OLD, answers={"AfterControlPlaneUpgrade": WAIT}).begin()
    await p.to()
    noted = (await p.annotations())[PENDING]
    await p.patch({"metadata": {"annotations": {PENDING: "AfterClusterUpgrade"}}})

    await p.run()

    assert {"AfterControlPlaneUpgrade", "BeforeWorkersUpgrade", "AfterWorkersUpgrade"} <= set((await p.annotations())[PENDING].split(","))
    assert set((await p.annotations())[PENDING].split(",")) >= set(noted.split(",")) - {"AfterControlPlaneInitialized"}
    await p.plane_done()
    assert "AfterControlPlaneUpgrade: m" in (await p.condition())[2]


async def test_hooks_without_handlers_count_as_done() -> None:
    p = await Hooks.of(workers={"a": 0}, version=OLD).begin()
    await (await p.to()).plane_done()
    await p.run(2)
    assert (await p.annotations())[PENDING] == "AfterControlPlaneInitialized", "it is not initialized: all others are done"

    q = await Hooks.of("AfterClusterUpgrade", workers={"a": 0}, version=OLD, answers={"AfterClusterUpgrade": WAIT}).begin()
    await (await q.to()).plane_done()
    await q.run()
    assert "AfterClusterUpgrade" in (await q.annotations())[PENDING]
    q.world.extensions.registry.remove("ext")
    await q.run()
    assert "AfterClusterUpgrade" not in (await q.annotations())[PENDING]


async def test_two_handlers_of_one_hook_give_one_answer() -> None:
    config = extension_config("ext", "https://h/", "", {"a": "BeforeClusterCreate", "b": "BeforeClusterCreate"})
    answers = {
        "a": {"response": {"status": "Success", "retryAfterSeconds": 30, "message": "a"}},
        "b": {"response": {"status": "Success", "retryAfterSeconds": 5}},
    }
    p = await Upgrade(config, observation={"features": {"RuntimeSDK": True}, "runtimeExtensions": answers}).run()

    assert (p.requeue, (await p.condition())[2].rpartition(": ")[2]) == (5, "a")


async def test_a_step_of_the_control_plane_alone_asks_no_hook_of_the_workers() -> None:
    p = await Hooks.of("BeforeWorkersUpgrade", "AfterWorkersUpgrade", workers={}, version=OLD).begin()
    await (await p.to()).plane_done()
    await p.run()

    assert p.asked == []


async def test_hooks_after_an_upgrade_block_only_the_next_upgrade() -> None:
    p = await Hooks.of("AfterClusterUpgrade", workers={"a": 0}, version=OLD, answers={"AfterClusterUpgrade": WAIT}).begin()
    await (await p.to()).plane_done()
    await p.topology(workers={"machineDeployments": [{"class": "default-worker", "name": "a", "replicas": 4}]})
    await p.run()

    (deployment,) = await p.all("MachineDeployment")
    assert (deployment["spec"]["replicas"], deployment["spec"]["template"]["spec"]["version"]) == (4, NEW)
    status, reason, message = await p.condition()
    assert (status, reason) == ("False", "ClusterUpgrading")
    assert message.splitlines()[1:] == ["  * Following hooks are blocking upgrade: AfterClusterUpgrade: m"]


@pytest.mark.parametrize("blocked", [False, True])
async def test_a_cluster_that_is_deleted_is_not_upgraded(blocked: bool) -> None:
    def alter(_objects: list[Json], cluster: Json) -> None:
        cluster["metadata"] |= {"deletionTimestamp": "2026-05-01T11:00:00Z", "finalizers": ["x/y"]}

    p = Hooks.of(*(["BeforeClusterDelete"] if blocked else []), answers={"BeforeClusterDelete": WAIT}, alter=alter)
    await p.client.delete(GroupVersionKind.of(CORE, "ClusterClass"), ObjectKey("default", "in-memory"))
    await p.run()

    assert ("runtime.cluster.x-k8s.io/ok-to-delete" in await p.annotations()) is not blocked
    text = ". Following hooks are blocking delete: BeforeClusterDelete: m" if blocked else ""
    assert (await p.condition())[2] == f"Cluster is deleting{text}"
