"""Plans of a changed ClusterClass over the Clusters that use it."""

from __future__ import annotations

import asyncio
import base64
from functools import cache
from typing import Any

import pytest

from clusterwright.kubeadm.certificates import new_ca
from clusterwright.plan import Captured, Edit, plan
from clusterwright.plan.words import as_markdown, as_text
from clusterwright.runtime.keys import sample_rsa_key
from clusterwright.simulation import samples
from clusterwright.testing import run_virtual, virtual_plane
from support.plans import CLASS, CLUSTER, captured, key

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


@pytest.mark.soak
def test_a_label_of_a_class_changes_every_cluster_and_replaces_nothing():
    path = "spec.workers.machineDeployments[class=default-worker].metadata.labels.tier"
    made = plan(_read(), [Edit(CLASS, key("in-memory"), ((path, "gold"),))], runs=1)
    assert not made.replaced
    assert [c["changed"] > 0 for c in made.clusters] == [True, True]
    assert not made.stuck


def _with_extension(made: Captured, hook: str) -> Captured:
    """Return the capture with a discovered extension that has a handler of a hook."""
    handler = {
        "name": "ask.ext",
        "requestHook": {"apiVersion": "hooks.runtime.cluster.x-k8s.io/v1alpha1", "hook": hook},
        "timeoutSeconds": 5,
        "failurePolicy": "Fail",
    }
    authority = new_ca(sample_rsa_key(2048, 0), now=made.now, serial=1)
    bundle = base64.b64encode(authority.certificate).decode()
    config = {
        "apiVersion": "runtime.cluster.x-k8s.io/v1beta2",
        "kind": "ExtensionConfig",
        "metadata": {"name": "ext", "generation": 1},
        "spec": {"clientConfig": {"url": "https://ext.invalid", "caBundle": bundle}, "namespaceSelector": {}},
        "status": {"handlers": [handler]},
    }
    return Captured((*made.objects, config), made.now, made.workloads, {**made.features, "RuntimeSDK": True})


def test_extensions_are_assumed_to_agree_and_their_calls_are_told():
    upgrade = Edit(CLUSTER, key("c1"), (("spec.topology.version", "v1.35.0"),))
    made = plan(_with_extension(_read(), "BeforeClusterUpgrade"), [upgrade], runs=1)
    assert {(h.hook, h.handler, h.assumed) for h in made.hooks} == {("BeforeClusterUpgrade", "ask.ext", True)}
    assert len(made.replaced) == 2
    assert not made.stuck


def test_a_class_that_is_patched_by_an_extension_is_planned_only_with_its_answers():
    external = [{"name": "ext", "external": {"generatePatchesExtension": "ask.ext"}}]
    change = Edit(CLASS, key("in-memory"), (("spec.patches", external),))
    made = plan(_with_extension(_read(), "GeneratePatches"), [change], runs=1)
    assert any("GeneratePatches" in note and "--call-extensions" in note for note in made.notes)
