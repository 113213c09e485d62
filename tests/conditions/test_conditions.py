"""The condition algebra's rules by name; the recorded calls are replayed by tests/vectors."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clusterwright.api.meta import Condition, Unstructured, V1Beta1Condition
from clusterwright.conditions import (
    ConditionConflict,
    Fallback,
    InvalidConditions,
    NothingToMerge,
    Reporter,
    aggregate,
    conditions_of,
    delete_condition,
    get,
    group_control_plane_components,
    mirror,
    names_with_limit,
    patch_conditions,
    plural,
    set_condition,
    sort_conditions,
    summary,
    v1beta1,
)
from clusterwright.conditions.limits import fit, fit_v1beta1

NOW = datetime(2026, 5, 1, 12, tzinfo=UTC)
EARLIER = NOW - timedelta(hours=1)


def c(
    type: str, status: str = "True", reason: str = "R", message: str = "", since: datetime | None = EARLIER, observed: int = 1
) -> Condition:
    return Condition(type=type, status=status, reason=reason, message=message, last_transition_time=since, observed_generation=observed)


# --------------------------------------------------------------------------------------------------- lists


def test_the_time_moves_only_with_the_status() -> None:
    before = (c("A", "True"),)

    same = set_condition(before, c("A", "True", "Other", since=None), generation=2, now=NOW)
    other = set_condition(before, c("A", "False", since=None), generation=2, now=NOW)

    assert (same[0].last_transition_time, same[0].reason, same[0].observed_generation) == (EARLIER, "Other", 2)
    assert other[0].last_transition_time == NOW


def test_a_mirrored_time_counts_when_the_status_flips() -> None:
    reported = NOW - timedelta(minutes=5)

    after = set_condition((c("A", "True"),), c("A", "False", since=reported), generation=1, now=NOW)

    assert after[0].last_transition_time == reported


def test_fractions_of_a_second_are_cut() -> None:
    after = set_condition((), c("A", since=NOW.replace(microsecond=999_999)), generation=1, now=NOW)

    assert after[0].last_transition_time == NOW


def test_setting_an_unchanged_condition_returns_the_same_list() -> None:
    before = (c("B"), c("A"))

    assert set_condition(before, c("A", since=None), generation=1, now=NOW) is before


def test_conditions_are_in_reading_order() -> None:
    types = ["B", "Paused", "A", "Deleting", "Ready", "Available"]

    assert [x.type for x in sort_conditions(c(t) for t in types)] == ["Available", "Ready", "A", "B", "Paused", "Deleting"]


def test_delete_takes_every_condition_of_the_type() -> None:
    assert delete_condition((c("A"), c("B"), c("A", "False")), "A") == (c("B"),)


@given(st.lists(st.sampled_from(["Available", "Ready", "Zed", "Alpha", "Paused", "Deleting"]), unique=True))
def test_sorting_twice_is_sorting_once(types: list[str]) -> None:
    once = sort_conditions(c(t) for t in types)

    assert sort_conditions(once) == once


# ------------------------------------------------------------------------------------------------- foreign


def foreign(**status: object) -> Unstructured:
    return Unstructured({"kind": "Thing", "status": status})


def test_a_condition_without_reason_gets_one() -> None:
    assert conditions_of(foreign(conditions=[{"type": "Ready", "status": "True"}]))[0].reason == "NoReasonReported"


@pytest.mark.parametrize(
    ("item", "text"),
    [
        ({"status": "True"}, "type must be set for all conditions"),
        ({"type": "A"}, "status must be set for the A condition"),
        ({"type": "A", "status": "Maybe"}, "status for the A condition must be one of True, False, Unknown"),
        ({"type": "A", "status": "True", "lastTransitionTime": "yesterday"}, "failed to unmarshal lastTransitionTime value: yesterday"),
        ({"type": "A", "status": True}, "status for the A condition must be a string"),
        ({"type": "A", "status": "True", "observedGeneration": "x"}, "observedGeneration for the A condition must be a number"),
    ],
    ids=["no type", "no status", "other status", "bad time", "status of another type", "bad generation"],
)
def test_one_bad_item_spoils_the_list(item: object, text: str) -> None:
    with pytest.raises(InvalidConditions, match=r"failed to convert status\.conditions from Thing") as error:
        conditions_of(foreign(conditions=[{"type": "Fine", "status": "True"}, item]))

    assert text in str(error.value)


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(max_size=5),
        lambda x: (
            st.lists(x, max_size=3)
            | st.dictionaries(st.sampled_from(["type", "status", "reason", "conditions", "v1beta2", "lastTransitionTime"]), x, max_size=4)
        ),
    )
)
def test_no_status_of_any_shape_crashes(status: object) -> None:
    obj = Unstructured({"kind": "Thing", "status": status})

    try:
        found: tuple[Any, ...] = conditions_of(obj)
    except InvalidConditions:
        found = ()
    assert all(x.status in {"True", "False", "Unknown"} for x in (*found, *v1beta1.of_foreign(obj)))


# ----------------------------------------------------------------------------------------------- combining


def test_a_source_that_does_not_report_is_unknown_or_the_fallback() -> None:
    assert mirror((), "Ready", target="X") == Condition(
        type="X", status="Unknown", reason="NotYetReported", message="Condition Ready not yet reported"
    )
    assert mirror((), "Ready", fallback=Fallback("False", "Why", "so")).reason == "Why"


def test_an_aggregate_without_reporters_is_an_error() -> None:
    with pytest.raises(NothingToMerge):
        aggregate([], "Ready")


@pytest.mark.parametrize(
    ("types", "overrides"),
    [([], []), (["Ready"], []), (["A"], [c("B")]), (["A"], [c("A"), c("A")])],
    ids=["no types", "itself", "override missing", "override twice"],
)
def test_an_invalid_summary_is_an_error(types: list[str], overrides: list[Condition]) -> None:
    with pytest.raises(NothingToMerge):
        summary(Reporter("Machine", "m", (c("A"),)), types, target="Ready", overrides=overrides)


def test_three_messages_in_all_and_the_rest_counted_by_kind() -> None:
    reporters = [Reporter("Machine", f"m{n}", (c("Ready", "False", message=f"issue {n}"),)) for n in range(5)]
    reporters.append(Reporter("Machine", "z", ()))

    message = aggregate(reporters, "Ready").message

    assert (
        message
        == "* Machine m0: issue 0\n* Machine m1: issue 1\n* Machine m2: issue 2\nAnd 2 Machines with other issues\nAnd 1 Machine with status unknown"
    )


def test_control_plane_machines_are_named_first() -> None:
    said = (c("Ready", "False", message="disk full"),)
    reporters = [Reporter("Machine", "a", said), Reporter("Machine", "z", said, control_plane=True)]

    assert aggregate(reporters, "Ready").message == "* Machines z, a: disk full"


def test_a_summary_keeps_the_order_of_its_types() -> None:
    source = Reporter("Machine", "m", (c("A", "Unknown", message="?"), c("B", "False", message="no")))

    assert summary(source, ["A", "B"], target="Ready").message == "* A: ?\n* B: no"


def test_nested_bullets_are_indented() -> None:
    source = Reporter("Machine", "m", (c("A", "False", message="plain\n* bullet"), c("B", "False", message="* one\n* two")))

    assert summary(source, ["A", "B"], target="Ready").message == "* A:\n  * plain\n    * bullet\n* B:\n  * one\n  * two"


def test_a_type_that_is_named_twice_stands_where_it_is_named_last() -> None:
    source = Reporter("Machine", "m", (c("A", "False", message="a"), c("B", "False", message="b")))

    assert summary(source, ["A", "B", "A"], target="Ready").message == "* B: b\n* A: a"


def test_issues_decide_between_equal_groups() -> None:
    said = {"m0": ("Unknown", "x"), "m1": ("False", "y"), "m2": ("False", "y"), "m3": ("False", "x")}
    sources = [Reporter("Machine", name, (c("Ready", status, message=text),)) for name, (status, text) in said.items()]

    assert aggregate(sources, "Ready").message == "* Machines m1, m2: y\n* Machines m0, m3: x"


@pytest.mark.parametrize("text", ["*\u00a0x", "*\u2003x", "*\x0bx", "*x", "a*b"])
def test_only_a_plain_space_after_the_star_makes_a_bullet(text: str) -> None:
    source = Reporter("Machine", "m", (c("A", "False", message=text),))

    assert summary(source, ["A"], target="Ready").message == f"* A: {text}"


@pytest.mark.parametrize(
    ("word", "many"),
    [
        ("Machine", "Machines"),
        ("KubeadmControlPlane", "KubeadmControlPlanes"),
        ("Policy", "Policies"),
        ("Gateway", "Gateways"),
        ("ClusterClass", "ClusterClasses"),
        ("Mesh", "Meshes"),
        ("EdgePerson", "EdgePeople"),
        ("HostDNS", "HostDNSes"),
        ("RackK8s", "RackK8s"),
    ],
)
def test_plurals_are_formed(word: str, many: str) -> None:
    assert plural(word) == many


def test_lists_of_names_stay_short() -> None:
    assert names_with_limit(["a", "b", "c"], 3) == "a, b, c"
    assert names_with_limit(["a", "b", "c", "d", "e"], 3) == "a, b, c, ... (2 more)"


@pytest.mark.parametrize(
    ("lines", "grouped"),
    [
        ([], []),
        (["* APIServerPodHealthy: down"], ["* APIServerPodHealthy: down"]),
        (["* APIServerPodHealthy: down", "* SchedulerPodHealthy: down"], ["* Control plane components: down"]),
        (["* APIServerPodHealthy: down", "* SchedulerPodHealthy: up"], ["* APIServerPodHealthy: down", "* SchedulerPodHealthy: up"]),
        (
            [
                "* NodeReady: lost",
                "* EtcdPodHealthy: down",
                "* Other: down",
                "* ControllerManagerPodHealthy: down",
                "* APIServerPodHealthy: down",
            ],
            ["* NodeReady: lost", "* Control plane components: down", "* Other: down"],
        ),
        (
            ["* APIServerPodHealthy: down", "* SchedulerPodHealthy: down", "* EtcdPodHealthy: up"],
            ["* APIServerPodHealthy: down", "* SchedulerPodHealthy: down", "* EtcdPodHealthy: up"],
        ),
    ],
)
def test_control_plane_components_are_one_line_if_several_say_the_same(lines: list[str], grouped: list[str]) -> None:
    assert group_control_plane_components(lines) == grouped


# ------------------------------------------------------------------------------------------------ patching


def test_concurrent_additions_of_others_stay() -> None:
    merged = patch_conditions((), (c("Mine"),), (c("Theirs"),), now=NOW)

    assert {x.type for x in merged} == {"Mine", "Theirs"}


def test_a_change_elsewhere_to_another_state_is_a_conflict_unless_owned() -> None:
    before, after, latest = (c("A", "True"),), (c("A", "False"),), (c("A", "Unknown"),)

    with pytest.raises(ConditionConflict, match='"A" was modified by a different process'):
        patch_conditions(before, after, latest, now=NOW)
    assert get(patch_conditions(before, after, latest, now=NOW, owned=["A"]), "A").status == "False"


def test_the_same_change_elsewhere_is_kept_with_its_time() -> None:
    latest = (c("A", "False", since=NOW - timedelta(minutes=1)),)

    assert patch_conditions((c("A", "True"),), (c("A", "False", since=NOW),), latest, now=NOW) == latest


@pytest.mark.parametrize("before", [(), (c("A", "True"), c("B", "True"))], ids=["added", "changed"])
def test_further_changes_next_to_an_equal_concurrent_change_are_kept(before: tuple[Condition, ...]) -> None:
    there = c("A", "False", since=NOW - timedelta(minutes=1))
    after = (c("A", "False", since=NOW), c("B", "False", since=NOW))

    merged = patch_conditions(before, after, (there, *before[1:]), now=NOW)

    assert merged == (there, c("B", "False", since=NOW))


def test_removed_elsewhere_and_changed_here_is_a_conflict_unless_owned() -> None:
    before, after = (c("A", "True"),), (c("A", "False"),)

    with pytest.raises(ConditionConflict, match="deleted"):
        patch_conditions(before, after, (), now=NOW)
    assert patch_conditions(before, after, (), now=NOW, owned=["A"]) == (c("A", "False"),)


_TYPES = st.sampled_from(["A", "B", "Ready"])
_LISTS = st.dictionaries(
    _TYPES, st.builds(c, st.just("?"), st.sampled_from(["True", "False", "Unknown"]), st.sampled_from(["R1", "R2"])), max_size=3
).map(
    lambda d: sort_conditions(
        Condition(type=t, status=x.status, reason=x.reason, message="", last_transition_time=EARLIER, observed_generation=1)
        for t, x in d.items()
    )
)


@given(_LISTS, _LISTS, _LISTS)
def test_with_force_our_changes_win_and_nothing_else_is_touched(
    before: tuple[Condition, ...], after: tuple[Condition, ...], latest: tuple[Condition, ...]
) -> None:
    merged = patch_conditions(before, after, latest, now=NOW, force=True)

    for type in ("A", "B", "Ready"):
        was, wanted, there = get(before, type), get(after, type), get(latest, type)
        result = get(merged, type)
        if was == wanted:
            assert result == there
        elif wanted is None:
            assert result is None
        else:
            assert result is not None
            assert (result.status, result.reason) == (wanted.status, wanted.reason)


@given(_LISTS, _LISTS)
def test_a_patch_applied_to_the_read_state_gives_the_wanted_state(before: tuple[Condition, ...], after: tuple[Condition, ...]) -> None:
    merged = patch_conditions(before, after, before, now=NOW)

    assert {(x.type, x.status, x.reason) for x in merged} == {(x.type, x.status, x.reason) for x in after}


# ------------------------------------------------------------------------------------------------- v1beta1


def test_the_worst_group_decides_in_the_requested_order() -> None:
    said = (v1beta1.true("A"), v1beta1.false("C", "RC", "Info", "mc"), v1beta1.false("B", "RB", "Info", "mb"))

    found = v1beta1.summary("Cluster", "c", said, types=["C", "B", "A"])

    assert found == V1Beta1Condition(type="Ready", status="False", severity="Info", reason="RC", message="mc")


def test_ready_itself_is_not_an_input() -> None:
    assert v1beta1.summary("Cluster", "c", (v1beta1.false("Ready", "R", "Error"), v1beta1.true("A"))) == v1beta1.true("Ready")


def test_any_change_moves_the_time_of_an_old_condition() -> None:
    before = (V1Beta1Condition(type="A", status="False", reason="R", severity="Info", last_transition_time=EARLIER),)

    after = v1beta1.set_condition(before, v1beta1.false("A", "R", "Info", "other"), now=NOW)

    assert after[0].last_transition_time == NOW


def test_an_old_list_with_an_item_of_a_wrong_form_reports_nothing() -> None:
    fine = {"type": "Ready", "status": "True"}

    assert v1beta1.of_foreign(foreign(conditions=[fine])) == (v1beta1.true("Ready"),)
    assert v1beta1.of_foreign(foreign(conditions=["x", fine])) == ()
    old = {"v1beta1": {"conditions": [{**fine, "status": "False", "severity": "Info", "reason": "Booting"}]}}
    assert v1beta1.of_foreign(foreign(conditions=[fine], deprecated=old)) == (v1beta1.false("Ready", "Booting", "Info"),)
    for unusable in ({"v1beta1": {"conditions": ["x"]}}, {"v1beta1": {}}, "x"):
        assert v1beta1.of_foreign(foreign(conditions=[fine], deprecated=unusable)) == (v1beta1.true("Ready"),)
    assert v1beta1.of_foreign(foreign(conditions=[fine], deprecated={"v1beta1": {"conditions": []}})) == ()
    assert v1beta1.of_foreign(foreign(conditions=[{**fine, "lastTransitionTime": "yesterday"}])) == ()


# -------------------------------------------------------------------------------------------------- limits


def test_a_condition_within_the_limits_is_unchanged() -> None:
    condition = c("A", "True", "Reason_1", "fine")

    assert fit(condition) is condition


def test_an_invalid_reason_moves_to_the_message() -> None:
    assert (fit(c("A", reason="not one!", message="m")).reason, fit(c("A", reason="not one!", message="m")).message) == (
        "InvalidReasonReported",
        "not one!: m",
    )


def test_a_reason_that_names_its_source_keeps_its_first_word() -> None:
    fitted = fit(c("A", reason="ScalingUp @ Machine/m1", message="m"))

    assert (fitted.reason, fitted.message) == ("ScalingUp", "ScalingUp @ Machine/m1: m")


@given(st.text(max_size=2000), st.integers(0, 40_000))
def test_everything_fits_in_the_end(reason: str, length: int) -> None:
    fitted, old = (
        fit(c("A", reason=reason, message="x" * length)),
        fit_v1beta1(V1Beta1Condition(type="A", status="False", reason=reason, message="x" * length, severity=reason)),
    )

    assert 1 <= len(fitted.reason) <= 1024
    assert len(fitted.message) <= 32768
    assert (len(old.reason) <= 256, len(old.message) <= 10240, len(old.severity) <= 32) == (True, True, True)
