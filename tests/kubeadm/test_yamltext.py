from __future__ import annotations

from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from clusterwright.kubeadm.yamltext import dump, is_plain, quoted, scalar

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=30)
TRICKY = st.sampled_from(
    ["", "yes", "No", "on", "y", "null", "~", "1", "0x1f", "0o7", "1e3", ".5", "1_000", "1:30", "2001-01-01", "- x", "? x", ": x", "a: b",
     "a #b", "#", "&a", "*a", "!t", "|", ">", "'", '"', "%", "@", "`", "[a]", "{a}", "<<", "=", "---", "...", " a", "a ", "a:", "\t", "\x85",
     "\u2028", "\ufeff", "\x00", "\x1b[0m", "{{ ds.x }}", "10.0.0.1:6443", "v1.30.0", "/dev/sdb", "a\nb", "-", "-a", "?a", ":a", "0c", "07"]
)  # fmt: skip


@given(TEXT | TRICKY)
def test_a_scalar_reads_back_as_itself(text: str) -> None:
    assert yaml.safe_load(f"k: {scalar(text)}\n") == {"k": text}
    assert yaml.safe_load(f"- {scalar(text)}\n") == [text]


@given(TEXT | TRICKY)
def test_a_quoted_scalar_reads_back_as_itself(text: str) -> None:
    assert yaml.safe_load(f"k: {quoted(text)}\n") == {"k": text}


@pytest.mark.parametrize("text", ["y", "N", "1e3", "0o17", "+1", "1_0", "-.5", ".inf", "2020-01-01T00:00:00Z", "0b1", "12e03"])
def test_scalars_that_go_would_parse_as_another_type_are_quoted(text: str) -> None:
    assert not is_plain(text)


@pytest.mark.parametrize(
    "text", ["root:root", "/var/lib", "v1.33.2", "10.0.0.1:6443", "[fd00::1]:6443"[1:], "a,b", "sha256:00ff", "0c", "ünï"]
)
def test_ordinary_values_stay_plain(text: str) -> None:
    assert scalar(text) == text


VALUES: st.SearchStrategy[Any] = st.recursive(
    TEXT | TRICKY | st.booleans() | st.none() | st.integers(-(10**9), 10**9),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXT | TRICKY, inner, max_size=4),
    max_leaves=20,
)


@given(st.dictionaries(TEXT | TRICKY, VALUES, max_size=5))
def test_a_document_reads_back_as_itself(value: dict[str, Any]) -> None:
    text = dump(value)

    assert yaml.safe_load(text) == value
    assert text.endswith("\n")
    assert not text.endswith("\n\n")


def test_layout_is_that_of_kubernetes() -> None:
    assert dump(
        {"b": [{"y": 1, "x": []}, [1, [2]]], "a": {}, "c": {"d": None}}
    ) == 'a: {}\nb:\n- x: []\n  "y": 1\n- - 1\n  - - 2\nc:\n  d: null\n'.replace('"y"', "'y'")
