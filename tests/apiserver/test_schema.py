"""Structural schemas: pruning, defaulting, validation in kube-apiserver's words, ratcheting."""

from __future__ import annotations

import json
from copy import deepcopy
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from apiserver.apiserver_testing import widget_crds
from clusterwright.apiserver.interfaces import DecodeError
from clusterwright.apiserver.schema.checks import is_valid
from clusterwright.apiserver.schema.customresource import compile_crd
from clusterwright.apiserver.schema.structural import Node, apply_defaults, prune
from clusterwright.apiserver.schema.validation import find_duplicates, find_errors
from clusterwright.golang.regex import BadPattern, compile_go

STRING = {"type": "string"}


def obj(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties}


def errors(schema: dict[str, Any], value: Any, old: Any = None) -> list[str]:
    node = Node(schema)
    found = find_errors(node, value) if old is None else find_errors(node, value, old=old)
    found += find_duplicates(node, value)
    if old is None:
        assert is_valid(node)(value) == (not found)
    return [str(e) for e in found]


WORDS: list[tuple[dict[str, Any], Any, list[str]]] = [
    ({"type": "string", "maxLength": 2}, "abc", ["f: Too long: may not be more than 2 bytes"]),
    ({"type": "string", "minLength": 2}, "ä", ['f: Invalid value: "ä": f in body should be at least 2 chars long']),
    ({"type": "string", "pattern": "^a$"}, "a\n", ['f: Invalid value: "a\\n": f in body should match \'^a$\'']),
    ({"type": "string", "enum": ["a", "b"]}, "c", ['f: Unsupported value: "c": supported values: "a", "b"']),
    ({"type": "integer", "enum": [1, 2]}, True, [
        'f: Invalid value: "boolean": f in body must be of type integer: "boolean"', 'f: Unsupported value: true: supported values: "1", "2"']),
    ({"type": "integer", "format": "int32"}, 2**31, ['<nil>: Invalid value: "": Checked value must be of type integer with format int32 in f']),
    ({"type": "integer", "format": "int32"}, True, ['f: Invalid value: "": f in body must be of type int32: ""']),
    ({"type": "integer"}, 1.0, []),
    ({"type": "number", "minimum": 0, "exclusiveMinimum": True}, 0, ["f: Invalid value: 0: f in body should be greater than 0"]),
    ({"type": "number", "multipleOf": 0.5}, 1.7, ["f: Invalid value: 1.7: f in body should be a multiple of 0.5"]),
    ({"type": "string", "format": "date-time"}, "2020-01-01 00:00:00Z", [
        'f: Invalid value: "2020-01-01 00:00:00Z": f in body must be of type date-time: "2020-01-01 00:00:00Z"']),
    ({"type": "string", "format": "no-such-format"}, "x", []),
    ({"x-kubernetes-int-or-string": True}, True, ['f: Invalid value: "boolean": f in body must be of type integer,string: "boolean"']),
    ({"type": "array", "items": STRING, "maxItems": 1}, ["a", "b"], ["f: Too many: 2: must have at most 1 item"]),
    ({"type": "array", "items": STRING, "x-kubernetes-list-type": "set"}, ["a", "a"], ['f[1]: Duplicate value: "a"']),
    ({"type": "array", "items": obj(k=STRING), "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["k"]},
     [{"k": "a"}, {"k": "a"}], ['f[1]: Duplicate value: {"k":"a"}']),
    ({"type": "object", "additionalProperties": STRING}, {"a": 1}, ['f.a: Invalid value: "integer": f.a in body must be of type string: "integer"']),
    ({**obj(a=STRING), "required": ["a"]}, {}, ["f.a: Required value"]),
    ({"type": "string", "nullable": True}, None, []),
    ({"type": "string"}, None, ['f: Invalid value: "null": f in body must be of type string: "null"']),
    ({**obj(x=STRING, y=STRING), "oneOf": [{"required": ["x"]}, {"required": ["y"]}]}, {"x": "", "y": ""}, [
        '<nil>: Invalid value: "": "f" must validate one and only one schema (oneOf). Found 2 valid alternatives']),
    ({"type": "integer", "anyOf": [{"minimum": 5}, {"maximum": 1}]}, 3, [
        '<nil>: Invalid value: "": "f" must validate at least one schema (anyOf)', "f: Invalid value: 3: f in body should be greater than or equal to 5"]),
    ({"type": "string", "not": {"enum": ["bad"]}}, "bad", ['<nil>: Invalid value: "": "f" must not validate the schema (not)']),
]  # fmt: skip


@pytest.mark.parametrize(("schema", "value", "wanted"), WORDS)
def test_errors_have_the_words_of_kubernetes(schema: dict[str, Any], value: Any, wanted: list[str]):
    assert errors(obj(f=schema), {"f": value}) == wanted


FORMATS: list[tuple[str, list[str], list[str]]] = [
    ("uri", ["http://a", "/x", "mailto:x@y"], ["x", "http://a b", "http://[::1", ""]),
    ("hostname", ["example.com", "a"], ["a.b", "-a", "a_b"]),
    ("ipv4", ["1.2.3.4", "01.2.3.4"], ["1.2.3", "::1", "1.2.3.256"]),
    ("ipv6", ["::1"], ["1.2.3.4", "g::"]),
    ("cidr", ["10.0.0.0/8", "::/0"], ["10.0.0.0/33", "10.0.0.1"]),
    ("mac", ["00:11:22:33:44:55", "0011.2233.4455"], ["00:11"]),
    ("uuid4", ["1fc9dcd8-0000-4000-8000-000000000001"], ["1fc9dcd8-0000-1000-8000-000000000001"]),
    ("date", ["2020-01-01"], ["2020-13-01", "2020-1-1"]),
    ("duration", ["1h30m", "5 minutes", "-1h"], ["5 fortnights", "1", ""]),
    ("byte", ["aGk="], ["aGk", "a b"]),
    ("k8s-short-name", ["a-b"], ["A", "a.b"]),
]


@pytest.mark.parametrize(("name", "good", "bad"), FORMATS)
def test_string_formats_are_checked(name: str, good: list[str], bad: list[str]):
    check = is_valid(Node({"type": "string", "format": name}))
    assert [v for v in good if not check(v)] == []
    assert [v for v in bad if check(v)] == []


def test_pruning_reports_paths_and_spares_what_is_preserved():
    schema = obj(
        spec=obj(known=STRING, open={"type": "object", "x-kubernetes-preserve-unknown-fields": True, "properties": {"k": obj(a=STRING)}}),
        list={"type": "array", "items": obj(a=STRING)},
    )
    value = {
        "apiVersion": "v1", "kind": "K", "metadata": {"x": 1},
        "spec": {"known": "y", "nope": 1, "open": {"any": {"deep": 1}, "k": {"a": "1", "b": 2}}},
        "list": [{"a": "1"}, {"b": 2}],
        "bogus": 1,
    }  # fmt: skip
    assert prune(value, Node(schema)) == ["bogus", "list[1].b", "spec.nope", "spec.open.k.b"]
    assert value == {
        "apiVersion": "v1", "kind": "K", "metadata": {"x": 1},
        "spec": {"known": "y", "open": {"any": {"deep": 1}, "k": {"a": "1"}}}, "list": [{"a": "1"}, {}],
    }  # fmt: skip


def test_nulls_are_dropped_unless_nullable_or_defaulted():
    schema = obj(
        a=STRING,
        b={"type": "string", "nullable": True},
        c={"type": "string", "default": "d"},
        m={"type": "object", "additionalProperties": STRING},
    )
    value: dict[str, Any] = {"a": None, "b": None, "c": None, "m": {"x": None}}
    assert prune(value, Node(schema)) == []
    apply_defaults(value, Node(schema))
    assert value == {"b": None, "c": "d", "m": {}}


def test_defaults_of_nested_objects_need_their_parent():
    schema = obj(a=obj(b={"type": "integer", "default": 1}), c={**obj(d={"type": "string", "default": "x"}), "default": {}})
    value: dict[str, Any] = {}
    apply_defaults(value, Node(schema))
    assert value == {"c": {"d": "x"}}
    value["c"]["d"] = "changed"
    other: dict[str, Any] = {"a": {}}
    apply_defaults(other, Node(schema))
    assert other == {"a": {"b": 1}, "c": {"d": "x"}}


def test_unchanged_values_are_not_validated_again():
    schema = obj(spec=obj(old={"type": "string", "maxLength": 1}, items={
        "type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["k"],
        "items": {**obj(k=STRING, v={"type": "integer", "maximum": 5}), "required": ["k"]}}))  # fmt: skip
    old = {"spec": {"old": "too long", "items": [{"k": "a", "v": 9}]}}
    assert errors(schema, {"spec": {"old": "too long", "items": [{"k": "a", "v": 9}, {"k": "b", "v": 1}]}}, old) == []
    assert errors(schema, {"spec": {"old": "also long", "items": [{"k": "a", "v": 8}]}}, old) == [
        "spec.old: Too long: may not be more than 1 byte",
        "spec.items[0].v: Invalid value: 8: spec.items[0].v in body should be less than or equal to 5",
    ]


def widgets() -> Any:
    return compile_crd(widget_crds()[0], "v1")


def test_status_is_judged_alone_and_its_messages_leave_out_where_it_stands():
    handler = widgets()
    old = {"apiVersion": "widgets.example.com/v1", "kind": "Widget", "metadata": {"name": "w"}, "spec": {"color": "no such colour"}}
    new = {**old, "status": {"phase": 3}}
    assert [str(e) for e in handler.validate_update(new, old, subresource="status")] == [
        'status.phase: Invalid value: "integer": phase in body must be of type string: "integer"'
    ]


def test_scale_paths_must_lead_to_numbers():
    handler = widgets()
    value = {"apiVersion": "widgets.example.com/v1", "kind": "Widget", "metadata": {"name": "w"}, "spec": {"color": "red", "replicas": -1}}
    assert ".spec.replicas: Invalid value: -1: should be a non-negative integer" in [str(e) for e in handler.validate_create(value)]


def test_metadata_is_decoded_as_go_does():
    handler = widgets()
    value: dict[str, Any] = {
        "metadata": {
            "name": "w",
            "labels": {"a": None},
            "annotations": None,
            "finalizers": [],
            "bogus": 1,
            "creationTimestamp": "2020-01-01T01:00:00+01:00",
        }
    }
    assert handler.decode(value) == ["metadata.bogus"]
    assert value["metadata"] == {"name": "w", "labels": {"a": ""}, "creationTimestamp": "2020-01-01T00:00:00Z"}
    for bad in ({"name": 5}, {"labels": "x"}, {"finalizers": [1]}, {"creationTimestamp": "yesterday"}, "x"):
        with pytest.raises(DecodeError):
            handler.decode({"metadata": bad})


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 12) | st.sampled_from([0.5, 1.0, 2.5]) | st.sampled_from(["", "a", "abc", "x"]),
    lambda c: st.lists(c, max_size=3) | st.dictionaries(st.sampled_from(["a", "b", "name", "value"]), c, max_size=3),
    max_leaves=8,
)
FORM = widget_crds()[2]["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]


@settings(max_examples=300)
@given(st.dictionaries(st.sampled_from(sorted(FORM["properties"])), JSON, max_size=4))
def test_the_quick_answer_and_the_long_one_agree(spec: dict[str, Any]):
    node = Node(FORM)
    assert is_valid(node)(spec) == (not find_errors(node, spec) and not find_duplicates(node, spec))


@given(st.dictionaries(st.sampled_from([*sorted(FORM["properties"]), "zz"]), JSON, max_size=5))
def test_pruning_and_defaulting_twice_changes_nothing_more(spec: dict[str, Any]):
    node = Node(FORM)
    once = deepcopy(spec)
    prune(once, node)
    apply_defaults(once, node)
    twice = deepcopy(once)
    assert prune(twice, node) == []
    apply_defaults(twice, node)
    assert json.dumps(twice) == json.dumps(once)


@pytest.mark.parametrize("pattern", ["(?=a)b", r"(a)\1", "(", "[a", "a**", r"\Z"])
def test_patterns_that_re2_refuses(pattern: str):
    with pytest.raises(BadPattern):
        compile_go(pattern)


def test_patterns_have_the_meaning_of_go():
    assert compile_go("^a$").search("a\n") is None
    assert compile_go("[[:alpha:]]+$").search("abc")
    assert compile_go(r"^\d+$").search("٣") is None, "digits are ASCII"
    assert compile_go(r"^\pL+$").search("äß")
    assert compile_go(r"^\Qa.b\E$").search("a.b")
    assert compile_go("(?<year>[0-9]{4})").search("2020")
