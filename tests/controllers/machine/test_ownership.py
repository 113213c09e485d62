"""The Machine becomes the controller of what it refers to, and leaves all else alone."""

from __future__ import annotations

from typing import Any

import pytest

from clusterwright.api.core import ContractVersionedObjectReference, Machine, MachineSpec
from clusterwright.api.meta import ObjectMeta, Unstructured
from clusterwright.controllers.external import AlreadyControlled
from clusterwright.controllers.machine.ownership import adoption

CONTROL_PLANE = ContractVersionedObjectReference(api_group="controlplane.cluster.x-k8s.io", kind="KubeadmControlPlane", name="cp")
LABEL = "cluster.x-k8s.io/cluster-name"


def a_machine(*, control_plane: bool = False) -> Machine:
    labels = {"cluster.x-k8s.io/control-plane": ""} if control_plane else {}
    return Machine(metadata=ObjectMeta(name="m1", namespace="ns1", uid="u-m1", labels=labels), spec=MachineSpec(cluster_name="c1"))


def reference(kind: str, name: str, group: str = "cluster.x-k8s.io", version: str = "v1beta2", **more: Any) -> dict[str, Any]:
    return {"apiVersion": f"{group}/{version}", "kind": kind, "name": name, "uid": f"u-{name}", **more}


def patched(owners: Any, labels: Any = None, *, control_plane: bool = False) -> Any:
    metadata = {
        "name": "x",
        "namespace": "ns1",
        "uid": "u-x",
        "resourceVersion": "5",
        "ownerReferences": owners,
        "labels": labels or {LABEL: "c1"},
    }
    obj = Unstructured({"apiVersion": "g/v1", "kind": "Thing", "metadata": metadata})
    patch = adoption(a_machine(control_plane=control_plane), CONTROL_PLANE, obj)
    return None if patch is None else patch["metadata"]


MINE = reference("Machine", "m1", controller=True)
FULL = {**MINE, "blockOwnerDeletion": True}


def test_nothing_is_written_if_nothing_changed() -> None:
    assert patched([MINE]) is None
    assert patched([reference("Thing", "t", "example.com"), FULL]) is None


def test_a_new_owner_is_written_with_optimistic_lock() -> None:
    assert patched([]) == {"ownerReferences": [FULL], "resourceVersion": "5", "uid": "u-x"}


def test_a_missing_label_is_added() -> None:
    assert patched([MINE], {"team": "x"})["labels"] == {LABEL: "c1"}


@pytest.mark.parametrize(
    ("owners", "control_plane", "kept"),
    [
        pytest.param([reference("MachineSet", "ms")], False, ["Machine"], id="machine-set-made-it"),
        pytest.param([reference("MachineSet", "ms", "example.com")], False, ["MachineSet", "Machine"], id="another-machine-set"),
        pytest.param([reference("KubeadmControlPlane", "cp", CONTROL_PLANE.api_group)], True, ["Machine"], id="control-plane-made-it"),
        pytest.param(
            [reference("KubeadmControlPlane", "cp", CONTROL_PLANE.api_group)],
            False,
            ["KubeadmControlPlane", "Machine"],
            id="not-for-workers",
        ),
        pytest.param([reference("Machine", "m1", version="v1beta1", controller=True)], False, ["Machine"], id="old-version"),
        pytest.param([reference("Machine", "m1")], False, ["Machine"], id="not-yet-controller"),
    ],
)
def test_the_creators_reference_is_dropped_and_others_are_kept(owners: Any, control_plane: bool, kept: Any) -> None:
    references = patched(owners, control_plane=control_plane)["ownerReferences"]

    assert [r["kind"] for r in references] == kept
    assert references[-1] == FULL


def test_another_controller_is_an_error() -> None:
    with pytest.raises(AlreadyControlled):
        patched([reference("Fleet", "f", "example.com", controller=True)])
