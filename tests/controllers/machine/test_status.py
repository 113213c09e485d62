"""Phases, v1beta1 conditions and failures; and what becomes of provider objects that say nonsense."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from clusterwright.api.core import Cluster, Machine, MachineStatus
from clusterwright.controllers.kit.lookup import NOT_REFERENCED, Missing
from clusterwright.controllers.machine.snapshot import ClusterFacts, MachineSnapshot
from clusterwright.controllers.machine.status import PHASE, failed, initialized, with_phase

UPDATING = "in-place-updates.internal.cluster.x-k8s.io/update-in-progress"
UNPROVISIONED = {"spec": None, "status": None}


@pytest.mark.parametrize(
    ("build", "phase"),
    [
        pytest.param(
            lambda a: {"machine": a.fresh(), "bootstrap": a.bootstrap(status=None), "infra": a.infra(**UNPROVISIONED)},
            "Pending",
            id="pending",
        ),
        pytest.param(lambda a: {"machine": a.fresh(), "infra": a.infra(**UNPROVISIONED)}, "Provisioning", id="provisioning"),
        pytest.param(lambda a: {"machine": a.machine(status={"nodeRef": None}), "node": None}, "Provisioned", id="provisioned"),
        pytest.param(lambda a: {}, "Running", id="running"),
        pytest.param(lambda a: {"machine": a.machine(metadata={"annotations": {UPDATING: ""}})}, "Updating", id="updating"),
        pytest.param(lambda a: {"machine": a.deleted()}, "Deleting", id="deleting"),
    ],
)
def test_phases(a: Any, build: Any, phase: str) -> None:
    answer = a.Build(**build(a)).decide()

    assert answer.status["phase"] == phase
    assert (answer.status.get("lastUpdated") == a.ago()) is (phase != "Running")


def test_a_phase_once_reached_is_not_left_for_pending() -> None:
    machine = Machine(status=MachineStatus(phase="Provisioned"))
    now = datetime(2026, 5, 1, tzinfo=UTC)
    decision = PHASE.decide(
        MachineSnapshot(now=now, object=machine, cluster=ClusterFacts.of(Cluster()), bootstrap=NOT_REFERENCED, infrastructure=Missing())
    )

    assert decision.row == "unchanged"
    assert with_phase(machine, decision.phase, now) is machine


def test_flags_are_added_to_those_that_are_set() -> None:
    machine = initialized(initialized(Machine(), bootstrap_data_secret_created=True), infrastructure_provisioned=True)

    assert machine.status.initialization
    assert machine.status.initialization.bootstrap_data_secret_created
    assert machine.status.initialization.infrastructure_provisioned


def test_an_empty_failure_changes_nothing() -> None:
    machine = failed(Machine(), reason="CreateError", message="no capacity")

    assert failed(machine) is machine
    assert failed(machine, message="other").status.deprecated.v1beta1.failure_reason == "CreateError"


@pytest.mark.parametrize(
    ("parts", "text"),
    [
        pytest.param(
            {"bootstrap": {"status": {"initialization": {"dataSecretCreated": "yes"}}}},
            "dataSecretCreated: expected a boolean",
            id="bootstrap-flag",
        ),
        pytest.param(
            {"infra": {"status": {"initialization": {"provisioned": 1}}}}, "provisioned: expected a boolean", id="infrastructure-flag"
        ),
        pytest.param({"infra": {"status": {"addresses": "10.0.0.1"}}}, "status.addresses: ", id="addresses"),
        pytest.param({"infra": {"status": {"failureDomain": 3}}}, "failureDomain: expected a string", id="failure-domain"),
    ],
)
def test_a_field_of_a_wrong_type_is_an_error_and_nothing_is_copied(a: Any, parts: Any, text: str) -> None:
    answer = a.Build(
        machine=a.fresh(), bootstrap=a.bootstrap(**parts.get("bootstrap", {})), infra=a.infra(**parts.get("infra", {})), node=None
    ).decide()

    assert text in answer.error
    assert answer.condition("Ready") is not None
    if "infra" in parts:
        assert "providerID" not in answer.object["spec"]
        assert "infrastructureProvisioned" not in answer.status.get("initialization", {})
    else:
        assert "dataSecretName" not in answer.object["spec"]["bootstrap"]


def test_an_interruptible_flag_of_another_type_keeps_the_node_as_it_is(a: Any) -> None:
    answer = a.Build(infra=a.infra(status={"interruptible": "yes"}), node=a.node(metadata={"annotations": None})).decide()

    assert "status.interruptible: expected a boolean" in answer.error
    assert answer.actions == set()


def test_observed_generation_moves_only_without_errors(a: Any) -> None:
    moved = a.Build(machine=a.machine(metadata={"generation": 5})).decide()
    stays = a.Build(machine=a.machine(metadata={"generation": 5}), workload={"unlistable": ["Node"]}).decide()

    assert (moved.status["observedGeneration"], stays.status["observedGeneration"]) == (5, 1)


def test_conditions_are_listed_in_reading_order(a: Any) -> None:
    machine = a.machine(status={"conditions": [a.condition("Paused", "False", "NotPaused")]})
    answer = a.Build(machine=machine).decide()

    assert [c["type"] for c in answer.status["conditions"]] == [
        "Available", "Ready", "BootstrapConfigReady", "InfrastructureReady", "NodeHealthy", "NodeReady", "Updating", "Paused", "Deleting",
    ]  # fmt: skip


def test_unknown_fields_survive(a: Any) -> None:
    machine = a.fresh(spec={"future": {"x": 1}}, status={"later": [1]})
    answer = a.Build(machine=machine).decide()

    assert answer.object["spec"]["future"] == {"x": 1}
    assert answer.status["later"] == [1]
