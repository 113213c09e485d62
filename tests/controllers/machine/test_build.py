"""Which changes wake which Machines."""

from __future__ import annotations

from typing import Any

import pytest

from clusterwright.api.core import Cluster, Machine, MachineDeployment, MachineSet
from clusterwright.api.meta import Object, ObjectKey
from clusterwright.controllers.machine import build
from clusterwright.controllers.machine.build import CONTROLLER
from clusterwright.runtime.models import decode
from clusterwright.runtime.reconcile import Watch


def typed(kind: type[Object], json: Any) -> Any:
    import msgspec

    return decode(kind, msgspec.json.encode(json))


def watch_of(kind: type[Object]) -> Watch:
    return next(w for w in CONTROLLER.watches if w.kind is kind)


def counts(kind: type[Object], old: Any, new: Any) -> bool:
    when = watch_of(kind).when
    assert when is not None
    return when(old, new)


@pytest.fixture
def running(a: Any) -> Any:
    owned = a.machine(
        metadata={
            "name": "w1",
            "uid": "uid-w1",
            "labels": {"cluster.x-k8s.io/deployment-name": "md1"},
            "ownerReferences": [a.owner("MachineSet", "ms1", "uid-ms1")],
        }
    )
    elsewhere = a.machine(metadata={"name": "m9", "uid": "uid-m9", "namespace": "ns2"})
    return a.Build(more=[owned, elsewhere]).start()


async def test_a_cluster_wakes_its_machines(a: Any, running: Any) -> None:
    keys = await build.machines_of_cluster(typed(Cluster, a.cluster()), running.world.client)

    assert keys == [ObjectKey("ns1", "m1"), ObjectKey("ns1", "w1")]


async def test_a_machine_set_wakes_the_machines_it_owns(running: Any) -> None:
    machine_set = typed(MachineSet, {"metadata": {"name": "ms1", "namespace": "ns1", "uid": "uid-ms1"}})

    assert await watch_of(MachineSet).map(machine_set, running.world.client) == (ObjectKey("ns1", "w1"),)


async def test_a_deployment_wakes_the_machines_with_its_name(running: Any) -> None:
    deployment = typed(MachineDeployment, {"metadata": {"name": "md1", "namespace": "ns1", "uid": "uid-md1"}})

    assert await build.machines_of_deployment(deployment, running.world.client) == [ObjectKey("ns1", "w1")]


@pytest.mark.parametrize(
    ("change", "matters"),
    [
        pytest.param({"spec": {"paused": True}}, True, id="paused"),
        pytest.param({"metadata": {"deletionTimestamp": "2026-05-01T12:00:00Z"}}, True, id="deleted"),
        pytest.param({"status": {"initialization": {"infrastructureProvisioned": False}}}, True, id="infrastructure"),
        pytest.param({"status": {"conditions": []}}, True, id="control-plane-initialized"),
        pytest.param({"metadata": {"labels": {"a": "b"}}}, True, id="label, which drain rules select by"),
        pytest.param({"metadata": {"annotations": {"a": "b"}}}, False, id="annotation"),
        pytest.param({"status": {"phase": "Provisioned"}}, False, id="phase"),
    ],
)
def test_only_relevant_changes_of_a_cluster_matter(a: Any, change: Any, matters: bool) -> None:
    assert counts(Cluster, typed(Cluster, a.cluster()), typed(Cluster, a.cluster(**change))) is matters


@pytest.mark.parametrize(
    ("change", "matters"),
    [
        pytest.param({"spec": {"template": {"spec": {"version": "v1.34.0"}}}}, True, id="template"),
        pytest.param({"metadata": {"annotations": {"machinedeployment.clusters.x-k8s.io/revision": "2"}}}, True, id="revision"),
        pytest.param({"status": {"replicas": 3}}, False, id="status"),
    ],
)
def test_only_relevant_changes_of_an_owner_matter(a: Any, change: Any, matters: bool) -> None:
    base = {"metadata": {"name": "ms1", "namespace": "ns1"}, "spec": {"clusterName": "c1"}}

    assert counts(MachineSet, typed(MachineSet, base), typed(MachineSet, a.merged(base, change))) is matters


def test_the_definition_names_what_is_watched() -> None:
    assert CONTROLLER.kind is Machine
    assert {w.kind for w in CONTROLLER.watches} == {Cluster, MachineSet, MachineDeployment}
    assert CONTROLLER.workload_wake is not None
