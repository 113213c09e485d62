"""Which Machine goes, who is replaced, who is moved, what new ones are called, and whether they could join: pure choices."""

from __future__ import annotations

import random
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from itertools import islice
from typing import Any

import pytest

from clusterwright.api.core import Machine, MachineDeployment, MachineSet
from clusterwright.api.core.machine import MachineNodeReference, MachineStatus
from clusterwright.api.core.machineset import MachineDeploymentRemediationSpec, MachineDeploymentSpec
from clusterwright.api.meta import Condition, ObjectMeta
from clusterwright.controllers.machineset import moves, remediation
from clusterwright.controllers.machineset.deletion_order import UnknownOrder, in_order, priority
from clusterwright.controllers.machineset.desired import Maker, new_machine, new_names, updated_machine
from clusterwright.controllers.machineset.preflight import ControlPlane, Preflight, Verdict, skipped_checks, verdict
from clusterwright.controllers.machineset.remediation import REMEDIATE, assess
from clusterwright.controllers.machineset.snapshot import DeploymentFacts
from clusterwright.kubeadm.naming import BadNamingTemplate
from clusterwright.tables import Decision

NOW = datetime(2026, 5, 1, 12, tzinfo=UTC)
UPDATING = "in-place-updates.internal.cluster.x-k8s.io/update-in-progress"
AWAITS = "in-place-updates.internal.cluster.x-k8s.io/pending-acknowledge-move"
RECEIVE = "in-place-updates.internal.cluster.x-k8s.io/receive-machines-from-machinesets"
ACKNOWLEDGED = "in-place-updates.internal.cluster.x-k8s.io/acknowledged-move"


def machine(
    name: str, *, age: float | None = 1, deleting: bool = False, node: str = "node", annotations: Any = None, **conditions: str
) -> Machine:
    """A Machine; `age` in days, conditions as `Type="Status"` or `Type="Status/Reason"`."""
    made = [
        Condition(type=t, status=s.partition("/")[0], reason=s.partition("/")[2] or "R", last_transition_time=NOW)
        for t, s in conditions.items()
    ]
    return Machine(
        metadata=ObjectMeta(
            name=name,
            namespace="ns",
            uid=f"uid-{name}",
            creation_timestamp=None if age is None else NOW - timedelta(days=age),
            deletion_timestamp=NOW if deleting else None,
            annotations=annotations or {},
        ),
        status=MachineStatus(conditions=tuple(made), node_ref=MachineNodeReference(name=node) if node else None),
    )


def names(machines: Any) -> list[str]:
    return [m.metadata.name for m in machines]


# ------------------------------------------------------------------------------------------------ deletion order


@pytest.mark.parametrize("order", ["", "Random", "Newest", "Oldest"])
def test_deleting_named_updating_and_unhealthy_machines_go_first(order: str) -> None:
    machines = [
        machine("e-healthy"),
        machine("d-unhealthy", HealthCheckSucceeded="False"),
        machine("c-updating", annotations={UPDATING: ""}),
        machine("b-named", annotations={"cluster.x-k8s.io/delete-machine": ""}, HealthCheckSucceeded="False"),
        machine("z-deleting", deleting=True),
    ]

    assert names(in_order(machines, order, NOW)) == ["z-deleting", "b-named", "c-updating", "d-unhealthy", "e-healthy"]


@pytest.mark.parametrize(
    ("conditions", "expected"),
    [
        ({"NodeHealthy": "False"}, 50),
        ({"NodeHealthy": "Unknown"}, 20),
        ({"HealthCheckSucceeded": "False"}, 50),
        ({"HealthCheckSucceeded": "Unknown"}, 20),
        ({}, 20),
    ],
)
def test_a_machine_with_unknown_conditions_is_not_unhealthy(conditions: dict[str, Any], expected: float) -> None:
    assert priority(machine("m", **conditions), "Random", NOW) == expected


def test_a_machine_without_a_node_is_unhealthy() -> None:
    assert priority(machine("m", node=""), "Oldest", NOW) == 50


def test_a_hook_that_is_pending_is_an_update_too() -> None:
    pending = {"runtime.cluster.x-k8s.io/pending-hooks": "Other,UpdateMachine"}

    assert priority(machine("m", annotations=pending), "", NOW) == 75


def test_the_oldest_or_newest_goes_and_an_unset_creation_time_counts_as_new() -> None:
    machines = [machine("old", age=30), machine("new", age=1), machine("none", age=None), machine("future", age=-3)]

    assert names(in_order(machines, "Oldest", NOW)) == ["old", "new", "future", "none"]
    assert names(in_order(machines, "Newest", NOW)) == ["future", "none", "new", "old"]
    assert priority(machines[2], "Oldest", NOW) == 0
    assert priority(machines[3], "Newest", NOW) == 50


def test_equal_machines_go_by_name_in_any_order_of_the_list() -> None:
    machines = [machine(f"m{n}") for n in range(10)]
    shuffled = random.Random(1).sample(machines, 10)

    assert names(in_order(shuffled, "Random", NOW)) == names(machines)


def test_an_unknown_order_is_an_error() -> None:
    with pytest.raises(UnknownOrder, match="Alphabetical"):
        in_order([machine("m")], "Alphabetical", NOW)


# ---------------------------------------------------------------------------------------------------- remediation

UNHEALTHY: dict[str, Any] = {"HealthCheckSucceeded": "False", "OwnerRemediated": "False/WaitingForRemediation"}


def deployment(limit: int | str | None, replicas: int = 3) -> DeploymentFacts:
    spec = MachineDeploymentSpec(replicas=replicas, remediation=MachineDeploymentRemediationSpec(max_in_flight=limit))
    return DeploymentFacts.of(MachineDeployment(spec=spec))


@pytest.mark.parametrize(
    ("limit", "chosen"),
    [(None, 3), (0, 0), ("0%", 0), (1, 1), ("10%", 1), ("34%", 2), ("100%", 3), (7, 3), (-1, 0)],
)
def test_as_many_are_replaced_at_once_as_the_deployment_allows(limit: Any, chosen: int) -> None:
    found = assess([machine(n, **UNHEALTHY) for n in "abc"], deployment(limit), is_current=True)

    assert (len(found.chosen), len(found.deferred)) == (chosen, 3 - chosen)


def test_a_machine_that_is_being_replaced_counts_until_it_is_gone() -> None:
    going = machine("going", deleting=True, HealthCheckSucceeded="False", OwnerRemediated="False/MachineDeleting")
    machines = [going, machine("a", **UNHEALTHY), machine("b", **UNHEALTHY)]

    assert assess(machines, deployment(1), is_current=True).budget == 0
    assert names(assess(machines, deployment(2), is_current=True).chosen) == ["a"]
    assert assess(machines[1:], deployment(1), is_current=True).budget == 1


def test_a_machine_deleted_for_another_reason_does_not_count() -> None:
    going = machine("going", deleting=True, **UNHEALTHY)

    assert assess([going], deployment(1), is_current=True).budget == 1
    assert assess([going], deployment(1), is_current=True).candidates == ()


def test_annotated_machines_are_replaced_first_then_the_newest_then_by_name() -> None:
    named = machine("d", age=9, annotations={"cluster.x-k8s.io/remediate-machine": ""}, **UNHEALTHY)
    machines = [machine("c", age=1, **UNHEALTHY), machine("b", age=1, **UNHEALTHY), machine("a", age=5, **UNHEALTHY), named]

    assert names(assess(machines, deployment(3), is_current=True).chosen) == ["d", "b", "c"]


@pytest.mark.parametrize("limit", ["some", "5", "%"])
def test_a_limit_that_is_not_a_number_is_an_error_once_a_machine_must_be_replaced(limit: str) -> None:
    found = assess([machine("a", **UNHEALTHY)], deployment(limit), is_current=True)

    assert "maxInFlight" in REMEDIATE.decide(found).error
    assert REMEDIATE.decide(assess([machine("a")], deployment(limit), is_current=True)).error == ""


def test_a_machine_has_recovered_if_it_is_healthy_again_and_is_not_deleted() -> None:
    again: dict[str, Any] = {"HealthCheckSucceeded": "True", "OwnerRemediated": "False"}

    assert remediation.has_recovered(machine("a", **again))
    assert not remediation.has_recovered(machine("a", deleting=True, **again))
    assert not remediation.has_recovered(machine("a", **UNHEALTHY))


def test_a_postponed_replacement_lists_every_reason() -> None:
    condition, old = remediation.postponed(Verdict(messages=("one", "two")))

    assert (condition.reason, condition.message) == ("RemediationDeferred", "* one\n* two")
    assert (old.reason, old.message) == ("WaitingForRemediation", "one; two")


# ---------------------------------------------------------------------------------------------------------- moves


def test_the_surplus_is_moved_except_broken_and_immovable_machines() -> None:
    ordered = [
        machine("going", deleting=True),
        machine("updating", annotations={UPDATING: ""}),
        machine("unhealthy", **UNHEALTHY),
        machine("provisioning", node=""),
        machine("a"),
        machine("b"),
    ]

    dealt = {m.metadata.name: fate for m, fate in moves.fates(ordered, 3)}

    assert dealt == {
        "going": moves.Fate.GONE,
        "updating": moves.Fate.STAYS,
        "unhealthy": moves.Fate.DELETED,
        "provisioning": moves.Fate.STAYS,
        "a": moves.Fate.MOVED,
    }


@pytest.mark.parametrize(
    ("annotations", "of_the_set", "triggered"),
    [
        ({}, {}, False),
        ({UPDATING: ""}, {}, True),
        ({UPDATING: "", AWAITS: ""}, {RECEIVE: "old"}, False),
        ({UPDATING: "", AWAITS: ""}, {RECEIVE: "old", ACKNOWLEDGED: "x,m"}, True),
        ({UPDATING: "", AWAITS: ""}, {}, True),
        ({UPDATING: "", "runtime.cluster.x-k8s.io/pending-hooks": "UpdateMachine"}, {}, False),
    ],
)
def test_an_update_begins_once_the_machine_is_acknowledged_or_no_set_moves_machines(
    annotations: dict[str, str], of_the_set: dict[str, str], triggered: bool
) -> None:
    machine_set = MachineSet(metadata=ObjectMeta(name="new", annotations=of_the_set))

    assert moves.is_to_be_triggered(machine("m", annotations=annotations), machine_set) is triggered


def test_the_hook_joins_those_that_are_pending() -> None:
    patch = moves.trigger_patch(machine("m", annotations={"runtime.cluster.x-k8s.io/pending-hooks": "Zzz", AWAITS: ""}))

    assert patch["metadata"]["annotations"] == {"runtime.cluster.x-k8s.io/pending-hooks": "UpdateMachine,Zzz", AWAITS: None}


# ---------------------------------------------------------------------------------------------- names and objects


def maker(**spec: Any) -> Maker:
    metadata = ObjectMeta(name="ms", namespace="ns", uid="u1", labels={"cluster.x-k8s.io/deployment-name": "md"})
    return Maker(metadata, "cluster.x-k8s.io/v1beta2", {"clusterName": "c", **spec})


def names_of(made: Maker, number: int, *, present: Sequence[str], taken: Sequence[str]) -> list[str]:
    return list(islice(new_names(made, present=present, taken=taken), number))


def test_names_are_the_same_whenever_the_same_machines_are_there() -> None:
    first = names_of(maker(), 3, present=["a", "b"], taken=[])

    assert names_of(maker(), 3, present=["b", "a"], taken=[]) == first
    assert names_of(maker(), 1, present=["a", "b"], taken=[]) == first[:1]
    assert len(set(first)) == 3
    assert not set(first) & set(names_of(maker(), 3, present=["a", "b", "c"], taken=[]))


def test_a_taken_name_is_skipped() -> None:
    first = names_of(maker(), 2, present=[], taken=[])

    again = names_of(maker(), 2, present=[], taken=first)

    assert not set(first) & set(again)


def test_a_long_name_is_cut_and_still_told_apart() -> None:
    long = maker(machineNaming={"template": "{{ .cluster.name }}-" + "x" * 70 + "{{ .random }}"})

    made = names_of(long, 2, present=[], taken=[])

    assert [len(n) for n in made] == [63, 63]
    assert made[0][:58] == made[1][:58]
    assert made[0] != made[1]


@pytest.mark.parametrize("template", ["no-random", "{{ .random", "{{ .other }}{{ .random }}"])
def test_a_naming_template_without_a_valid_name_is_an_error(template: str) -> None:
    with pytest.raises(BadNamingTemplate):
        names_of(maker(machineNaming={"template": template}), 1, present=[], taken=[])


def test_an_existing_machine_keeps_what_only_a_new_one_may_change() -> None:
    template = {"spec": {"version": "v2", "failureDomain": "b", "minReadySeconds": 5}, "metadata": {"labels": {"l": "1"}}}
    existing = {
        "metadata": {"name": "m", "uid": "um", "finalizers": ["foregroundDeletion"]},
        "spec": {"version": "v1", "infrastructureRef": {"name": "i"}, "bootstrap": {"configRef": {"name": "b"}, "dataSecretName": "s"}},
    }

    kept = updated_machine(maker(template=template), existing)
    moved = updated_machine(maker(template=template), existing, in_place=True)

    assert kept["spec"] == {
        "version": "v1", "minReadySeconds": 5, "clusterName": "c", "infrastructureRef": {"name": "i"}, "bootstrap": {"configRef": {"name": "b"}}
    }  # fmt: skip
    assert (moved["spec"]["version"], moved["spec"]["failureDomain"]) == ("v2", "b")
    assert kept["metadata"]["finalizers"] == ["foregroundDeletion", "machine.cluster.x-k8s.io"]
    assert kept["metadata"]["labels"] == {"l": "1", "cluster.x-k8s.io/set-name": "ms", "cluster.x-k8s.io/deployment-name": "md"}


def test_a_new_machine_without_a_bootstrap_template_takes_the_secret_that_is_named() -> None:
    made = new_machine(maker(template={"spec": {"bootstrap": {"dataSecretName": "s"}, "infrastructureRef": {"kind": "ITemplate"}}}), "m")

    assert made["spec"]["bootstrap"] == {"dataSecretName": "s"}
    assert made["spec"]["infrastructureRef"] == {"apiGroup": "", "kind": "I", "name": "m"}


def test_fields_that_we_have_no_model_for_reach_the_machine() -> None:
    made = new_machine(maker(template={"spec": {"fromTheFuture": {"a": [1]}, "infrastructureRef": {}}}), "m")

    assert made["spec"]["fromTheFuture"] == {"a": [1]}


# ------------------------------------------------------------------------------------------------------ preflight


def asked(**changes: Any) -> Verdict:
    control = {"kind": "CP", "version": "v1.31.2", "status_version": "v1.31.2"} | changes.pop("control_plane", {})
    base: dict[str, Any] = {"version": "v1.31.2", "control_plane": ControlPlane(**control)}
    return verdict(Preflight(**(base | changes)), lambda table, seen: table.decide(seen))


@pytest.mark.parametrize(
    "changes",
    [
        {"enabled": False, "control_plane": {"status_version": ""}},
        {"skipped": frozenset({"All"}), "control_plane": {"status_version": ""}},
        {"control_plane": {"version": None, "status_version": None}},
        {"control_plane": {"status_version": "v1.32.0"}},
        {"version": "v1.28.9"},
        {"version": "v1.30.0", "kubeadm": True, "skipped": frozenset({"KubeadmVersionSkew"})},
        {"version": "", "kubeadm": True},
        {"topology_version": "v1.32.0", "upgrade_step": "v1.31.2"},
        {"topology_version": "v1.31.2", "skipped": frozenset({"ControlPlaneVersionSkew"}), "version": "v1.31.1"},
        {"topology_version": "v1.31.2", "is_pinned": True, "version": "v1.30.0"},
        {"topology_version": "v1.32.0", "is_pinned": True, "version": "v1.31.1"},
    ],
)
def test_a_machine_may_join_if_versions_and_control_plane_allow(changes: dict[str, Any]) -> None:
    assert asked(**changes).passed


def test_without_a_control_plane_there_is_nothing_to_compare_with() -> None:
    assert verdict(Preflight(version="x"), lambda table, seen: table.decide(seen)).passed


@pytest.mark.parametrize(
    ("changes", "names"),
    [
        ({"control_plane": {"status_version": ""}}, ["ControlPlaneIsStable"]),
        ({"control_plane": {"status_version": "v1.31.1"}}, ["ControlPlaneIsStable"]),
        ({"control_plane": {"status_version": "v1.31.2-rc.1"}}, ["ControlPlaneIsStable"]),
        ({"control_plane": {"status_version": "v1.31.2+other"}}, ["ControlPlaneIsStable"]),
        ({"topology_version": "v1.32.0", "version": "v1.31.2"}, ["ControlPlaneIsStable"]),
        ({"version": "v1.32.0"}, ["KubernetesVersionSkew"]),
        ({"version": "v1.27.9"}, ["KubernetesVersionSkew"]),
        ({"version": "v1.30.0", "kubeadm": True}, ["KubeadmVersionSkew"]),
        ({"version": "v1.32.0", "kubeadm": True}, ["KubernetesVersionSkew", "KubeadmVersionSkew"]),
        ({"version": "1.31.2", "topology_version": "v1.31.2"}, ["ControlPlaneVersionSkew"]),
        ({"topology_version": "v1.31.2", "is_pinned": True, "version": "v1.30.0", "kubeadm": True}, ["KubeadmVersionSkew"]),
        ({"topology_version": "v1.31.2", "is_pinned": True, "version": "v1.27.0"}, ["KubernetesVersionSkew"]),
        ({"topology_version": "v1.31.2", "is_pinned": True, "control_plane": {"status_version": "v1.31.1"}}, ["ControlPlaneIsStable"]),
    ],
)
def test_a_machine_that_may_not_join_has_every_failed_check_listed(changes: dict[str, Any], names: list[str]) -> None:
    messages = asked(**changes).messages

    assert [m.rpartition('("')[2].removesuffix('" preflight check failed)') for m in messages] == names


@pytest.mark.parametrize(
    "changes",
    [
        {"control_plane": {"error": "boom", "version": None}},
        {"control_plane": {"version": "one"}},
        {"control_plane": {"status_version": "one"}},
        {"version": "one"},
    ],
)
def test_versions_that_cannot_be_compared_are_an_error(changes: dict[str, Any]) -> None:
    assert asked(**changes).error.startswith("failed to perform preflight checks: ")


def test_the_list_of_skipped_checks_may_have_spaces() -> None:
    assert skipped_checks(" KubeadmVersionSkew, ,All ") == {"KubeadmVersionSkew", "All"}


def test_preflight_decisions_are_recorded() -> None:
    told: list[Decision] = []

    def decide(table: Any, seen: Any) -> Decision:
        told.append(table.decide(seen))
        return told[-1]

    verdict(Preflight(control_plane=ControlPlane(version="v1.31.2", status_version="v1.31.2")), decide)

    assert [(d.table, d.row) for d in told] == [("PreflightChecks", "asked"), ("Preflight", "passed")]
