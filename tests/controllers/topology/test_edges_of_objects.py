"""What a pass reads and what it makes of it, at their edges; those not here stand in
`test_edge_cases.py`, in the recorded passes (`tests/vectors/topology.jsonl.gz`), or under faults (`tests/scenarios`)."""

from __future__ import annotations

from functools import reduce
from typing import Any

import pytest

from clusterwright.api.core import ClusterClass
from clusterwright.api.meta import GroupVersionKind, Json, ObjectKey
from controllers.topology.passes import CORE, OWNED, Passes
from support.extension import extension_config
from support.provider import GROUP, definition

PLANE = "controlplane.cluster.x-k8s.io/v1beta2"
INFRA = "infrastructure.cluster.x-k8s.io/v1beta2"
BOOTSTRAP = "bootstrap.cluster.x-k8s.io/v1beta2"
CLASS = ObjectKey("default", "in-memory")
CHECKS = {"unhealthyNodeConditions": [{"type": "Ready", "status": "Unknown", "timeoutSeconds": 300}]}
SIZE = {"name": "size", "required": True, "schema": {"openAPIV3Schema": {"type": "string"}}}


def kind(name: str, api_version: str = CORE) -> GroupVersionKind:
    return GroupVersionKind.of(api_version, name)


def altered(change: Any) -> Any:
    """Change the class alone."""
    return lambda objects, _cluster: change(objects[-1]["spec"])


# ------------------------------------------------------------------------------------------------ what stands before all


async def test_a_paused_cluster_under_deletion_calls_no_hook() -> None:
    config = extension_config("ext", "https://h/", "", {"del": "BeforeClusterDelete"})

    def alter(_objects: list[Json], cluster: Json) -> None:
        cluster["spec"]["paused"] = True
        cluster["metadata"] |= {"deletionTimestamp": "2026-05-01T11:00:00Z", "finalizers": ["x/y"]}

    p = await Passes(config, observation={"features": {"RuntimeSDK": True}}, alter=alter).run()

    assert p.world.canned.calls == []
    assert (await p.condition())[1] == "Paused"


async def test_a_missing_class_is_reported_and_its_creation_starts_a_pass() -> None:
    p = Passes()
    found = await p.client.get(kind("ClusterClass"), CLASS)
    await p.client.delete(kind("ClusterClass"), CLASS)
    await p.run()
    assert (await p.condition())[:2] == ("False", "ReconcileFailed")
    assert "failed to retrieve ClusterClass default/in-memory" in (await p.condition())[2]
    assert p.actions == []

    kept = {k: v for k, v in found.json["metadata"].items() if k in {"name", "namespace"}}
    await p.client.create({**found.json, "metadata": kept})
    status = {**found.json["status"], "observedGeneration": 1}
    await p.client.patch(ClusterClass, CLASS, {"status": status}, subresource="status")
    assert (await p.run()).error == ""


@pytest.mark.parametrize(("conditions", "goes_on"), [([{"type": "VariablesReady", "status": "Unknown", "reason": "X"}], True), ([], False)])
async def test_a_class_whose_variables_are_not_ready_is_waited_for(conditions: list[Json], goes_on: bool) -> None:
    def alter(objects: list[Json], _cluster: Json) -> None:
        objects[-1]["status"]["conditions"] = conditions

    p = await Passes(alter=alter).run()

    assert bool(p.actions) is goes_on
    assert ((await p.condition())[1] == "ReconcileFailed") is not goes_on


async def test_a_class_of_another_namespace_is_used() -> None:
    def alter(objects: list[Json], cluster: Json) -> None:
        for obj in objects:
            obj["metadata"]["namespace"] = "classes"
        cluster["spec"]["topology"]["classRef"]["namespace"] = "classes"

    p = await Passes(workers={"a": 1}, alter=alter).run()

    assert p.error == ""
    assert (await p.one("MachineDeployment"))["metadata"]["namespace"] == "default"
    assert (await p.one("DevCluster", INFRA))["metadata"]["namespace"] == "default"


async def test_a_required_variable_that_is_missing_is_an_error() -> None:
    p = await Passes(class_spec={"variables": [SIZE]}).run()

    assert 'Required value: required variable "size" must be set' in (await p.condition())[2]
    assert p.actions == []


async def test_defaults_are_stored_appended_and_then_left_alone() -> None:
    def with_default(name: str) -> Json:
        return {"name": name, "required": True, "schema": {"openAPIV3Schema": {"type": "string", "default": f"of {name}"}}}

    def break_it(objects: list[Json], _cluster: Json) -> None:
        objects[-1]["spec"]["infrastructure"]["templateRef"]["name"] = "missing"

    p = await Passes(class_spec={"variables": [with_default("b"), with_default("a")]}, alter=break_it).run()
    assert p.error
    stored = (await p.cluster())["spec"]["topology"]["variables"]
    assert {v["name"]: v["value"] for v in stored} == {"a": "of a", "b": "of b"}, "also where the pass fails later"

    version = (await p.cluster())["metadata"]["resourceVersion"]
    await p.run()
    assert (await p.cluster())["spec"]["topology"]["variables"] == stored
    definition = {"name": "c", "definitions": [{"from": "inline", "required": True, "schema": with_default("c")["schema"]}]}
    found = await p.client.get(ClusterClass, CLASS)
    have = [{"name": v, "definitions": [{"from": "inline", "required": True, "schema": with_default(v)["schema"]}]} for v in "ab"]
    await p.client.patch(ClusterClass, found.key, {"status": {"variables": [*have, definition]}}, subresource="status")
    await p.run()
    assert (await p.cluster())["spec"]["topology"]["variables"] == [*stored, {"name": "c", "value": "of c"}]
    assert version != (await p.cluster())["metadata"]["resourceVersion"]


async def test_an_unused_worker_class_must_be_complete_too() -> None:
    def add(spec: Json) -> None:
        first = spec["workers"]["machineDeployments"][0]
        missing = {"templateRef": {**first["bootstrap"]["templateRef"], "name": "missing"}}
        spec["workers"]["machineDeployments"].append({**first, "class": "unused", "bootstrap": missing})

    p = await Passes(alter=altered(add)).run()

    assert "missing" in p.error
    assert p.actions == []


async def test_an_unreadable_machine_template_is_reported_with_its_referrer() -> None:
    p = await Passes().run()
    plane = await p.one("KubeadmControlPlane", PLANE)
    where = f"failed to get InfrastructureMachineTemplate for KubeadmControlPlane default/{plane['metadata']['name']}"

    async def refer(**change: str) -> None:
        reference = plane["spec"]["machineTemplate"]["spec"]["infrastructureRef"] | change
        await p.change(plane, {"spec": {"machineTemplate": {"spec": {"infrastructureRef": reference}}}})
        await p.run()

    await refer(name="missing")
    assert f"{where}: failed to retrieve DevMachineTemplate default/missing" in p.error
    await refer(kind="UnheardOfTemplate")
    assert f"{where}: failed to align ref apiVersion: " in p.error


async def test_deployments_of_others_are_ignored() -> None:
    p = await Passes(workers={"a": 1}).run()
    twin = await p.one("MachineDeployment")
    for name, labels in (
        ("no-label", {k: v for k, v in twin["metadata"]["labels"].items() if k != "topology.cluster.x-k8s.io/owned"}),
        ("of-another", {**twin["metadata"]["labels"], "cluster.x-k8s.io/cluster-name": "d"}),
    ):
        metadata = {"name": name, "namespace": "default", "labels": labels}
        await p.client.create({"apiVersion": CORE, "kind": "MachineDeployment", "metadata": metadata, "spec": twin["spec"]})
    await p.run(2)

    assert (p.error, p.actions) == ("", [])


async def test_a_deployment_under_deletion_is_neither_written_nor_recreated_until_it_is_gone() -> None:
    p = await Passes(workers={"a": 1}).run()
    await p.settle("v1.34.1")
    old = await p.one("MachineDeployment")
    key = ObjectKey("default", old["metadata"]["name"])
    await p.change(old, {"metadata": {"finalizers": ["x/y"]}})
    await p.client.delete(kind("MachineDeployment"), key)
    for template, version in (("DevMachineTemplate", INFRA), ("KubeadmConfigTemplate", BOOTSTRAP)):
        for found in await p.all(template, version):
            if "a" in found["metadata"]["labels"].get("topology.cluster.x-k8s.io/deployment-name", ""):
                await p.client.delete(kind(template, version), ObjectKey("default", found["metadata"]["name"]))
    await p.topology(workers={"machineDeployments": [{"class": "default-worker", "name": "a", "replicas": 5}]})
    await p.run()
    assert (p.error, (await p.one("MachineDeployment"))["spec"]["replicas"]) == ("", 1)

    await p.client.patch(kind("MachineDeployment"), key, {"metadata": {"finalizers": None}})
    await p.run()
    made = await p.one("MachineDeployment")
    assert (made["spec"]["replicas"], made["metadata"]["uid"] != old["metadata"]["uid"]) == (5, True)


# -------------------------------------------------------------------------------------------------------- desired objects


async def test_an_object_of_the_rendered_name_that_is_not_ours_is_taken_over() -> None:
    def name(spec: Json) -> None:
        spec["workers"]["machineDeployments"][0]["naming"] = {"template": "{{ .cluster.name }}-fixed"}

    p = Passes(workers={"a": 3}, alter=altered(name))
    bare = {
        "apiVersion": CORE,
        "kind": "MachineDeployment",
        "metadata": {"name": "c-fixed", "namespace": "default", "labels": {"mine": "x"}},
        "spec": {"clusterName": "c", "replicas": 1, "selector": {}, "template": {"spec": {"clusterName": "c"}}},
    }
    await p.client.create(bare)
    await p.run()
    found = await p.one("MachineDeployment")

    assert (found["metadata"]["name"], found["spec"]["replicas"], found["metadata"]["labels"]["mine"]) == ("c-fixed", 3, "x")


async def test_names_stay_when_their_template_changes() -> None:
    p = await Passes(workers={"a": 1}).run()
    before = (await p.one("MachineDeployment"))["metadata"]["name"]
    found = dict((await p.client.get(kind("ClusterClass"), CLASS)).json)
    found["spec"]["workers"]["machineDeployments"][0]["naming"] = {"template": "{{ .cluster.name }}-other-{{ .random }}"}
    await p.client.patch(kind("ClusterClass"), CLASS, {"spec": {"workers": found["spec"]["workers"]}})
    await p.client.patch(ClusterClass, CLASS, {"status": {"observedGeneration": 2}}, subresource="status")
    await p.settle("v1.34.1")
    await p.run()

    assert p.error == ""
    assert (await p.one("MachineDeployment"))["metadata"]["name"] == before


@pytest.mark.parametrize(
    ("part", "named"),
    [
        (("infrastructure",), "DevCluster"),
        (("controlPlane",), "KubeadmControlPlane"),
        (("workers", "machineDeployments", 0), "MachineDeployment"),
    ],
)
async def test_an_invalid_naming_template_is_reported_even_if_all_objects_are_named(part: tuple[Any, ...], named: str) -> None:
    p = await Passes(workers={"a": 1}).run()
    spec = dict((await p.client.get(kind("ClusterClass"), CLASS)).json)["spec"]
    reduce(lambda found, step: found[step], part, spec)["naming"] = {"template": "{{ .nobody.knows }}"}
    await p.client.patch(kind("ClusterClass"), CLASS, {"spec": {part[0]: spec[part[0]]}})
    await p.client.patch(ClusterClass, CLASS, {"status": {"observedGeneration": 2}}, subresource="status")
    await p.run()

    assert f"failed to generate name for {named}" in p.error
    assert (await p.condition())[:2] == ("False", "ReconcileFailed")


async def test_labels_of_a_template_go_to_templates_and_not_to_objects() -> None:
    def label(objects: list[Json], _cluster: Json) -> None:
        for obj in objects[:-1]:
            obj["metadata"]["labels"] = {"from-the-template": "yes"}

    p = await Passes(workers={"a": 1}, alter=label).run()

    templates = [*await p.all("DevMachineTemplate", INFRA), *await p.all("KubeadmConfigTemplate", BOOTSTRAP)]
    assert {t["metadata"]["labels"].get("from-the-template") for t in templates} == {"yes"}
    for obj in (await p.one("DevCluster", INFRA), await p.one("KubeadmControlPlane", PLANE)):
        assert "from-the-template" not in obj["metadata"]["labels"]


async def test_the_cluster_s_own_label_wins_over_a_template_s() -> None:
    def label(objects: list[Json], _cluster: Json) -> None:
        objects[0]["spec"]["template"]["metadata"] = {"labels": {"cluster.x-k8s.io/cluster-name": "another", "kept": "x"}}

    p = await Passes(alter=label).run()
    labels = (await p.one("DevCluster", INFRA))["metadata"]["labels"]

    assert (labels["cluster.x-k8s.io/cluster-name"], labels["kept"]) == ("c", "x")


async def test_a_label_of_the_topology_wins_over_the_class_s() -> None:
    def alter(objects: list[Json], cluster: Json) -> None:
        objects[-1]["spec"]["controlPlane"]["metadata"] = {"labels": {"x": "class", "only": "class"}}
        objects[1]["spec"]["template"]["spec"]["machineTemplate"] = {"metadata": {"labels": {"y": "template"}}}
        cluster["spec"]["topology"]["controlPlane"]["metadata"] = {"labels": {"x": "topology"}}

    p = await Passes(alter=alter).run()
    made = await p.one("KubeadmControlPlane", PLANE)
    machines = made["spec"]["machineTemplate"]["metadata"]["labels"]

    assert (made["metadata"]["labels"]["x"], made["metadata"]["labels"]["only"]) == ("topology", "class")
    assert (machines["x"], machines["y"]) == ("topology", "template")


async def test_a_class_without_machine_infrastructure_has_no_machine_template_and_no_health_check() -> None:
    def alter(objects: list[Json], cluster: Json) -> None:
        objects[-1]["spec"]["controlPlane"].pop("machineInfrastructure")
        cluster["spec"]["topology"]["controlPlane"]["healthCheck"] = {"enabled": True, "checks": CHECKS}

    p = await Passes(workers={}, alter=alter).run()

    assert (await p.all("DevMachineTemplate", INFRA), await p.all("MachineHealthCheck")) == ([], [])
    assert "infrastructureRef" not in ((await p.one("KubeadmControlPlane", PLANE))["spec"].get("machineTemplate") or {}).get("spec", {})


@pytest.mark.parametrize(("replicas", "applied"), [(None, 7), (0, 0), (3, 3)])
async def test_replicas_of_the_control_plane_follow_the_topology(replicas: int | None, applied: int) -> None:
    def alter(objects: list[Json], cluster: Json) -> None:
        objects[1]["spec"]["template"]["spec"]["replicas"] = 7
        cluster["spec"]["topology"]["controlPlane"] = {} if replicas is None else {"replicas": replicas}

    p = await Passes(alter=alter).run()

    assert (await p.one("KubeadmControlPlane", PLANE))["spec"]["replicas"] == applied


async def test_settings_of_a_deployment_come_from_the_topology_or_the_class() -> None:
    def alter(objects: list[Json], cluster: Json) -> None:
        worker = objects[-1]["spec"]["workers"]["machineDeployments"][0]
        worker["readinessGates"] = [{"conditionType": "Class"}]
        worker["deletion"] = {"nodeDrainTimeoutSeconds": 10}
        worker["rollout"] = {"strategy": {"type": "OnDelete"}}
        entry = cluster["spec"]["topology"]["workers"]["machineDeployments"][0]
        entry["readinessGates"] = [{"conditionType": "Topology"}]
        entry["deletion"] = {"nodeDeletionTimeoutSeconds": 20}
        entry["rollout"] = {"after": "2026-01-01T00:00:00Z"}

    p = await Passes(workers={"a": 1}, alter=alter).run()
    spec = (await p.one("MachineDeployment"))["spec"]
    machine = spec["template"]["spec"]

    assert machine["readinessGates"] == [{"conditionType": "Topology"}]
    assert machine["deletion"] == {"nodeDrainTimeoutSeconds": 10, "nodeDeletionTimeoutSeconds": 20}
    assert spec["rollout"] == {"after": "2026-01-01T00:00:00Z"}


async def test_a_null_is_replaced_by_the_default() -> None:
    default = {"name": "size", "required": True, "schema": {"openAPIV3Schema": {"type": "string", "default": "small"}}}
    p = await Passes(class_spec={"variables": [default]}, variables=[{"name": "size", "value": None}]).run()

    assert (await p.cluster())["spec"]["topology"]["variables"] == [{"name": "size", "value": "small"}]


async def test_a_property_with_a_default_that_the_class_adds_appears() -> None:
    properties = {"a": {"type": "string"}, "b": {"type": "string", "default": "new"}}
    schema = {"openAPIV3Schema": {"type": "object", "properties": properties}}
    p = await Passes(
        class_spec={"variables": [{"name": "o", "required": True, "schema": schema}]}, variables=[{"name": "o", "value": {"a": "x"}}]
    ).run()

    assert (await p.cluster())["spec"]["topology"]["variables"] == [{"name": "o", "value": {"a": "x", "b": "new"}}]


async def test_upgrades_are_deferred_by_annotations_of_the_topology_alone() -> None:
    def alter(_objects: list[Json], cluster: Json) -> None:
        entry = cluster["spec"]["topology"]["workers"]["machineDeployments"][0]
        entry["metadata"] = {"annotations": {"topology.cluster.x-k8s.io/defer-upgrade": "", "kept": "x"}}

    p = await Passes(workers={"a": 1}, alter=alter).run()
    found = await p.one("MachineDeployment")

    for metadata in (found["metadata"], found["spec"]["template"]["metadata"]):
        assert "topology.cluster.x-k8s.io/defer-upgrade" not in metadata["annotations"]
        assert metadata["annotations"]["kept"] == "x"


@pytest.mark.parametrize(
    ("number", "of_class", "of_topology", "expected"),
    [
        (57, {"checks": CHECKS}, {"enabled": False}, None),
        (58, {"checks": CHECKS, "remediation": {"maxInFlight": 1}}, {"checks": {"nodeStartupTimeoutSeconds": 60}}, {"checks"}),
        (59, None, {"remediation": {"maxInFlight": 1}}, None),  # how many at a time is no check: our ruling
        (60, {"checks": CHECKS}, None, {"checks"}),
    ],
)
async def test_health_checks_of_the_topology_and_the_class_are_merged(
    number: int, of_class: Json | None, of_topology: Json | None, expected: set[str] | None
) -> None:
    def alter(objects: list[Json], cluster: Json) -> None:
        if of_class is not None:
            objects[-1]["spec"]["workers"]["machineDeployments"][0]["healthCheck"] = of_class
        if of_topology is not None:
            cluster["spec"]["topology"]["workers"]["machineDeployments"][0]["healthCheck"] = of_topology

    p = await Passes(workers={"a": 1}, alter=alter).run()
    found = await p.all("MachineHealthCheck")

    assert [set(f["spec"]) & {"checks", "remediation"} for f in found] == ([] if expected is None else [expected])


async def test_failure_domains_of_a_pool_come_from_its_class() -> None:
    def alter(objects: list[Json], _cluster: Json) -> None:
        objects[-1]["spec"]["workers"]["machinePools"][0]["failureDomains"] = ["one", "two"]

    p = await Passes(workers={}, pools={"mp": 1}, alter=alter).run()

    assert (await p.one("MachinePool"))["spec"]["failureDomains"] == ["one", "two"]


async def test_a_control_plane_of_the_old_contract_is_told_in_its_words() -> None:
    old = f"{GROUP}/v1"
    labels = {"cluster.x-k8s.io/v1beta1": "v1"}
    definitions = [definition(kind, labels) for kind in ("OldControlPlane", "OldControlPlaneTemplate")]

    def alter(objects: list[Json], cluster: Json) -> None:
        objects[1] |= {"apiVersion": old, "kind": "OldControlPlaneTemplate"}
        objects[-1]["spec"]["controlPlane"]["templateRef"] |= {"apiVersion": old, "kind": "OldControlPlaneTemplate"}
        timeouts = {"nodeDrainTimeoutSeconds": 90, "nodeVolumeDetachTimeoutSeconds": 0, "nodeDeletionTimeoutSeconds": 10}
        cluster["spec"]["topology"]["controlPlane"] |= {"deletion": timeouts, "readinessGates": [{"conditionType": "Mine"}]}

    p = await Passes(*definitions, workers={}, alter=alter).run()
    made = await p.one("OldControlPlane", old)
    machines = await p.one("DevMachineTemplate", INFRA)

    assert made["spec"]["machineTemplate"] == {
        "infrastructureRef": {
            "apiVersion": INFRA,
            "kind": "DevMachineTemplate",
            "namespace": "default",
            "name": machines["metadata"]["name"],
        },
        "metadata": {"labels": OWNED},
        "nodeDrainTimeout": "1m30s",
        "nodeVolumeDetachTimeout": "0s",
        "nodeDeletionTimeout": "10s",
        "readinessGates": [{"conditionType": "Mine"}],
    }
    assert (await p.run()).actions == []
