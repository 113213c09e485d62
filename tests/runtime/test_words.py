"""Deeds and words: which changes others act on."""

from __future__ import annotations

from typing import Any

import pytest

from clusterwright.api.core import Machine, MachineNodeReference, MachineStatus
from clusterwright.api.meta import Condition, ObjectMeta, Unstructured
from clusterwright.runtime import words
from clusterwright.runtime.reconcile import WHEN_IDLE

SOON = 0.25


def a_machine(*conditions: tuple[str, str, str], labels: dict[str, str] | None = None, **status: Any) -> Machine:
    told = tuple(Condition(type=type, status=state, message=message) for type, state, message in conditions)
    return Machine(metadata=ObjectMeta(name="m", labels=labels or {}), status=MachineStatus(conditions=told, **status))


WAITING = a_machine(("Ready", "False", "waiting for a host"))
CASES = [
    pytest.param(a_machine(("Ready", "False", "waiting for a Node")), True, True, True, id="message"),
    pytest.param(a_machine(("Ready", "False", "waiting for a host"), observed_generation=2), True, True, True, id="generation"),
    pytest.param(a_machine(("Ready", "Unknown", "who knows")), True, False, True, id="false-to-unknown"),
    pytest.param(a_machine(("Ready", "True", "")), False, False, True, id="true"),
    pytest.param(a_machine(("Ready", "False", "waiting for a host"), phase="Provisioned"), False, False, True, id="phase"),
    pytest.param(a_machine(("Ready", "False", ""), node_ref=MachineNodeReference(name="n")), False, False, True, id="node"),
    pytest.param(a_machine(("Ready", "False", ""), labels={"a": "b"}), False, False, False, id="label"),
]


@pytest.mark.parametrize(("after", "said_later", "summed_up_later", "retold_later"), CASES)
def test_what_is_only_words(after: Machine, said_later: bool, summed_up_later: bool, retold_later: bool) -> None:
    assert (words.to_be_said(WAITING, after) == WHEN_IDLE) is said_later
    assert (words.summed_up(SOON)(WAITING, after) == WHEN_IDLE) is summed_up_later
    assert (words.retold(SOON)(WAITING, after) == WHEN_IDLE) is retold_later


SUMS = words.Sums(frozenset({"phase"}), frozenset({"Counted"}))


@pytest.mark.parametrize(
    ("after", "seconds"),
    [
        pytest.param(a_machine(("Ready", "False", "waiting for a Node")), WHEN_IDLE, id="words"),
        pytest.param(a_machine(("Ready", "False", ""), phase="Provisioned"), words.A_SECOND, id="field"),
        pytest.param(a_machine(("Ready", "False", ""), ("Counted", "True", "")), words.A_SECOND, id="condition"),
        pytest.param(a_machine(("Ready", "True", ""), ("Counted", "True", ""), phase="Provisioned"), 0.0, id="a deed with them"),
        pytest.param(a_machine(("Ready", "False", ""), phase="Running", node_ref=MachineNodeReference(name="n")), 0.0, id="another field"),
    ],
)
def test_sums_wait_a_second(after: Machine, seconds: float) -> None:
    assert words.to_be_said(WAITING, after, SUMS) == seconds


@pytest.mark.parametrize("patience", [words.summed_up(SOON), words.retold(SOON)])
def test_coming_is_a_deed_and_going_is_told_at_once(patience: Any) -> None:
    assert (patience(None, WAITING), patience(WAITING, None)) == (SOON, 0.0)
    assert words.awaited(None, Unstructured({})) == words.awaited(Unstructured({}), None) == 0.0


@pytest.mark.parametrize(
    ("change", "waits"),
    [
        ({"status": {"conditions": [{"type": "Ready", "status": "False", "message": "soon"}], "observedGeneration": 3}}, True),
        ({"status": {"v1beta2": {"conditions": [{"type": "Ready", "status": "Unknown"}]}}}, True),
        ({"metadata": {"ownerReferences": [{"uid": "ours"}], "resourceVersion": "9"}}, True),
        ({"status": {"conditions": [{"type": "Ready", "status": "True"}]}}, False),
        ({"status": {"v1beta2": {"conditions": [{"type": "Ready", "status": "True"}]}}}, False),
        ({"status": {"initialization": {"provisioned": True}}}, False),
        ({"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}}, False),
        ({"metadata": {"annotations": {"a": "b"}}}, False),
        ({"spec": {"providerID": "x"}}, False),
        ({"status": {"conditions": "nonsense", "v1beta2": 7}}, True),
        ({"status": {"conditions": [7, {"status": "True"}]}}, False),
    ],
)
def test_objects_of_providers(change: dict[str, Any], waits: bool) -> None:
    before = {"kind": "Thing", "metadata": {"name": "t"}, "spec": {}, "status": None}

    assert (words.awaited(Unstructured(before), Unstructured({**before, **change})) == WHEN_IDLE) is waits
