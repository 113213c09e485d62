"""`explain` of a Cluster with a topology: its table, and the patch, variable or hook that is at fault."""

from __future__ import annotations

import copy
from typing import Any

from clusterwright.api.crds import crds
from clusterwright.cli import samples
from clusterwright.cli.explain import as_text
from clusterwright.offline.bundle import assemble
from clusterwright.offline.explain import explain
from clusterwright.offline.topologies import blamed

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
