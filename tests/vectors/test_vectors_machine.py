"""One pass of the Machine controller agrees with every recorded pass, letter for letter; and they reach nearly every row."""

from __future__ import annotations

from typing import Any

import pytest

from clusterwright.controllers.machine import conditions, host_deletion, inplace, node_access, node_shutdown, plan
from clusterwright.controllers.machine.host_deletion import Removal
from clusterwright.controllers.machine.node_shutdown import Shutdown
from support.vectors import Played, play

ACTING = {
    Shutdown.DRAIN,
    Shutdown.LOOK_AT_VOLUMES,
    Removal.DELETE_INFRASTRUCTURE,
    Removal.DELETE_BOOTSTRAP,
    Removal.DELETE_NODE,
}
# Rows that no recorded world reaches; each has a test of its own in tests/controllers/machine.
UNRECORDED = {
    "BootstrapReady (v1beta1)": {"garbled"},
    "InfrastructureReady (v1beta1)": {"garbled", "details-garbled"},
    "Deleting": {"resting"},
    "Ready": {"circular"},
    "Available": {"ready-unreported"},
    "UpToDate": {"kubelet-differs"},
    "InPlaceUpdate": {"none", "not-set-up", "infra-missing", "not-all-marked"},
    "NodeHandling": {"machines-unlisted"},
    "NodeShutdown": {"resting"},
    "HostDeletion": {"node-undeletable"},
}


TABLES = (
    *plan.TABLES,
    *conditions.TABLES,
    node_access.NODE_HANDLING,
    node_shutdown.NODE_SHUTDOWN,
    host_deletion.HOST_DELETION,
    inplace.IN_PLACE_UPDATE,
)


@pytest.fixture(scope="module")
def played() -> Played:
    return play("machine")


def test_every_recorded_pass_of_the_machine_controller_agrees(played: Played) -> None:
    assert played.count >= 1133
    assert played.differing == {}


def test_no_recorded_pass_contradicts_a_table(played: Played) -> None:
    assert played.decided
    assert played.contradictions == set()


@pytest.mark.parametrize("table", TABLES, ids=lambda t: t.name)
def test_recorded_passes_reach_every_row_but_those_listed(table: Any, played: Played) -> None:
    # a row after whose act the table is asked again is never the last to fire
    acting = {row.name for row in table.rows if getattr(row, "act", None) in ACTING}

    assert played.missed(table) - acting == UNRECORDED.get(table.name, set())
