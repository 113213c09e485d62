"""Unknown fields survive decode, change, dump and overlay: at any depth, also inside list items."""

from __future__ import annotations

import copy
from datetime import UTC, datetime, timedelta
from random import Random
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from clusterwright.api.codec import convert, to_json
from clusterwright.api.copying import replace
from clusterwright.api.core import Cluster, ClusterStatus, Machine, MachineAddress, MachineTaint
from clusterwright.api.jsonvalues import merge_patched
from clusterwright.api.meta import Condition, Object, OwnerReference
from clusterwright.api.overlay import merge_patch

BOUNDED = settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])

MACHINE: dict[str, Any] = {
    "apiVersion": "cluster.x-k8s.io/v1beta2",
    "kind": "Machine",
    "metadata": {
        "name": "m",
        "namespace": "ns",
        "labels": {"a": "b"},
        "managedFields": [{"manager": "x"}],
        "ownerReferences": [
            {"apiVersion": "v1", "kind": "A", "name": "a", "uid": "1"},
            {"apiVersion": "v1", "kind": "B", "name": "a", "uid": "2", "controller": True},
        ],
        "finalizers": ["machine.cluster.x-k8s.io"],
    },
    "spec": {
        "clusterName": "c",
        "bootstrap": {"configRef": {"apiGroup": "b", "kind": "K", "name": "k"}},
        "infrastructureRef": {"apiGroup": "i", "kind": "I", "name": "i"},
        "taints": [
            {"key": "a", "effect": "NoSchedule", "propagation": "Always"},
            {"key": "a", "effect": "NoExecute", "propagation": "Always"},
        ],
        "readinessGates": [{"conditionType": "X"}],
    },
    "status": {
        "conditions": [
            {"type": "Ready", "status": "True", "reason": "R", "message": "", "lastTransitionTime": "2020-01-01T00:00:00Z"},
            {"type": "Available", "status": "False", "reason": "A", "message": "no", "lastTransitionTime": "2020-01-01T00:00:00Z"},
        ],
        "addresses": [{"type": "InternalIP", "address": "10.0.0.1"}, {"type": "InternalIP", "address": "10.0.0.2"}],
        "initialization": {"infrastructureProvisioned": True},
        "phase": "Running",
    },
}

UNKNOWN = (None, True, 0, "text", [], [{"a": [1]}], {"nested": {"deep": "er"}}, {})


def sprinkle(value: Any, random: Random) -> Any:
    """`value` with unknown keys in about half of its objects, at every depth."""
    if isinstance(value, dict):
        result = {key: sprinkle(child, random) for key, child in value.items()}
        if value.keys() != {"a"}:  # labels: every key is known there
            for name in random.sample(("unknownOne", "unknownTwo", "x-unknown"), random.choice((0, 0, 1, 2))):
                result[name] = random.choice(UNKNOWN)
        return result
    if isinstance(value, list):
        return [sprinkle(item, random) for item in value]
    return value


raws = st.builds(lambda seed: sprinkle(MACHINE, Random(seed)), st.integers(0, 2**32))


def unknown(value: Any, path: tuple[Any, ...] = ()) -> dict[tuple[Any, ...], Any]:
    """Path -> value of every unknown key; list items are named by what tells them apart."""
    found: dict[tuple[Any, ...], Any] = {}
    if isinstance(value, dict):
        for key, child in value.items():
            if key.startswith(("unknown", "x-unknown")):
                found[*path, key] = child
            else:
                found |= unknown(child, (*path, key))
    elif isinstance(value, list):
        for item in value:
            if isinstance(item, dict):
                name = tuple(item.get(key) for key in ("type", "uid", "key", "effect", "conditionType", "address") if key in item)
                found |= unknown(item, (*path, name))
    return found


def write(raw: dict[str, Any], before: Object, after: Object) -> dict[str, Any]:
    result: dict[str, Any] = merge_patched(raw, merge_patch(raw, to_json(before), to_json(after)))
    return result


def changed(machine: Machine, choices: set[str]) -> Machine:
    status, spec, metadata = machine.status, machine.spec, machine.metadata
    if "condition" in choices:
        ready = replace(status.conditions[0], status="False", message="broken")
        status = replace(status, conditions=(ready, *status.conditions[1:]))
    if "add condition" in choices:
        new = Condition(type="New", status="True", reason="N", last_transition_time=datetime(2021, 1, 1, tzinfo=UTC))
        status = replace(status, conditions=(new, *status.conditions))
    if "reverse conditions" in choices:
        status = replace(status, conditions=status.conditions[::-1])
    if "address" in choices:
        status = replace(status, addresses=(*status.addresses, MachineAddress(type="Hostname", address="h")))
    if "phase" in choices:
        status = replace(status, phase="Deleting")
    if "initialization" in choices and status.initialization is not None:
        status = replace(status, initialization=replace(status.initialization, bootstrap_data_secret_created=True))
    if "taint" in choices:
        spec = replace(spec, taints=(spec.taints[0], replace(spec.taints[1], value="v"), MachineTaint(key="n", effect="NoSchedule")))
    if "provider" in choices:
        spec = replace(spec, provider_id="p://1", bootstrap=replace(spec.bootstrap, data_secret_name="s"))
    if "owner" in choices:
        metadata = replace(
            metadata, owner_references=(*metadata.owner_references, OwnerReference(uid="3", kind="C", name="c", api_version="v1"))
        )
    if "own no more" in choices:
        metadata = replace(metadata, owner_references=tuple(replace(owner, controller=None) for owner in metadata.owner_references[::-1]))
    if "label" in choices:
        metadata = replace(metadata, labels={"n": "v"})
    if "finalizers" in choices:
        metadata = replace(metadata, finalizers=())
    return replace(machine, status=status, spec=spec, metadata=metadata)


CHOICES = ("condition", "add condition", "reverse conditions", "address", "phase", "initialization", "taint", "provider", "owner", "own no more", "label", "finalizers")  # fmt: skip


@BOUNDED
@given(raw=raws, choices=st.sets(st.sampled_from(CHOICES)))
def test_no_change_of_known_fields_touches_unknown_ones(raw: dict[str, Any], choices: set[str]) -> None:
    pristine = copy.deepcopy(raw)
    before = convert(raw, Machine)
    after = changed(before, choices)
    result = write(raw, before, after)
    survivors = {path: value for path, value in unknown(raw).items() if value is not None}
    assert {path: value for path, value in unknown(result).items() if value is not None} == survivors
    assert convert(result, Machine) == after
    assert raw == pristine


@BOUNDED
@given(raw=raws)
def test_an_unchanged_object_has_an_empty_patch(raw: dict[str, Any]) -> None:
    machine = to_json(convert(raw, Machine))
    assert merge_patch(raw, machine, machine) == {}


@BOUNDED
@given(raw=raws, choices=st.sets(st.sampled_from(CHOICES), min_size=1, max_size=1))
def test_a_patch_names_only_what_changed(raw: dict[str, Any], choices: set[str]) -> None:
    before = convert(raw, Machine)
    patch = merge_patch(raw, to_json(before), to_json(changed(before, choices)))
    top = {"condition": "status", "add condition": "status", "reverse conditions": "status", "address": "status", "phase": "status", "initialization": "status", "taint": "spec", "provider": "spec"}  # fmt: skip
    assert set(patch) == {top.get(next(iter(choices)), "metadata")}
    assert all(len(part) <= 2 for part in patch.values())


def test_a_cleared_field_becomes_null_and_an_absent_one_stays_out_of_the_patch() -> None:
    before = convert({"status": {"phase": "Running", "nodeRef": {"name": "n", "extra": 1}}}, Machine)
    after = replace(before, status=replace(before.status, phase="", node_ref=None))
    raw = {"status": {"phase": "Running", "nodeRef": {"name": "n", "extra": 1}}}
    assert merge_patch(raw, to_json(before), to_json(after)) == {"status": {"phase": None, "nodeRef": None}}
    empty = Machine()
    assert merge_patch({}, to_json(empty), to_json(empty)) == {}


def test_status_of_an_object_without_one_is_written_whole() -> None:
    raw = {"spec": {"paused": True, "extra": 1}}
    before = convert(raw, Cluster)
    after = replace(before, status=ClusterStatus(phase="Pending"))
    assert merge_patch(raw, to_json(before), to_json(after)) == {"status": {"phase": "Pending"}}


def test_items_without_a_key_are_matched_by_equality_then_by_place() -> None:
    raw = {"l": [{"v": 1, "extra": "one"}, {"v": 2, "extra": "two"}]}
    known = {"l": [{"v": 1}, {"v": 2}]}
    assert merge_patch(raw, known, {"l": [{"v": 2}]}) == {"l": [{"v": 2, "extra": "two"}]}
    assert merge_patch(raw, known, {"l": [{"v": 1}, {"v": 3}]}) == {"l": [{"v": 1, "extra": "one"}, {"v": 3, "extra": "two"}]}
    assert merge_patch(raw, known, {"l": [{"v": 2}, {"v": 1}]}) == {"l": [{"v": 2, "extra": "two"}, {"v": 1, "extra": "one"}]}
    assert merge_patch(raw, known, {"l": [{"v": 3}]}) == {"l": [{"v": 3}]}


def test_a_time_is_changed_only_when_the_instant_is() -> None:
    raw = {"status": {"lastUpdated": "2020-01-01T00:00:00.5Z", "phase": "Running"}}
    before = convert(raw, Machine)
    after = replace(before, status=replace(before.status, phase="Failed"))
    assert merge_patch(raw, to_json(before), to_json(after)) == {"status": {"phase": "Failed"}}
    assert before.status.last_updated is not None
    later = replace(before, status=replace(before.status, last_updated=before.status.last_updated + timedelta(seconds=1)))
    assert merge_patch(raw, to_json(before), to_json(later)) == {"status": {"lastUpdated": "2020-01-01T00:00:01Z"}}
