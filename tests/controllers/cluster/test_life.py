"""The life of a Cluster whose providers are of kinds that nobody knows: woken by watches, never by a timer."""

from __future__ import annotations

from clusterwright.api.meta import GroupVersionKind, ObjectKey
from controllers.cluster.cluster_plane import CLUSTER, CONTROL_PLANE_KIND, INFRA_KIND, KEY, NAMESPACE, Plane, on_a_plane, served
from seeds.seed_worlds import (
    CONTROL_PLANE,
    INFRASTRUCTURE,
    LABEL,
    NAME,
    child,
    cluster,
    condition,
    control_plane,
    crd,
    infrastructure,
    machine,
)

FINALIZER = "cluster.cluster.x-k8s.io"
SPEC = {"controlPlaneEndpoint": None}


async def a_new_cluster(plane: Plane) -> None:
    await plane.create(cluster(spec=SPEC, finalizers=None), status=False)
    await plane.settle()


def infra_key() -> ObjectKey:
    return ObjectKey(NAMESPACE, INFRASTRUCTURE["name"])


@on_a_plane
async def test_a_new_cluster_gets_its_finalizer_and_then_a_first_pass_that_says_all(plane: Plane) -> None:
    await a_new_cluster(plane)

    found = await plane.cluster()
    assert found.metadata.finalizers == (FINALIZER,)
    assert [rows["reconcile"] for _, rows in plane.passes][:3] == ["finalizer-added", "normal", "normal"]
    assert await plane.condition("Paused") == ("False", "NotPaused", "")
    assert await plane.condition("InfrastructureReady") == ("False", "DoesNotExist", "ExampleCluster does not exist")


@on_a_plane
async def test_infrastructure_that_appears_later_is_adopted_at_once(plane: Plane) -> None:
    await a_new_cluster(plane)
    await plane.create(infrastructure(labels=None, ownerReferences=None, spec={"controlPlaneEndpoint": {"host": "a", "port": 443}}))
    await plane.settle()

    infra = await plane.user.get(INFRA_KIND, infra_key())
    assert infra.metadata.labels[LABEL] == NAME
    assert [(r.kind, r.name, r.controller) for r in infra.metadata.owner_references] == [("Cluster", NAME, None)]
    found = await plane.cluster()
    assert found.at("status", "initialization", "infrastructureProvisioned") is True
    assert found.at("spec", "controlPlaneEndpoint") == {"host": "a", "port": 443}


@on_a_plane
async def test_a_kind_whose_crd_appears_later_is_read_at_once(plane: Plane) -> None:
    other = {"apiGroup": "late.example.com", "kind": "LateCluster", "name": "late"}
    await plane.create(
        cluster(spec={"infrastructureRef": other, "controlPlaneRef": None, "controlPlaneEndpoint": None}, finalizers=None), status=False
    )
    await plane.settle()
    assert await plane.condition("InfrastructureReady") == ("Unknown", "InternalError", "Please check controller logs for errors")

    await plane.user.create(served(crd(other, v1beta2="v1")))
    await plane.settle()

    assert await plane.condition("InfrastructureReady") == ("False", "DoesNotExist", "LateCluster does not exist")


@on_a_plane
async def test_a_worker_that_becomes_ready_wakes_its_cluster(plane: Plane) -> None:
    """Ruling: every Machine whose contribution to the status changed wakes the Cluster, workers too."""
    await plane.create(infrastructure(labels=None, ownerReferences=None))
    await plane.create(control_plane(labels=None, ownerReferences=None))
    await a_new_cluster(plane)
    uid = (await plane.cluster()).metadata.uid
    worker = machine("w", condition("Ready", "False", "Waiting", "not yet"))
    worker["metadata"]["ownerReferences"][0]["uid"] = uid
    await plane.create(worker)
    await plane.settle()
    assert (await plane.condition("WorkerMachinesReady"))[0] == "False"

    ready = {"status": {"conditions": [condition("Ready", "True", "Ready")]}}
    await plane.user.patch(
        GroupVersionKind("cluster.x-k8s.io", "v1beta2", "Machine"), ObjectKey(NAMESPACE, "w"), ready, subresource="status"
    )
    await plane.settle()

    assert await plane.condition("WorkerMachinesReady") == ("True", "Ready", "")


@on_a_plane
async def test_13341_a_kubelet_that_runs_another_version_wakes_its_cluster(plane: Plane) -> None:
    await plane.create(infrastructure(labels=None, ownerReferences=None))
    await plane.create(control_plane(labels=None, ownerReferences=None))
    await a_new_cluster(plane)
    worker = machine("w")
    worker["metadata"]["ownerReferences"][0]["uid"] = (await plane.cluster()).metadata.uid
    await plane.create(worker)
    await plane.settle()

    info = dict.fromkeys(("machineID", "systemUUID", "bootID", "kernelVersion", "osImage", "containerRuntimeVersion"), "")
    info |= {"kubeletVersion": "v1.34.1", "kubeProxyVersion": "", "operatingSystem": "", "architecture": ""}
    kind = GroupVersionKind("cluster.x-k8s.io", "v1beta2", "Machine")
    await plane.user.patch(kind, ObjectKey(NAMESPACE, "w"), {"status": {"nodeInfo": info}}, subresource="status")
    await plane.settle()

    assert (await plane.cluster()).at("status", "workers", "versions") == [{"version": "v1.34.1", "replicas": 1}]


@on_a_plane
async def test_a_machine_that_changes_nothing_for_the_cluster_does_not_wake_it(plane: Plane) -> None:
    await plane.create(infrastructure(labels=None, ownerReferences=None))
    await plane.create(control_plane(labels=None, ownerReferences=None))
    await a_new_cluster(plane)
    await plane.create(machine("w", ownerReferences=None))
    await plane.settle()
    before = len(plane.passes)

    kind = GroupVersionKind("cluster.x-k8s.io", "v1beta2", "Machine")
    await plane.user.patch(kind, ObjectKey(NAMESPACE, "w"), {"metadata": {"annotations": {"a": "b"}}})
    await plane.settle()

    assert len(plane.passes) == before


@on_a_plane
async def test_deletion_goes_workers_first_then_control_plane_then_infrastructure(plane: Plane) -> None:
    await plane.create(infrastructure(labels=None, ownerReferences=None))
    await plane.create(control_plane(labels=None, ownerReferences=None))
    await a_new_cluster(plane)
    uid = (await plane.cluster()).metadata.uid
    deployment = child("MachineSet", "ms")
    deployment["metadata"]["ownerReferences"][0]["uid"] = uid
    deployment["spec"]["selector"] = {"matchLabels": {"a": "b"}}
    deployment["spec"]["template"] = {
        "metadata": {"labels": {"a": "b", LABEL: NAME}},
        "spec": {
            "clusterName": NAME,
            "bootstrap": {"dataSecretName": "x"},
            "infrastructureRef": {**INFRASTRUCTURE, "kind": "ExampleMachineTemplate"},
        },
    }
    await plane.create(deployment)
    await plane.settle()
    kind = GroupVersionKind("cluster.x-k8s.io", "v1beta2", "MachineSet")

    await plane.user.delete(CLUSTER, KEY)
    await plane.settle()

    assert await plane.condition("Deleting") == ("True", "WaitingForWorkersDeletion", "* MachineSets: ms")
    assert (await plane.user.get(kind, ObjectKey(NAMESPACE, "ms"))).metadata.deletion_timestamp is not None
    assert (await plane.user.get(CONTROL_PLANE_KIND, ObjectKey(NAMESPACE, CONTROL_PLANE["name"]))).metadata.deletion_timestamp is None

    await plane.user.patch(kind, ObjectKey(NAMESPACE, "ms"), {"metadata": {"finalizers": None}})
    await plane.settle()

    assert await plane.condition("Deleting") == ("True", "WaitingForControlPlaneDeletion", "Waiting for ExampleControlPlane to be deleted")
    assert (await plane.user.get(INFRA_KIND, infra_key())).metadata.deletion_timestamp is None

    await plane.user.patch(CONTROL_PLANE_KIND, ObjectKey(NAMESPACE, CONTROL_PLANE["name"]), {"metadata": {"finalizers": None}})
    await plane.settle()

    assert await plane.condition("Deleting") == ("True", "WaitingForInfrastructureDeletion", "Waiting for ExampleCluster to be deleted")

    await plane.user.patch(INFRA_KIND, infra_key(), {"metadata": {"finalizers": None}})
    await plane.settle()

    assert await plane.user.find(CLUSTER, KEY) is None


@on_a_plane
async def test_a_settled_cluster_is_left_alone(plane: Plane) -> None:
    await plane.create(infrastructure(labels=None, ownerReferences=None))
    await plane.create(control_plane(labels=None, ownerReferences=None))
    await a_new_cluster(plane)
    await plane.settle(60)
    plane.transport.sent.clear()
    passes = len(plane.passes)

    await plane.settle(300)

    assert len(plane.passes) == passes
    assert [r for r in plane.transport.sent if "leases" not in r.path and "watch" not in str(r.query)] == []


@on_a_plane
async def test_a_provider_that_reports_nonsense_does_not_keep_the_status_from_being_written(plane: Plane) -> None:
    loud = {
        "type": "Ready",
        "status": "False",
        "reason": "no such reason!",
        "message": "x" * 50_000,
        "lastTransitionTime": "2026-05-01T11:00:00Z",
    }
    await plane.create(infrastructure(conditions=[loud], labels=None, ownerReferences=None))
    await plane.create(control_plane(labels=None, ownerReferences=None))
    await a_new_cluster(plane)

    status, reason, message = await plane.condition("InfrastructureReady")

    assert (status, reason) == ("False", "InvalidReasonReported")
    assert message.startswith("no such reason!: xxx")
    assert len(message) <= 32768
    assert (await plane.cluster()).at("status", "observedGeneration") is not None


@on_a_plane
async def test_an_endpoint_that_the_api_server_refuses_is_an_error_and_the_status_is_written_all_the_same(plane: Plane) -> None:
    await plane.create(infrastructure(labels=None, ownerReferences=None, spec={"controlPlaneEndpoint": {"host": "a", "port": 70_000}}))
    await plane.create(control_plane(labels=None, ownerReferences=None))
    await a_new_cluster(plane)

    found = await plane.cluster()

    assert found.at("spec", "controlPlaneEndpoint") is None
    assert found.at("status", "phase") == "Provisioned"
    assert (await plane.condition("InfrastructureReady"))[0] == "True"
