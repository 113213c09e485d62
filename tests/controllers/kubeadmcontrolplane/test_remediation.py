"""Edge cases of remediation, and what must hold for any choice."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clusterwright.api.meta import Condition
from clusterwright.api.wellknown import REMEDIATE_MACHINE_ANNOTATION
from clusterwright.controllers.kubeadmcontrolplane import names
from clusterwright.controllers.kubeadmcontrolplane.machines.machine import ControlPlaneMachine
from clusterwright.controllers.kubeadmcontrolplane.machines.remediation import (
    REMEDIATE,
    GarbledHistory,
    RemediationData,
    RemediationFacts,
    choose,
    recovered,
)
from clusterwright.controllers.kubeadmcontrolplane.machines.selection import leadership_candidates
from clusterwright.workload.access import EtcdMember
from support.control_planes import owned

from . import harness as h

LOCK = "controlplane.cluster.x-k8s.io/remediation-in-progress"
FOR = "controlplane.cluster.x-k8s.io/remediation-for"
MEMBER = "EtcdMemberHealthy"


def mark(machine: h.MachineSpec, *, healthy: bool = False) -> h.MachineSpec:
    machine.conditions = [
        h.condition("HealthCheckSucceeded", "True" if healthy else "False", "UnhealthyNode"),
        h.condition("OwnerRemediated", "False", "WaitingForRemediation", "Waiting for remediation"),
    ]
    return machine


def world(count: int, *marked: int, **changes: Any) -> h.World:
    machines = h.machines(count)
    for number in marked:
        mark(machines[number - 1])
    return h.World(machines, **changes)


def data(seconds: float, retries: int = 0, machine: str = "m0") -> str:
    return RemediationData(machine=machine, time=h.NOW - timedelta(seconds=seconds), retry_count=retries).dump()


def lock_of(answer: h.Answer) -> str | None:
    found: str | None = answer.object["metadata"].get("annotations", {}).get(LOCK)
    return found


def test_a_machine_that_recovered_is_no_longer_marked_in_either_form() -> None:
    w = world(3)
    mark(w.machines[2], healthy=True)

    answer = h.run(w)

    assert answer.on_machine("m3", "OwnerRemediated") is None
    assert answer.did("patch", "Machine") == ["m3"]
    assert answer.did("delete", "Machine") == []


def test_while_a_remediation_is_in_progress_there_is_no_other() -> None:
    answer = h.run(world(3, 3, annotations={LOCK: data(60)}))

    assert answer.did("delete", "Machine") == []


def test_a_lock_older_than_a_machine_is_stale_and_cleaned_even_with_nothing_to_do() -> None:
    idle = h.run(world(3, annotations={LOCK: data(200000)}))
    busy = h.run(world(3, 3, annotations={LOCK: data(200000)}))

    assert lock_of(idle) is None
    assert busy.did("delete", "Machine") == ["m3"]


def test_a_lock_that_cannot_be_read_is_an_error() -> None:
    assert h.run(world(3, annotations={LOCK: "{"})).error


def test_a_machine_that_is_deleting_already_is_not_deleted_again() -> None:
    w = world(3, 3)
    w.machines[2].deleting = 30

    answer = h.run(w)

    assert answer.did("delete", "Machine") == []
    assert lock_of(answer) is None


def test_a_pending_topology_upgrade_defers() -> None:
    answer = h.run(world(3, 3, topology="v1.35.0", features={"ClusterTopology": True}))

    assert answer.on_machine("m3", "OwnerRemediated") == (
        "False",
        "RemediationDeferred",
        "KubeadmControlPlane can't remediate while waiting for a version upgrade to v1.35.0 to be propagated from Cluster.spec.topology",
    )


@pytest.mark.parametrize(("step", "deleted", "awaited"), [("v1.34.1", ["m3"], ""), ("v1.35.0", [], "v1.35.0"), ("", [], "v1.36.0")])
def test_a_machine_is_remediated_between_the_steps_of_a_chained_upgrade(step: str, deleted: list[str], awaited: str) -> None:
    annotations = {"topology.internal.cluster.x-k8s.io/upgrade-step": step}

    answer = h.run(world(3, 3, topology="v1.36.0", features={"ClusterTopology": True}, cluster_annotations=annotations))

    assert answer.did("delete", "Machine") == deleted
    said = answer.on_machine("m3", "OwnerRemediated")
    assert said is not None
    assert (f"a version upgrade to {awaited} to be propagated" in said[2]) == bool(awaited)


@pytest.mark.parametrize(("seconds", "retries", "spec", "reason"), [
    (60, 3, {"maxRetry": 3}, "CannotBeRemediated"),
    (60, 2, {"maxRetry": 3}, "MachineDeleting"),
    (60, 0, {"retryPeriodSeconds": 3600}, "RemediationDeferred"),
    (3601, 3, {"maxRetry": 3}, "MachineDeleting"),
    (3600, 3, {"maxRetry": 3}, "MachineDeleting"),
    (3599, 3, {"maxRetry": 3}, "CannotBeRemediated"),
    (120, 3, {"maxRetry": 3, "minHealthyPeriodSeconds": 100}, "MachineDeleting"),
])  # fmt: skip
def test_remediation_stops_at_the_retry_limit(seconds: float, retries: int, spec: dict[str, Any], reason: str) -> None:
    w = world(3, 3, spec={"remediation": spec})
    w.machines[2].annotations = {FOR: data(seconds, retries)}

    found = h.run(w).on_machine("m3", "OwnerRemediated")

    assert found is not None
    assert found[1] == reason


def test_the_counter_goes_on_within_the_healthy_period_and_restarts_after_it() -> None:
    within, after = world(3, 3), world(3, 3)
    within.machines[2].annotations = {FOR: data(60, 1)}
    after.machines[2].annotations = {FOR: data(7200, 1)}

    assert RemediationData.parse(lock_of(h.run(within)) or "").retry_count == 2
    assert RemediationData.parse(lock_of(h.run(after)) or "").retry_count == 0


def test_the_only_machine_cannot_be_remediated_once_initialized() -> None:
    answer = h.run(world(1, 1))

    assert answer.did("delete", "Machine") == []
    assert answer.on_machine("m1", "OwnerRemediated") == (
        "False",
        "CannotBeRemediated",
        "KubeadmControlPlane can't remediate if current replicas are less or equal to 1",
    )


def test_before_initialization_the_only_machine_is_remediated_and_retries_are_counted() -> None:
    first = world(1, 1, initialized=False, initialized_condition=None, kubeadm_config=False)
    second = world(1, 1, initialized=False, initialized_condition=None, kubeadm_config=False)
    second.machines[0].annotations = {FOR: data(60, 0)}

    one, two = h.run(first), h.run(second)

    assert one.did("delete", "Machine") == two.did("delete", "Machine") == ["m1"]
    assert RemediationData.parse(lock_of(two) or "").retry_count == 1
    assert one.requeue == 0.001


@pytest.mark.parametrize("count", [2, 3, 4])
def test_one_of_many_unhealthy_machines_is_deleted_and_the_lock_names_it(count: int) -> None:
    answer = h.run(world(count, count, replicas=1 if count == 2 else 3))

    assert answer.did("delete", "Machine") == [f"m{count}"]
    assert RemediationData.parse(lock_of(answer) or "").machine == f"m{count}"
    assert answer.on_machine(f"m{count}", "OwnerRemediated") == ("False", "MachineDeleting", "Machine is deleting")


def test_a_machine_that_never_got_a_node_is_remediated_too() -> None:
    w = world(3)
    w.machines.append(mark(h.MachineSpec("m4", node=None, age=300)))

    assert h.run(w).did("delete", "Machine") == ["m4"]


def test_a_machine_that_is_coming_up_defers() -> None:
    w = world(3, 3)
    w.machines.append(h.MachineSpec("m4", node=None, age=100))

    found = h.run(w).on_machine("m3", "OwnerRemediated")

    assert found == (
        "False",
        "RemediationDeferred",
        "KubeadmControlPlane waiting for control plane Machine provisioning to complete before triggering remediation",
    )


@pytest.mark.parametrize(("count", "sick", "allowed"), [(3, 1, False), (5, 1, True), (5, 2, False), (7, 2, True), (7, 3, False)])
def test_the_quorum_of_the_remaining_members_decides_about_remediation(count: int, sick: int, allowed: bool) -> None:
    w = world(count, count)
    for machine in w.machines[:sick]:
        machine.sick = {MEMBER: ("False", 60)}

    answer = h.run(w)

    assert bool(answer.did("delete", "Machine")) == allowed


def test_an_unhealthy_machine_can_take_the_leadership_if_there_is_no_other() -> None:
    w = world(3, 3, members=[h.member(f"n{n}", leader=n == 3) for n in (1, 2, 3)])
    for machine in w.machines[:2]:
        machine.conditions = [h.condition("HealthCheckSucceeded", "False", "UnhealthyNode")]

    answer = h.run(w)

    assert answer.did("patch", "EtcdMember") == ["n2"]
    assert answer.did("delete", "Machine") == ["m3"]


def test_without_an_etcd_leader_no_machine_is_deleted_and_the_reason_is_reported() -> None:
    """A list of members of which none leads counts as unknown, as in Cluster API v1.14 (#13848)."""
    text = "Failed to check etcd cluster health before remediation"

    answer = h.run(world(3, 3, members=[h.member(f"n{n}") for n in (1, 2, 3)]))

    assert answer.did("delete", "Machine") == []
    assert answer.on_machine("m3", "OwnerRemediated") == ("False", "RemediationDeferred", text)


def test_without_a_candidate_no_machine_is_deleted_and_the_reason_is_reported() -> None:
    text = "unable to move etcd leadership, no candidate machines for etcd leadership found"
    lost = owned(
        "m1",
        conditions=[
            Condition(type="HealthCheckSucceeded", status="False"),
            *(Condition(type=t, status="True") for t in (*names.COMPONENTS, MEMBER)),
        ],
    )
    leader = EtcdMember(id="2", name="n2", is_leader=True)

    chosen = owned("m2", node="n2")
    facts = RemediationFacts(
        machine=chosen,
        member=None,
        machines=[lost, chosen],
        managed_etcd=True,
        members=[leader],
        leader=leader,
        nodes_listed=True,
        initialized=True,
        now=h.NOW,
    )

    decision = REMEDIATE.decide(facts)

    assert decision.outcome is not None
    assert (decision.outcome.reason, decision.outcome.message, decision.error) == ("CannotBeRemediated", text, text)


def test_when_the_leadership_cannot_be_moved_the_reason_is_reported() -> None:
    w = world(3, 3, members=[h.member(f"n{n}", leader=n == 3) for n in (1, 2, 3)])
    w.workload = {"etcdErrors": {"moveLeader": "not ready"}}

    answer = h.run(w)

    assert answer.did("delete", "Machine") == []
    assert answer.on_machine("m3", "OwnerRemediated") == ("False", "CannotBeRemediated", "failed to move etcd leadership")


@pytest.mark.parametrize(
    ("doubtful", "first"),
    [({}, "m4"), ({"m4": MEMBER}, "m3"), ({"m4": "HealthCheckSucceeded"}, "m3"), ({"m4": "UpToDate"}, "m3"), ({"m4": "UpToDate", "m3": MEMBER}, "m2"),
     ({"m4": MEMBER, "m3": "HealthCheckSucceeded", "m2": "UpToDate"}, "m2"), ({"m4": MEMBER, "m3": MEMBER, "m2": MEMBER}, "m4")],
)  # fmt: skip
def test_the_most_reliable_machine_is_the_first_candidate(doubtful: dict[str, str], first: str) -> None:
    """A healthy member counts most, then the health check, then what is not about to be replaced; of equal ones the newest is first."""
    machines = [
        owned(
            f"m{n}",
            node=f"n{n}",
            created=h.NOW + timedelta(seconds=n),
            conditions=[
                Condition(type=t, status="False" if doubtful.get(f"m{n}") == t else "True")
                for t in (MEMBER, "HealthCheckSucceeded", "UpToDate")
            ],
        )
        for n in range(1, 5)
    ]
    unfit = [owned("m5"), owned("m6", node="n6", deletion_timestamp=h.NOW)]

    found = leadership_candidates([*machines, *unfit], machines[0])

    assert found[0].name == first
    assert {m.name for m in found} == {"m2", "m3", "m4"}


def test_of_two_failures_only_one_is_deleted() -> None:
    w = world(5, 4, 5)

    assert len(h.run(w).did("delete", "Machine")) == 1


def test_without_a_known_member_the_rest_decides() -> None:
    w = world(3)
    w.machines.append(mark(h.MachineSpec("m4", node=None, provider_id=False, infrastructure=False, age=300)))

    assert h.run(w).did("delete", "Machine") == ["m4"]


def test_with_external_etcd_control_plane_health_alone_decides() -> None:
    assert h.run(world(3, 3, external_etcd=True)).did("delete", "Machine") == ["m3"]


# --------------------------------------------------------------------------------------- the choice


def machine(name: str, *, annotated: bool = False, node: bool = True, not_true: tuple[str, ...] = (), age: int = 0) -> ControlPlaneMachine:
    health = (*names.MACHINE_HEALTH,)
    conditions = [Condition(type=t, status="False" if t in not_true else "True") for t in health]
    conditions += [Condition(type="HealthCheckSucceeded", status="False"), Condition(type="OwnerRemediated", status="False")]
    return owned(
        name,
        node=f"n-{name}" if node else "",
        created=h.NOW - timedelta(seconds=age),
        annotations={REMEDIATE_MACHINE_ANNOTATION: ""} if annotated else {},
        conditions=tuple(conditions),
    )


ORDER = [
    machine("a", annotated=True),
    machine("b", node=False),
    machine("c", not_true=(MEMBER,)),
    machine("d", not_true=("EtcdPodHealthy",)),
    machine("e", not_true=("APIServerPodHealthy",)),
    machine("f", not_true=("ControllerManagerPodHealthy",)),
    machine("g", not_true=("SchedulerPodHealthy",)),
    machine("h", not_true=("NodeKubeadmLabelsAndTaintsSet",)),
    machine("i", age=500),
    machine("j", age=400),
    machine("k", age=400),
]


@pytest.mark.parametrize("position", range(len(ORDER) - 1))
def test_unhealthy_machines_are_remediated_in_order_of_priority(position: int) -> None:
    for later in ORDER[position + 1 :]:
        assert choose([later, ORDER[position]], managed_etcd=True) is ORDER[position]


def test_with_external_etcd_its_conditions_do_not_count() -> None:
    old, sick = machine("z", age=900), machine("a", not_true=(MEMBER,), age=10)

    assert choose([sick, old], managed_etcd=False) is old


@pytest.mark.parametrize("deleting", [False, True])
@pytest.mark.parametrize("checked", ["True", "False", "Unknown", None])
@pytest.mark.parametrize("remediated", ["True", "False", "Unknown", None])
def test_a_machine_has_recovered_if_it_is_healthy_marked_and_stays(deleting: bool, checked: str | None, remediated: str | None) -> None:
    given_ = {names.HEALTH_CHECK_SUCCEEDED: checked, names.OWNER_REMEDIATED: remediated}
    machine_ = owned(
        "m",
        deletion_timestamp=h.NOW if deleting else None,
        conditions=tuple(Condition(type=t, status=s) for t, s in given_.items() if s is not None),
    )

    assert recovered(machine_) == (not deleting and checked == "True" and remediated == "False")


@pytest.mark.parametrize(
    ("managed", "members", "nodes_listed", "asked"),
    [
        (True, True, True, True),
        (True, False, True, False),
        (True, True, False, False),
        (True, False, False, False),
        (False, False, False, True),
        (False, True, False, True),
    ],
)
def test_no_machine_is_deleted_while_etcd_cannot_be_asked(managed: bool, members: bool, nodes_listed: bool, asked: bool) -> None:
    healthy = tuple(Condition(type=t, status="True") for t in (*names.COMPONENTS, MEMBER))
    machines = [owned(f"m{n}", node=f"n{n}", conditions=healthy) for n in range(3)]
    facts = RemediationFacts(
        machine=machines[2], member="n2" if members else None, machines=machines, managed_etcd=managed, members=[EtcdMember(id=f"{n}", name=f"n{n}") for n in range(3)] if members else None,
        leader=EtcdMember(id="0", name="n0") if members else None, nodes_listed=nodes_listed, initialized=True, now=h.NOW,
    )  # fmt: skip

    decision = REMEDIATE.decide(facts)

    assert (decision.act is not None) == asked
    said = decision.outcome.message if decision.outcome is not None else ""
    assert said == ("" if asked else "Failed to check etcd cluster health before remediation")


@pytest.mark.parametrize("managed", [True, False])
def test_no_machine_is_deleted_while_the_workload_cluster_is_unusable(managed: bool) -> None:
    healthy = tuple(Condition(type=t, status="True") for t in (*names.COMPONENTS, MEMBER))
    machines = [owned(f"m{n}", node=f"n{n}", conditions=healthy) for n in range(3)]
    facts = RemediationFacts(
        machine=machines[2], member="n2", machines=machines, managed_etcd=managed, members=[EtcdMember(id=f"{n}", name=f"n{n}") for n in range(3)],
        nodes_listed=True, initialized=True, unreachable="no client", now=h.NOW,
    )  # fmt: skip

    decision = REMEDIATE.decide(facts)

    assert decision.act is None
    assert decision.error == "failed to create client to workload cluster: no client"


# ------------------------------------------------------------------------------------ what must hold


@given(st.integers(1, 7), st.data())
def test_a_remediation_that_is_allowed_leaves_a_quorum(count: int, draw: st.DataObject) -> None:
    healthy = draw.draw(st.lists(st.booleans(), min_size=count, max_size=count))
    victim = draw.draw(st.integers(0, count - 1))
    machines = []
    for n in range(count):
        conditions = [Condition(type=t, status="True") for t in names.COMPONENTS]
        conditions.append(Condition(type=MEMBER, status="True" if healthy[n] else "False"))
        machines.append(owned(f"m{n}", node=f"n{n}", conditions=tuple(conditions)))
    members = [EtcdMember(id=str(n), name=f"n{n}") for n in range(count)]
    leader = members[draw.draw(st.integers(0, count - 1))]
    facts = RemediationFacts(
        machine=machines[victim], member=f"n{victim}", machines=machines, managed_etcd=True, members=members, leader=leader, nodes_listed=True,
        initialized=True, now=h.NOW,
    )  # fmt: skip

    decision = REMEDIATE.decide(facts)

    left = [healthy[n] for n in range(count) if n != victim]
    if decision.act is not None:
        assert sum(left) >= len(left) // 2 + 1


@pytest.mark.parametrize("text", ["", "{", "[]", '{"timestamp":"yesterday"}', '{"retryCount":"many"}', "null"])
def test_a_malformed_history_is_an_error(text: str) -> None:
    with pytest.raises(GarbledHistory):
        RemediationData.parse(text)


def test_history_survives_a_round_trip() -> None:
    written = RemediationData(machine="m1", time=h.NOW, retry_count=2)

    assert RemediationData.parse(written.dump()) == written
    assert written.dump() == '{"machine":"m1","timestamp":"2026-05-01T12:00:00Z","retryCount":2}'
