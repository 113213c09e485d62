"""Whom a change wakes: the mappings and predicates of the Cluster controller's watches."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest

from clusterwright.api import codec
from clusterwright.api.copying import replace
from clusterwright.api.core import Cluster, ClusterClass, Machine
from clusterwright.api.kubernetes import Secret
from clusterwright.api.meta import ObjectKey
from clusterwright.controllers.cluster.build import (
    CONTROLLER,
    cluster_of_secret,
    clusters_of_class,
    clusters_of_crd,
)
from clusterwright.controllers.external import CustomResourceDefinitionMeta
from clusterwright.controllers.kit import watching
from seeds.seed_worlds import (
    CONTROL_PLANE,
    INFRASTRUCTURE,
    LABEL,
    NAME,
    NAMESPACE,
    TOPOLOGY,
    cluster,
    condition,
    crd,
    machine,
    meta,
    secret,
)

KEY = ObjectKey(NAMESPACE, NAME)


class Clusters:
    """A reader that knows a few Clusters."""

    def __init__(self, *clusters: dict[str, Any]) -> None:
        self._clusters = [codec.convert(c, Cluster) for c in clusters]

    async def list(self, kind: type[Any], *, namespace: str = "", **_: Any) -> Sequence[Any]:
        assert kind is Cluster
        return [c for c in self._clusters if namespace in ("", c.metadata.namespace)]


def woken(mapping: Any, obj: Any, *clusters: dict[str, Any]) -> list[ObjectKey]:
    return list(asyncio.run(mapping(obj, Clusters(*clusters))))


def other(**spec: Any) -> dict[str, Any]:
    """Another Cluster."""
    obj = cluster(spec=spec)
    obj["metadata"]["name"] = "other"
    return obj


def a_machine(*conditions: dict[str, Any], **more: Any) -> Machine:
    return codec.convert(machine("m", *conditions, **more), Machine)


def counts(kind: type[Any], old: Any, new: Any) -> bool:
    """Whether the controller's watch on the kind heeds the change."""
    when = next(w.when for w in CONTROLLER.watches if w.kind is kind)
    assert when is not None
    return when(old, new)


def test_every_kind_of_descendant_is_watched() -> None:
    kinds = {w.kind.__name__ for w in CONTROLLER.watches}

    assert kinds == {"Machine", "MachineDeployment", "MachineSet", "MachinePool", "ClusterClass", "Secret", "CustomResourceDefinitionMeta"}


def test_a_machine_wakes_its_cluster() -> None:
    assert woken(watching.cluster, a_machine()) == [KEY]


@pytest.mark.parametrize(
    "change",
    [
        lambda m: a_machine(condition("Ready", "False")),
        lambda m: a_machine(condition("Ready", "True", message="other")),
        lambda m: a_machine(condition("Ready", "True"), node=False),
        lambda m: a_machine(condition("Ready", "True"), deletionTimestamp="2026-05-01T11:00:00Z"),
        lambda m: a_machine(condition("Ready", "True"), labels={LABEL: NAME, "cluster.x-k8s.io/control-plane": ""}),
        lambda m: a_machine(condition("Ready", "True"), ownerReferences=[]),
        lambda m: a_machine(condition("Ready", "True"), condition("UpToDate", "False")),
    ],
    ids=["status", "message", "node", "deletion", "role", "owner", "another condition"],
)
def test_machine_changes_that_affect_the_status_wake_the_cluster(change: Any) -> None:
    before = a_machine(condition("Ready", "True"))

    assert counts(Machine, before, change(before))


def test_machine_changes_without_effect_on_the_status_do_not_wake_the_cluster() -> None:
    before = a_machine(condition("Ready", "True"))
    annotated = replace(before, metadata=replace(before.metadata, annotations={"a": "b"}, resource_version="9"))
    other = a_machine(condition("Ready", "True"), condition("NodeKubeadmLabelsAndTaintsSet", "False"))

    assert not counts(Machine, before, annotated)
    assert not counts(Machine, before, other)


def test_a_machine_that_appears_or_goes_wakes() -> None:
    assert counts(Machine, None, a_machine())
    assert counts(Machine, a_machine(), None)


@pytest.mark.parametrize(("purpose", "wakes"), [("ca", True), ("kubeconfig", True), ("etcd", False), ("nonsense", False)])
def test_the_secrets_that_a_stand_alone_control_plane_waits_for_wake(purpose: str, wakes: bool) -> None:
    obj = codec.convert(secret(purpose), Secret)

    assert woken(cluster_of_secret, obj) == ([KEY] if wakes else [])


def test_a_class_wakes_the_clusters_made_from_it() -> None:
    ours = codec.convert({"metadata": meta("class"), "spec": {}}, ClusterClass)

    assert woken(clusters_of_class, ours, cluster(spec={"topology": TOPOLOGY}), other()) == [KEY]
    assert counts(ClusterClass, None, ours)
    assert not counts(ClusterClass, ours, ours)


def test_a_crd_wakes_the_clusters_that_refer_to_its_kind() -> None:
    for reference in (INFRASTRUCTURE, CONTROL_PLANE):
        obj = codec.convert(crd(reference, v1beta2="v1"), CustomResourceDefinitionMeta)

        assert woken(clusters_of_crd, obj, cluster(), other(infrastructureRef=None, controlPlaneRef=None)) == [KEY]
        assert counts(CustomResourceDefinitionMeta, None, obj)
        assert not counts(CustomResourceDefinitionMeta, obj, obj)
        assert counts(CustomResourceDefinitionMeta, obj, codec.convert(crd(reference, v1beta1="v1"), CustomResourceDefinitionMeta))


def test_a_crd_without_a_contract_wakes_no_cluster() -> None:
    assert woken(clusters_of_crd, codec.convert(crd(INFRASTRUCTURE), CustomResourceDefinitionMeta), cluster()) == []
