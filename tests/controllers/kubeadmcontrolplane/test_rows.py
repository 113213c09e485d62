"""Rows that no recorded pass ends in."""

from __future__ import annotations

from typing import Any

import pytest

from clusterwright.api.kubernetes import Node
from clusterwright.api.meta import Condition
from clusterwright.controllers.kubeadmcontrolplane import names, plan
from clusterwright.controllers.kubeadmcontrolplane.machines.machine import ControlPlaneMachine, Differences
from clusterwright.controllers.kubeadmcontrolplane.machines.remediation import REMEDIATE, RemediationFacts, Remedy
from clusterwright.controllers.kubeadmcontrolplane.plan import Scale
from clusterwright.controllers.kubeadmcontrolplane.preflight import PREFLIGHT, Blocker, PreflightFacts
from clusterwright.controllers.kubeadmcontrolplane.snapshot import Inspection
from clusterwright.workload.access import EtcdMember
from support.control_planes import control_plane, owned

from . import harness as h

HEALTHY = tuple(Condition(type=t, status="True") for t in (*names.COMPONENTS, names.ETCD_MEMBER))
MARKS = (Condition(type="HealthCheckSucceeded", status="False"), Condition(type="OwnerRemediated", status="False"))
HOOK = {"pre-terminate.delete.hook.machine.cluster.x-k8s.io/kcp-cleanup": ""}


def three(**last: Any) -> list[ControlPlaneMachine]:
    return [owned("m0", node="n0", conditions=HEALTHY), owned("m1", node="n1", conditions=HEALTHY), owned("m2", **last)]


def test_an_invalid_version_lets_no_machine_go() -> None:
    leaving = owned("m0", node="n0", deletion_timestamp=h.NOW, annotations=HOOK)

    decision = plan.LEAVE.decide(control_plane(leaving, now=h.NOW, spec={"version": "latest"}))

    assert decision.row == "version-unreadable"
    assert "latest" in decision.error
    assert decision.act is None


@pytest.mark.parametrize(("strategy", "act"), [("OnDelete", Scale.PREPARE_ROLLOUT), ("RollingUpdate", Scale.SURGE), ("", Scale.SURGE)])
def test_on_delete_rollouts_only_prepare_the_workload_cluster(strategy: str, act: Scale) -> None:
    machine = owned("m0", node="n0", differences=Differences(config=True))

    assert plan.SCALE.decide(control_plane(machine, now=h.NOW, spec={"rollout": {"strategy": {"type": strategy}}})).act is act


def test_without_replicas_nothing_is_scaled() -> None:
    assert plan.SCALE.decide(control_plane(now=h.NOW, spec={"replicas": None})).row == "replicas-unset"


def facts(machines: list[ControlPlaneMachine], **changes: Any) -> RemediationFacts:
    members = [EtcdMember(id=str(n), name=f"n{n}") for n in range(3)]
    given: dict[str, Any] = {"machine": machines[2], "member": "n2", "nodes_listed": True, "initialized": True, "now": h.NOW, **changes}
    return RemediationFacts(machines=machines, managed_etcd=True, members=members, leader=members[0], **given)


def test_no_machine_is_remediated_while_another_is_deleted() -> None:
    machines = three(node="n2", conditions=MARKS)
    machines[1] = owned("m1", node="n1", conditions=HEALTHY, deletion_timestamp=h.NOW)

    decision = REMEDIATE.decide(facts(machines))

    assert decision.row == "deleting"
    assert decision.outcome is not None
    assert decision.outcome.reason == "RemediationDeferred"


def test_an_unusable_workload_cluster_fails_the_remediation_without_a_condition() -> None:
    machines = three(node="n2", conditions=MARKS)

    refused = REMEDIATE.decide(facts(machines, unreachable="no etcd CA"))

    assert (refused.row, refused.outcome, refused.act) == ("unreachable", None, None)
    assert refused.error == "failed to create client to workload cluster: no etcd CA"
    assert REMEDIATE.decide(facts(machines)).act is Remedy.FORWARD_AND_DELETE


@pytest.mark.parametrize(
    ("machines", "act"), [([], None), (three(node="n2", deletion_timestamp=h.NOW, conditions=HEALTHY), Blocker.DELETION)]
)
def test_preflight_checks_of_the_first_machine_and_during_a_deletion(machines: list[ControlPlaneMachine], act: Blocker | None) -> None:
    node = {m.node: Node() for m in machines}
    available = control_plane(*machines, now=h.NOW, inspection=Inspection(nodes=node, members=()))

    assert PREFLIGHT.decide(PreflightFacts.of(available)).act is act
