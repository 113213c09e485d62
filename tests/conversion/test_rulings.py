"""Where our conversion is meant to differ from upstream's, and scalars as Go reads them."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from clusterwright import conversion
from clusterwright.conversion import values
from clusterwright.golang.times import format_duration

BOOTSTRAP, CONTROL_PLANE, CORE = (f"{group}cluster.x-k8s.io" for group in ("bootstrap.", "controlplane.", ""))


def versions(group: str, kind: str) -> str:
    return f"{group}/v1beta2"


def obj(group: str, kind: str, spec: dict[str, Any]) -> dict[str, Any]:
    return {"apiVersion": f"{group}/v1beta2", "kind": kind, "metadata": {"name": "x", "namespace": "ns"}, "spec": spec}


def down(hub: dict[str, Any]) -> dict[str, Any]:
    return conversion.convert(hub, hub["apiVersion"].replace("v1beta2", "v1beta1"), versions)


def up(spoke: dict[str, Any]) -> dict[str, Any]:
    return conversion.convert(spoke, spoke["apiVersion"].replace("v1beta1", "v1beta2"), versions)


def test_volumes_of_one_host_path_keep_each_their_own_read_only() -> None:
    volumes = [
        {"name": "a", "hostPath": "/same", "mountPath": "/a", "readOnly": False},
        {"name": "b", "hostPath": "/same", "mountPath": "/b", "readOnly": True},
        {"name": "c", "hostPath": "/same", "mountPath": "/c"},
    ]
    hub = obj(BOOTSTRAP, "KubeadmConfig", {"clusterConfiguration": {"apiServer": {"extraVolumes": volumes}}})
    spoke = down(hub)
    assert up(copy.deepcopy(spoke))["spec"] == hub["spec"]
    mounts = spoke["spec"]["clusterConfiguration"]["apiServer"]["extraVolumes"]
    mounts.reverse()
    found = up(spoke)["spec"]["clusterConfiguration"]["apiServer"]["extraVolumes"]
    assert {volume["name"]: volume.get("readOnly") for volume in found} == {"a": False, "b": True, "c": None}


def test_files_of_one_path_keep_each_their_own_append() -> None:
    files = [
        {"path": "/f", "content": "1", "append": False},
        {"path": "/f", "content": "2", "append": True},
        {"path": "/f", "content": "3"},
    ]
    hub = obj(BOOTSTRAP, "KubeadmConfig", {"files": files})
    assert up(down(hub))["spec"] == hub["spec"]


def test_alternatives_missing_in_the_annotation_are_not_an_error() -> None:
    schema = {"type": "object", "oneOf": [{"type": "string", "uniqueItems": False}]}
    variable = {"name": "v", "required": True, "schema": {"openAPIV3Schema": schema}}
    spoke = down(obj(CORE, "ClusterClass", {"variables": [variable]}))
    spoke["spec"]["variables"][0]["schema"]["openAPIV3Schema"]["oneOf"].append({"type": "integer"})
    found = up(spoke)["spec"]["variables"][0]["schema"]["openAPIV3Schema"]["oneOf"]
    assert found == [{"type": "string", "uniqueItems": False}, {"type": "integer"}]


def test_the_default_rollout_of_a_template_that_has_none_is_none() -> None:
    spoke = down(obj(CONTROL_PLANE, "KubeadmControlPlaneTemplate", {"template": {"spec": {"machineNaming": {"template": "t"}}}}))
    spoke["spec"]["template"]["spec"]["rolloutStrategy"] = {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1}}
    assert "rollout" not in up(copy.deepcopy(spoke))["spec"]["template"]["spec"]
    spoke["spec"]["template"]["spec"]["rolloutStrategy"]["rollingUpdate"]["maxSurge"] = 0
    assert up(copy.deepcopy(spoke))["spec"]["template"]["spec"]["rollout"]["strategy"]["rollingUpdate"] == {"maxSurge": 0}
    del spoke["metadata"]["annotations"]
    assert "strategy" in up(spoke)["spec"]["template"]["spec"]["rollout"]


def test_seconds_for_joining_stay_while_those_for_init_do() -> None:
    name = "controlPlaneComponentHealthCheckSeconds"
    hub = obj(BOOTSTRAP, "KubeadmConfig", {"initConfiguration": {"timeouts": {name: 1}}, "joinConfiguration": {"timeouts": {name: 2}}})
    spoke = down(hub)
    assert up(copy.deepcopy(spoke))["spec"] == hub["spec"]
    spoke["spec"]["clusterConfiguration"]["apiServer"]["timeoutForControlPlane"] = "5s"
    changed = up(spoke)["spec"]
    assert [changed[part]["timeouts"][name] for part in ("initConfiguration", "joinConfiguration")] == [5, 5]


def test_an_unreadable_value_is_named() -> None:
    spoke = down(obj(CORE, "Machine", {"clusterName": "c"}))
    spoke["spec"]["nodeDrainTimeout"] = "5"
    with pytest.raises(conversion.ConversionFailed, match=r"Machine ns/x: spec\.nodeDrainTimeout: '5' is not a duration"):
        up(spoke)


@pytest.mark.parametrize(
    ("text", "nanoseconds", "printed"),
    [
        ("0", 0, "0s"), ("+0", 0, "0s"), ("90s", 90 * values.SECOND, "1m30s"), ("1.5h", 5400 * values.SECOND, "1h30m0s"),
        ("-0.5s", -values.SECOND // 2, "-500ms"), ("1h1m1.5s", 3661 * values.SECOND + values.SECOND // 2, "1h1m1.5s"),
        ("1us", 1000, "1µs"), ("1µs", 1000, "1µs"), ("2ns", 2, "2ns"), (".5m", 30 * values.SECOND, "30s"), ("1.s", values.SECOND, "1s"),
    ],
)  # fmt: skip
def test_durations(text: str, nanoseconds: int, printed: str) -> None:
    assert values.duration(text) == nanoseconds
    assert format_duration(nanoseconds) == printed


@pytest.mark.parametrize("text", ["", "5", "1d", "1h 2m", ".s", "-", "s", "1", "9999999h", "1h-2m", None, 5, True, []])
def test_invalid_durations_are_refused(text: Any) -> None:
    with pytest.raises(values.Unreadable):
        values.duration(text)


@pytest.mark.parametrize(
    ("given", "canonical"),
    [
        ("1000m", "1"), ("0.5", "500m"), ("1024Mi", "1Gi"), ("1500Mi", "1500Mi"), ("100000", "100k"), ("1e3", "1e3"), (5, "5"), ("0", "0"),
        ("-1", "-1"), ("1536Ki", "1536Ki"), ("0.5Gi", "512Mi"), ("1E", "1E"), ("1E3", "1E3"), ("6.037", "6.037"), ("Gi", "0"), ("1e30", "1e30"), ("0.0000000001", "1n"),
    ],
)  # fmt: skip
def test_quantities(given: Any, canonical: str) -> None:
    assert values.quantity(given) == canonical


@pytest.mark.parametrize("given", ["", "1x", "1.2.3", None, [], "1" * 2000, "1e99999"])
def test_invalid_quantities_are_refused(given: Any) -> None:
    with pytest.raises(values.Unreadable):
        values.quantity(given)


@pytest.mark.parametrize(
    ("given", "printed"),
    [
        ("2026-01-02T03:04:05Z", "2026-01-02T03:04:05Z"),
        ("2026-01-02T03:04:05.999Z", "2026-01-02T03:04:05Z"),
        ("2026-01-02T03:04:05+02:00", "2026-01-02T01:04:05Z"),
        ("0001-01-01T00:00:00+00:00", "0001-01-01T00:00:00Z"),
    ],
)
def test_times(given: str, printed: str) -> None:
    assert values.time(given) == printed


@pytest.mark.parametrize("given", ["", "2026-01-02", "2026-13-02T03:04:05Z", "2026-01-02t03:04:05z", "yesterday", 5, None])
def test_invalid_times_are_refused(given: Any) -> None:
    with pytest.raises(values.Unreadable):
        values.time(given)
