"""Label selectors are read as Kubernetes reads them."""

from __future__ import annotations

from typing import Any

import pytest

from clusterwright.api.meta import LabelSelector, LabelSelectorRequirement
from clusterwright.api.selectors import InvalidSelector, matches, parse_labels, parsed, selector_text


def term(key: str, operator: str, *values: str) -> LabelSelector:
    return LabelSelector(match_expressions=(LabelSelectorRequirement(key=key, operator=operator, values=values),))


@pytest.mark.parametrize(
    ("selector", "labels", "expected"),
    [
        pytest.param(None, {}, True, id="none"),
        pytest.param(LabelSelector(), {"a": "b"}, True, id="empty"),
        pytest.param(LabelSelector(match_labels={"a": "b"}), {"a": "b", "c": "d"}, True, id="equal"),
        pytest.param(LabelSelector(match_labels={"a": "b"}), {"a": "x"}, False, id="unequal"),
        pytest.param(LabelSelector(match_labels={"a": ""}), {}, False, id="empty-value-is-not-absence"),
        pytest.param(term("a", "In", "x", "y"), {"a": "y"}, True, id="in"),
        pytest.param(term("a", "In", "x"), {}, False, id="in-needs-the-label"),
        pytest.param(term("a", "NotIn", "x"), {"a": "x"}, False, id="not-in"),
        pytest.param(term("a", "NotIn", "x"), {}, True, id="not-in-holds-without-the-label"),
        pytest.param(term("a", "Exists"), {"a": ""}, True, id="exists"),
        pytest.param(term("a", "DoesNotExist"), {"a": ""}, False, id="does-not-exist"),
    ],
)
def test_matches(selector: Any, labels: Any, expected: bool) -> None:
    assert matches(selector, labels) is expected


@pytest.mark.parametrize(
    "selector",
    [
        pytest.param(term("a", "In"), id="in-without-values"),
        pytest.param(term("a", "Exists", "x"), id="exists-with-values"),
        pytest.param(term("a", "Near", "x"), id="unknown-operator"),
        pytest.param(term("-a", "Exists"), id="bad-key"),
        pytest.param(term("Bad_Prefix/a", "Exists"), id="bad-prefix"),
        pytest.param(term("a", "In", "b b"), id="bad-value"),
        pytest.param(LabelSelector(match_labels={"a": "x" * 64}), id="long-value"),
        pytest.param(LabelSelector(match_labels={"x" * 64: "a"}), id="long-key"),
    ],
)
def test_selectors_that_no_api_server_accepts_are_refused(selector: LabelSelector) -> None:
    with pytest.raises(InvalidSelector):
        parsed(selector)


def test_a_good_selector_is_valid() -> None:
    parsed(LabelSelector(match_labels={"example.com/a": "b", "c": ""}, match_expressions=term("d", "NotIn", "e").match_expressions))


def test_a_selector_that_is_parsed_from_its_object_matches_like_its_text() -> None:
    selector = LabelSelector(
        match_labels={"a": "b"},
        match_expressions=(
            LabelSelectorRequirement(key="c", operator="In", values=("d",)),
            LabelSelectorRequirement(key="e", operator="NotIn", values=("f", "g")),
            LabelSelectorRequirement(key="h", operator="Exists"),
            LabelSelectorRequirement(key="i", operator="DoesNotExist"),
        ),
    )
    good = {"a": "b", "c": "d", "h": ""}
    labels = [good, {**good, "a": "x"}, {**good, "c": "x"}, {**good, "e": "g"}, {"a": "b", "c": "d"}, {**good, "i": ""}, {}]

    assert [parsed(selector).matches(each) for each in labels] == [parse_labels(selector_text(selector)).matches(each) for each in labels]
    assert parsed(selector).equal == (("a", "b"), ("c", "d"))


def test_a_long_selector_is_not_kept_in_memory() -> None:
    short, long = "a=b", ",".join(f"key-{n}=v" for n in range(1000))

    assert parse_labels(short) is parse_labels(short)
    assert parse_labels(long) is not parse_labels(long)
