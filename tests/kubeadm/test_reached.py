"""Which versions a control plane has reached, and whether kubelets run what they should (#14086: suffixes of distributions do not count)."""

from __future__ import annotations

from typing import Any

import pytest

from clusterwright.kubeadm.reached import is_any_older, reported_versions, runs
from clusterwright.kubeadm.versions import parse_version


@pytest.mark.parametrize(
    ("kubelet", "wanted", "same"),
    [
        ("v1.34.1", "v1.34.1", True),
        ("1.34.1", "v1.34.1", True),
        ("v1.34.0", "v1.34.1", False),
        ("v1.34.1-eks-113cf36", "v1.34.1", True),
        ("v1.34.1-eks-113cf36", "v1.34.1-eks-4afc1d", True),
        ("v1.34.1-gke.1171000", "v1.34.1", True),
        ("v1.34.1+k3s1", "v1.34.1", True),
        ("v1.34.1", "v1.34.1+k0s.0", True),
        ("v1.34.1+rke2r1", "v1.34.1+rke2r2", True),
        ("v1.33.5-eks-113cf36", "v1.34.1", False),
        ("v1.34.0-rc.1", "v1.34.0", False),
        ("v1.34.0-rc.1", "v1.34.0-rc.2", False),
        ("not a version", "v1.34.1", True),
    ],
)
def test_14086_a_kubelet_runs_a_release_whatever_its_distribution_appends(kubelet: str, wanted: str, same: bool) -> None:
    assert runs(kubelet, wanted) is same


@pytest.mark.parametrize(
    ("versions", "wanted", "older"),
    [
        ((), "v1.34.1", False),
        (("v1.34.1",), "v1.34.1", False),
        (("v1.33.5", "v1.34.1"), "v1.34.1", True),
        (("v1.34.1-eks-113cf36",), "v1.34.1", False),
        (("v1.34.1",), "v1.34.1+build.7", False),
        (("v1.34.0-rc.1",), "v1.34.0", True),
        (("v1.35.0",), "v1.34.1", False),
    ],
)
def test_14086_a_control_plane_is_upgrading_while_a_release_is_older(versions: tuple[str, ...], wanted: str, older: bool) -> None:
    assert is_any_older(versions, parse_version(wanted)) is older


def a_control_plane(*versions: Any) -> dict[str, Any]:
    return {"status": {"versions": list(versions)}}


def test_13341_versions_of_a_control_plane_are_read_in_order() -> None:
    assert reported_versions({}) == ()
    assert reported_versions({"status": {"versions": None}}) == ()
    assert reported_versions(a_control_plane({"version": "v1.33.0", "replicas": 2}, {"version": "v1.34.0"})) == ("v1.33.0", "v1.34.0")


@pytest.mark.parametrize(
    ("control_plane", "text"),
    [
        (a_control_plane({"version": "v1.34.0"}, {"version": "v1.33.0"}), 'version "v1.34.0" and "v1.33.0" are in the wrong order'),
        (a_control_plane({"version": "one"}), r"failed to parse \.status\.versions\[0\]\.version from object"),
        (a_control_plane({"version": "v1.34.0", "replicas": -1}), r"\.status\.versions\[0\]\.replicas must not be negative"),
        ({"status": {"versions": "v1.34.0"}}, "status.versions"),
        (a_control_plane({"version": 1}), "status.versions"),
    ],
)
def test_13341_a_contract_violation_is_an_error_that_names_the_field(control_plane: dict[str, Any], text: str) -> None:
    with pytest.raises(ValueError, match=text):
        reported_versions(control_plane)
