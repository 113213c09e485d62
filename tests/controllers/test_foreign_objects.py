"""Controllers leave objects alone that only have a name of theirs: the name of a Cluster or MachineDeployment is a user's choice."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from clusterwright.api.core import MachineHealthCheck
from clusterwright.api.kubernetes import Secret
from clusterwright.api.meta import ObjectKey, ObjectMeta, OwnerReference
from clusterwright.controllers.kubeadmcontrolplane import certificates
from controllers.topology.passes import Passes
from support.worker_passes import KEY, Plane, objects

OWNED = "topology.cluster.x-k8s.io/owned"


async def test_a_secret_with_the_name_of_the_shim_is_not_used_and_not_deleted() -> None:
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "c-shim", "namespace": "default"}, "data": {"password": "cA=="}}
    passes = Passes(secret)

    await passes.run(times=3)

    assert "Secret default/c-shim is in the way: it is not the shim of this Cluster" in passes.error
    assert (await passes.client.get(Secret, ObjectKey("default", "c-shim"))).data == {"password": b"p"}


@pytest.mark.parametrize(("labels", "stays"), [({}, True), ({OWNED: ""}, False)])
async def test_only_the_health_check_of_the_topology_goes_with_its_deployment(labels: dict[str, str], stays: bool) -> None:
    made = objects("MachineDeployment")
    deployment = next(o for o in made if o["kind"] == "MachineDeployment")
    deployment["metadata"] |= {
        "labels": {OWNED: "", "cluster.x-k8s.io/cluster-name": "c"},
        "finalizers": ["machinedeployment.topology.cluster.x-k8s.io"],
        "deletionTimestamp": "2026-05-01T11:30:00Z",
    }
    check: dict[str, Any] = {
        "apiVersion": "cluster.x-k8s.io/v1beta2",
        "kind": "MachineHealthCheck",
        "metadata": {"name": KEY.name, "namespace": KEY.namespace, "uid": "check", "labels": labels},
        "spec": {"clusterName": "c", "selector": {"matchLabels": {"a": "b"}}},
    }
    world = Plane([*made, check])
    reconciler = world.reconciler_named("MachineDeployment", "topology/machinedeployment")

    await world.world.reports.complete(reconciler, KEY)

    assert (await world.client.find(MachineHealthCheck, KEY) is not None) is stays


def controlled_by(kind: str) -> tuple[OwnerReference, ...]:
    return (OwnerReference(api_version="g/v1", kind=kind, name="n", uid="u", controller=True),)


@pytest.mark.parametrize(
    ("labels", "owners", "data", "foreign"),
    [
        pytest.param({}, (), {"tls.crt": b""}, False, id="a-users"),
        pytest.param(
            {"cluster.x-k8s.io/cluster-name": "c"}, controlled_by("KubeadmConfig"), {"tls.crt": b""}, False, id="made-by-a-config"
        ),
        pytest.param({}, controlled_by("KubeadmControlPlane"), {"tls.crt": b""}, False, id="made-by-a-control-plane"),
        pytest.param({"cluster.x-k8s.io/cluster-name": "other"}, (), {"tls.crt": b""}, True, id="of-another-cluster"),
        pytest.param({}, controlled_by("Certificate"), {"tls.crt": b""}, True, id="of-another-kind"),
        pytest.param({}, controlled_by("KubeadmConfig"), {"value": b"", "format": b""}, True, id="bootstrap-data"),
    ],
)
def test_a_control_plane_takes_over_only_secrets_of_its_cluster(
    labels: dict[str, str], owners: tuple[OwnerReference, ...], data: dict[str, bytes], foreign: bool
) -> None:
    seen: Any = SimpleNamespace(cluster=SimpleNamespace(key=ObjectKey("ns", "c")))
    secret = Secret(metadata=ObjectMeta(name="c-ca", labels=labels, owner_references=owners), data=data, type="cluster.x-k8s.io/secret")

    assert certificates.is_foreign(seen, secret) is foreign
