"""One pass of the KubeadmControlPlane controller agrees with every recorded pass; and they reach nearly every row."""

from __future__ import annotations

from typing import Any

import pytest

from clusterwright.controllers.kubeadmcontrolplane import conditions, plan
from clusterwright.controllers.kubeadmcontrolplane.certificates import CERTIFICATES
from clusterwright.controllers.kubeadmcontrolplane.conditions_v1beta1 import CONCLUSIONS_V1BETA1
from clusterwright.controllers.kubeadmcontrolplane.inspection import INSPECT
from clusterwright.controllers.kubeadmcontrolplane.machines.in_place import IN_PLACE
from clusterwright.controllers.kubeadmcontrolplane.machines.remediation import REMEDIATE
from clusterwright.controllers.kubeadmcontrolplane.preflight import PREFLIGHT
from support.vectors import Played, play

SETS = {"kubeadmcontrolplane": 986, "kubeadmcontrolplane-health": 360}

# Rows that no recorded world reaches; each has a test of its own in tests/controllers/kubeadmcontrolplane.
UNRECORDED: dict[str, set[str]] = {
    "Leave": {"version-unreadable"},
    "OwnerRemediated": {"deleting", "no-leader", "no-candidate", "unreachable"},
    "Scale": {"other-strategy", "replicas-unset"},
    "Preflight": {"first-machine", "deletion"},
    "InPlaceUpdate": {"renewal"},
}


@pytest.fixture(scope="module")
def played() -> dict[str, Played]:
    return {name: play(name) for name in SETS}


@pytest.mark.parametrize("name", SETS)
def test_every_recorded_pass_of_the_control_plane_controller_agrees(name: str, played: dict[str, Played]) -> None:
    assert played[name].count >= SETS[name]
    assert played[name].differing == {}


@pytest.mark.parametrize("name", SETS)
def test_no_recorded_pass_contradicts_a_table(name: str, played: dict[str, Played]) -> None:
    assert played[name].decided
    assert played[name].contradictions == set()


ACTS = (plan.PREPARE, INSPECT, plan.LEAVE, REMEDIATE, plan.SCALE, PREFLIGHT, IN_PLACE, plan.DELETE)


@pytest.mark.parametrize("table", [*ACTS, CERTIFICATES, *conditions.TABLES, *CONCLUSIONS_V1BETA1], ids=lambda t: t.name)
def test_recorded_passes_reach_every_row_but_those_listed(table: Any, played: dict[str, Played]) -> None:
    missed = set.intersection(*(p.missed(table) for p in played.values()))

    assert missed == UNRECORDED.get(table.name, set())
