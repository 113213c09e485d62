"""One pass of the MachinePool controller agrees with every recorded pass, letter for letter; and they reach nearly every row."""

from __future__ import annotations

from typing import Any

import pytest

from clusterwright.controllers.machinepool import conditions, plan, status
from support.vectors import Played, play

# Rows that no recorded world reaches; each has a test of its own in tests/controllers/machinepool.
UNRECORDED = {"BootstrapReady (v1beta1)": {"failure-garbled"}, "InfrastructureReady (v1beta1)": {"garbled"}}

ARTEFACTS = {
    # In these worlds a Machine on its way out was applied, and vanished. That is the recording client: the fake client of
    # controller-runtime v0.23.3 removes an object with a deletionTimestamp on server-side apply by a manager that does not name its
    # finalizers, and keeps both where there is no deletionTimestamp (tried). An API server keeps what others own, and a Machine whose
    # finalizer is dropped leaks its host.
    "machinepool-h-machines-19",
    "machinepool-h-machines-20",
    "machinepool-r-r10-02",
    "machinepool-r-r13-05",
    "machinepool-r-r16-01",
    # Here an object without a status was deleted, that has a finalizer. The same client makes that an update, which sets `status: null`
    # where there was none (`copyStatusFrom`); the recorder saw a patch. The controller only deletes: in a pass that patches, the owner
    # reference would have become the controller's.
    "machinepool-r-r5-02",
}
"""Recorded passes whose actions are those of the recorder, not of the controller."""

TABLES = (
    plan.BOOTSTRAP,
    plan.INFRASTRUCTURE,
    plan.SIZE,
    plan.NODE_REFS,
    plan.REPLICAS_READY,
    plan.DELETION,
    status.PHASE,
    conditions.READY,
    conditions.UP_TO_DATE,
)


@pytest.fixture(scope="module")
def played() -> Played:
    return play("machinepool")


def test_every_recorded_pass_of_the_machinepool_controller_agrees(played: Played) -> None:
    assert played.count >= 449
    assert set(played.differing) == ARTEFACTS


def test_no_recorded_pass_contradicts_a_table(played: Played) -> None:
    assert played.decided
    assert played.contradictions == set()


@pytest.mark.parametrize("table", TABLES, ids=lambda t: t.name)
def test_recorded_passes_reach_every_row_but_those_listed(table: Any, played: Played) -> None:
    assert played.missed(table) == UNRECORDED.get(table.name, set())
