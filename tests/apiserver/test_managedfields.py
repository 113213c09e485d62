"""Who owns which field: updates, applies, conflicts, and what is left when an applier lets go."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from apiserver.apiserver_testing import widget_crds
from clusterwright.apiserver.builtins.kinds import RESOURCES
from clusterwright.apiserver.conversion import Versions
from clusterwright.apiserver.managedfields import applying, updating
from clusterwright.apiserver.managedfields.merging import compare, everything, field_set, merge, remove
from clusterwright.apiserver.managedfields.sets import difference, dump, intersection, load, union
from clusterwright.apiserver.schema.customresource import compile_crd
from clusterwright.apiserver.schema.mergetypes import of_schema
from clusterwright.apiserver.schema.structural import Node
from clusterwright.apiserver.status import StatusError

V1, V1BETA1 = "widgets.example.com/v1", "widgets.example.com/v1beta1"
HANDLERS = Versions({V1: compile_crd(widget_crds()[0], "v1"), V1BETA1: compile_crd(widget_crds()[0], "v1beta1")})
CONFIG_MAPS = Versions({"v1": next(r.handler for r in RESOURCES if r.kind == "ConfigMap")})
Obj = dict[str, Any]


def widget(version: str = V1, /, **parts: Any) -> Obj:
    return {"apiVersion": version, "kind": "Widget", "metadata": {"name": "w"}, **parts}


def written(old: Obj | None, new: Obj, manager: str, *, subresource: str = "", time: str = "2001-01-01T00:00:01Z") -> Obj:
    made = copy.deepcopy(new)
    updating.update(old, made, manager=manager, subresource=subresource, time=time, handlers=HANDLERS)
    return made


def applied(
    live: Obj | None, body: Obj, manager: str, *, force: bool = False, subresource: str = "", time: str = "2001-01-01T00:00:02Z"
) -> Obj:
    return applying.apply(
        copy.deepcopy(live), copy.deepcopy(body), manager=manager, force=force, subresource=subresource, time=time, handlers=HANDLERS
    )


def owners(obj: Obj) -> dict[tuple[str, str], Any]:
    return {(e["manager"], e["operation"]): e["fieldsV1"] for e in obj["metadata"].get("managedFields", ())}


def test_a_create_owns_everything_but_identity():
    made = written(
        None,
        widget(spec={"color": "red", "tags": ["x"], "parts": [{"name": "a", "count": 1}], "args": ["1"], "selector": {"mode": "m"}}),
        "me",
    )
    assert owners(made) == {
        ("me", "Update"): {
            "f:spec": {
                ".": {}, "f:args": {}, "f:color": {}, "f:selector": {}, "f:tags": {".": {}, 'v:"x"': {}},
                "f:parts": {".": {}, 'k:{"name":"a"}': {".": {}, "f:count": {}, "f:name": {}}},
            }
        }
    }  # fmt: skip


def test_an_update_takes_what_it_changes_and_nothing_else():
    first = written(None, widget(spec={"color": "red", "size": 1, "title": "t"}), "one")
    second = written(first, widget(spec={"color": "blue", "size": 1}), "two", time="2001-01-01T00:00:09Z")
    assert owners(second) == {("one", "Update"): {"f:spec": {".": {}, "f:size": {}}}, ("two", "Update"): {"f:spec": {"f:color": {}}}}
    assert [e["time"] for e in second["metadata"]["managedFields"]] == ["2001-01-01T00:00:01Z", "2001-01-01T00:00:09Z"]


def test_an_update_that_changes_nothing_keeps_the_entries_as_they_are():
    first = written(None, widget(spec={"color": "red"}), "one")
    again = written(first, widget(spec={"color": "red"}), "two", time="2001-01-01T00:00:09Z")
    assert again["metadata"]["managedFields"] is first["metadata"]["managedFields"]


def test_status_and_object_are_owned_apart():
    first = written(None, widget(spec={"color": "red"}), "ctl")
    second = written(first, {**widget(spec={"color": "ignored"}), "status": {"phase": "x"}}, "ctl", subresource="status")
    entries = {e.get("subresource", ""): e["fieldsV1"] for e in second["metadata"]["managedFields"]}
    assert entries == {"": {"f:spec": {".": {}, "f:color": {}}}, "status": {"f:status": {".": {}, "f:phase": {}}}}


@pytest.mark.parametrize("sent", [[], [{}]])
def test_managed_fields_can_be_reset(sent: list[Any]):
    first = written(None, widget(spec={"color": "red"}), "one")
    new = widget(spec={"color": "red"})
    new["metadata"]["managedFields"] = sent
    assert "managedFields" not in written(first, new, "two")["metadata"]


def test_malformed_managed_fields_are_as_if_not_sent():
    first = written(None, widget(spec={"color": "red"}), "one")
    for broken in ({"operation": "Wrong"}, {"fieldsType": "FieldsV2"}, {"fieldsV1": {"nonsense": {}}}):
        new = widget(spec={"color": "red"})
        new["metadata"]["managedFields"] = [
            {"manager": "x", "operation": "Update", "apiVersion": V1, "fieldsType": "FieldsV1", "fieldsV1": {"f:spec": {"f:color": {}}}}
            | broken
        ]
        assert written(first, new, "two")["metadata"]["managedFields"] == first["metadata"]["managedFields"]


def test_old_updaters_are_put_together():
    obj = written(None, widget(spec={"color": "red", "config": {}}), "first")
    for i in range(14):
        spec = {**obj["spec"], "config": {**obj["spec"]["config"], f"k{i}": "v"}}
        obj = written(obj, widget(spec=spec), f"manager-{i:02}", time=f"2001-01-01T00:01:{i:02}Z")
    entries = obj["metadata"]["managedFields"]
    assert len(entries) == 10
    ancient = next(e for e in entries if e["manager"] == "ancient-changes")
    assert {"f:k0", "f:k1"} <= set(ancient["fieldsV1"]["f:spec"]["f:config"])


def test_managed_fields_of_null_are_as_if_not_sent():
    first = applied(None, widget(spec={"color": "red"}), "alpha", time="2001-01-01T00:00:01Z")
    body = widget(spec={"color": "red"}, metadata={"name": "w", "managedFields": None})

    again = applied(first, body, "alpha", time="2001-01-01T00:00:09Z")

    assert again == first


def test_conflicts_name_manager_and_field():
    live = applied(None, widget(spec={"color": "red", "parts": [{"name": "a", "count": 1}]}), "alpha")
    with pytest.raises(StatusError) as caught:
        applied(live, widget(spec={"color": "blue", "parts": [{"name": "a", "count": 2}]}), "beta")
    assert caught.value.code == 409
    assert caught.value.status["message"] == (
        'Apply failed with 2 conflicts: conflicts with "alpha":\n- .spec.color\n- .spec.parts[name="a"].count'
    )
    assert caught.value.status["details"]["causes"][1] == {
        "reason": "FieldManagerConflict", "message": 'conflict with "alpha"', "field": '.spec.parts[name="a"].count'}  # fmt: skip


def test_force_takes_and_the_same_value_is_shared():
    live = applied(None, widget(spec={"color": "red", "size": 1}), "alpha")
    both = applied(live, widget(spec={"color": "red", "size": 1}), "beta")
    assert owners(both) == {(m, "Apply"): {"f:spec": {"f:color": {}, "f:size": {}}} for m in ("alpha", "beta")}
    assert "time" not in both["metadata"]["managedFields"][0], "an apply that changes nothing has no time"
    taken = applied(both, widget(spec={"color": "blue", "size": 1}), "gamma", force=True)
    assert owners(taken)["alpha", "Apply"] == {"f:spec": {"f:size": {}}}
    assert taken["spec"]["color"] == "blue"


def test_releasing_fields_removes_only_unshared_ones():
    live = applied(None, widget(spec={"color": "red", "size": 1, "nested": {"a": "1"}, "tags": ["x"]}), "alpha")
    live = applied(live, widget(spec={"size": 1}), "beta")
    live = written(live, {**live, "spec": {**live["spec"], "tags": ["x", "y"]}}, "editor")
    left = applied(live, widget(spec={"color": "red"}), "alpha")
    assert left["spec"] == {"color": "red", "size": 1, "tags": ["y"]}


def test_a_map_that_was_emptied_from_within_stays():
    live = applied(None, widget(spec={"color": "red", "nested": {"a": "1"}}), "alpha")
    assert applied(live, widget(spec={"color": "red", "nested": {}}), "alpha")["spec"]["nested"] == {}


def test_keys_with_defaults_identify_items():
    live = applied(None, widget(spec={"color": "red", "ports": [{"port": 80}]}), "alpha")
    assert owners(live)["alpha", "Apply"]["f:spec"]["f:ports"] == {'k:{"port":80,"protocol":"TCP"}': {".": {}, "f:port": {}}}
    both = applied(live, widget(spec={"ports": [{"port": 80, "protocol": "TCP", "name": "http"}]}), "beta")
    assert both["spec"]["ports"] == [{"port": 80, "protocol": "TCP", "name": "http"}]


def test_entries_remember_their_version():
    live = applied(None, widget(spec={"color": "red", "size": 1}), "alpha")
    other = applied(live, widget(V1BETA1, spec={"color": "red"}), "alpha")
    assert [e["apiVersion"] for e in other["metadata"]["managedFields"]] == [V1BETA1]
    assert other["spec"] == {"color": "red"}, "what was applied in another version is let go of too"


def test_fields_from_before_the_first_apply_have_an_owner():
    live = widget(spec={"color": "red", "size": 1})
    made = applied(live, widget(spec={"color": "red"}), "alpha")
    assert set(owners(made)) == {("before-first-apply", "Update"), ("alpha", "Apply")}
    with pytest.raises(StatusError, match=r'conflict with "before-first-apply" using widgets\.example\.com/v1: \.spec\.size'):
        applied(made, widget(spec={"size": 2}), "beta")


def test_kubectl_may_take_over_from_its_client_side_apply():
    note = "kubectl.kubernetes.io/last-applied-configuration"
    live = widget(spec={"color": "red"})
    live["metadata"]["annotations"] = {
        note: '{"apiVersion":"widgets.example.com/v1","kind":"Widget","metadata":{"name":"w"},"spec":{"color":"red"}}'
    }
    live = written(None, live, "kubectl-client-side-apply")
    taken = applied(live, widget(spec={"color": "blue"}), "kubectl")
    assert taken["spec"]["color"] == "blue"
    assert '"color":"blue"' in taken["metadata"]["annotations"][note]
    with pytest.raises(StatusError):
        applied(live, widget(spec={"color": "blue"}), "somebody-else")


OMITS = (
    '.spec.parts: element 0: associative list with keys has an element that omits all key fields ["name"] '
    "(and doesn't have default values for any key fields)"
)


@pytest.mark.parametrize(
    ("spec", "text"),
    [
        ({"color": "red", "nope": 1}, ".spec.nope: field not declared in schema"),
        ({"tags": "x"}, ".spec.tags: expected list, got &{x}"),
        ({"nested": [1]}, ".spec.nested: expected map, got &{[1]}"),
        ({"size": "x"}, ".spec.size: expected numeric (int or float), got string"),
        ({"tags": ["a", "a"]}, '.spec.tags: duplicate entries for key [="a"]'),
        ({"parts": [{"count": 1}]}, OMITS),
    ],
)  # fmt: skip
def test_bodies_that_do_not_fit_are_refused_before_anything_is_merged(spec: Obj, text: str):
    with pytest.raises(StatusError) as caught:
        applied(None, widget(spec=spec), "alpha")
    assert caught.value.code == 500
    assert caught.value.status["message"] == f"failed to create typed patch object (/w; widgets.example.com/v1, Kind=Widget): {text}"


def test_built_ins_are_compared_with_their_zero_object():
    obj = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "m"}, "data": {"a": "1"}}
    updating.update(None, obj, manager="me", subresource="", time="2001-01-01T00:00:00Z", handlers=CONFIG_MAPS)
    assert owners(obj) == {("me", "Update"): {"f:data": {".": {}, "f:a": {}}}}


# ---------------------------------------------------------------- properties

SPEC = of_schema(Node(widget_crds()[0]["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]))
NAMES = st.sampled_from(["a", "b", "c"])
SPECS = st.fixed_dictionaries(
    {},
    optional={
        "color": st.sampled_from(["red", "blue"]),
        "size": st.integers(0, 2),
        "config": st.dictionaries(NAMES, st.sampled_from(["1", "2"]), max_size=2),
        "tags": st.lists(NAMES, unique=True, min_size=1, max_size=3),  # empty sets and map lists belong to nobody
        "args": st.lists(NAMES, max_size=2),
        "nested": st.fixed_dictionaries({}, optional={"a": NAMES, "deep": st.fixed_dictionaries({}, optional={"x": st.integers(0, 1)})}),
        "parts": st.lists(
            st.fixed_dictionaries({"name": NAMES}, optional={"count": st.integers(0, 1)}),
            unique_by=lambda p: p["name"],
            min_size=1,
            max_size=3,
        ),
    },
)


@given(SPECS, SPECS)
def test_comparing_splits_all_paths_in_three(old: Obj, new: Obj):
    removed, modified, added = compare(old, new, SPEC)
    before, after = everything(old, SPEC), everything(new, SPEC)
    assert intersection(removed, added) == {}
    assert difference(removed, before) == {}
    assert difference(added, after) == {}
    if old == new:
        assert (removed, modified, added) == ({}, {}, {})
    unordered = {k: sorted(v, key=str) if k in ("tags", "parts") else v for k, v in old.items()}
    if (removed, modified, added) == ({}, {}, {}):
        assert unordered == {k: sorted(v, key=str) if k in ("tags", "parts") else v for k, v in new.items()}, "only order is nobody's"


@given(SPECS, SPECS)
def test_merging_lays_the_configuration_over_the_object(live: Obj, config: Obj):
    merged = merge(live, config, SPEC)
    assert difference(field_set(config, SPEC), union(field_set(merged, SPEC), everything(merged, SPEC))) == {}
    assert merge(merged, config, SPEC) == merged


@given(SPECS)
def test_wire_form_and_sets_are_inverse(spec: Obj):
    fields = {"f:spec": everything(spec, SPEC)}
    assert load(dump(fields)) == fields


@given(SPECS)
def test_removing_everything_leaves_nothing_owned(spec: Obj):
    rest = remove(spec, {k: v for k, v in everything(spec, SPEC).items() if k != "."}, SPEC)
    assert rest == {}


@settings(max_examples=60)
@given(st.lists(st.tuples(st.sampled_from(["alpha", "beta", "gamma"]), SPECS, st.booleans()), max_size=6))
def test_an_applier_sees_what_it_applied_until_another_takes_it(steps: list[tuple[str, Obj, bool]]):
    live: Obj | None = None
    for manager, spec, force in steps:
        try:
            live = applied(live, widget(spec=spec), manager, force=force)
        except StatusError:
            assert not force, "a forced apply has no conflicts"
            continue
        mine = owners(live).get((manager, "Apply"), {})
        assert merge(live.get("spec", {}), spec, SPEC) == live.get("spec", {}) or not spec
        if spec:
            assert dump(field_set(spec, SPEC)) == mine.get("f:spec", {})
