"""What is written, what the condition says of it, and which templates go, at their edges.

62 (a control plane of the old contract) is among the recorded passes and in `tests/api/test_contract.py`; 131 and 145 also happen, in time, in `tests/scenarios/test_topology_in_virtual_time.py`.
"""

from __future__ import annotations

from typing import Any

import pytest

from clusterwright.api.core import Cluster, MachineDeployment, MachineSet
from clusterwright.api.meta import GroupVersionKind, Json, ObjectKey
from clusterwright.controllers.kit import registry
from clusterwright.runtime.errors import ApiError
from clusterwright.simulation import samples
from controllers.topology.passes import CORE, KEY, OWNED, Passes

PLANE = "controlplane.cluster.x-k8s.io/v1beta2"
INFRA = "infrastructure.cluster.x-k8s.io/v1beta2"
BOOTSTRAP = "bootstrap.cluster.x-k8s.io/v1beta2"
VERSION = samples.VERSION


def kind(name: str, api_version: str = CORE) -> GroupVersionKind:
    return GroupVersionKind.of(api_version, name)


async def settled(**more: Any) -> Passes:
    """A topology at rest."""
    p = await Passes(**{"workers": {"a": 1}, **more}).run()
    await p.settle(VERSION)
    return await p.run()


async def template_spec(p: Passes, name: str, change: Json, api_version: str = INFRA, of: str = "DevMachineTemplate") -> None:
    await p.client.patch(kind(of, api_version), ObjectKey("default", name), change)


async def used(p: Passes) -> tuple[str, str]:
    """The templates that the deployment uses."""
    spec = (await p.one("MachineDeployment"))["spec"]["template"]["spec"]
    return spec["infrastructureRef"]["name"], spec["bootstrap"]["configRef"]["name"]


# ---------------------------------------------------------------------------------------------------------------- reading


async def test_a_class_with_another_bootstrap_kind_rotates_existing_templates() -> None:
    p = await settled()
    other = {"apiVersion": BOOTSTRAP, "kind": "KubeadmConfigTemplate", "metadata": {"name": "other", "namespace": "default"}}
    await p.client.create({**other, "spec": {"template": {"spec": {"files": []}}}})
    found = dict((await p.client.get(kind("ClusterClass"), ObjectKey("default", "in-memory"))).json)
    for worker in found["spec"]["workers"]["machineDeployments"]:
        worker["bootstrap"]["templateRef"]["name"] = "other"
    await p.client.patch(kind("ClusterClass"), ObjectKey("default", "in-memory"), {"spec": {"workers": found["spec"]["workers"]}})
    await p.client.patch(
        kind("ClusterClass"), ObjectKey("default", "in-memory"), {"status": {"observedGeneration": 2}}, subresource="status"
    )
    before = (await used(p))[1]
    await p.run()

    assert p.error == ""
    assert (await used(p))[1] != before


async def test_objects_made_by_hand_are_taken_over_under_their_names_if_they_are_labelled() -> None:
    labels = OWNED
    infra = {
        "apiVersion": INFRA,
        "kind": "DevCluster",
        "metadata": {"name": "mine", "namespace": "default", "labels": labels},
        "spec": {"controlPlaneEndpoint": {"host": "h", "port": 1}},
    }
    plane = {
        "apiVersion": PLANE,
        "kind": "KubeadmControlPlane",
        "metadata": {"name": "mine", "namespace": "default", "labels": labels},
        "spec": {
            "version": VERSION,
            "replicas": 3,
            "kubeadmConfigSpec": {},
            "machineTemplate": {
                "spec": {"infrastructureRef": {"apiGroup": INFRA.partition("/")[0], "kind": "DevMachineTemplate", "name": "mine"}}
            },
        },
        "status": {"version": VERSION},
    }
    machines = {
        "apiVersion": INFRA,
        "kind": "DevMachineTemplate",
        "metadata": {"name": "mine", "namespace": "default", "labels": labels},
        "spec": {"template": {"spec": {}}},
    }

    def refer(_objects: list[Json], cluster: Json) -> None:
        cluster["spec"]["infrastructureRef"] = {"apiGroup": INFRA.partition("/")[0], "kind": "DevCluster", "name": "mine"}
        cluster["spec"]["controlPlaneRef"] = {"apiGroup": PLANE.partition("/")[0], "kind": "KubeadmControlPlane", "name": "mine"}

    p = await Passes(infra, plane, machines, workers={}, alter=refer).run()

    assert p.error == ""
    assert (await p.one("KubeadmControlPlane", PLANE))["metadata"]["name"] == "mine"
    assert (await p.one("KubeadmControlPlane", PLANE))["spec"]["replicas"] == 1
    assert (await p.one("DevCluster", INFRA))["spec"]["controlPlaneEndpoint"] == {"host": "h", "port": 1}


# ---------------------------------------------------------------------------------------------------------------- writing


async def test_a_template_rotates_for_its_spec_and_is_written_for_its_labels() -> None:
    p = await settled()
    before = await used(p)
    await template_spec(p, "in-memory-worker", {"metadata": {"labels": {"x": "y"}}})
    await p.run()
    assert await used(p) == before
    own = await p.client.get(kind("DevMachineTemplate", INFRA), ObjectKey("default", before[0]))
    assert own.metadata.labels["x"] == "y"

    await template_spec(p, "in-memory-worker", {"spec": {"template": {"spec": {"x": 1}}}})
    await p.run()
    after = await used(p)
    assert (after[0] != before[0], after[1] == before[1]) == (True, True)
    assert await p.client.find(kind("DevMachineTemplate", INFRA), ObjectKey("default", before[0])) is not None, "Machines still use it"


async def test_a_control_plane_that_cannot_be_written_leaves_no_new_template() -> None:
    p = await settled(observation={"unwritable": [{"verb": "patch", "kind": "KubeadmControlPlane", "name": "none-yet"}]}, workers={})
    before = await p.all("DevMachineTemplate", INFRA)
    refuse(p, "patch", "KubeadmControlPlane")
    await template_spec(p, "in-memory-control-plane", {"spec": {"template": {"spec": {"x": 1}}}})
    await p.run()

    assert "KubeadmControlPlane" in p.error
    assert [t["metadata"]["name"] for t in await p.all("DevMachineTemplate", INFRA)] == [t["metadata"]["name"] for t in before]


async def test_a_bootstrap_template_that_cannot_be_made_takes_the_other_back() -> None:
    p = await settled()
    before = await used(p)
    refuse(p, "create", "KubeadmConfigTemplate")
    await template_spec(p, "in-memory-worker", {"spec": {"template": {"spec": {"x": 1}}}})
    await template_spec(p, "in-memory-worker", {"spec": {"template": {"spec": {"x": 1}}}}, BOOTSTRAP, "KubeadmConfigTemplate")
    await p.run()

    assert p.error
    assert await used(p) == before
    names = {t["metadata"]["name"] for t in await p.all("DevMachineTemplate", INFRA)}
    assert names == {before[0], *(n for n in names if not n.startswith("c-a-"))}


def refuse(p: Passes, verb: str, of: str) -> None:
    """From now on the API server refuses this write."""
    other = Passes(observation={"unwritable": [{"verb": verb, "kind": of}]})
    p.client._faults = other.client._faults  # type: ignore[attr-defined]


async def test_the_shim_is_deleted_once_the_cluster_owns_everything() -> None:
    p = await Passes(workers={}).run()
    secrets = await p.client.list(kind("Secret", "v1"))
    assert any("shim" in s.metadata.name for s in secrets)
    owner = {"apiVersion": CORE, "kind": "Cluster", "name": "c", "uid": "c-uid"}
    for of, version in (("DevCluster", INFRA), ("KubeadmControlPlane", PLANE)):
        obj = await p.one(of, version)
        await p.change(obj, {"metadata": {"ownerReferences": [*obj["metadata"]["ownerReferences"], owner]}})
    await p.run()
    assert not any("shim" in s.metadata.name for s in await p.client.list(kind("Secret", "v1")))


@pytest.mark.parametrize(("given", "kept"), [({"host": "", "port": 0}, ("1.2.3.4", 6443)), ({"host": "h", "port": 0}, ("h", 6443))])
async def test_an_endpoint_that_the_infrastructure_sets_stays(given: Json, kept: tuple[str, int]) -> None:
    def alter(objects: list[Json], _cluster: Json) -> None:
        objects[0]["spec"]["template"]["spec"]["controlPlaneEndpoint"] = given

    p = await Passes(workers={}, alter=alter).run()
    infra = await p.one("DevCluster", INFRA)
    await p.change(infra, {"spec": {"controlPlaneEndpoint": {"host": "1.2.3.4", "port": 6443}}})
    await p.settle(VERSION)
    await p.run(2)
    found = (await p.one("DevCluster", INFRA))["spec"]["controlPlaneEndpoint"]

    assert (found["host"], found["port"]) == kept
    assert p.actions == []


async def test_an_object_is_not_made_twice() -> None:
    p = await settled()
    deployment = await p.one("MachineDeployment")
    await p.run(3)

    assert (await p.one("MachineDeployment"))["metadata"]["uid"] == deployment["metadata"]["uid"]


async def test_a_worker_cannot_change_its_kind_of_infrastructure() -> None:
    p = await settled()
    other = {"apiVersion": INFRA, "kind": "DockerMachineTemplate", "metadata": {"name": "d", "namespace": "default"}}
    await p.client.create({**other, "spec": {"template": {"spec": {}}}})
    found = dict((await p.client.get(kind("ClusterClass"), ObjectKey("default", "in-memory"))).json)
    reference = {"apiVersion": INFRA, "kind": "DockerMachineTemplate", "name": "d"}
    found["spec"]["workers"]["machineDeployments"][0]["infrastructure"]["templateRef"] = reference
    await p.client.patch(kind("ClusterClass"), ObjectKey("default", "in-memory"), {"spec": {"workers": found["spec"]["workers"]}})
    await p.client.patch(
        kind("ClusterClass"), ObjectKey("default", "in-memory"), {"status": {"observedGeneration": 2}}, subresource="status"
    )
    before = (await p.one("MachineDeployment"))["metadata"]["resourceVersion"]
    await p.run()

    assert "Forbidden" in p.error
    assert (await p.one("MachineDeployment"))["metadata"]["resourceVersion"] == before


async def test_another_worker_class_keeps_the_name_and_rotates_differing_templates() -> None:
    def two(objects: list[Json], _cluster: Json) -> None:
        workers = objects[-1]["spec"]["workers"]["machineDeployments"]
        workers.append({**workers[0], "class": "second"})

    p = await settled(alter=two)
    name, before = (await p.one("MachineDeployment"))["metadata"]["name"], await used(p)
    await p.topology(workers={"machineDeployments": [{"class": "second", "name": "a", "replicas": 1}]})
    await p.run()

    assert (p.error, (await p.one("MachineDeployment"))["metadata"]["name"]) == ("", name)
    assert await used(p) == before, "their templates are the same"


async def test_pools_with_nodes_need_a_connection_and_pools_without_need_none() -> None:
    p = await Passes(workers={}, pools={"mp": 1}).run()
    await p.settle(VERSION)
    await p.run()
    assert p.error == ""
    pool = await p.one("MachinePool")
    node = {"apiVersion": "v1", "kind": "Node", "name": "n"}
    gvk, key = kind("MachinePool"), ObjectKey("default", pool["metadata"]["name"])
    await p.client.patch(gvk, key, {"status": {"nodeRefs": [node]}}, subresource="status")
    await p.run()

    assert p.error, "what their Nodes run is not known"


# ---------------------------------------------------------------------------------------------------------- the condition


async def test_a_repair_leaves_the_condition_as_it_is() -> None:
    p = await settled()
    await p.patch({"metadata": {"annotations": {"runtime.cluster.x-k8s.io/pending-hooks": "AfterClusterUpgrade"}}})
    before = await p.condition()
    deployment = await p.one("MachineDeployment")
    emptied = [{"op": "replace", "path": "/metadata/managedFields", "value": [{}]}]
    key = ObjectKey("default", deployment["metadata"]["name"])
    await p.client.patch(kind("MachineDeployment"), key, emptied, type="json")
    await p.clock.sleep(601)  # an object that was looked at is trusted for ten minutes
    await p.run()

    assert (p.error, p.requeue, await p.condition()) == ("", 1.0, before)


async def test_both_ways_to_pause_are_reported() -> None:
    p = await settled()
    await p.patch({"spec": {"paused": True}, "metadata": {"annotations": {"cluster.x-k8s.io/paused": ""}}})
    await p.run()

    text = "Cluster spec.paused is set to true, Cluster has the cluster.x-k8s.io/paused annotation"
    assert await p.condition() == ("False", "Paused", text)


async def test_long_lists_of_names_are_cut_in_messages() -> None:
    p = await Passes(workers={f"w{n}": 1 for n in range(5)}, version="v1.33.0").run()
    await p.settle("v1.33.0")
    await p.topology(version=VERSION)
    await p.run()

    assert ", ... (2 more)" in (await p.condition())[2]


async def test_deferred_workers_are_named_while_others_continue() -> None:
    defer = {"annotations": {"topology.cluster.x-k8s.io/defer-upgrade": ""}}

    def pools_defer(_objects: list[Json], cluster: Json) -> None:
        cluster["spec"]["topology"]["workers"] = {
            "machineDeployments": [{"class": "default-worker", "name": "a", "replicas": 0}],
            "machinePools": [{"class": "default-pool", "name": "mp", "replicas": 1, "metadata": defer}],
        }

    p = await Passes(version="v1.33.0", alter=pools_defer).run()
    await p.settle("v1.33.0")
    await p.topology(version=VERSION)
    await p.run()
    assert (await p.condition())[1] == "ClusterUpgrading", "the control plane is on its way"
    await p.settle(VERSION)
    await p.run(2)
    assert (await p.condition())[1] == "MachinePoolsUpgradeDeferred"


# -------------------------------------------------------------------------------------------------------- template collectors


class Collecting:
    """Passes of the two controllers that delete templates nobody uses."""

    def __init__(self, p: Passes) -> None:
        self.p = p

    async def run(self, of: str, name: str) -> str:
        entry = registry.find(of, f"topology/{of.lower()}")
        assert entry is not None
        try:
            reconciler = registry.definition(entry).make(self.p.world.dependencies())
            await self.p.world.reports.complete(reconciler, ObjectKey("default", name))
        except ApiError as error:
            return str(error)
        return ""

    async def machine_set(self, name: str, deployment: Json, infra: str) -> None:
        """A MachineSet of the deployment, with templates of its own."""
        labels = {**OWNED, "cluster.x-k8s.io/deployment-name": deployment["metadata"]["name"]}
        uid = deployment["metadata"]["uid"]
        owner = {"apiVersion": CORE, "kind": "MachineDeployment", "name": deployment["metadata"]["name"], "uid": uid, "controller": True}
        spec = {**deployment["spec"]["template"]["spec"]}
        spec["infrastructureRef"] = {**spec["infrastructureRef"], "name": infra}
        await self.p.client.create(
            {
                "apiVersion": CORE,
                "kind": "MachineSet",
                "metadata": {"name": name, "namespace": "default", "labels": labels, "ownerReferences": [owner]},
                "spec": {
                    "clusterName": "c",
                    "replicas": 1,
                    "selector": deployment["spec"]["selector"],
                    "template": {"metadata": deployment["spec"]["template"].get("metadata", {}), "spec": spec},
                },
            }
        )
        assert await self.run("MachineSet", name) == ""

    async def delete(self, of: type[Any], name: str) -> str:
        await self.p.client.delete(of, ObjectKey("default", name))
        return await self.run(of.__name__, name)

    async def templates(self) -> set[str]:
        """Of the workers, by name."""
        return {t["metadata"]["name"] for t in await self.p.all("DevMachineTemplate", INFRA) if t["metadata"]["name"].startswith("c-a-")}


async def rotated() -> tuple[Collecting, Json, str, str]:
    """A deployment whose infrastructure template was rotated: the collectors, it, the old template and the new one."""
    p = await settled()
    old, _ = await used(p)
    await template_spec(p, "in-memory-worker", {"spec": {"template": {"spec": {"x": 1}}}})
    await p.run()
    deployment = await p.one("MachineDeployment")
    collecting = Collecting(p)
    assert await collecting.run("MachineDeployment", deployment["metadata"]["name"]) == ""
    new, _ = await used(p)
    return collecting, deployment, old, new


async def test_a_template_that_the_deployment_uses_stays_when_a_set_goes() -> None:
    c, deployment, old, new = await rotated()
    await c.machine_set("first", deployment, old)
    await c.machine_set("second", deployment, new)
    assert await c.delete(MachineSet, "second") == ""
    assert await c.templates() == {old, new}
    assert await c.delete(MachineSet, "first") == ""
    assert await c.templates() == {new}


async def test_templates_go_with_the_last_object_that_uses_them() -> None:
    c, deployment, old, new = await rotated()
    await c.machine_set("first", deployment, old)
    await c.machine_set("second", deployment, new)
    name = deployment["metadata"]["name"]
    check = {"apiVersion": CORE, "kind": "MachineHealthCheck", "metadata": {"name": name, "namespace": "default", "labels": OWNED}}
    await c.p.client.create({**check, "spec": {"clusterName": "c"}})
    assert await c.delete(MachineDeployment, name) == ""
    assert await c.templates() == {old, new}, "MachineSets use them"
    assert await c.p.all("MachineHealthCheck") == []
    for machine_set in ("first", "second"):
        assert await c.delete(MachineSet, machine_set) == ""
    assert await c.templates() == set()


async def test_an_object_outside_of_topologies_gets_no_finalizer() -> None:
    p = await settled()
    deployment = await p.one("MachineDeployment")
    await p.change(deployment, {"metadata": {"labels": {"topology.cluster.x-k8s.io/owned": None}}})
    assert await Collecting(p).run("MachineDeployment", deployment["metadata"]["name"]) == ""

    found = await p.client.get(MachineDeployment, ObjectKey("default", deployment["metadata"]["name"]))
    assert found.metadata.finalizers == ()


async def test_a_template_that_is_already_gone_does_not_block() -> None:
    c, deployment, old, new = await rotated()
    await c.machine_set("first", deployment, old)
    await c.p.client.delete(kind("DevMachineTemplate", INFRA), ObjectKey("default", old))
    assert await c.delete(MachineSet, "first") == ""
    assert await c.p.client.find(MachineSet, ObjectKey("default", "first")) is None
    assert await c.templates() == {new}


async def test_while_the_cluster_is_paused_nothing_is_deleted() -> None:
    c, deployment, old, _ = await rotated()
    await c.machine_set("first", deployment, old)
    await c.p.client.patch(Cluster, KEY, {"spec": {"paused": True}})
    await c.delete(MachineSet, "first")

    assert await c.p.client.find(MachineSet, ObjectKey("default", "first")) is not None
    assert old in await c.templates()
