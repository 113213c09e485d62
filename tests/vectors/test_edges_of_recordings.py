"""Neighbours of recorded worlds on which upstream's passes are known: a recorded world, one change, and what must follow."""

from __future__ import annotations

import base64
import copy
import gzip
import json
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from clusterwright import decide
from vectors.adapter import evaluate

Objects = list[dict[str, Any]]


@cache
def recorded(file: str) -> dict[str, Any]:
    lines = gzip.decompress((Path(__file__).parent / f"{file}.jsonl.gz").read_bytes()).splitlines()
    return {v["id"]: v for v in map(json.loads, lines)}


def changed(file: str, name: str, change: Callable[[Objects], None]) -> Any:
    vector = copy.deepcopy(recorded(file)[name])
    change(vector["objects"])
    return decide(vector["objects"], vector["subject"], vector.get("controller", ""))


def all_of(objects: Objects, kind: str) -> Objects:
    return [o for o in objects if o["kind"] == kind]


def unwritable(objects: Objects, *entries: dict[str, str]) -> None:
    (observation,) = all_of(objects, "Observation")
    observation["unwritable"] = [*observation.get("unwritable", ()), *entries]


def condition(obj: dict[str, Any], type_: str) -> list[str]:
    (found,) = (c for c in obj["status"]["conditions"] if c["type"] == type_)
    return [found["status"], found["reason"], found["message"]]


# ------------------------------------------------------------------------------------------------- workers


def test_a_selector_that_is_more_than_labels_fails_the_pass_of_a_machine_deployment() -> None:
    def change(objects: Objects) -> None:
        for deployment in all_of(objects, "MachineDeployment"):
            deployment["spec"]["selector"]["matchExpressions"] = [{"key": "x", "operator": "Exists"}]

    answer = changed("machinedeployment", "machinedeployment-h-trace-29", change)

    assert 'operator "Exists" cannot be converted into the old label selector format' in answer["error"]
    assert answer["actions"] == []


def test_a_machine_set_without_replicas_fails_the_pass_of_its_machine_deployment() -> None:
    def change(objects: Objects) -> None:
        del all_of(objects, "MachineSet")[0]["spec"]["replicas"]

    answer = changed("machinedeployment", "machinedeployment-r-00273", change)

    assert "spec.replicas of MachineSet" in answer["error"]
    assert answer["actions"] == []


def test_a_failed_write_to_a_machine_is_reported_by_remediating() -> None:
    answer = changed(
        "machineset", "machineset-h-remediate-preflight-01", lambda objects: unwritable(objects, {"verb": "patch", "kind": "Machine"})
    )

    assert answer["error"]
    expected = '* Machine worker-m2:\n  * GenericControlPlane ns1/cp1 is provisioning ("ControlPlaneIsStable" preflight check failed)'
    assert condition(answer["object"], "Remediating") == ["True", "Remediating", expected]


def test_no_machine_is_deleted_while_a_condition_cannot_be_written() -> None:
    answer = changed(
        "machineset",
        "machineset-h-remediate-budget-10",
        lambda objects: unwritable(objects, {"verb": "patch", "kind": "Machine", "name": "worker-m1"}),
    )

    assert answer["error"]
    assert [a for a in answer["actions"] if a["verb"] == "delete"] == []
    assert "Machine is deleting" in condition(answer["object"], "Remediating")[2]


def test_machines_of_a_pool_count_as_up_to_date_even_if_the_write_fails() -> None:
    def change(objects: Objects) -> None:
        for machine in all_of(objects, "Machine"):
            machine["status"]["conditions"] = [c for c in machine["status"].get("conditions", ()) if c["type"] != "UpToDate"]
        unwritable(objects, {"verb": "patch", "kind": "Machine"})

    answer = changed("machinepool", "machinepool-h-machines-13", change)

    assert answer["error"]
    assert answer["object"]["status"]["upToDateReplicas"] == 3


# ------------------------------------------------------------------------------------------- control plane


@pytest.mark.parametrize(("data", "fails"), [({}, True), ({"other": "e30="}, True), ({"value": ""}, False), ({"value": "e30="}, False)])
def test_a_kubeconfig_secret_needs_its_key(data: dict[str, str], fails: bool) -> None:
    def change(objects: Objects) -> None:
        for secret in all_of(objects, "Secret"):
            if secret["metadata"]["name"].endswith("-kubeconfig"):
                secret["type"], secret["data"] = "cluster.x-k8s.io/secret", data

    answer = changed("kubeadmcontrolplane", "kcp-av-r10-02", change)

    assert bool(answer["error"]) is fails


@pytest.mark.parametrize("gates", [None, [], [{"conditionType": "NodeKubeadmLabelsAndTaintsSet"}]])
def test_machines_on_external_etcd_get_the_four_gates_that_they_lack(gates: Any) -> None:
    def change(objects: Objects) -> None:
        for machine in all_of(objects, "Machine"):
            machine["spec"]["readinessGates"] = gates
            if gates is None:
                del machine["spec"]["readinessGates"]

    answer = changed("kubeadmcontrolplane", "kcp-av-r10-06", change)

    four = ["NodeKubeadmLabelsAndTaintsSet", "APIServerPodHealthy", "ControllerManagerPodHealthy", "SchedulerPodHealthy"]
    machines = {name: obj for name, obj in answer["others"].items() if name.startswith("Machine/")}
    assert len(machines) == 3
    assert all([g["conditionType"] for g in m["spec"]["readinessGates"]] == four for m in machines.values())


# -------------------------------------------------------------------------------------- addons and extensions


def _with_content(text: str) -> Callable[[Objects], None]:
    def change(objects: Objects) -> None:
        for holder in all_of(objects, "ConfigMap"):
            if holder["metadata"]["name"] == "res1":
                holder["data"] = dict.fromkeys(holder["data"], text)

    return change


def _noted(answer: Any) -> dict[str, Any]:
    (binding,) = (o for name, o in answer["others"].items() if name.startswith("ClusterResourceSetBinding/"))
    (entry,) = binding["spec"]["bindings"]
    (noted,) = entry["resources"]
    return dict(noted)


@pytest.mark.parametrize(
    "text", ["apiVersion: v1\nmetadata: {name: w1, namespace: default}\n", "apiVersion: v1\nkind: ConfigMap\ndata: {a: bcdefghijkl}\n"]
)
def test_an_object_that_no_server_accepts_is_an_apply_error_and_its_hash_is_recorded(text: str) -> None:
    answer = changed("clusterresourceset", "clusterresourceset-h-content-01", _with_content(text))

    noted = _noted(answer)
    assert noted["applied"] is False
    assert noted["hash"].startswith("sha256:")
    assert condition(answer["object"], "ResourcesApplied") == [
        "False",
        "NotApplied",
        "Failed to apply ClusterResourceSet resources to Cluster",
    ]


def test_a_value_that_is_not_yaml_has_no_hash() -> None:
    answer = changed(
        "clusterresourceset", "clusterresourceset-h-content-01", _with_content("{{{ this is certainly not YAML, and long enough")
    )

    assert "hash" not in _noted(answer)
    assert answer["error"]


def _with_bundle(content: bytes) -> Callable[[Objects], None]:
    def change(objects: Objects) -> None:
        for config in all_of(objects, "ExtensionConfig"):
            config["spec"]["clientConfig"]["caBundle"] = base64.b64encode(content).decode()

    return change


@pytest.mark.parametrize("content", [b"no certificate", b"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"])
def test_an_extension_whose_bundle_has_no_certificate_is_not_called(content: bytes) -> None:
    name = next(
        v["id"]
        for v in recorded("extensionconfig").values()
        if v["expect"].get("conditions", {}).get("Discovered") == ["True", "Discovered", ""]
        and not any("inject-ca" in a for o in all_of(v["objects"], "ExtensionConfig") for a in o["metadata"].get("annotations", ()))
    )
    assert changed("extensionconfig", name, lambda objects: None)["calls"]

    answer = changed("extensionconfig", name, _with_bundle(content))

    assert answer["calls"] == []
    status, reason, message = condition(answer["object"], "Discovered")
    assert (status, reason) == ("False", "NotDiscovered")
    assert "failed to create tls config: unable to load root certificates: " in message


# ------------------------------------------------------------------------------------------------ topologies

TOPOLOGY = "topology-creation-metadata-02"


def _message(change: Callable[[Objects], None]) -> str:
    answer = changed("topology", TOPOLOGY, change)
    status, reason, message = condition(answer["object"], "TopologyReconciled")
    assert (status, reason) == ("False", "ReconcileFailed")
    return message


def _naming(template: str, *path: str) -> Callable[[Objects], None]:
    def change(objects: Objects) -> None:
        (cluster_class,) = all_of(objects, "ClusterClass")
        part = cluster_class["spec"]
        for key in path:
            part = part[key]
        part["naming"] = {"template": template}

    return change


@pytest.mark.parametrize(
    ("path", "prefix"),
    [
        (("infrastructure",), "failed to compute InfrastructureCluster: failed to generate the InfrastructureCluster object from the DevClusterTemplate: failed to generate name for DevCluster: "),
        (("controlPlane",), "failed to compute ControlPlane: failed to generate the ControlPlane object from the KubeadmControlPlaneTemplate: failed to generate name for KubeadmControlPlane: "),
    ],
)  # fmt: skip
@pytest.mark.parametrize(("template", "why"), [("{{ .nope }}", "rendering template: "), ("{{ .nope", 'parsing template "{{ .nope": ')])
def test_an_impossible_name_error_names_the_object(path: tuple[str, ...], prefix: str, template: str, why: str) -> None:
    message = _message(_naming(template, *path))

    assert message.startswith(f"error computing the desired state of the Cluster topology: {prefix}{why}")


def test_an_unreadable_pool_node_is_reported_with_its_context() -> None:
    def change(objects: Objects) -> None:
        (observation,) = all_of(objects, "Observation")
        for workload in observation["workloadClusters"].values():
            workload["unreadable"] = [{"kind": "Node"}]

    message = _message(change)

    context = "failed to check if any MachinePool is upgrading: failed to list upgrading MachinePools: failed to check if MachinePool "
    assert message.startswith(f"error computing the desired state of the Cluster topology: {context}")


def test_a_selector_with_expressions_is_reported_by_the_topology() -> None:
    def change(objects: Objects) -> None:
        for deployment in all_of(objects, "MachineDeployment"):
            deployment["spec"]["selector"]["matchExpressions"] = [{"key": "x", "operator": "Exists"}]

    message = _message(change)

    assert "is upgrading: failed to convert label selector to map: " in message
    assert "failed to list Machines" not in message


@pytest.mark.parametrize("kind", ["machineDeployments", "machinePools"])
def test_patches_refuse_a_worker_of_an_unknown_class(kind: str) -> None:
    vector = copy.deepcopy(
        next(
            v
            for v in recorded("patches").values()
            if v["op"] == "apply-patches" and v["inputs"]["desired"].get(kind) and "error" not in v["expect"]
        )
    )
    for entry in vector["inputs"]["cluster"]["spec"]["topology"]["workers"][kind]:
        entry["class"] = "nobody-knows-it"

    assert evaluate(vector) == {"error": True}


# ------------------------------------------------------------------- C3: checks that a bootstrap template skips

SKIP = "machineset.cluster.x-k8s.io/skip-preflight-checks"


@pytest.mark.parametrize(
    ("own", "template", "creates"),
    [("", "", False), ("", "All", True), ("", "ControlPlaneIsStable", True), ("KubeadmVersionSkew", "All", False)],
)
def test_a_bootstrap_template_sets_the_skipped_checks_unless_the_machine_set_does(own: str, template: str, creates: bool) -> None:
    def change(objects: Objects) -> None:
        for kind, value in (("MachineSet", own), ("GenericBootstrapConfigTemplate", template)):
            for obj in all_of(objects, kind):
                if value:
                    obj["metadata"].setdefault("annotations", {})[SKIP] = value

    answer = changed("machineset", "machineset-h-preflight-04", change)

    assert any(a["verb"] == "create" and a["kind"] == "Machine" for a in answer["actions"]) is creates


HOOK = "pre-terminate.delete.hook.machine.cluster.x-k8s.io/etcd"


@pytest.mark.parametrize("hooks", [{}, {HOOK: "owner"}])
def test_13829_a_node_is_drained_while_its_infrastructure_machine_cannot_be_read_only_if_a_hook_waits(hooks: dict[str, str]) -> None:
    """Cluster API v1.14 drains nothing, and goes on to the hook, after which it never drains."""

    def change(objects: Objects) -> None:
        (machine,) = (o for o in all_of(objects, "Machine") if o["metadata"]["name"] == "m1")
        machine["metadata"]["annotations"] = hooks

    answer = changed("machine", "machine-h-infra-unreadable-02", change)

    assert ("Node/node-1" in answer["others"]) is bool(hooks)
    assert ("nodeDrainStartTime" in answer["object"]["status"].get("deletion", {})) is bool(hooks)
    assert condition(answer["object"], "Deleting")[1] == ("WaitingForPreTerminateHook" if hooks else "WaitingForInfrastructureDeletion")
