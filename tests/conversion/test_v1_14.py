"""The fields that came with v1.14 have their place in v1beta1, and come back (row A8)."""

from __future__ import annotations

from typing import Any

import pytest

from clusterwright import conversion

CORE, CONTROL_PLANE = "cluster.x-k8s.io", "controlplane.cluster.x-k8s.io"
VERSIONS = [{"version": "v1.33.5", "replicas": 1}, {"version": "v1.34.1", "replicas": 2}]
PLAN = [{"version": "v1.35.0"}, {"version": "v1.36.0"}]
COUNTED = {"versions": VERSIONS, "upgradePlan": PLAN}
STARTS = {"waitForPreDrainHookStartTime": "2026-05-01T12:00:00Z", "waitForPreTerminateHookStartTime": "2026-05-01T12:01:00Z"}

PLACES: dict[str, tuple[str, str, dict[str, Any], tuple[str, ...], Any]] = {
    "Cluster, control plane": (CORE, "Cluster", {"controlPlane": COUNTED}, ("status", "v1beta2", "controlPlane"), COUNTED),
    "Cluster, workers": (CORE, "Cluster", {"workers": COUNTED}, ("status", "v1beta2", "workers"), COUNTED),
    "MachineSet": (CORE, "MachineSet", {"versions": VERSIONS}, ("status", "versions"), VERSIONS),
    "MachineDeployment": (CORE, "MachineDeployment", {"versions": VERSIONS}, ("status", "versions"), VERSIONS),
    "MachinePool": (CORE, "MachinePool", {"versions": VERSIONS}, ("status", "versions"), VERSIONS),
    "KubeadmControlPlane": (CONTROL_PLANE, "KubeadmControlPlane", {"versions": VERSIONS}, ("status", "versions"), VERSIONS),
    "Machine": (CORE, "Machine", {"deletion": STARTS}, ("status", "deletion"), STARTS),
}


def versions(group: str, kind: str) -> str:
    return f"{group}/v1beta2"


def at(obj: Any, path: tuple[str, ...]) -> Any:
    for step in path:
        obj = obj[step]
    return obj


@pytest.mark.parametrize("keeps_annotation", [True, False])
@pytest.mark.parametrize("what", PLACES)
def test_a_field_of_v1_14_has_its_place_in_v1beta1_and_comes_back(what: str, keeps_annotation: bool) -> None:
    """Somebody who writes v1beta1 may drop the annotation that remembers the object: the fields themselves carry everything."""
    group, kind, status, path, value = PLACES[what]
    hub = {"apiVersion": f"{group}/v1beta2", "kind": kind, "metadata": {"name": "x", "namespace": "ns"}, "spec": {}, "status": status}

    spoke = conversion.convert(hub, f"{group}/v1beta1", versions)
    assert at(spoke, path) == value
    if not keeps_annotation:
        spoke["metadata"].pop("annotations", None)
    back = conversion.convert(spoke, f"{group}/v1beta2", versions)

    for name, expected in status.items():
        assert back["status"][name] == expected
