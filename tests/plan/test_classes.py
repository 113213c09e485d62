"""Plans of a changed ClusterClass over the Clusters that use it."""

from __future__ import annotations

import asyncio
from functools import cache
from typing import Any

from clusterwright.plan import Captured, Edit, plan
from clusterwright.plan.words import as_markdown, as_text
from clusterwright.simulation import samples
from clusterwright.testing import run_virtual, virtual_plane
from support.plans import CLASS, captured, key

_CLUSTERS = ("c1", "c2")


@cache
def _read() -> Captured:
    async def main() -> Captured:
        async with virtual_plane() as p:
            strings = {"type": "array", "items": {"type": "string"}}
            variable = {"name": "commands", "required": False, "schema": {"openAPIV3Schema": strings}}
            await p.apply(samples.cluster_class(variables=[variable]))
            value = [{"name": "commands", "value": ["echo"]}]
            await p.client.create(samples.topology("c1", version="v1.34.0", variables=value))
            await p.client.create(samples.topology("c2", version="v1.34.0"))
            for name in _CLUSTERS:
                await p.until_available(name, workers=1, within=3600)
            await asyncio.sleep(30)
            return await captured(p)

    return run_virtual(main())


def _patch() -> Any:
    matched = {"machineDeploymentClass": {"names": ["default-worker"]}}
    selector = {"apiVersion": "bootstrap.cluster.x-k8s.io/v1beta2", "kind": "KubeadmConfigTemplate", "matchResources": matched}
    operation = {"op": "add", "path": "/spec/template/spec/preKubeadmCommands", "valueFrom": {"variable": "commands"}}
    return [{"name": "commands", "definitions": [{"selector": selector, "jsonPatches": [operation]}]}]


def test_a_patch_that_lacks_a_value_is_named_for_the_clusters_that_lack_it():
    made = plan(_read(), [Edit(CLASS, key("in-memory"), (("spec.patches", _patch()),))], runs=1)
    first, second = made.clusters
    assert (first["cluster"], first["replaced"], first["notConverging"]) == ("Cluster/default/c1", 1, [])
    assert (second["cluster"], second["replaced"]) == ("Cluster/default/c2", 0)
    assert "commands" in second["notConverging"][0]
    assert [f.path for r in made.rollouts for f in r.fields] == ["KubeadmConfigTemplate: spec.template.spec.preKubeadmCommands"]
    assert "Cluster/default/c1: 1 replaced" in as_text(made)
    assert "| `Cluster/default/c1` | 1 |" in as_markdown(made)


def test_a_label_of_a_class_changes_every_cluster_and_replaces_nothing():
    path = "spec.workers.machineDeployments[class=default-worker].metadata.labels.tier"
    made = plan(_read(), [Edit(CLASS, key("in-memory"), ((path, "gold"),))], runs=1)
    assert not made.replaced
    assert [c["changed"] > 0 for c in made.clusters] == [True, True]
    assert not made.stuck
