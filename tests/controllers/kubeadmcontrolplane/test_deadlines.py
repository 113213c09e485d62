"""When time alone changes a decision."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import pytest

from clusterwright.api import codec
from clusterwright.api.kubernetes import Node
from clusterwright.api.meta import Condition
from clusterwright.controllers.kubeadmcontrolplane.deadlines import next_deadline
from clusterwright.controllers.kubeadmcontrolplane.machines.machine import ControlPlaneMachine
from clusterwright.controllers.kubeadmcontrolplane.machines.remediation import RemediationData
from clusterwright.controllers.kubeadmcontrolplane.snapshot import Inspection
from clusterwright.workload.access import EtcdMember
from support.control_planes import control_plane, owned

from . import harness as h

API = "APIServerPodHealthy"


def due(machine: ControlPlaneMachine, inspection: Inspection | None = None, **spec: Any) -> float | None:
    """Seconds from now until the next moment."""
    moment = next_deadline(control_plane(machine, now=h.NOW, spec=spec, inspection=inspection or Inspection()))
    return (moment - h.NOW).total_seconds() if moment is not None else None


def at(seconds: float) -> datetime:
    return h.NOW + timedelta(seconds=seconds)


def test_a_healthy_control_plane_does_not_depend_on_time() -> None:
    assert due(owned("m", node="n")) is None


def test_rollout_after_replaces_older_machines() -> None:
    machine = owned("m")

    assert due(machine, rollout={"after": h.stamp(at(100))}) == 101
    assert due(machine, rollout={"after": h.stamp(at(-100))}) is None


def test_certificate_renewals_have_a_deadline() -> None:
    machine = owned("m", status={"certificatesExpiryDate": h.stamp(at(20 * 86400))})

    assert due(machine, rollout={"before": {"certificatesExpiryDays": 10}}) == 10 * 86400 + 1
    assert due(machine) is None


@pytest.mark.parametrize(("seconds", "expected"), [(4, 7), (9, 2), (60, None)])
def test_unreported_failures_have_a_deadline(seconds: float, expected: float | None) -> None:
    condition = Condition(type=API, status="False", last_transition_time=at(-seconds))

    assert due(owned("m", provider_id="x", conditions=(condition,))) == expected


def test_a_late_member_of_a_node_has_a_deadline() -> None:
    node = codec.convert({"metadata": {"name": "n", "creationTimestamp": h.ago(seconds=30)}}, Node)
    inspection = Inspection(nodes={"n": node}, members=(EtcdMember(id="1", name="other"),))

    assert due(owned("m", node="n"), inspection) == 91


@pytest.mark.parametrize(("name", "expected"), [("", 91), ("n2", None)])
def test_an_unnamed_learner_of_a_new_node_has_a_deadline(name: str, expected: float | None) -> None:
    node = codec.convert({"metadata": {"name": "n", "creationTimestamp": h.ago(seconds=30)}}, Node)
    inspection = Inspection(nodes={"n": node}, members=(EtcdMember(id="1", name="n"), EtcdMember(id="2", name=name)))

    assert due(owned("m", node="n"), inspection) == expected


def test_a_stale_deletion_has_a_deadline() -> None:
    assert due(owned("m", deletion_timestamp=at(-60))) == 841


def test_a_postponed_remediation_has_a_deadline() -> None:
    marks = tuple(Condition(type=t, status="False") for t in ("HealthCheckSucceeded", "OwnerRemediated"))
    data = RemediationData(machine="x", time=at(-60)).dump()
    machine = owned("m", conditions=marks, annotations={"controlplane.cluster.x-k8s.io/remediation-for": data})

    assert due(machine, remediation={"retryPeriodSeconds": 100}) == 41
    assert due(machine, remediation={"minHealthyPeriodSeconds": 90}) == 31
    garbled = owned("m", conditions=marks, annotations={"controlplane.cluster.x-k8s.io/remediation-for": "{"})
    assert due(garbled, remediation={"retryPeriodSeconds": 100}) is None
