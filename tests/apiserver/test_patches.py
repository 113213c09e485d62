from __future__ import annotations

import copy
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from clusterwright.api.jsonvalues import merge_patched as merge
from clusterwright.api.selectors import object_selector
from clusterwright.apiserver.patchtypes.jsonpatch import json_patch
from clusterwright.apiserver.selectors import label_selector

KEYS = st.sampled_from("abcd")
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(0, 3) | st.text("xy", max_size=2),
    lambda children: st.lists(children, max_size=3) | st.dictionaries(KEYS, children, max_size=3),
    max_leaves=12,
)
OBJECTS = st.dictionaries(KEYS, VALUES, max_size=4)


def without_nulls(value: Any) -> Any:
    """What a merge patch leaves of itself when it replaces."""
    return {k: without_nulls(v) for k, v in value.items() if v is not None} if isinstance(value, dict) else value


@given(OBJECTS, OBJECTS)
@settings(max_examples=200, deadline=None)
def test_a_merge_patch_applied_twice_is_applied_once_and_changes_neither_argument(target: Any, patch: Any):
    before = copy.deepcopy((target, patch))
    once = merge(target, patch)

    assert merge(once, patch) == once
    assert (target, patch) == before


@given(OBJECTS, OBJECTS)
@settings(max_examples=200, deadline=None)
def test_a_merge_patch_touches_only_what_it_names(target: Any, patch: Any):
    result = merge(target, patch)

    assert {k: v for k, v in result.items() if k not in patch} == {k: v for k, v in target.items() if k not in patch}
    for key, value in patch.items():
        if value is None:
            assert key not in result
        elif not isinstance(value, dict):
            assert result[key] == value
        elif not isinstance(target.get(key), dict):
            assert result[key] == without_nulls(value)


@given(OBJECTS, OBJECTS)
@settings(max_examples=200, deadline=None)
def test_a_json_patch_of_replacements_reaches_any_object(target: Any, wanted: Any):
    operations: list[dict[str, Any]] = [{"op": "remove", "path": f"/{k}"} for k in target if k not in wanted]
    operations += [{"op": "add", "path": f"/{k}", "value": v} for k, v in wanted.items()]
    operations += [{"op": "test", "path": f"/{k}", "value": v} for k, v in wanted.items()]

    assert json_patch(copy.deepcopy(target), operations) == wanted


LABELS = st.dictionaries(st.sampled_from(["a", "b", "example.com/c"]), st.sampled_from(["", "1", "2", "x"]), max_size=3)
TERMS = st.tuples(st.sampled_from(["a", "b", "example.com/c"]), st.sampled_from(["In", "NotIn", "Exists", "DoesNotExist"]),
                  st.lists(st.sampled_from(["", "1", "2", "x"]), min_size=1, max_size=3))  # fmt: skip


@given(st.lists(TERMS, min_size=1, max_size=3), LABELS)
@settings(max_examples=300, deadline=None)
def test_selectors_mean_the_same_as_text_and_as_object(terms: list[tuple[str, str, list[str]]], labels: dict[str, str]):
    def text(key: str, operator: str, values: list[str]) -> str:
        forms = {
            "In": f"{key} in ({','.join(values)})",
            "NotIn": f"{key} notin ({','.join(values)})",
            "Exists": key,
            "DoesNotExist": f"!{key}",
        }
        return forms[operator]

    def holds(key: str, operator: str, values: list[str]) -> bool:
        found = {"In": labels.get(key) in values and key in labels, "NotIn": labels.get(key) not in values, "Exists": key in labels}
        return found.get(operator, key not in labels)

    matches = label_selector(",".join(text(*t) for t in terms))
    expressions = [{"key": k, "operator": o, **({"values": v} if "In" in o else {})} for k, o, v in terms]

    expected = all(holds(*t) for t in terms)
    assert matches is not None
    assert matches(labels) is expected
    assert object_selector({"matchExpressions": expressions})(labels) is expected
