"""Judging Machines, and how many may be unhealthy: pure choices."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clusterwright.api.core import (
    Cluster,
    ClusterStatus,
    MachineHealthCheck,
    MachineHealthCheckChecks,
    MachineHealthCheckRemediation,
    MachineHealthCheckRemediationTriggerIf,
    MachineHealthCheckSpec,
    UnhealthyNodeCondition,
)
from clusterwright.api.kubernetes import Node, NodeCondition, NodeStatus
from clusterwright.api.meta import Condition, ObjectMeta
from clusterwright.controllers.machinehealthcheck.evaluation import (
    ClusterFacts,
    Evaluation,
    Finding,
    MachineFacts,
    Rule,
    Target,
    evaluate,
    next_check,
)
from clusterwright.controllers.machinehealthcheck.limits import InvalidLimit, limit_of

NOW = datetime(2026, 5, 1, 12, tzinfo=UTC)
UP = ClusterFacts.of(
    Cluster(
        status=ClusterStatus(
            conditions=tuple(
                Condition(type=t, status="True", last_transition_time=NOW - timedelta(days=1))
                for t in ("InfrastructureReady", "ControlPlaneInitialized")
            )
        )
    )
)


def a_check(timeout: int) -> MachineHealthCheck:
    rule = UnhealthyNodeCondition(type="Ready", status="False", timeout_seconds=timeout)
    return MachineHealthCheck(spec=MachineHealthCheckSpec(checks=MachineHealthCheckChecks(unhealthy_node_conditions=(rule,))))


def limited(limit: int | str | None = None, range: str = "") -> MachineHealthCheck:
    trigger = MachineHealthCheckRemediationTriggerIf(unhealthy_in_range=range, unhealthy_less_than_or_equal_to=limit)
    return MachineHealthCheck(spec=MachineHealthCheckSpec(remediation=MachineHealthCheckRemediation(trigger_if=trigger)))


@given(st.integers(0, 10_000), st.integers(0, 10_000))
def test_a_machine_is_healthy_undecided_or_unhealthy_and_the_next_look_is_just_after_the_timeout(timeout: int, age: int) -> None:
    ready = NodeCondition(type="Ready", status="False", reason="x", last_transition_time=NOW - timedelta(seconds=age))
    target = Target(MachineFacts(metadata=ObjectMeta(name="m")), Node(status=NodeStatus(conditions=(ready,))))

    found = evaluate(a_check(timeout), UP, target, NOW)

    assert (found.is_healthy, found.is_pending, found.is_unhealthy).count(True) == 1
    assert found.is_unhealthy is (age > timeout)
    if found.recheck is not None:
        later = evaluate(a_check(timeout), UP, target, NOW + found.recheck)
        assert later.is_unhealthy


def test_the_next_check_is_that_of_the_first_undecided_machine() -> None:
    waiting = [Evaluation(recheck=timedelta(seconds=s)) for s in (30, 20)]
    unhealthy = Evaluation(findings=(Finding(Rule.NODE_CONDITION, "bad"),), recheck=timedelta(seconds=5))

    assert next_check([*waiting, unhealthy]) == timedelta(seconds=20)
    assert next_check([unhealthy]) is None


@given(st.integers(0, 100), st.integers(0, 1000))
def test_a_percentage_is_rounded_down(percent: int, total: int) -> None:
    assert limit_of(limited(f"{percent}%"), total).most == total * percent // 100


@given(st.integers(0, 100), st.integers(0, 100))
def test_the_remaining_budget_is_never_negative_and_is_zero_while_remediation_is_stopped(most: int, not_healthy: int) -> None:
    limit = limit_of(limited(most), 100)

    assert limit.left(not_healthy) == max(0, most - not_healthy)
    assert limit.allows(not_healthy) is (not_healthy <= most)


@pytest.mark.parametrize(
    "check",
    [
        pytest.param(limited("many"), id="no-number"),
        pytest.param(limited("10"), id="text-without-percent"),
        pytest.param(limited(range="[5-3]"), id="upside-down"),
        pytest.param(limited(range="3-5"), id="no-brackets"),
    ],
)
def test_a_limit_that_cannot_be_read_is_named(check: MachineHealthCheck) -> None:
    with pytest.raises(InvalidLimit, match=r"spec\.remediation\.triggerIf"):
        limit_of(check, 10)


def test_a_range_wins_over_the_other_limit() -> None:
    limit = limit_of(limited(100, "[2-4]"), 10)

    assert [n for n in range(10) if limit.allows(n)] == [2, 3, 4]
    assert limit.left(3) == 1
