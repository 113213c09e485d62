"""The decision-table kit: deciding, explaining, checking, rendering."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from enum import Enum

import pytest

from clusterwright.tables import (
    KEEP,
    OTHERWISE,
    Because,
    Collect,
    Decision,
    Guard,
    Impossible,
    Later,
    NoRowMatches,
    Outcome,
    Phase,
    Row,
    Subject,
    Table,
    TooManyGuards,
    as_json,
    as_markdown,
    computed,
    contradictions,
    explanation_as_json,
    explanation_as_text,
    false,
    gaps,
    guard,
    message,
    observing,
    overlaps,
    true,
    unknown,
    unreachable,
)


@dataclass(frozen=True)
class Door:
    locked: bool = False
    broken: bool = False
    dirty: bool = False
    color: str = "red"


@guard("locked")
def locked(d: Door) -> bool:
    return d.locked


@guard("is broken")
def broken(d: Door) -> bool:
    return d.broken


@guard("dirty")
def dirty(d: Door) -> bool:
    return d.dirty


@message("the <color> door")
def named(d: Door) -> str:
    return f"the {d.color} door"


class Act(Enum):
    UNLOCK = "unlock it"


READY: Table[Door] = Table(
    "Ready",
    Row("stuck", locked & broken, unknown("Stuck", named), requeue=timedelta(seconds=5)),
    Row("locked", locked, KEEP, act=Act.UNLOCK, v1beta1=false("Locked", severity="Info")),
    Collect(
        "bad", false("NotReady"), Because("broken", broken, "It is broken"), Because("dirty", dirty, named), requeue=timedelta(seconds=9)
    ),
    Row("ready", OTHERWISE, true("Ready")),
    about="Whether a door is ready.",
)


# ------------------------------------------------------------------------------------------------- guards


@pytest.mark.parametrize("a", [False, True])
@pytest.mark.parametrize("b", [False, True])
def test_guards_compose_like_booleans(a: bool, b: bool) -> None:
    door = Door(locked=a, broken=b)

    assert (locked & broken)(door) == (a and b)
    assert (locked | broken)(door) == (a or b)
    assert (~locked)(door) == (not a)
    assert (~(locked | ~broken))(door) == (not (a or not b))


def test_a_composed_guard_is_worded_by_its_parts() -> None:
    assert (locked & ~broken).text == "locked && !(is broken)"
    assert ((locked | dirty) & broken).text == "(locked || dirty) && is broken"
    assert (locked & broken & dirty).text == "locked && is broken && dirty"


def test_not_of_a_negation_reads_plainly() -> None:
    @guard("!closed")
    def is_open(d: Door) -> bool:
        return not d.locked

    assert (~is_open).text == "closed"


def test_atoms_are_listed_once_in_order() -> None:
    assert (locked & (broken | locked) & ~dirty).atoms() == (locked, broken, dirty)


# ------------------------------------------------------------------------------------------------ deciding


def test_the_first_row_that_matches_decides() -> None:
    decision = READY.decide(Door(locked=True, broken=True, color="blue"))

    assert decision == Decision("Ready", "stuck", Outcome("Unknown", "Stuck", "the blue door"), timedelta(seconds=5))


def test_keep_has_no_outcome_but_a_row_may_act_and_decide_the_twin() -> None:
    decision = READY.decide(Door(locked=True))

    assert (decision.row, decision.outcome, decision.chosen(Act)) == ("locked", None, Act.UNLOCK)
    assert decision.v1beta1 == Outcome("False", "Locked", severity="Info")
    assert READY.decide(Door()).chosen(Act) is None


def test_an_act_of_another_table_is_refused() -> None:
    class Other(Enum):
        SING = "sing"

    with pytest.raises(TypeError, match=r"row locked of table Ready has the act .*UNLOCK.* not a member of Other"):
        READY.decide(Door(locked=True)).chosen(Other)


def test_a_phase_is_not_a_status() -> None:
    phases: Table[Door] = Table("Phase", Row("shut", locked, Phase("Shut")), Row("same", OTHERWISE, KEEP))

    assert (phases.decide(Door(locked=True)).phase, phases.decide(Door(locked=True)).outcome) == ("Shut", None)
    assert phases.decide(Door()).phase == ""
    assert as_json(phases)["rows"][0]["phase"] == "Shut"
    assert "`phase Shut`" in as_markdown(phases)


def test_a_vote_may_depend_on_the_snapshot() -> None:
    later = Later("the time that is left", lambda d: timedelta(seconds=len(d.color)))
    table: Table[Door] = Table("Wait", Row("wait", OTHERWISE, KEEP, requeue=later))

    assert table.decide(Door(color="blue")).requeue == timedelta(seconds=4)
    assert "after the time that is left" in as_markdown(table)


def test_guards_name_the_objects_that_they_read() -> None:
    def frame(d: Door) -> tuple[Subject, ...]:
        return (Subject("example.com", "Frame", "house", d.color),)

    bent: Guard[Door] = Guard("frame is bent", lambda d: d.broken, about=frame)
    table: Table[Door] = Table("Fits", Row("no", bent & ~locked, false("Bent")), Row("yes", OTHERWISE, true("Fits")))

    assert table.subjects(Door(broken=True)) == (Subject("example.com", "Frame", "house", "red"),)
    assert table.subjects(Door()) == ()
    assert str(frame(Door())[0]) == "Frame house/red"
    assert [row.about for row in table.explain(Door(broken=True)).rows] == [frame(Door()), ()]


def test_a_collecting_row_lists_every_line_that_holds() -> None:
    decision = READY.decide(Door(broken=True, dirty=True))

    assert decision.outcome == Outcome("False", "NotReady", "* It is broken\n* the red door")
    assert (decision.row, decision.lines, decision.requeue) == ("bad", ("broken", "dirty"), timedelta(seconds=9))


def test_a_collecting_row_of_which_no_line_holds_does_not_match() -> None:
    assert READY.decide(Door()).row == "ready"


def test_a_computed_transition_gives_the_whole_outcome() -> None:
    table: Table[Door] = Table("T", Row("r", OTHERWISE, computed(lambda d: Outcome("True", d.color), status="<s>", reason="<r>")))

    assert table.decide(Door()).outcome == Outcome("True", "red")


def test_an_error_is_part_of_the_decision() -> None:
    table: Table[Door] = Table("T", Row("r", OTHERWISE, KEEP, error=named))

    assert table.decide(Door()).error == "the red door"


def test_a_gap_raises_with_the_tables_name() -> None:
    table: Table[Door] = Table("Holey", Row("r", locked, true("R")))

    with pytest.raises(NoRowMatches, match="Holey"):
        table.decide(Door())


def test_row_names_must_be_unique() -> None:
    with pytest.raises(ValueError, match="unique"):
        Table("T", Row("r", locked, true("R")), Row("r", OTHERWISE, true("R")))


def test_a_row_is_found_by_its_name_or_by_a_line_of_it() -> None:
    assert READY.row("stuck").name == "stuck"
    assert READY.row("dirty").name == "bad"
    assert READY.row_names == ("stuck", "locked", "broken", "dirty", "ready")


# ---------------------------------------------------------------------------------------------- explaining


def test_an_explanation_has_the_value_of_every_guard_and_marks_what_fired() -> None:
    explained = READY.explain(Door(dirty=True))

    assert [(r.name, r.matched, r.fired) for r in explained.rows] == [
        ("stuck", False, False),
        ("locked", False, False),
        ("broken", False, False),
        ("dirty", True, True),
        ("ready", True, False),
    ]
    assert explained.rows[0].guards == (("locked", False), ("is broken", False))


def test_an_explanation_for_a_terminal_marks_the_row() -> None:
    text = explanation_as_text(READY.explain(Door(locked=True)))

    assert " > locked  yes  no change" in text
    assert "+ locked" in text


def test_an_explanation_as_json_names_the_row() -> None:
    answer = explanation_as_json(READY.explain(Door()))

    assert (answer["table"], answer["row"], answer["status"]) == ("Ready", "ready", "True")
    assert [r["name"] for r in answer["rows"] if r["fired"]] == ["ready"]


# ------------------------------------------------------------------------------------------------ checking


def test_a_table_that_covers_everything_has_no_gap() -> None:
    assert gaps(READY) == []
    assert unreachable(READY) == []


def test_a_gap_is_described_by_the_guards_that_make_it() -> None:
    table: Table[Door] = Table("T", Row("a", locked, true("R")), Row("b", ~locked & broken, true("R")))

    assert gaps(table) == [(("locked", False), ("is broken", False))]


def test_worlds_that_cannot_be_are_not_gaps() -> None:
    rows = (Row("a", locked, true("R")), Row("b", broken, true("R")))

    assert gaps(Table("T", *rows, exactly_one=[(locked, broken)])) == []
    assert gaps(Table("T", *rows, assuming=[locked | broken])) == []
    assert gaps(Table("T", *rows, at_most_one=[(locked, broken)])) == [(("locked", False), ("is broken", False))]


def test_a_row_behind_a_wider_one_is_unreachable() -> None:
    table: Table[Door] = Table(
        "T", Row("wide", locked, true("R")), Row("narrow", locked & broken, true("R")), Row("rest", OTHERWISE, true("R"))
    )

    assert unreachable(table) == ["narrow"]


def test_rows_that_may_both_match_overlap() -> None:
    rows = (Row("a", locked, true("R")), Row("b", broken, true("R")), Row("c", ~locked & ~broken, true("R")))

    assert overlaps(Table("T", *rows)) == [("a", "b")]
    assert overlaps(Table("T", *rows, assuming=[~(locked & broken)])) == []
    assert overlaps(Table("T", *rows, at_most_one=[(locked, broken)])) == []


def test_composed_guards_exclude_each_other_too() -> None:
    rows = (Row("a", locked, true("R")), Row("b", ~broken, true("R")), Row("c", ~locked & broken, true("R")))

    assert overlaps(Table("T", *rows)) == [("a", "b")]
    assert overlaps(Table("T", *rows, at_most_one=[(locked, ~broken)])) == []
    assert overlaps(Table("T", *rows, at_most_one=[(~locked, ~broken)])) == [("a", "b")]


def test_a_row_for_all_the_rest_overlaps_with_none() -> None:
    assert overlaps(Table("T", Row("a", locked, true("R")), Row("rest", OTHERWISE, true("R")))) == []


def test_a_snapshot_that_a_table_declares_impossible_is_named() -> None:
    rows = (Row("a", locked, true("R")), Row("b", broken, true("R")))

    assert contradictions(Table("T", *rows, exactly_one=[(locked, broken)]), Door()) == ["exactly one of ['locked', 'is broken'], but []"]
    assert contradictions(Table("T", *rows, at_most_one=[(locked, broken)]), Door()) == []
    assert contradictions(Table("T", *rows, at_most_one=[(locked, broken)]), Door(locked=True, broken=True)) != []
    assert contradictions(Table("T", *rows, assuming=[~(locked & broken)]), Door(locked=True, broken=True)) == ["!(locked && is broken)"]


def test_assumptions_must_be_possible() -> None:
    with pytest.raises(Impossible):
        gaps(Table("T", *READY.rows, assuming=[locked & ~locked]))


def test_a_table_with_too_many_questions_must_be_split() -> None:
    rows = [Row(f"r{n}", guard(f"g{n}")(lambda d: False), true("R")) for n in range(17)]

    with pytest.raises(TooManyGuards):
        gaps(Table("T", *rows))


# ----------------------------------------------------------------------------------------------- rendering


def test_markdown_has_a_line_forevery_row_and_every_collected_line() -> None:
    text = as_markdown(READY)

    assert text.startswith("## Ready\n\nWhether a door is ready.\n")
    assert "| `stuck` | `locked && is broken` | - | `Unknown/Stuck: the <color> door` | after 5 s |" in text
    assert "| `locked` | `locked` | unlock it | `no change`; v1beta1: `False/Locked (Info)` | none |" in text
    assert "| `dirty` | `dirty` | - (collected) | `False/NotReady: * the <color> door` | after 9 s |" in text


def test_a_bar_in_a_guard_does_not_break_the_table() -> None:
    table: Table[Door] = Table("T", Row("a", locked | broken, true("R")))

    assert "`locked \\|\\| is broken`" in as_markdown(table)


def test_json_has_every_row_by_name() -> None:
    rows = as_json(READY)["rows"]

    assert [r["name"] for r in rows] == list(READY.row_names)
    assert rows[0] | {"atoms": None} == {
        "name": "stuck",
        "guard": "locked && is broken",
        "atoms": None,
        "status": "Unknown",
        "reason": "Stuck",
        "message": "the <color> door",
        "requeueAfterSeconds": 5.0,
    }
    assert rows[1]["keep"] is True
    assert rows[2]["collectedIn"] == "bad"


# ----------------------------------------------------------------------------------------------- observing


def test_an_observer_gets_every_decision_within_its_context_only() -> None:
    seen: list[tuple[str, str]] = []

    READY.decide(Door())
    with observing(lambda table, door: seen.append((table.name, table.explain(door).decision.row))):
        READY.decide(Door(locked=True))
    READY.decide(Door())

    assert seen == [("Ready", "locked")]
