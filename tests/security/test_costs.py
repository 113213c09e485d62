"""Rules that would run away are refused when they are declared, and stopped when they run all the same: before they cost anything."""

from __future__ import annotations

import resource
import time
from typing import Any

import pytest

from clusterwright.apiserver.schema.rulecosts import cost_errors
from clusterwright.apiserver.schema.rules import RuleSet
from clusterwright.apiserver.schema.structural import Node
from clusterwright.cel.metering import CALL_LIMIT, OBJECT_LIMIT, CostExceeded
from clusterwright.cel.program import compile_expression
from clusterwright.cel.types import INT, STRING, list_of
from clusterwright.golang.regex import BadPattern, compile_go, matcher
from security.attacks import COSTLY, rules


def schema_of(kind: Any, *expressions: str) -> Node:
    return Node({"type": "object", "properties": {"x": {**kind, "x-kubernetes-validations": rules(*expressions)}}})


@pytest.mark.parametrize("name", COSTLY)
def test_a_rule_beyond_its_budget_is_stopped_in_time(name: str) -> None:
    kind, rule, value = COSTLY[name]
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    started = time.process_time()

    errors = RuleSet(schema_of(kind, rule)).validate({"x": value})

    assert [e.detail for e in errors] != []
    assert "call cost exceeds limit for rule" in errors[0].detail
    assert time.process_time() - started < 5.0  # each of these took minutes, or all memory
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 300_000  # kB


@pytest.mark.parametrize("name", COSTLY)
def test_a_rule_that_may_exceed_its_budget_is_refused_on_declaration(name: str) -> None:
    kind, rule, _ = COSTLY[name]

    errors = cost_errors(schema_of(kind, rule), "f")

    assert "estimated rule cost exceeds budget by factor of" in errors[0].detail
    assert errors[0].field == "f.properties[x].x-kubernetes-validations[0].rule"


def test_all_rules_together_have_a_budget_for_one_object() -> None:
    expensive = "self.all(a, self.all(b, a >= 0 && b >= 0))"
    node = schema_of({"type": "array", "items": {"type": "integer"}}, *[expensive] * 30)

    errors = RuleSet(node).validate({"x": list(range(330))})

    assert [e.detail for e in errors] == ["validation failed due to running out of cost budget, no further validation rules will be run"]


def test_rules_that_are_meant_to_be_run_are() -> None:
    node = schema_of({"type": "array", "items": {"type": "string"}}, "self.all(x, self.exists_one(y, x == y))")

    assert RuleSet(node).validate({"x": [f"name-{n}" for n in range(150)]}) == []


def test_spent_units_are_subtracted() -> None:
    program = compile_expression("self.all(x, x > 0)", {"self": list_of(INT)})
    budget: list[float] = [OBJECT_LIMIT]
    program.evaluate(list(range(1, 1001)), budget=budget)

    assert 2000 <= OBJECT_LIMIT - budget[0] <= 10_000
    with pytest.raises(CostExceeded):
        program.evaluate(list(range(1, 1001)), budget=[100.0])
    with pytest.raises(CostExceeded):
        compile_expression("self + self", {"self": STRING}).evaluate("x" * (6 * CALL_LIMIT))


def test_a_pattern_with_many_states_is_charged_for_them() -> None:
    program = compile_expression("self.matches('a.{900}c')", {"self": STRING})

    with pytest.raises(CostExceeded):
        program.evaluate("ab" * 10_000)  # this took 0.4 s, and a text may be a hundred times as long
    assert compile_expression("self.matches('^a.*c$')", {"self": STRING}).evaluate("a" + "b" * 10_000 + "c") is True


@pytest.mark.parametrize("pattern", ["^(a+)+$", "^(a|a)*$", "(x+x+)+y", "^(([a-z])+.)+[A-Z]([a-z])+$"])
def test_patterns_take_time_in_proportion(pattern: str) -> None:
    started = time.process_time()
    matcher(pattern)("ax" * 500_000 + "!")
    compile_go(pattern).search("x" * 1_000_000)

    assert time.process_time() - started < 5.0  # it doubled with every character


@pytest.mark.parametrize(
    ("pattern", "words"),
    [
        ("(?=a)", "invalid or unsupported Perl syntax: `(?=`"),
        (r"(a)\1", r"invalid escape sequence: `\1`"),
        ("(a", "missing closing ): `(a`"),
        ("a**", "invalid nested repetition operator: `**`"),
        ("*a", "missing argument to repetition operator: `*`"),
        ("[b-a]", "invalid character class range: `b-a`"),
        ("a{1001}", "invalid repeat count: `{1001}`"),
    ],
)
def test_patterns_that_re2_refuses_are_refused_in_gos_words(pattern: str, words: str) -> None:
    with pytest.raises(BadPattern) as refused:
        compile_go(pattern)

    assert str(refused.value) == f"error parsing regexp: {words}"
