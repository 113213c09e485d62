"""Variables beyond the recorded calls: lists as variables, patterns and rules that do not compile, what errors show."""

from __future__ import annotations

from typing import Any

import pytest

from clusterwright.topology import variables

FIELD = "spec.topology.variables"


def definition(schema: dict[str, Any], name: str = "v", **more: Any) -> dict[str, Any]:
    return {"name": name, "definitions": [{"from": "inline", "schema": {"openAPIV3Schema": schema}, **more}]}


def judged(schema: dict[str, Any], value: Any) -> list[str]:
    errors = variables.validate_values([{"name": "v", "value": value}], [], [definition(schema)], FIELD, complete=True)
    return [str(e) for e in errors]


@pytest.mark.parametrize(
    ("schema", "value", "text"),
    [
        ({"type": "integer"}, 1.5, '[v].value: Invalid value: "1.5": must be of type integer: "number"'),
        ({"type": "integer"}, 1 << 63, f'[v].value: Invalid value: "{1 << 63}": must be of type integer: "number"'),
        ({"type": "string"}, -(1 << 63) - 1, f'[v].value: Invalid value: "{-(1 << 63) - 1}": must be of type string: "number"'),
        ({"type": "string"}, -(1 << 63), f'[v].value: Invalid value: "{-(1 << 63)}": must be of type string: "integer"'),
        ({"type": "string", "maxLength": 3}, "abcd", "[v].value: Too long: may not be more than 3 bytes"),
        (
            {"type": "array", "items": {"type": "integer"}, "maxItems": 1},
            [1, 2],
            '[v].value: Too many: "[1,2]": must have at most 1 item',
        ),
        (
            {"type": "array", "items": {"type": "integer"}},
            [1, "x"],
            '[v].value.[1]: Invalid value: "[1,\\"x\\"]": [1] in body must be of type integer: "string"',
        ),
        (
            {"type": "object", "properties": {"a": {"type": "integer"}}},
            {"b": 1, "c": {"d": 2}},
            (
                '[v]: Invalid value: "{\\"b\\":1,\\"c\\":{\\"d\\":2}}": failed validation: "b,c" field(s) are not specified in the variable '
                'schema of variable "v"'
            ),
        ),
        (
            {"type": "integer", "x-kubernetes-validations": [{"rule": "self > 3"}]},
            2,
            '[v].value: Invalid value: "2": failed rule: self > 3',
        ),
        ({"type": "array", "items": {"type": "integer"}, "maxItems": -1}, [1], '[v].value: Too many: "[1]": has too many items'),
        ({"type": "string", "maxLength": 1}, "ab", "[v].value: Too long: may not be more than 1 byte"),
        ({"type": "number", "maximum": 10000000}, 2e7, '[v].value: Invalid value: "20000000.0": should be less than or equal to 1e+07'),
        (
            {"type": "integer", "maximum": 10000000},
            2 * 10**7,
            '[v].value: Invalid value: "20000000": should be less than or equal to 10000000',
        ),
        ({"type": "integer", "format": "int32"}, True, '[v].value: Invalid value: "true": must be of type integer: "boolean"'),
        ({"type": "boolean", "format": "ipv4"}, "x", '[v].value: Invalid value: "\\"x\\"": must be of type ipv4: "x"'),
        ({"type": "integer"}, 1e300, '[v].value: Invalid value: "1e300": must be of type integer: "number"'),
        (
            {"type": "object", "properties": {"a-b": {"type": "integer"}}, "x-kubernetes-validations": [{"rule": "self.a__dash__b > 1"}]},
            {},
            '[v].value: Invalid value: "{}": no such key: a__dash__b evaluating rule: self.a__dash__b > 1',
        ),
        (
            {
                "type": "object",
                "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}},
                "x-kubernetes-validations": [{"rule": "self.a > 1 || self.b > 1", "message": "m"}],
            },
            {},
            '[v].value: Invalid value: "{}": no such key: a evaluating rule: m',
        ),
    ],
)
def test_errors_read_as_kubernetes_writes_them(schema: dict[str, Any], value: Any, text: str) -> None:
    assert judged(schema, value) == [FIELD + text]


def test_a_pattern_that_does_not_compile_refuses_every_value() -> None:
    assert judged({"type": "string", "pattern": "("}, "x") == [
        f'{FIELD}[v].value: Invalid value: "\\"x\\"": should match \'(\', but pattern is invalid'
    ]


def test_a_rule_that_does_not_compile_refuses_every_value() -> None:
    found = judged({"type": "integer", "x-kubernetes-validations": [{"rule": "self >"}]}, 1)

    assert len(found) == 1
    assert found[0].startswith(f'{FIELD}[v].value: Invalid value: "1": rule compile error: ')


def test_of_a_rule_that_does_not_compile_the_message_is_not_judged() -> None:
    rule = {"rule": "self >", "messageExpression": "5"}
    schema = {"type": "integer", "x-kubernetes-validations": [rule]}

    found = variables.validate_definitions([{"name": "v", "schema": {"openAPIV3Schema": schema}}], "spec.variables")

    assert [e.field.rpartition(".")[2] for e in found] == ["rule"]


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "integer", "x-kubernetes-validations": [{"rule": " "}, {"message": "m"}, None]},
        {"type": "array", "x-kubernetes-validations": [{"rule": "self.size() > 9"}]},
        {"properties": {"a": {"type": "integer", "x-kubernetes-validations": [{"rule": "self > 9"}]}}},
    ],
)
def test_empty_rules_and_rules_without_values_are_not_run(schema: dict[str, Any]) -> None:
    """Without a type there is nothing that CEL could look at, at a value or below it."""
    value = {"integer": 1, "array": [1]}.get(schema.get("type", ""), {"a": 1})

    assert judged(schema, value) == []


def test_messages_count_in_what_all_rules_may_cost() -> None:
    costly = {
        "type": "array",
        "maxItems": 200,
        "items": {"type": "string"},
        "x-kubernetes-validations": [{"rule": "true", "messageExpression": "self.map(x, x + 'b')[0]"}],
    }
    cheap = {"type": "integer", "x-kubernetes-validations": [{"rule": "self > 1"}]}
    schema = {"type": "object", "properties": {**dict.fromkeys("abc", costly), "d": cheap}}

    found = variables.validate_definitions([{"name": "v", "schema": {"openAPIV3Schema": schema}}], "spec.variables")

    assert "x-kubernetes-validations estimated rule & messageExpression cost total for entire OpenAPIv3 schema" in found[-1].detail
    contributed = [e.field.partition("properties")[2] for e in found if e.detail.startswith("contributed")]
    assert sorted(contributed) == [f"[{name}].x-kubernetes-validations[0].messageExpression" for name in "abc"]


def test_an_unchanged_value_that_violates_a_rule_is_refused() -> None:
    values = [{"name": "v", "value": 2}]
    known = [definition({"type": "integer", "x-kubernetes-validations": [{"rule": "self > 3"}]})]

    assert len(variables.validate_values(values, values, known, FIELD, complete=True)) == 1


def test_a_list_may_have_rules_of_its_own() -> None:
    """Upstream cannot build the types of a variable that is a list."""
    schema = {"type": "array", "items": {"type": "integer"}, "x-kubernetes-validations": [{"rule": "self.size() < 2", "message": "one"}]}

    assert variables.validate_definitions([{"name": "v", "schema": {"openAPIV3Schema": schema}}], "spec.variables") == []
    assert judged(schema, [1, 2]) == [f'{FIELD}[v].value: Invalid value: "[1,2]": one']


def test_oldself_on_a_list_inside_a_variable_is_refused() -> None:
    inner = {"type": "array", "items": {"type": "integer"}, "x-kubernetes-validations": [{"rule": "self == oldSelf", "message": "m"}]}
    schema = {"type": "object", "properties": {"l": inner}}

    found = variables.validate_definitions([{"name": "v", "schema": {"openAPIV3Schema": schema}}], "spec.variables")

    assert [e.field for e in found] == ["spec.variables[v].schema.openAPIV3Schema.properties[l].x-kubernetes-validations[0].rule"]


def test_missing_required_variables_are_named_in_order() -> None:
    known = [definition({"type": "string"}, name, required=True) for name in ("b", "a")]

    found = variables.validate_values([], [], known, FIELD, complete=True)

    assert [e.detail for e in found] == ['required variable "a" must be set', 'required variable "b" must be set']


def test_a_null_that_has_no_default_is_shown_as_null_in_a_topology() -> None:
    topology = {"variables": [{"name": "v", "value": None}]}

    _, errors = variables.default_and_validate(topology, None, [definition({"type": "string"})])

    assert [str(e) for e in errors] == [f'{FIELD}[v].value: Invalid value: "null": must be of type string: "null"']


def test_defaulting_twice_changes_nothing() -> None:
    known = [
        definition({"type": "object", "default": {}, "properties": {"a": {"type": "string", "default": "x"}}}, "o"),
        definition({"type": "integer", "default": 1}, "i"),
    ]
    topology = {"variables": [{"name": "i", "value": 2.0}], "workers": {"machineDeployments": [{"name": "md"}]}}

    once, errors = variables.default_topology(topology, known)
    twice, _ = variables.default_topology(once, known)

    assert errors == []
    assert once["variables"] == [{"name": "i", "value": 2}, {"name": "o", "value": {"a": "x"}}]
    assert twice == once
