"""Incidents of ClusterResourceSets and their bindings."""

from __future__ import annotations

from typing import Any, Final

from clusterwright.api.addons import ClusterResourceSet, ClusterResourceSetBinding
from clusterwright.api.core import Cluster
from clusterwright.api.kubernetes import ConfigMap
from clusterwright.api.meta import Json, ObjectKey
from clusterwright.simulation.faults import NO_FAULTS, FaultPlan
from clusterwright.simulation.incidents.incident import Incident
from clusterwright.simulation.incidents.scene import HOUR, Scene
from clusterwright.simulation.incidents.stages import ONE
from clusterwright.simulation.plane import NAMESPACE

_KEY: Final = ObjectKey(NAMESPACE, "c")


def _resource_set(name: str) -> list[Json]:
    content = f"apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: {name}, namespace: default}}\ndata: {{from: {name}}}\n"
    metadata = {"name": name, "namespace": NAMESPACE}
    spec = {"strategy": "ApplyOnce", "clusterSelector": {"matchLabels": {"cni": "x"}}, "resources": [{"kind": "ConfigMap", "name": name}]}
    return [
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"content": content}},
        {"apiVersion": "addons.cluster.x-k8s.io/v1beta2", "kind": "ClusterResourceSet", "metadata": metadata, "spec": spec},
    ]


async def _bound(scene: Scene) -> dict[str, bool]:
    """Return the sets in the binding, each with whether all its resources are applied."""
    binding = await scene.client.find(ClusterResourceSetBinding, _KEY)
    entries: Any = binding.spec.bindings if binding is not None else ()
    return {e.cluster_resource_set_name: bool(e.resources) and all(r.applied for r in e.resources) for e in entries}


async def _until_bound(scene: Scene, *names: str) -> None:
    async def holds() -> bool:
        return await _bound(scene) == dict.fromkeys(names, True)

    await scene.until(holds, f"the binding names {', '.join(names)}, all applied", within=600)


async def _the_same_name_again(scene: Scene) -> None:
    await scene.patch(Cluster, "c", {"metadata": {"labels": {"cni": "x"}}})
    await scene.p.apply(_resource_set("net"))
    await _until_bound(scene, "net")
    await scene.client.delete(Cluster, _KEY)
    scene.did("The Cluster is deleted after its resources were applied.")
    await scene.p.until_gone(Cluster, "c", within=HOUR)
    await scene.wait(30)
    left = await scene.client.find(ClusterResourceSetBinding, _KEY)
    scene.must(left is None, "the binding outlives its Cluster: the next of that name would get nothing")


async def _many_writers(scene: Scene) -> None:
    names = [f"net-{n}" for n in range(5)]
    scene.adversary.lag |= {"clusterresourcesetbindings": scene.random.uniform(3, 8)}
    for name in names:
        await scene.p.apply(_resource_set(name))
    await scene.patch(Cluster, "c", {"metadata": {"labels": {"cni": "x"}}})
    scene.process.transport.suffer(FaultPlan(slow=1.0, slowest=3.0))
    scene.did("Five sets match the Cluster at once; the watch of their common binding is late, and requests take seconds.")
    await _until_bound(scene, *names)
    scene.process.transport.suffer(NO_FAULTS)
    before: set[str] = set()
    for written in scene.history:
        if written.table == "clusterresourcesetbindings":
            entries = {e["clusterResourceSetName"] for e in (written.json.get("spec") or {}).get("bindings") or ()}
            scene.must(before <= entries, f"the entry of {', '.join(before - entries)} was overwritten")
            before = entries
    found = {c.metadata.name for c in await scene.p.workload("c").client.list(ConfigMap, namespace="default")}
    scene.must(set(names) <= found, f"{', '.join(set(names) - found)} was not applied")


async def _removed_set(scene: Scene) -> None:
    await scene.patch(Cluster, "c", {"metadata": {"labels": {"cni": "x"}}})
    await scene.p.apply([*_resource_set("one"), *_resource_set("two")])
    await _until_bound(scene, "one", "two")
    await scene.client.delete(ClusterResourceSet, ObjectKey(NAMESPACE, "one"))
    scene.did("One of two sets is deleted.")
    await scene.p.until_gone(ClusterResourceSet, "one")
    await _until_bound(scene, "two")


RESOURCE_SETS: Final = (
    Incident(
        number=3357,
        title="The binding of a deleted Cluster is still there",
        there="Cluster and set both owned the binding, so that the deletion of the Cluster left it behind; the next Cluster of that name "
        "got none of its resources.",
        here="The binding goes with the Cluster.",
        adversary="a Cluster that is deleted while its set stays",
        stage=ONE,
        play=_the_same_name_again,
    ),
    Incident(
        number=10655,
        title="ClusterResourceSets overwrite each other's entries in the binding",
        there="Several sets wrote the common binding from their own copies; entries and owners of the others were lost.",
        here="Every write is locked to what was read; all entries are there in the end.",
        adversary="five sets at once, and a watch that is late",
        stage=ONE,
        play=_many_writers,
    ),
    Incident(
        number=3453,
        title="A deleted ClusterResourceSet stays in the binding",
        there="The entry of a set that had been deleted was never removed from the bindings of its Clusters.",
        here="The entry goes with the set, and those of others stay.",
        adversary="a user who deletes one of two sets",
        stage=ONE,
        play=_removed_set,
    ),
)
