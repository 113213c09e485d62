"""Seed 004, row by row and note by note, on the real controller.

`ROWS` is the seed's table as data: status, reason, message, requeue. Each row has a world that makes its guard hold; the pass must say
what the row says. Deliberate differences are listed with their ruling.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest

from clusterwright.controllers.kubeadmcontrolplane.conditions import AVAILABLE
from clusterwright.tables import check
from clusterwright.tables.table import Collect, Row
from controllers.kubeadmcontrolplane import harness as h

API = "APIServerPodHealthy"
MEMBER = "EtcdMemberHealthy"


def sick(machine: Any, type: str, *, status: str = "False", seconds: float = 60.0) -> Any:
    machine.sick[type] = (status, seconds)
    return machine


def recently(seconds: float) -> dict[str, Any]:
    found: dict[str, Any] = h.condition("Initialized", "True", "Initialized", since=h.ago(seconds=seconds))
    return found


def degraded() -> Any:
    machines = h.machines(3)
    sick(machines[2], MEMBER)
    sick(machines[2], API)
    return h.World(machines)


def no_quorum() -> Any:
    machines = h.machines(3)
    for machine in machines[:2]:
        sick(machine, MEMBER)
    return h.World(machines)


def nobody_healthy() -> Any:
    machines = h.machines(3)
    for machine in machines:
        sick(machine, API)
    return h.World(machines)


@dataclass(frozen=True)
class SeedRow:
    """A row of the seed: what Available becomes, and when the controller looks again (None: nothing asks for it)."""

    status: str
    reason: str
    message: str
    requeue: float | None
    world: Callable[[], Any]
    ruling: str = ""


QUORUM_1_OF_3 = "* 1 of 3 etcd members is healthy, at least 2 healthy member required for etcd quorum"
ROWS: dict[str, SeedRow] = {
    "not-initialized": SeedRow(
        "False", "NotAvailable", "Control plane not yet initialized", 20,
        lambda: h.World(h.machines(1), initialized=False, initialized_condition=None, kubeadm_config=False, inspected=False),
    ),
    "etcd-settling": SeedRow(
        "False", "NotAvailable", "Waiting for etcd to report the list of members", 20,
        lambda: h.World(h.machines(3), members=None, initialized_condition=recently(5)),
    ),
    "etcd-unreadable": SeedRow(
        "Unknown", "AvailableInspectionFailed", "Failed to get etcd members", 20,
        lambda: h.World(h.machines(3), members=None, initialized_condition=recently(300)),
        ruling="the seed's reason, not upstream's InspectionFailed",
    ),
    "etcd-mismatch": SeedRow(
        "False", "NotAvailable", "The list of etcd members does not match the list of Machines and Nodes", None,
        lambda: h.World(h.machines(3), members=[h.member("n1", leader=True), h.member("n2")]),
    ),
    "deleting": SeedRow(
        "False", "NotAvailable", "* Control plane metadata.deletionTimestamp is set", 30,
        lambda: h.World(h.machines(3), deleting=True),
        ruling="the row asks for no requeue; the deletion flow has its own net of 30 s",
    ),
    "no-certificates": SeedRow(
        "False", "NotAvailable", "* Control plane certificates are not available", None,
        lambda: h.World(h.machines(3), missing_certificates=("sa",)),
    ),
    "no-quorum": SeedRow("False", "NotAvailable", QUORUM_1_OF_3, None, no_quorum),
    "no-machine": SeedRow(
        "False", "NotAvailable", "* There are no Machines with healthy control plane components, at least 1 required", 20,
        nobody_healthy,
        ruling="note 4: the controller looks again after 20 s while components are unhealthy",
    ),
    "degraded": SeedRow(
        "True", "Available",
        "* 2 of 3 etcd members are healthy, at least 2 healthy member required for etcd quorum\n"
        "* 2 of 3 Machines have healthy control plane components, at least 1 required",
        20, degraded, ruling="note 4, as above",
    ),
    "available": SeedRow("True", "Available", "", None, lambda: h.World(h.machines(3))),
}  # fmt: skip
LINES = {"degraded": ("etcd-degraded", "machines-degraded")}
"""The seed's row 9 is one row with two bullets; the table has a line for each."""


@pytest.mark.parametrize("name", ROWS)
def test_row(name: str) -> None:
    row = ROWS[name]

    answer = h.run(row.world())

    assert answer.error is None
    assert answer.condition("Available") == (row.status, row.reason, row.message)
    assert answer.requeue == row.requeue


def test_the_table_has_exactly_the_rows_of_the_seed_in_its_order() -> None:
    expected = [line for name in ROWS for line in LINES.get(name, (name,))]

    assert list(AVAILABLE.row_names) == expected


@pytest.mark.parametrize("name", ROWS)
def test_status_and_reason_in_the_table_are_those_of_the_seed(name: str) -> None:
    found = AVAILABLE.row(LINES.get(name, (name,))[0])

    assert (found.transition.status, found.transition.reason) == (ROWS[name].status, ROWS[name].reason)


@pytest.mark.parametrize("name", ["not-initialized", "etcd-settling", "etcd-unreadable"])
def test_the_first_three_rows_vote_for_twenty_seconds(name: str) -> None:
    row = AVAILABLE.row(name)

    assert row.requeue is not None
    assert row.requeue.total_seconds() == 20


def test_the_other_rows_cast_no_vote() -> None:
    others = [r for r in AVAILABLE.rows if r.name not in {"not-initialized", "etcd-settling", "etcd-unreadable"}]

    assert [r.requeue for r in others] == [None] * len(others)


def test_the_table_has_no_gap_and_no_row_that_cannot_be_reached() -> None:
    assert check.gaps(AVAILABLE) == []
    assert check.unreachable(AVAILABLE) == []


def test_every_decision_observes_the_generation() -> None:
    for name, row in ROWS.items():
        found = h.run(row.world()).object

        available = next(c for c in found["status"]["conditions"] if c["type"] == "Available")
        assert available["observedGeneration"] == found["metadata"]["generation"], name


def test_rows_five_to_eight_are_collected_one_bullet_each_in_the_order_of_the_seed() -> None:
    machines = h.machines(3)
    for machine in machines:
        sick(machine, API)
        sick(machine, MEMBER)

    answer = h.run(h.World(machines, deleting=True, conditions=[h.condition("CertificatesAvailable", "False", "NotAvailable")]))

    assert answer.condition("Available") == (
        "False",
        "NotAvailable",
        (
            "* Control plane metadata.deletionTimestamp is set\n"
            "* Control plane certificates are not available\n"
            "* There are no healthy etcd member, at least 2 healthy member required for etcd quorum\n"
            "* There are no Machines with healthy control plane components, at least 1 required"
        ),
    )


def test_first_match_rows_win_over_the_bullets() -> None:
    world = h.World(h.machines(3), deleting=True, members=None, initialized_condition=recently(5))

    assert h.run(world).condition("Available") == ("False", "NotAvailable", "Waiting for etcd to report the list of members")


def test_the_rows_that_look_at_etcd_do_not_apply_to_an_external_one() -> None:
    answer = h.run(h.World(h.machines(3), external_etcd=True, initialized_condition=recently(5)))

    assert answer.condition("Available") == ("True", "Available", "")
    assert answer.condition("EtcdClusterHealthy") is None


# ------------------------------------------------------------------------------------------------ note 1


@pytest.mark.parametrize(("total", "healthy"), [(t, g) for t in range(1, 8) for g in range(t + 1)])
def test_note_1_quorum_is_half_of_the_voting_members_and_one(total: int, healthy: int) -> None:
    machines = h.machines(total)
    for machine in machines[healthy:]:
        sick(machine, MEMBER)

    status = h.run(h.World(machines)).condition("Available")

    assert status is not None
    assert status[0] == ("True" if healthy >= total // 2 + 1 else "False")


def test_note_1_learners_do_not_count_toward_quorum() -> None:
    machines = h.machines(4)
    sick(machines[2], MEMBER)
    sick(machines[3], MEMBER)
    members = [h.member("n1", leader=True), h.member("n2"), h.member("n3"), h.member("n4", learner=True)]

    answer = h.run(h.World(machines, members=members))

    found = answer.condition("Available")
    assert found is not None
    assert found[0] == "True"
    assert found[2].startswith(
        "* 2 of 4 etcd members are healthy, 1 learner etcd member, at least 2 healthy member required for etcd quorum"
    )


# ------------------------------------------------------------------------------------------------ note 2

REQUIRED = ("APIServerPodHealthy", "ControllerManagerPodHealthy", "SchedulerPodHealthy", "EtcdMemberHealthy", "EtcdPodHealthy")


@pytest.mark.parametrize("type", REQUIRED)
@pytest.mark.parametrize("how", ["False", "Unknown", "missing"])
def test_note_2_a_machine_is_healthy_only_if_all_five_conditions_are_true(type: str, how: str) -> None:
    machine = h.machines(1)[0]
    if how == "missing":
        machine.missing = (type,)
    else:
        sick(machine, type, status=how)

    found = h.run(h.World([machine])).condition("Available")

    assert found is not None
    assert found[0] == "False"
    assert "* There are no Machines with healthy control plane components, at least 1 required" in found[2]


@pytest.mark.parametrize("type", REQUIRED)
def test_note_2_with_external_etcd_its_conditions_do_not_matter(type: str) -> None:
    machine = sick(h.machines(1)[0], type)

    found = h.run(h.World([machine], external_etcd=True)).condition("Available")

    assert found is not None
    assert found[0] == ("True" if type.startswith("Etcd") else "False")


def test_note_2_a_machine_without_provider_id_is_not_asked_but_counts_in_the_total() -> None:
    machines = h.machines(3)
    machines[2].provider_id = False
    sick(machines[2], API, status="Unknown")
    sick(machines[1], API)

    found = h.run(h.World(machines)).condition("Available")

    assert found == ("True", "Available", "* 1 of 3 Machines has healthy control plane components, at least 1 required")


# ------------------------------------------------------------------------------------------------ note 3


@pytest.mark.parametrize(("seconds", "said"), [(0, False), (9, False), (10, False), (11, True), (60, True)])
def test_note_3_a_failure_is_reported_only_after_ten_seconds(seconds: float, said: bool) -> None:
    machines = h.machines(3)
    sick(machines[2], API, seconds=seconds)
    sick(machines[2], MEMBER, seconds=seconds)

    found = h.run(h.World(machines)).condition("Available")

    assert found is not None
    assert found[:2] == ("True", "Available")
    assert bool(found[2]) == said


def test_note_3_the_delay_never_decides_between_true_and_false() -> None:
    machines = h.machines(3)
    for machine in machines[:2]:
        sick(machine, MEMBER, seconds=0)

    assert h.run(h.World(machines)).condition("Available") == ("False", "NotAvailable", QUORUM_1_OF_3)


def test_note_3_a_member_without_a_machine_is_reported_at_once() -> None:
    members = [h.member("n1", leader=True), h.member("n2"), h.member("n3"), h.member("n9")]
    machines = h.machines(3)
    machines.append(h.MachineSpec("m4", node=None, provider_id=False, age=30))
    machines.append(h.MachineSpec("m5", node=None, provider_id=False, age=20))

    found = h.run(h.World(machines, members=members)).condition("Available")

    assert found == ("True", "Available", "* 3 of 4 etcd members are healthy, at least 3 healthy member required for etcd quorum")


# ------------------------------------------------------------------------------------------------ note 4


def test_note_4_twenty_seconds_while_waiting_for_initialization() -> None:
    assert h.run(ROWS["not-initialized"].world()).requeue == 20


def test_note_4_twenty_seconds_while_components_are_unhealthy() -> None:
    machines = h.machines(3)
    sick(machines[0], "SchedulerPodHealthy")

    answer = h.run(h.World(machines))

    assert answer.condition("ControlPlaneComponentsHealthy") == (
        "False",
        "NotHealthy",
        "* Machine m1:\n  * SchedulerPodHealthy: sick",
    )
    assert answer.requeue == 20


def test_note_4_unknown_components_do_not_ask_for_it() -> None:
    machines = h.machines(3)
    sick(machines[0], "SchedulerPodHealthy", status="Unknown")

    assert h.run(h.World(machines)).requeue is None


# ------------------------------------------------------------------------------------------------ note 5


@pytest.mark.parametrize("status", ["False", "Unknown"])
def test_note_5_certificates_must_be_available(status: str) -> None:
    world = h.World(h.machines(3), deleting=True, conditions=[h.condition("CertificatesAvailable", status, "NotAvailable")])

    found = h.run(world).condition("Available")

    assert found is not None
    assert "* Control plane certificates are not available" in found[2]


def test_note_5_the_status_field_decides_about_initialization_and_the_condition_only_runs_the_clock() -> None:
    world = h.World(
        h.machines(1), initialized_condition=h.condition("Initialized", "False", "NotInitialized"), inspected=False, members=None
    )

    answer = h.run(world)

    assert answer.condition("Available") == ("False", "NotAvailable", "Waiting for etcd to report the list of members")
    assert answer.condition("Initialized") == ("True", "Initialized", "")


@pytest.mark.parametrize(("seconds", "row"), [(119, "etcd-settling"), (120, "etcd-unreadable"), (121, "etcd-unreadable")])
def test_the_two_minutes_end_exactly_after_two_minutes(seconds: float, row: str) -> None:
    answer = h.run(h.World(h.machines(3), members=None, initialized_condition=recently(seconds)))

    assert answer.raw["rows"]["Available"] == row


def test_collecting_rows_and_plain_rows_are_what_the_seed_shows() -> None:
    kinds = {r.name: type(r) for r in AVAILABLE.rows}

    assert kinds["not-available"] is Collect
    assert kinds["degraded"] is Collect
    assert {n for n, k in kinds.items() if k is Row} == {
        "not-initialized",
        "etcd-settling",
        "etcd-unreadable",
        "etcd-mismatch",
        "available",
    }
