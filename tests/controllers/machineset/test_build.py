"""Whom a change wakes: MachineSets and MachineDeployments."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from clusterwright.api.copying import replace
from clusterwright.api.core import Cluster, Machine, MachineDeployment, MachineSet
from clusterwright.api.core.machineset import MachineDeploymentSpec, MachineSetSpec, MachineSetStatus
from clusterwright.api.meta import LabelSelector, ObjectKey, ObjectMeta, OwnerReference
from clusterwright.controllers.kit import owners
from clusterwright.controllers.machinedeployment import build as deployments
from clusterwright.controllers.machinedeployment import snapshot as facts
from clusterwright.controllers.machineset import build as sets
from clusterwright.controllers.machineset.snapshot import ClusterFacts, DeploymentFacts
from clusterwright.runtime.predicates import gone

SELECTOR = LabelSelector(match_labels={"a": "1"})
SET = MachineSet(metadata=ObjectMeta(name="s", namespace="ns"), spec=MachineSetSpec(selector=SELECTOR, replicas=2))
DEPLOYMENT = MachineDeployment(metadata=ObjectMeta(name="d", namespace="ns"), spec=MachineDeploymentSpec(selector=SELECTOR))
EVERYTHING = MachineDeployment(metadata=ObjectMeta(name="all", namespace="ns"))
THE_SET = [ObjectKey("ns", "s")]
THE_DEPLOYMENT = [ObjectKey("ns", "d")]


class Listed:
    """A reader that lists these objects, whatever is asked."""

    def __init__(self, *objects: Any) -> None:
        self._objects = objects

    async def list(self, kind: Any, **_options: Any) -> Sequence[Any]:
        return [o for o in self._objects if isinstance(o, kind)]


def owned(kind: str, name: str, api_version: str = "cluster.x-k8s.io/v1beta1", *, controller: bool = True) -> tuple[OwnerReference, ...]:
    return (OwnerReference(api_version=api_version, kind=kind, name=name, controller=controller),)


@pytest.mark.parametrize(
    ("owners", "labels", "expected"),
    [
        (owned("MachineSet", "s"), {}, THE_SET),
        (owned("MachineSet", "s", "other/v1"), {"a": "1"}, []),
        (owned("KubeadmControlPlane", "k"), {"a": "1"}, []),
        ((), {"a": "1"}, THE_SET),
        ((), {"a": "2"}, []),
        ((), {}, []),
        (owned("Cluster", "c", controller=False), {"a": "1"}, THE_SET),
    ],
)
async def test_a_machine_wakes_its_machine_set_and_an_orphan_wakes_matching_sets(owners: Any, labels: Any, expected: Any) -> None:
    machine = Machine(metadata=ObjectMeta(name="m", namespace="ns", owner_references=owners, labels=labels))

    assert list(await sets.machine_sets_of(machine, Listed(SET))) == expected  # type: ignore[arg-type]


async def test_a_deleted_machine_wakes_sibling_machine_sets() -> None:
    machine = Machine(metadata=ObjectMeta(name="m", namespace="ns", labels={"cluster.x-k8s.io/deployment-name": "d"}))
    full = replace(SET, metadata=ObjectMeta(name="full", namespace="ns"), status=MachineSetStatus(replicas=2))

    assert list(await sets.siblings_of(machine, Listed(SET, full))) == THE_SET  # type: ignore[arg-type]
    assert list(await sets.siblings_of(Machine(), Listed(SET))) == []  # type: ignore[arg-type]
    assert gone(machine, None)
    assert not gone(None, machine)


async def test_an_orphaned_machine_set_wakes_matching_deployments_but_not_those_with_an_empty_selector() -> None:
    orphan = replace(SET, metadata=ObjectMeta(name="s", namespace="ns", labels={"a": "1"}))
    ours = replace(SET, metadata=ObjectMeta(name="s", namespace="ns", owner_references=owned("MachineDeployment", "d")))
    reader: Any = Listed(DEPLOYMENT, EVERYTHING)

    assert list(await deployments.deployments_of(orphan, reader)) == THE_DEPLOYMENT
    assert list(await deployments.deployments_of(ours, reader)) == THE_DEPLOYMENT
    assert list(await deployments.deployments_of(SET, reader)) == []


def test_only_relevant_changes_of_a_cluster_wake_machine_sets() -> None:
    cluster = Cluster(metadata=ObjectMeta(name="c"))
    labelled = replace(cluster, metadata=ObjectMeta(name="c", labels={"x": "y"}))
    paused = replace(cluster, spec=replace(cluster.spec, paused=True))
    upgraded = replace(cluster, metadata=ObjectMeta(name="c", annotations={"topology.internal.cluster.x-k8s.io/upgrade-step": "v1"}))

    assert ClusterFacts.of(cluster) == ClusterFacts.of(labelled)
    assert ClusterFacts.of(cluster) != ClusterFacts.of(paused)
    assert ClusterFacts.of(cluster) != ClusterFacts.of(upgraded)
    assert owners.ClusterFacts.of(cluster) == owners.ClusterFacts.of(upgraded)
    assert owners.ClusterFacts.of(cluster) != owners.ClusterFacts.of(paused)


def test_a_deployment_that_only_counts_wakes_no_machine_set() -> None:
    counted = replace(DEPLOYMENT, status=replace(DEPLOYMENT.status, replicas=3))
    scaled = replace(DEPLOYMENT, spec=replace(DEPLOYMENT.spec, replicas=3))

    assert DeploymentFacts.of(DEPLOYMENT) == DeploymentFacts.of(counted)
    assert DeploymentFacts.of(DEPLOYMENT) != DeploymentFacts.of(scaled)


def test_conditions_that_report_a_machine_wake_its_deployment() -> None:
    machine = Machine(metadata=ObjectMeta(name="m"))
    going = replace(machine, metadata=ObjectMeta(name="m", annotations={"x": ""}))
    renewed = replace(machine, metadata=ObjectMeta(name="m", resource_version="9"))

    assert facts.MachineFacts.of(machine) != facts.MachineFacts.of(going)
    assert facts.MachineFacts.of(machine) == facts.MachineFacts.of(renewed)
