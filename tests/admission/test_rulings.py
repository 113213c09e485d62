"""Where we answer otherwise than upstream, on purpose."""

from __future__ import annotations

from typing import Any

import pytest

from admission.admission_cases import BASES, FACTS, Json, merge
from clusterwright.admission.cluster import CLUSTER
from clusterwright.admission.clusterresourceset import CLUSTER_RESOURCE_SET
from clusterwright.admission.hook import Hook
from clusterwright.admission.machineset import MACHINE_SET
from clusterwright.admission.rule import Review, judge
from clusterwright.topology.variables import validate_definitions


def fields(hook: Hook, new: Json, old: Json | None = None, facts: Any = None) -> list[str]:
    review = Review(
        operation="CREATE" if old is None else "UPDATE", new=new, old=old, facts=facts, model=hook.model, gates={"ClusterTopology": True}
    )
    return [error.field for error in judge(hook.rules, review)]


@pytest.mark.parametrize(
    ("check", "refused"), [({}, True), ({"remediation": {"maxInFlight": 2}}, True), ({"checks": {"nodeStartupTimeoutSeconds": 60}}, False)]
)
def test_a_limit_of_concurrent_remediations_is_not_a_health_check(check: Json, refused: bool) -> None:
    deployment = {"name": "md", "class": "small", "healthCheck": {"enabled": True} | check}
    cluster = merge(BASES["Cluster"], {"spec": {"topology": {"workers": {"machineDeployments": [deployment]}}}})

    found = fields(CLUSTER, cluster, facts=FACTS)

    assert found == (["spec.topology.workers.machineDeployments[md].healthCheck.enable"] if refused else [])


@pytest.mark.parametrize("before", [{}, {"matchExpressions": []}])
@pytest.mark.parametrize("after", [{}, {"matchExpressions": []}])
def test_an_empty_list_in_a_selector_is_not_a_change(before: Json, after: Json) -> None:
    old, new = (merge(BASES["ClusterResourceSet"], {"spec": {"clusterSelector": parts}}) for parts in (before, after))

    assert fields(CLUSTER_RESOURCE_SET, new, old) == []


def test_a_template_without_metadata_is_judged_by_the_selector_alone() -> None:
    """Upstream's hook writes `metadata: {}` into it, which its own schema then refuses."""
    everything = {"selector": {"matchLabels": None, "matchExpressions": [{"key": "a", "operator": "DoesNotExist"}]}}

    assert fields(MACHINE_SET, merge(BASES["MachineSet"], {"spec": everything | {"template": {"metadata": None}}})) == []
    assert fields(MACHINE_SET, merge(BASES["MachineSet"], {"spec": {"template": {"metadata": None}}})) == ["spec.template.metadata.labels"]


@pytest.mark.parametrize(("rule", "refused"), [("self.size() < 3", False), ("self.nope", True)])
def test_a_variable_that_is_a_list_can_have_rules(rule: str, refused: bool) -> None:
    schema = {"type": "array", "maxItems": 5, "items": {"type": "integer"}, "x-kubernetes-validations": [{"rule": rule}]}

    found = validate_definitions([{"name": "v", "schema": {"openAPIV3Schema": schema}}], "spec.variables")

    assert bool(found) is refused
