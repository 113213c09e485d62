"""Which MachineSet is wanted, its revision, its name and content; and what an update in place makes of a rollout: pure choices."""

from __future__ import annotations

import base64
import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clusterwright.api.copying import replace
from clusterwright.api.core import Machine, MachineDeployment, MachineSet
from clusterwright.api.core.machine import MachineSpec, MachineTemplateSpec
from clusterwright.api.core.machineset import MachineDeploymentRolloutSpec, MachineDeploymentSpec, MachineSetSpec
from clusterwright.api.core.shared import ContractVersionedObjectReference
from clusterwright.api.meta import LabelSelector, LabelSelectorRequirement, ObjectMeta
from clusterwright.api.selectors import InvalidSelector, as_labels, parsed, selector_text
from clusterwright.controllers import field_ownership
from clusterwright.controllers.machinedeployment import inplace
from clusterwright.controllers.machinedeployment.desired import Maker, new_machine_set, new_name, updated_machine_set
from clusterwright.controllers.machinedeployment.revisions import Revision, next_revision
from clusterwright.controllers.machinedeployment.rollout import Limits, Rollout, Sized, grow_new
from clusterwright.controllers.machinedeployment.templates import divide
from clusterwright.controllers.update_patches import patched
from clusterwright.golang.jsonpatch import PatchFailed

NOW = datetime(2026, 5, 1, 12, tzinfo=UTC)
REVISION = "machinedeployment.clusters.x-k8s.io/revision"
HISTORY = "machinedeployment.clusters.x-k8s.io/revision-history"


def machine_set(name: str, *, version: str = "v1", replicas: int = 1, age: float = 1, annotations: Any = None, **spec: Any) -> MachineSet:
    return MachineSet(
        metadata=ObjectMeta(name=name, creation_timestamp=NOW - timedelta(hours=age), annotations=annotations or {}),
        spec=MachineSetSpec(replicas=replicas, template=MachineTemplateSpec(spec=MachineSpec(version=version, **spec))),
    )


def deployment(version: str = "v1", after: datetime | None = None, **spec: Any) -> MachineDeployment:
    rollout = MachineDeploymentRolloutSpec(after=after) if after else None
    template = MachineTemplateSpec(spec=MachineSpec(version=version, **spec))
    return MachineDeployment(spec=MachineDeploymentSpec(rollout=rollout, template=template))


# ------------------------------------------------------------------------------------------------------- choosing


@pytest.mark.parametrize(
    ("change", "is_new"),
    [
        ({"version": "v2"}, True),
        ({"failure_domain": "b"}, True),
        ({"infrastructure_ref": ContractVersionedObjectReference(name="other")}, True),
        ({"min_ready_seconds": 5}, False),
        ({"cluster_name": "other"}, False),
        ({"provider_id": "other"}, False),
    ],
)
def test_only_changes_that_are_not_in_place_need_a_new_machine_set(change: dict[str, Any], is_new: bool) -> None:
    found = divide(deployment(**{"version": "v1", **change}), [machine_set("a")], NOW)

    assert (found.new is None) is is_new


def test_the_biggest_that_matches_wins_then_the_oldest_then_by_name() -> None:
    sets = [machine_set("c", age=5), machine_set("b", age=5), machine_set("young", age=1), machine_set("other", version="v2", replicas=9)]

    assert divide(deployment(), sets, NOW).new is sets[1]
    big = machine_set("big", replicas=2)
    assert divide(deployment(), [*sets, big], NOW).new is big
    assert [s.metadata.name for s in divide(deployment(), [*sets, big], NOW).old] == ["b", "c", "other", "young"]


def test_sets_created_before_rollout_after_no_longer_match() -> None:
    sets = [machine_set("before", age=2), machine_set("since", age=0.5)]

    assert divide(deployment(after=NOW - timedelta(hours=1)), sets, NOW).new is sets[1]
    assert divide(deployment(after=NOW + timedelta(hours=1)), sets, NOW).new is sets[0]
    alone = divide(deployment(after=NOW - timedelta(hours=1)), sets[:1], NOW)
    assert alone.new is None
    assert alone.ineligible == {"before"}
    assert divide(deployment(after=sets[1].metadata.creation_timestamp), sets, NOW).new is sets[1]


# ------------------------------------------------------------------------------------------------------ revisions


@pytest.mark.parametrize(
    ("annotations", "others", "expected"),
    [
        ({}, [], Revision("1", "")),
        ({}, ["3", "1"], Revision("4", "")),
        ({REVISION: "4"}, ["3"], Revision("4", "")),
        ({REVISION: "9"}, ["3"], Revision("9", "")),
        ({REVISION: "1"}, ["3"], Revision("4", "1")),
        ({REVISION: "5", HISTORY: "1,3"}, ["7"], Revision("8", "1,3,5")),
        ({REVISION: "1"}, ["x", ""], Revision("1", "")),
    ],
)
def test_a_revision_is_above_all_others_and_never_lowered(annotations: dict[str, str], others: list[str], expected: Revision) -> None:
    old = [machine_set(f"o{n}", annotations={REVISION: r}) for n, r in enumerate(others)]

    assert next_revision(annotations, old) == expected


def test_a_revision_that_is_not_a_number_is_an_error() -> None:
    with pytest.raises(ValueError, match="one"):
        next_revision({REVISION: "one"}, [])


# -------------------------------------------------------------------------------------------------------- objects


def maker(name: str = "md", annotations: Any = None, **spec: Any) -> Maker:
    metadata = ObjectMeta(name=name, namespace="ns", uid="u", annotations=annotations or {})
    return Maker(metadata, "cluster.x-k8s.io/v1beta2", {"replicas": 3, **spec}, surge=1)


def test_a_name_is_derived_from_the_template_so_that_a_repeated_creation_finds_the_first() -> None:
    template: Any = {"template": {"spec": {"version": "v1"}}}

    first = new_name(maker(**template), "", [])

    assert new_name(maker(**template), "", []) == first
    assert new_name(maker(template={"spec": {"version": "v2"}}), "", [])[0] != first[0]
    assert new_name(maker(**template), "2026-05-01", [])[0] != first[0]
    assert new_name(maker(**template), "", [first[0]])[0] != first[0]
    assert first[1].endswith(first[0][-5:])


def test_a_long_name_is_cut() -> None:
    assert len(new_name(maker("x" * 63), "", [])[0]) == 63


def test_annotations_only_for_the_deployment_are_not_copied() -> None:
    copied = maker(annotations={"a": "1", "kubectl.kubernetes.io/last-applied-configuration": "{}", REVISION: "7", HISTORY: "1"})

    assert copied.annotations(Revision("2", ""), may_create=False) == {
        "a": "1",
        REVISION: "2",
        "machinedeployment.clusters.x-k8s.io/desired-replicas": "3",
        "machinedeployment.clusters.x-k8s.io/max-replicas": "4",
        "cluster.x-k8s.io/disable-machine-create": "true",
    }


def test_an_existing_machine_set_keeps_its_machines_and_gets_in_place_changes() -> None:
    wanted = maker(
        template={"metadata": {"labels": {"l": "1"}}, "spec": {"version": "v2", "minReadySeconds": 7, "taints": []}},
        selector={"matchLabels": {"l": "1"}},
        machineNaming={"template": "t"},
    )
    existing = {
        "metadata": {"name": "md-a", "uid": "ua", "labels": {"machine-template-hash": "1-a"}, "finalizers": ["f"]},
        "spec": {"replicas": 2, "template": {"spec": {"version": "v1", "minReadySeconds": 1, "readinessGates": [{}], "new": 1}}},
    }

    after = updated_machine_set(wanted, existing, replicas=2, annotations={})

    assert after["spec"]["template"]["spec"] == {"version": "v1", "minReadySeconds": 7, "new": 1}
    assert after["spec"]["selector"] == {"matchLabels": {"l": "1", "machine-template-hash": "1-a"}}
    assert after["spec"]["machineNaming"] == {"template": "t"}
    assert (after["metadata"]["uid"], after["metadata"]["finalizers"]) == ("ua", ["f"])
    assert new_machine_set(wanted, "md-b", "2-b", replicas=0, annotations={})["spec"]["template"]["spec"]["version"] == "v2"


# ------------------------------------------------------------------------------------------------------- in place


def test_moved_machines_count_once() -> None:
    rollout = Rollout(3, Limits(1, 0), Sized("new", 1, 2, 1))

    inplace.acknowledge(rollout, ["m1", "m2"], ["m1"])
    inplace.acknowledge(rollout, ["m1", "m2"], ["m1", "m2"])

    assert (rollout.new.wanted, rollout.intents) == (2, {"new": 2})


@pytest.mark.parametrize(
    ("missing", "growth", "surge", "going_on", "expected"),
    [(0, 1, 1, False, 1), (0, 1, 1, True, 0), (1, 4, 3, True, 1), (0, 3, 3, False, 1), (2, 2, 0, True, 2), (0, 0, 1, False, 0)],
)
def test_moved_machines_need_no_surge(missing: int, growth: int, surge: int, going_on: bool, expected: int) -> None:
    old = 9 - 2 - missing
    rollout = Rollout(9, Limits(surge, 0), Sized("new", 2, 2, 2, 2), (Sized("old", old, old, old),), {"new": 2 + growth} if growth else {})

    inplace.limit_growth(rollout, going_on=going_on)

    assert rollout.intent(rollout.new) == 2 + expected


@pytest.mark.parametrize(
    ("replicas", "new", "old", "surge", "expected"),
    [
        pytest.param(
            6, Sized("new", 3, 3, 3, 3), Sized("old", 1, 1, 1), 3, 5, id="two are missing, and the growth is no more than the surge"
        ),
        pytest.param(6, Sized("new", 3, 3, 3, 3), Sized("old", 3, 3, 3), 3, 4, id="none is missing, and one sets things going"),
        pytest.param(6, Sized("new", 3, 3, 3, 3), Sized("old", 4, 4, 4), 3, 4, id="the surge has begun already"),
        pytest.param(6, Sized("new", 3, 3, 3, 3), Sized("old", 1, 3, 3), 3, 3, id="Machines of the old one are still there"),
        pytest.param(6, Sized("new", 3, 3, 3, 3), Sized("old", 3, 1, 1), 3, 3, id="Machines of the old one are being made"),
    ],
)
def test_missing_replicas_are_counted_by_machines(replicas: int, new: Sized, old: Sized, surge: int, expected: int) -> None:
    rollout = Rollout(replicas, Limits(surge, 0), new, (old,))
    grow_new(rollout)

    inplace.limit_growth(rollout, going_on=old.wanted != old.actual)

    assert rollout.intent(rollout.new) == expected


@given(st.integers(0, 12), st.integers(0, 4), st.tuples(*[st.integers(0, 8)] * 4), st.booleans())
def test_an_update_in_place_never_exceeds_the_surge_nor_leaves_machines_missing(
    replicas: int, surge: int, sizes: tuple[int, int, int, int], going_on: bool
) -> None:
    new, old = Sized("new", sizes[0], sizes[1]), Sized("old", sizes[2], sizes[3])
    rollout = Rollout(replicas, Limits(surge, 0), new, (old,))
    grow_new(rollout)
    most = rollout.intent(new)

    inplace.limit_growth(rollout, going_on=going_on)

    there = max(rollout.intent(new), new.actual) + max(old.wanted, old.actual)
    assert rollout.intent(new) <= most
    if most > new.wanted:
        assert min(replicas, max(most, new.actual) + max(old.wanted, old.actual)) <= there <= replicas + surge


def test_a_rollout_progresses_while_machines_are_created_deleted_or_updated() -> None:
    quiet = Rollout(3, Limits(1, 0), Sized("new", 1, 1, 1, 1), (Sized("old", 2, 2, 2),))
    updating = Machine(metadata=ObjectMeta(annotations={"in-place-updates.internal.cluster.x-k8s.io/update-in-progress": ""}))

    assert not inplace.is_going_on(quiet, [Machine()])
    assert inplace.is_going_on(quiet, [updating])
    assert inplace.is_going_on(Rollout(3, Limits(1, 0), Sized("new", 1, 1, 0, 1)), [])
    assert inplace.is_going_on(Rollout(3, Limits(1, 0), quiet.new, (Sized("old", 1, 2, 2),)), [])
    assert inplace.is_going_on(Rollout(3, Limits(1, 0), quiet.new, quiet.old, {"old": 1}), [])


def patch(kind: str, content: Any) -> dict[str, str]:
    return {"patchType": kind, "patch": base64.b64encode(json.dumps(content).encode()).decode()}


def test_only_the_allowed_part_of_a_patch_is_used() -> None:
    document = {"kind": "Any", "metadata": {"name": "a"}, "spec": {"template": {"spec": {"size": 1}}}}
    both = {"metadata": {"name": "b"}, "spec": {"template": {"spec": {"size": 2}}}}

    assert patched(document, patch("JSONMergePatch", both), ("spec", "template", "spec")) == {**document, "spec": both["spec"]}
    moved = [{"op": "replace", "path": "/spec/template/spec/size", "value": 3}]
    assert patched(document, patch("JSONPatch", moved), ("spec", "template", "spec"))["spec"]["template"]["spec"]["size"] == 3
    gone = patch("JSONMergePatch", {"spec": None})
    assert patched(document, gone, ("spec", "template", "spec")) == document
    assert patched(document, patch("JSONMergePatch", {"spec": []}), ("spec", "template", "spec")) == document
    assert patched(document, None, ("spec",)) == document


@pytest.mark.parametrize(
    "answer", [patch("JSONPatch", []), patch("JSONPatch", None), patch("JSONMergePatch", {}), {"patchType": "JSONMergePatch"}]
)
def test_an_empty_patch_changes_nothing(answer: dict[str, str]) -> None:
    assert patched({"kind": "Any", "spec": {}}, answer, ("spec",)) == {"kind": "Any", "spec": {}}


@pytest.mark.parametrize(
    "answer",
    [
        {"patch": "e30="},
        patch("Other", {}),
        patch("JSONPatch", [{"op": "remove", "path": "/nope"}]),
        {"patchType": "JSONPatch", "patch": "***"},
        {"patchType": "JSONPatch"},
        patch("JSONPatch", {}),
        patch("JSONPatch", ""),
        patch("JSONPatch", [None]),
        patch("JSONPatch", [{"op": "remove", "path": "/kind"}]),
        patch("JSONMergePatch", []),
        patch("JSONMergePatch", None),
        patch("JSONMergePatch", {"kind": None}),
    ],
)
def test_an_invalid_patch_is_an_error(answer: dict[str, str]) -> None:
    with pytest.raises(PatchFailed):
        patched({"kind": "Any", "spec": {}}, answer, ("spec",))


def test_fields_that_need_no_rollout_are_not_compared() -> None:
    def part(**spec: Any) -> dict[str, Any]:
        return {"machineSet": {"spec": {"template": {"spec": spec}}}}

    taint = {"key": "k", "effect": "NoSchedule", "propagation": "Always"}
    assert inplace.HOOK.matches(part(version="v1", taints=[taint]), part(version="v1", minReadySeconds=3))
    assert inplace.HOOK.matches(part(version="v1", notOfThisVersion=1), part(version="v1", failureDomain=""))
    assert not inplace.HOOK.matches(part(version="v1"), part(version="v2"))
    assert not inplace.HOOK.matches(part(version="v1"), part(version="v1", failureDomain="b"))


def test_fields_of_machines_are_compared_unchanged() -> None:
    def part(spec: Any) -> dict[str, Any]:
        return {"infrastructureMachineTemplate": {"spec": {"template": spec}}}

    assert inplace.HOOK.matches(part({"spec": {"size": 1}, "metadata": {"labels": {}}}), part({"spec": {"size": 1}}))
    assert not inplace.HOOK.matches(part({"spec": {}}), part({}))


@pytest.mark.parametrize(
    "bad",
    [
        {"machineSet": {"spec": {"template": {"spec": {"version": {}}}}}},
        {"machineSet": {"spec": {"template": {"spec": []}}}},
        {"infrastructureMachineTemplate": {"spec": {"template": "large"}}},
    ],
)
def test_an_unreadable_answer_is_an_error(bad: dict[str, Any]) -> None:
    good = {part: {"spec": {"template": {"spec": {}}}} for part in bad}
    for current, desired in ((bad, good), (good, bad)):
        with pytest.raises(PatchFailed):
            inplace.HOOK.matches(current, desired)


# ------------------------------------------------------------------------------------------- selectors, ownership


def test_a_selector_is_printed_by_key_and_read_again() -> None:
    terms = (
        LabelSelectorRequirement(key="b", operator="In", values=("y", "x")),
        LabelSelectorRequirement(key="a", operator="Exists"),
        LabelSelectorRequirement(key="d", operator="DoesNotExist"),
    )
    selector = LabelSelector(match_labels={"c": "1"}, match_expressions=terms)

    assert selector_text(selector) == "a,b in (x,y),c=1,!d"
    assert parsed(selector).matches({"a": "", "b": "x", "c": "1"})
    assert not parsed(selector).matches({"a": "", "b": "x", "c": "1", "d": ""})
    with pytest.raises(InvalidSelector):
        as_labels(selector)
    with pytest.raises(InvalidSelector):
        selector_text(replace(selector, match_expressions=(LabelSelectorRequirement(key="a", operator="Near"),)))


def test_labels_are_handed_over_to_the_manager_that_may_remove_them() -> None:
    owned = {"f:metadata": {"f:labels": {".": {}, "f:ours": {}, "f:kept": {}}, "f:ownerReferences": {}}, "f:spec": {}}
    live = {"metadata": {"managedFields": [{"manager": "a", "operation": "Apply", "fieldsV1": owned}], "resourceVersion": "7"}}

    handed = field_ownership.handed_over(live, "a", "b", ["kept"])

    assert handed is not None
    giver, taker = handed[0]["value"]
    assert giver["fieldsV1"]["f:metadata"]["f:labels"] == {".": {}, "f:kept": {}}
    assert taker == {"manager": "b", "operation": "Apply", "fieldsV1": {"f:metadata": {"f:labels": {"f:ours": {}}}}}
    assert handed[1]["value"] == "7"
    assert field_ownership.handed_over(live, "c", "b", ["kept"]) is None
    assert field_ownership.handed_over(live, "a", "b", ["kept", "ours"]) is None
    after = {"metadata": {"managedFields": [*handed[0]["value"]], "resourceVersion": "8"}}
    assert field_ownership.handed_over(after, "a", "b", []) is None  # once: what the giver has now is its own


def test_labels_that_an_object_was_made_with_are_not_applied_again() -> None:
    owned = {"f:metadata": {"f:labels": {".": {}, "f:ours": {}}, "f:annotations": {"f:kept": {}}}, "f:spec": {}}
    entry = {"manager": "a", "operation": "Apply", "fieldsV1": owned}
    entries = [entry]
    live = {"metadata": {"labels": {"ours": "1"}, "annotations": {"kept": ""}, "managedFields": entries}}

    def is_held(labels: dict[str, str], **annotations: str) -> bool:
        return field_ownership.is_held(live, {"metadata": {"labels": labels, "annotations": annotations}}, "a", "b", ["kept"])

    assert is_held({"ours": "1"})
    assert not is_held({"ours": "2"})
    assert not is_held({"ours": "1", "more": ""})
    assert not is_held({})  # it has to go
    assert not is_held({"ours": "1"}, note="x")
    entries.append({"manager": "b", "operation": "Apply", "fieldsV1": {"f:metadata": {"f:labels": {"f:more": {}}}}})
    assert not is_held({"ours": "1"})  # the taker has something that has to go
