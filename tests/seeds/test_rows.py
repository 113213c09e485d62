"""Every row of every table of the Cluster controller fires in a world of its own, on the embedded API server."""

from __future__ import annotations

import pytest

from clusterwright.offline.catalogue import tables_of
from clusterwright.tables import Table, gaps, overlaps, unreachable
from seeds.seed_scenarios import SCENARIOS, Scenario
from seeds.seed_worlds import actions_of, conditions_of, old_conditions_of, one_pass

TABLES = {t.name: t for package in ("kit", "cluster") for t in tables_of(package)}


def at(value: object, path: str) -> object:
    for step in path.split("."):
        value = value.get(step) if isinstance(value, dict) else None
    return value


@pytest.mark.parametrize("scenario", SCENARIOS, ids=[s.name for s in SCENARIOS])
def test_row(scenario: Scenario) -> None:
    answer = one_pass(*scenario.objects, crds=scenario.crds, **scenario.observed)

    assert {t: answer["rows"].get(t) for t in scenario.rows} == scenario.rows
    assert answer["requeueAfterSeconds"] == scenario.requeue
    assert scenario.error in (answer["error"] or "")
    assert bool(answer["error"]) == bool(scenario.error)
    assert actions_of(answer) == list(scenario.actions)
    assert (answer["object"] is None) == scenario.gone
    conditions, old = conditions_of(answer), old_conditions_of(answer)
    assert {t: conditions.get(t) for t in scenario.conditions} == scenario.conditions
    assert {t: old.get(t) for t in scenario.old} == scenario.old
    status, spec = (answer["object"] or {}).get("status", {}), (answer["object"] or {}).get("spec", {})
    assert {p: at(status, p) for p in scenario.status} == scenario.status
    assert {p: at(spec, p) for p in scenario.spec} == scenario.spec


def test_every_row_of_every_table_is_hit() -> None:
    hit = {(table, row) for s in SCENARIOS for table, row in s.rows.items()}

    missing = {(t.name, row) for t in TABLES.values() for row in t.row_names} - hit

    assert missing == set()


def test_no_scenario_names_a_row_that_does_not_exist() -> None:
    steps = {"not-found", "finalizer-added", "paused", "waiting-for-topology", "deleting", "normal"}

    unknown = [
        (s.name, t, r) for s in SCENARIOS for t, r in s.rows.items() if r not in (steps if t == "reconcile" else TABLES[t].row_names)
    ]

    assert unknown == []


@pytest.mark.parametrize("table", TABLES.values(), ids=list(TABLES))
def test_a_table_has_no_gap(table: Table[object]) -> None:
    assert gaps(table) == []


@pytest.mark.parametrize("table", TABLES.values(), ids=list(TABLES))
def test_a_table_has_no_row_that_never_decides(table: Table[object]) -> None:
    assert unreachable(table) == []


# The seeds mean these rows to be disjoint; where else rows overlap, tests/tables/overlaps.json says which comes first.
DISJOINT = {
    "Deleting": {("delete-failed", "deleting")},
    # a kubeconfig that is not used says so, whatever was known of the connection before
    "RemoteConnectionProbe": {
        ("kubeconfig-refused", row) for row in ("not-established", "not-yet-tried-again", "never-succeeded", "lost", "connected")
    },
    "Ready (v1beta1)": set(),
}


@pytest.mark.parametrize("name", sorted(DISJOINT))
def test_rows_that_the_seeds_mean_to_be_disjoint_are(name: str) -> None:
    assert set(overlaps(TABLES[name])) == DISJOINT[name]


def test_control_plane_initialized_overlaps_only_where_it_is_one_way() -> None:
    """Seed 000: the rows are disjoint, but for the first, which keeps what is True."""
    found = overlaps(TABLES["ControlPlaneInitialized"])

    assert {first for first, _ in found} == {"already-initialized", "machines-unlisted", "topology-pending", "topology-deleting"}
