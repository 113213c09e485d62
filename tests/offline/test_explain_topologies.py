"""`explain` of a Cluster with a topology: its table, and the patch, variable or hook that is at fault."""

from __future__ import annotations

import copy
from typing import Any

from clusterwright.api.crds import crds
from clusterwright.cli.explain import as_text
from clusterwright.offline.bundle import assemble
from clusterwright.offline.explain import explain
from clusterwright.offline.topologies import blamed
from clusterwright.simulation import samples
from support.extension import extension_config

SIZE = {"name": "size", "required": True, "schema": {"openAPIV3Schema": {"type": "string", "enum": ["small"]}}}


def world(*, patches: list[Any] | None = None, variables: list[Any] | None = None) -> list[dict[str, Any]]:
    objects = copy.deepcopy(samples.cluster_class(patches=patches or [], variables=[SIZE]))
    definition = {"name": "size", "definitions": [{"from": "inline", "required": True, "schema": SIZE["schema"]}]}
    objects[-1]["metadata"]["generation"] = 1
    objects[-1]["status"] = {
        "observedGeneration": 1,
        "variables": [definition],
        "conditions": [{"type": "VariablesReady", "status": "True", "reason": "VariablesReady", "message": ""}],
    }
    values = variables if variables is not None else [{"name": "size", "value": "small"}]
    cluster = samples.topology("c", variables=values)
    cluster["metadata"]["uid"] = "1"
    return [*crds(), *objects, cluster]


def test_the_table_is_shown_where_the_class_is_in_the_bundle() -> None:
    answer = explain(assemble(world()), "Cluster/default/c")

    text = as_text(answer, "TopologyReconciled")
    assert "TopologyReconciled=True  ReconcileSucceeded" in text


def test_a_variable_at_fault_is_named() -> None:
    answer = explain(assemble(world(variables=[{"name": "size", "value": "huge"}])), "Cluster/default/c")

    assert answer.notes == ["TopologyReconciled is held up by variable size (ClusterClass default/in-memory)."]


def test_a_patch_at_fault_is_named() -> None:
    selector = {
        "apiVersion": "infrastructure.cluster.x-k8s.io/v1beta2",
        "kind": "DevClusterTemplate",
        "matchResources": {"infrastructureCluster": True},
    }
    broken = {"op": "replace", "path": "/spec/template/spec/nothing/here", "value": 1}
    patch = {"name": "broken", "definitions": [{"selector": selector, "jsonPatches": [broken]}]}

    answer = explain(assemble(world(patches=[patch])), "Cluster/default/c")

    assert answer.notes == ["TopologyReconciled is held up by patch broken (ClusterClass default/in-memory)."]


def test_without_the_class_what_was_written_counts() -> None:
    objects = [o for o in world() if o["kind"] != "ClusterClass"]
    text = "Cluster is upgrading to v1.34.1\n  * Following hooks are blocking upgrade: BeforeClusterUpgrade: wait"
    objects[-1]["status"] = {
        "conditions": [{"type": "TopologyReconciled", "status": "False", "reason": "ClusterUpgrading", "message": text}]
    }

    answer = explain(assemble(objects), "Cluster/default/c")

    assert "TopologyReconciled is held up by hook BeforeClusterUpgrade (ClusterClass default/in-memory)." in answer.notes
    assert "TopologyReconciled" not in {t.table for t in answer.tables}


def test_every_form_of_blame_is_understood() -> None:
    assert blamed('failed to generate patches for patch "p": failed to calculate value: variable "x.y" does not exist') == [
        "patch p",
        "variable x.y",
    ]
    assert blamed('validation of patch "q" failed: no') == ["patch q"]
    assert blamed('can not use external patch "r" if RuntimeSDK feature flag is disabled') == ["patch r"]
    assert blamed("spec.topology.workers.machineDeployments[md].variables.overrides[net].value: Invalid") == ["variable net"]
    assert blamed('spec.topology.variables: Required value: required variable "a" must be set') == ["variable a"]
    assert blamed("everything is fine") == []
    assert blamed('validation of patch "q" failed: failed to call extension handler "validate.ext": no') == [
        "patch q",
        "extension handler validate.ext",
    ]


# ----------------------------------------------------------------------------------------------------------- extensions

EXTERNAL = [{"name": "banner", "external": {"generatePatchesExtension": "patch.ext"}}]


def config(discovered: str, message: str = "") -> dict[str, Any]:
    made = extension_config("ext", "https://ext.example.com/", "", {"patch": "GeneratePatches"})
    made["status"]["conditions"] = [{"type": "Discovered", "status": discovered, "reason": "X", "message": message}]
    return made


def condition(text: str, reason: str = "ReconcileFailed") -> dict[str, Any]:
    return {"conditions": [{"type": "TopologyReconciled", "status": "False", "reason": reason, "message": text}]}


def test_an_extension_that_failed_is_named_with_its_patch_and_what_its_config_says() -> None:
    """Offline nobody can be asked again: what was written counts."""
    objects = world(patches=EXTERNAL)
    text = (
        'failed to apply patches: failed to generate patches for patch "banner": failed to call extension handler "patch.ext": '
        "http call failed: connection refused"
    )
    objects[-1]["status"] = condition(text)

    answer = explain(assemble([*objects, config("False", "Error in discovery: no route")]), "Cluster/default/c")

    assert answer.notes == [
        "TopologyReconciled is held up by patch banner, extension handler patch.ext (ClusterClass default/in-memory).",
        "ExtensionConfig ext says: Error in discovery: no route",
    ]
    assert "TopologyReconciled" not in {t.table for t in answer.tables}


def test_a_topology_whose_extensions_cannot_be_asked_offline_is_not_blamed_for_that() -> None:
    answer = explain(assemble([*world(patches=EXTERNAL), config("True")]), "Cluster/default/c")

    assert answer.notes == []


def test_answers_that_were_observed_are_used() -> None:
    answers = {"patch": {"response": {"status": "Failure"}}}
    observation = {
        "apiVersion": "clusterwright.dev/v1alpha1",
        "kind": "Observation",
        "features": {"RuntimeSDK": True},
        "runtimeExtensions": answers,
    }

    answer = explain(assemble([*world(patches=EXTERNAL), config("True"), observation]), "Cluster/default/c")

    assert answer.notes == ["TopologyReconciled is held up by patch banner, extension handler patch.ext (ClusterClass default/in-memory)."]
    assert "TopologyReconciled" in {t.table for t in answer.tables}


def test_a_hook_that_blocks_is_named_although_nobody_can_ask_it_again() -> None:
    objects = world()
    text = "Cluster is upgrading to v1.34.1\n  * Following hooks are blocking upgrade: BeforeWorkersUpgrade: not now"
    objects[-1]["status"] = condition(text, "ClusterUpgrading")

    answer = explain(assemble(objects), "Cluster/default/c")

    assert answer.notes == ["TopologyReconciled is held up by hook BeforeWorkersUpgrade (ClusterClass default/in-memory)."]
    shown = as_text(answer, "TopologyReconciled")
    assert "TopologyReconciled=False  ClusterUpgrading  Cluster is upgrading to v1.34.1" in shown
    assert "as it was written" in shown
