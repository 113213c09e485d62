"""Seeds 000, 001 and 003 beside the code: tables row by row, flowcharts edge by edge; every difference is a ruling, named."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from clusterwright.controllers.cluster import conditions
from clusterwright.tables import Row, Table
from seeds.seed_data import (
    CONTROL_PLANE_INITIALIZED,
    CONTROL_PLANE_MACHINES_UP_TO_DATE,
    DIFFERENT_TRANSITIONS,
    LINES,
    RULINGS,
    SAME_WORDS,
    SeedLine,
    SeedRow,
)
from seeds.seed_scenarios import BY_NAME
from seeds.seed_worlds import conditions_of, one_pass

SEEDS: dict[str, tuple[list[SeedRow], Table[Any]]] = {
    "ControlPlaneInitialized": (CONTROL_PLANE_INITIALIZED, conditions.CONTROL_PLANE_INITIALIZED),
    "ControlPlaneMachinesUpToDate": (CONTROL_PLANE_MACHINES_UP_TO_DATE, conditions.CONTROL_PLANE_MACHINES_UP_TO_DATE),
}
ROWS = [(name, row) for name, (rows, _) in SEEDS.items() for row in rows]
EDGES = [(chart, line) for chart, lines in LINES.items() for line in lines]


@pytest.mark.parametrize("name", SEEDS)
def test_a_seeds_table_and_ours_have_the_same_rows_in_the_same_order(name: str) -> None:
    rows, table = SEEDS[name]

    assert [r.row for r in rows] == list(table.row_names)


@pytest.mark.parametrize(("name", "seed"), ROWS, ids=[f"{n}/{r.row}" for n, r in ROWS])
def test_a_seeds_row_and_ours_have_the_same_texts(name: str, seed: SeedRow) -> None:
    ours = SEEDS[name][1].row(seed.row)

    assert isinstance(ours, Row)
    assert ours.guard.text == SAME_WORDS.get(seed.guard, seed.guard)
    assert (ours.requeue.total_seconds() if ours.requeue else None) == seed.requeue
    said = (ours.transition.status, ours.transition.reason, ours.transition.message_text)
    if (name, seed.row) in DIFFERENT_TRANSITIONS:
        assert said[:2] == seed.transition[:2]
    else:
        assert said == seed.transition


@pytest.mark.parametrize(("name", "seed"), ROWS, ids=[f"{n}/{r.row}" for n, r in ROWS])
def test_a_seeds_row_fires_and_writes_its_transition(name: str, seed: SeedRow) -> None:
    scenario = BY_NAME[seed.scenario]

    answer = one_pass(*scenario.objects, crds=scenario.crds, **scenario.observed)

    assert answer["rows"][name] == seed.row
    status, reason, message = conditions_of(answer)[name]
    if seed.transition[0]:
        assert (status, reason) == seed.transition[:2]
    if "<" not in seed.transition[2] and seed.transition[0]:
        assert message == seed.transition[2]


@pytest.mark.parametrize("name", SEEDS)
def test_a_seeds_table_can_be_read_whole_in_the_documents(name: str) -> None:
    page = (Path(__file__).parents[2] / "docs" / "tables" / "cluster.md").read_text()
    section = page.partition(f"## {name}\n")[2].partition("\n## ")[0]

    shown = [line.split(" | ")[:2] for line in section.splitlines() if line.startswith("| `")]

    assert shown == [[f"| `{row.row}`", f"`{SAME_WORDS.get(row.guard, row.guard)}`".replace("|", "\\|")] for row in SEEDS[name][0]]


def test_the_seeds_tables_are_whole() -> None:
    assert (len(CONTROL_PLANE_INITIALIZED), len(CONTROL_PLANE_MACHINES_UP_TO_DATE)) == (11, 6)
    assert [len(LINES[k]) for k in ("krtt-normal", "krtt-deletion", "krtt-errors")] == [13, 8, 8]


@pytest.mark.parametrize(("chart", "line"), EDGES, ids=[f"{c}/{line.words}" for c, line in EDGES])
def test_a_row_or_edge_of_seed_001_is_hit(chart: str, line: SeedLine) -> None:
    """What the pass then does is compared by `test_row` of the same scenario; here: that it is the same pass, again."""
    scenario = BY_NAME[line.scenario]

    answer = one_pass(*scenario.objects, crds=scenario.crds, **scenario.observed)

    assert {t: answer["rows"].get(t) for t in scenario.rows} == scenario.rows
    assert answer["requeueAfterSeconds"] == scenario.requeue
    assert bool(answer["error"]) == bool(scenario.error)


def test_every_deliberate_difference_is_a_ruling_that_a_scenario_pins() -> None:
    named = {line.ruling for _, line in EDGES if line.ruling}

    assert named <= set(RULINGS)
    assert [s for s in RULINGS.values() if s not in BY_NAME] == []


def test_observed_generation_is_the_clusters_on_every_transition() -> None:
    """Seed 000 and 003: each row but the one that keeps the condition sets ObservedGeneration=metadata.generation."""
    for name, seed in ROWS:
        scenario = BY_NAME[seed.scenario]
        answer = one_pass(*scenario.objects, crds=scenario.crds, **scenario.observed)
        written = next(c for c in answer["object"]["status"]["conditions"] if c["type"] == name)

        before = next(o for o in scenario.objects if o["kind"] == "Cluster")
        # a pass that changed the spec speaks for the generation that it made
        made = before["metadata"]["generation"] + (answer["object"]["spec"] != before["spec"])
        assert written["observedGeneration"] == (1 if seed.row == "already-initialized" else made)
