"""What a pass over a topology does at the edges."""

from __future__ import annotations

from typing import Any

import pytest

from clusterwright.api.meta import GroupVersionKind, Json, ObjectKey
from clusterwright.topology.planning import PlanError, checked
from controllers.topology.passes import CORE, OWNED, Passes, run

PLANE = "controlplane.cluster.x-k8s.io/v1beta2"
INFRA = "infrastructure.cluster.x-k8s.io/v1beta2"
BOOTSTRAP = "bootstrap.cluster.x-k8s.io/v1beta2"
CHECK = {"checks": {"unhealthyNodeConditions": [{"type": "Ready", "status": "Unknown", "timeoutSeconds": 300}]}}


def refused(verb: str, kind: str, **more: Any) -> dict[str, Any]:
    return {"unwritable": [{"verb": verb, "kind": kind, **more}]}


# ------------------------------------------------------------------------------------------------------------ creation


def test_the_first_pass_makes_everything_in_order_and_the_second_nothing() -> None:
    async def scenario() -> None:
        p = await Passes(workers={"md-0": 1}, pools={"mp": 1}).run()
        assert p.actions == [
            ("create", "Secret"),
            ("create", "DevCluster"),
            ("create", "DevMachineTemplate"),
            ("create", "KubeadmControlPlane"),
            ("create", "DevMachineTemplate"),
            ("create", "KubeadmConfigTemplate"),
            ("create", "MachineDeployment"),
            ("create", "DevMachinePool"),
            ("create", "KubeadmConfig"),
            ("create", "MachinePool"),
        ]
        assert await p.condition() == ("True", "ReconcileSucceeded", "")
        await p.run(2)
        assert p.actions == []

    run(scenario())


def test_a_repeated_creation_meets_its_own_object() -> None:
    """Names are derived: a pass that does not know of the first one makes nothing twice."""

    async def scenario() -> None:
        p = await Passes(workers={}, observation=refused("create", "KubeadmControlPlane")).run()
        first = await p.one("DevCluster", INFRA)
        assert "failed to create KubeadmControlPlane.controlplane.cluster.x-k8s.io" in p.error
        cluster = await p.cluster()
        assert cluster["spec"]["infrastructureRef"]["name"] == first["metadata"]["name"]
        assert "controlPlaneRef" not in cluster["spec"]
        await p.patch({"spec": {"infrastructureRef": None}})
        await p.run()
        assert [o["metadata"]["name"] for o in await p.all("DevCluster", INFRA)] == [first["metadata"]["name"]]
        assert len(await p.all("DevMachineTemplate", INFRA)) == 0, "a template that nobody came to refer to is taken back"

    run(scenario())


def test_a_control_plane_that_cannot_be_created_leaves_no_health_check() -> None:
    async def scenario() -> None:
        spec = {"controlPlane": {**_class_part("controlPlane"), "healthCheck": CHECK}}
        p = await Passes(workers={}, class_spec=spec, observation=refused("create", "KubeadmControlPlane")).run(3)
        assert await p.all("MachineHealthCheck") == []

    run(scenario())


def test_two_workers_of_one_name_are_an_error_before_anything_is_written() -> None:
    async def scenario() -> None:
        workers = _class_part("workers")
        workers["machineDeployments"][0]["naming"] = {"template": "{{ .cluster.name }}-w"}
        p = await Passes(workers={"a": 1, "b": 1}, class_spec={"workers": workers}).run()
        assert 'name "c-w" is used by MachineDeployments a and b' in p.error
        assert p.actions == []

    run(scenario())


def test_long_names_of_topology_objects_are_cut() -> None:
    async def scenario() -> None:
        workers = _class_part("workers")
        workers["machineDeployments"][0]["naming"] = {"template": "{{ .cluster.name }}-" + "x" * 70}
        p = await Passes(workers={"a": 1}, class_spec={"workers": workers}).run()
        name = (await p.one("MachineDeployment"))["metadata"]["name"]
        assert (len(name), name[:4]) == (63, "c-xx")

    run(scenario())


def _class_part(part: str) -> Json:
    from clusterwright.simulation import samples

    found: Json = samples.cluster_class()[-1]["spec"][part]
    return found


# ------------------------------------------------------------------------------------------------------------- reading


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"metadata": {"labels": {"topology.cluster.x-k8s.io/owned": None}}}, "is not topology owned"),
        (None, "failed to read DevCluster"),
    ],
)
def test_objects_of_others_and_missing_objects_are_never_replaced(change: Json | None, text: str) -> None:
    async def scenario() -> None:
        p = await Passes(workers={}).run()
        infrastructure = await p.one("DevCluster", INFRA)
        if change is None:
            await p.client.delete(GroupVersionKind.of(INFRA, "DevCluster"), ObjectKey("default", infrastructure["metadata"]["name"]))
        else:
            await p.change(infrastructure, change)
        await p.run(2)
        assert text in p.error
        assert p.actions == []
        assert (await p.condition())[1] == "ReconcileFailed"

    run(scenario())


def test_two_deployments_of_one_topology_name_are_an_error() -> None:
    async def scenario() -> None:
        p = await Passes(workers={"a": 1}).run()
        twin = await p.one("MachineDeployment")
        metadata = {"name": "twin", "namespace": "default", "labels": twin["metadata"]["labels"]}
        await p.client.create({"apiVersion": CORE, "kind": "MachineDeployment", "metadata": metadata, "spec": twin["spec"]})
        await p.run()
        assert "duplicate MachineDeployment" in p.error

    run(scenario())


def test_an_object_whose_owners_were_lost_is_repaired_and_nothing_else_is_done() -> None:
    async def scenario() -> None:
        p = await Passes(workers={"a": 1}).run()
        deployment = await p.one("MachineDeployment")
        await p.client.patch(
            GroupVersionKind.of(CORE, "MachineDeployment"),
            ObjectKey("default", deployment["metadata"]["name"]),
            [{"op": "replace", "path": "/metadata/managedFields", "value": [{}]}],
            type="json",
        )
        await p.topology(workers={"machineDeployments": [{"class": "default-worker", "name": "a", "replicas": 5}]})
        await p.run()
        assert (p.requeue, (await p.one("MachineDeployment"))["spec"]["replicas"]) == (1.0, 1)
        await p.run()
        assert (await p.one("MachineDeployment"))["spec"]["replicas"] == 5

    run(scenario())


def test_an_unreconciled_class_is_waited_for_without_backoff() -> None:
    async def scenario() -> None:
        p = Passes()
        await p.client.patch(
            GroupVersionKind.of(CORE, "ClusterClass"), ObjectKey("default", "in-memory"), {"spec": {"kubernetesVersions": ["v1.34.1"]}}
        )
        await p.run()
        assert (p.error, p.requeue) == ("", None)
        status, reason, message = await p.condition()
        assert (status, reason) == ("False", "ReconcileFailed")
        assert message == "ClusterClass is not successfully reconciled: ClusterClass.status.observedGeneration must be 2, but is 1"

    run(scenario())


# ------------------------------------------------------------------------------------------------------------- writing


def test_fields_of_others_stay_and_our_fields_are_restored() -> None:
    async def scenario() -> None:
        p = await Passes(workers={"a": 1}).run()
        deployment = await p.one("MachineDeployment")
        await p.change(deployment, {"spec": {"replicas": 9, "paused": True}, "metadata": {"labels": {"mine": "x"}}})
        await p.run()
        after = await p.one("MachineDeployment")
        assert (after["spec"]["replicas"], after["spec"]["paused"], after["metadata"]["labels"]["mine"]) == (1, True, "x")

    run(scenario())


def test_a_label_that_leaves_the_topology_leaves_the_objects() -> None:
    async def scenario() -> None:
        entry = {"class": "default-worker", "name": "a", "replicas": 1, "metadata": {"labels": {"x": "y"}}}
        p = await Passes(workers={}).run()
        await p.topology(workers={"machineDeployments": [entry]})
        await p.settle("v1.34.1")
        await p.run()
        assert (await p.one("MachineDeployment"))["metadata"]["labels"]["x"] == "y"
        await p.topology(workers={"machineDeployments": [{k: v for k, v in entry.items() if k != "metadata"}]})
        await p.run()
        assert "x" not in (await p.one("MachineDeployment"))["metadata"]["labels"]

    run(scenario())


def test_replicas_that_nobody_asked_for_are_left_to_the_autoscaler() -> None:
    async def scenario() -> None:
        p = await Passes(workers={}).run()
        await p.settle("v1.34.1")
        await p.topology(workers={"machineDeployments": [{"class": "default-worker", "name": "a"}]})
        await p.run()
        deployment = await p.one("MachineDeployment")
        assert "replicas" not in deployment["spec"]
        await p.change(deployment, {"spec": {"replicas": 7}})
        await p.run()
        assert (await p.one("MachineDeployment"))["spec"]["replicas"] == 7

    run(scenario())


def test_a_machine_template_that_changes_is_put_in_place_first_and_the_old_one_deleted_then() -> None:
    async def scenario() -> None:
        p = await Passes(workers={}).run()
        await p.settle("v1.34.1")
        old = await p.one("DevMachineTemplate", INFRA)
        template = ObjectKey("default", "in-memory-control-plane")
        await p.client.patch(GroupVersionKind.of(INFRA, "DevMachineTemplate"), template, {"spec": {"template": {"spec": {"x": 1}}}})
        await p.run()
        assert p.actions == [("create", "DevMachineTemplate"), ("patch", "KubeadmControlPlane"), ("delete", "DevMachineTemplate")]
        assert (await p.one("DevMachineTemplate", INFRA))["metadata"]["name"] != old["metadata"]["name"]

    run(scenario())


def test_an_old_machine_template_that_is_already_gone_is_not_an_error() -> None:
    async def scenario() -> None:
        p = Passes(workers={}, observation=refused("delete", "DevMachineTemplate", error="NotFound"))
        await p.run()
        await p.settle("v1.34.1")
        template = ObjectKey("default", "in-memory-control-plane")
        await p.client.patch(GroupVersionKind.of(INFRA, "DevMachineTemplate"), template, {"spec": {"template": {"spec": {"x": 1}}}})
        await p.run()
        assert p.error == ""

    run(scenario())


def test_a_template_that_rotates_forever_causes_a_warning() -> None:
    async def scenario() -> None:
        selector = {"apiVersion": INFRA, "kind": "DevMachineTemplate", "matchResources": {"machineDeploymentClass": {"names": ["*"]}}}
        own_name = {"variable": "builtin.machineDeployment.infrastructureRef.name"}
        patch = {"op": "add", "path": "/spec/template/spec/me", "valueFrom": own_name}
        patches = [{"name": "self", "definitions": [{"selector": selector, "jsonPatches": [patch]}]}]
        p = await Passes(workers={"a": 1}, class_spec={"patches": patches}).run()
        await p.settle("v1.34.1")
        await p.run(2)
        assert [e for e in p.events if e.startswith("TopologyRotation")] == []
        template = ObjectKey("default", "in-memory-worker")
        await p.client.patch(GroupVersionKind.of(INFRA, "DevMachineTemplate"), template, {"spec": {"template": {"spec": {"x": 1}}}})
        await p.run(4)
        assert len([e for e in p.events if e.startswith("TopologyRotation")]) == 1

    run(scenario())


# ------------------------------------------------------------------------------------------------------- health checks


def test_a_deployment_that_is_being_deleted_gets_no_health_check() -> None:
    async def scenario() -> None:
        workers = _class_part("workers")
        workers["machineDeployments"][0]["healthCheck"] = CHECK
        p = await Passes(workers={"a": 1}, class_spec={"workers": workers}).run()
        deployment = await p.one("MachineDeployment")
        await p.change(deployment, {"metadata": {"finalizers": ["x/y"]}})
        key = ObjectKey("default", deployment["metadata"]["name"])
        await p.client.delete(GroupVersionKind.of(CORE, "MachineDeployment"), key)
        await p.client.delete(GroupVersionKind.of(CORE, "MachineHealthCheck"), key)
        await p.run()
        assert (await p.all("MachineHealthCheck"), p.error) == ([], "")

    run(scenario())


def test_orphaned_health_checks_are_deleted_and_foreign_ones_stay() -> None:
    async def scenario() -> None:
        def check(name: str, labels: dict[str, str]) -> Json:
            metadata = {"name": name, "namespace": "default", "labels": labels, "uid": name}
            return {"apiVersion": CORE, "kind": "MachineHealthCheck", "metadata": metadata, "spec": {"clusterName": "c"}}

        p = await Passes(check("left-behind", OWNED), check("foreign", {}), workers={"a": 1}).run()
        name = (await p.one("MachineDeployment"))["metadata"]["name"]
        await p.client.create(check(name, {}) | {"metadata": {"name": name, "namespace": "default"}})
        await p.run()
        left = await p.client.list(GroupVersionKind.of(CORE, "MachineHealthCheck"))
        assert {c.key.name for c in left} == {"foreign", name}

    run(scenario())


# ------------------------------------------------------------------------------------------------------------ upgrades


def test_a_pending_worker_gets_no_change_at_all() -> None:
    async def scenario() -> None:
        p = await Passes(workers={"a": 1}, version="v1.33.0").run()
        entry = {"class": "default-worker", "name": "a", "replicas": 4}
        await p.topology(version="v1.34.1", workers={"machineDeployments": [entry]})
        await p.run()
        deployment = await p.one("MachineDeployment")
        assert (deployment["spec"]["replicas"], deployment["spec"]["template"]["spec"]["version"]) == (1, "v1.33.0")
        assert (await p.condition())[1] == "ClusterUpgrading"

    run(scenario())


def test_hooks_that_follow_a_step_wait_until_the_control_plane_has_taken_it() -> None:
    """A control plane that could not be written: nothing is called for the old version."""

    async def scenario() -> None:
        handler = {"name": "all.ext", "timeoutSeconds": 10, "failurePolicy": "Fail"}
        names = ("AfterControlPlaneUpgrade", "BeforeWorkersUpgrade", "AfterWorkersUpgrade")
        config = {
            "apiVersion": "runtime.cluster.x-k8s.io/v1beta2",
            "kind": "ExtensionConfig",
            "metadata": {"name": "ext"},
            "spec": {"clientConfig": {"url": "https://ext.example.com/"}, "namespaceSelector": {}},
            "status": {
                "handlers": [
                    {
                        **handler,
                        "name": f"{n.lower()}.ext",
                        "requestHook": {"apiVersion": "hooks.runtime.cluster.x-k8s.io/v1alpha1", "hook": n},
                    }
                    for n in names
                ]
            },
        }
        observation = {
            "features": {"RuntimeSDK": True},
            "runtimeExtensions": {n.lower(): {"response": {"status": "Success"}} for n in names},
            "unwritable": [{"verb": "patch", "kind": "KubeadmControlPlane"}],
        }
        p = await Passes(config, workers={"a": 1}, version="v1.33.0", observation=observation).run()
        faults = p.client._faults  # type: ignore[attr-defined]
        p.client._faults = type(faults)()  # type: ignore[attr-defined]
        await p.settle("v1.33.0")
        p.client._faults = faults  # type: ignore[attr-defined]
        await p.topology(version="v1.34.1")
        await p.run(3)
        assert "KubeadmControlPlane" in p.error
        assert p.world.canned.calls == []
        annotations = (await p.cluster())["metadata"]["annotations"]
        assert annotations["topology.internal.cluster.x-k8s.io/upgrade-step"] == "v1.34.1"
        assert "AfterControlPlaneUpgrade" in annotations["runtime.cluster.x-k8s.io/pending-hooks"]

    run(scenario())


def test_without_the_gate_pending_hooks_are_forgotten() -> None:
    async def scenario() -> None:
        p = await Passes(workers={}).run()
        await p.settle("v1.34.1")
        await p.patch({"metadata": {"annotations": {"runtime.cluster.x-k8s.io/pending-hooks": "AfterClusterUpgrade,Other"}}})
        await p.run()
        assert (await p.cluster())["metadata"]["annotations"]["runtime.cluster.x-k8s.io/pending-hooks"] == "Other"
        assert await p.condition() == ("True", "ReconcileSucceeded", "")

    run(scenario())


def test_a_validating_patch_generates_nothing_and_is_not_an_error() -> None:
    async def scenario() -> None:
        observation = {"features": {"RuntimeSDK": True}}
        patches = [{"name": "check", "external": {"validateTopologyExtension": "val.ext"}}]
        p = await Passes(workers={}, class_spec={"patches": patches}, observation=observation).run()
        assert 'handler with name "val.ext" has not been registered' in p.error
        assert "failed to create patch generator" not in p.error

    run(scenario())


# --------------------------------------------------------------------------------------------------------------- plans


@pytest.mark.parametrize(
    ("target", "control_plane", "workers", "steps", "text"),
    [
        ("v1.32.0", "v1.31.0", "v1.27.0", ["v1.32.0"], "invalid upgrade plan; unable to identify version for minor 30"),
        ("v1.32.0", "v1.32.0", "v1.33.0", [], "invalid workers upgrade plan, item 0; version v1.32.0 must be greater than v1.33.0"),
    ],
)
def test_an_impossible_plan_for_workers_has_a_reason(target: str, control_plane: str, workers: str, steps: list[str], text: str) -> None:
    with pytest.raises(PlanError) as refusal:
        checked(target, control_plane, workers, steps, [])

    assert str(refusal.value) == text


def test_another_build_of_the_same_version_is_a_step_where_versions_are_listed() -> None:
    async def scenario() -> None:
        versions = ["v1.34.1+a", "v1.34.1+b"]
        p = await Passes(workers={}, version="v1.34.1+a", class_spec={"kubernetesVersions": versions}).run()
        await p.settle("v1.34.1+a")
        await p.topology(version="v1.34.1+b")
        await p.run()
        assert (await p.one("KubeadmControlPlane", PLANE))["spec"]["version"] == "v1.34.1+b"
        assert p.error == ""

    run(scenario())
