"""What is converted there and back is what it was; and nothing that a client can send breaks a conversion."""

from __future__ import annotations

import copy
import json
import re
from random import Random
from typing import Any

import pytest

from clusterwright import conversion
from clusterwright.api.versions import HUB, definitions, spokes
from clusterwright.conversion.pairs import Pair
from clusterwright.conversion.types import Struct
from conversion import generate

SEEDS = 12
SPOKES = [(group, kind, version) for group, kind, version in generate.ALL if version != HUB]


def versions(group: str, kind: str) -> str:
    return f"{group}/v1beta2"


def there_and_back(obj: dict[str, Any], through: str) -> dict[str, Any]:
    return conversion.convert(conversion.convert(obj, through, versions), obj["apiVersion"], versions)


def settled(value: Any, name: str = "") -> Any:
    """A hub object in the form that old versions can express: what the conversion is known to change is changed already."""
    if isinstance(value, list):
        items = [settled(item) for item in value]
        if name in {"extraArgs", "kubeletExtraArgs"}:
            arguments = {item.get("name", ""): item.get("value") or "" for item in items}
            return [({"name": key} if key else {}) | {"value": arguments[key]} for key in sorted(arguments, key=str.encode)]
        if name == "failureDomains" and items and isinstance(items[0], dict):
            domains = {item.get("name", ""): {"controlPlane": False} | item for item in items}
            return [domains[key] for key in sorted(domains, key=str.encode)]
        return items
    if isinstance(value, dict):
        found = {key: settled(item, key) for key, item in value.items()}
        return {key: item for key, item in found.items() if item != {} or key in {"controlPlane", "valueFrom", "value"}}
    return value


@pytest.mark.parametrize(("group", "kind", "version"), SPOKES)
def test_the_hub_survives_every_old_version(group: str, kind: str, version: str) -> None:
    for seed in range(SEEDS):
        random = Random(f"{kind}{version}{seed}")  # text seeds are the same in every process
        obj = generate.Generator(random, fill=0.3 + 0.06 * seed).object(group, kind, HUB)
        once = there_and_back(obj, f"{group}/{version}")

        assert there_and_back(once, f"{group}/{version}") == once
        assert losses(settled(obj), settled(once)) == []


def losses(before: Any, after: Any, path: str = "") -> list[str]:
    """What is gone or changed; that something was added (counters, deprecated parts) is no loss."""
    if isinstance(before, dict) and isinstance(after, dict):
        return [
            loss for key in before for loss in (losses(before[key], after[key], f"{path}.{key}") if key in after else [f"{path}.{key}"])
        ]
    if isinstance(before, list) and isinstance(after, list) and len(before) == len(after):
        return [loss for i, (a, b) in enumerate(zip(before, after, strict=True)) for loss in losses(a, b, f"{path}[{i}]")]
    return [] if before == after else [path]


@pytest.mark.parametrize(("group", "kind", "version"), SPOKES)
def test_old_objects_survive_the_hub(group: str, kind: str, version: str) -> None:
    pair = generate.kinds.version(group, kind, version).pair
    for seed in range(SEEDS):
        random = Random(f"{kind}{version}{seed}")
        obj = generate.Generator(random, fill=0.3 + 0.06 * seed).object(group, kind, version)
        once = there_and_back(obj, f"{group}/{HUB}")

        assert there_and_back(once, f"{group}/{HUB}") == once
        body = pair.spoke.write(pair.spoke.read(obj))
        gone = {loss for loss in losses(body, once) if not expressed_otherwise(loss) and not hollow(at(body, loss))}
        assert gone == set()


def at(value: Any, path: str) -> Any:
    for step in re.findall(r"\.([^.\[]+)|\[(\d+)\]", path):
        value = value[step[0]] if step[0] else value[int(step[1])]
    return value


def hollow(value: Any) -> bool:
    """Pointers to nothing: v1beta2 has no pointers where v1beta1 had them. Fields that are lost anyway do not count."""
    if isinstance(value, dict):
        return all(hollow(item) or expressed_otherwise(f".{key}") for key, item in value.items())
    return not value or value == "0s"


LOST = (
    "rolloutAfter", "definitionFrom", "progressDeadlineSeconds", "revisionHistoryLimit", "clusterName", "kubernetesVersion", "networking",
    "useExperimentalRetryJoin", ".ready", "uid", "fieldPath", "resourceVersion", "namespace", "apiVersion", "kind",
)  # fmt: skip


def expressed_otherwise(path: str) -> bool:
    """Fields that section 8 of the specification gives up."""
    return any(f".{word.lstrip('.')}" in path for word in LOST)


@pytest.mark.parametrize("seed", range(60))
def test_no_object_breaks_a_conversion(seed: int) -> None:
    random = Random(seed)
    for group, kind, version in generate.ALL:
        obj = generate.Generator(random, fill=0.8, mess=0.3, wrong=random.choice([0, 0.02, 0.2])).object(group, kind, version)
        before = copy.deepcopy(obj)
        if random.random() < 0.3:
            obj["metadata"] = random.choice([None, 1, [], "x", {}, {"annotations": 1}, {"labels": {"a": 1}}, {"namespace": 5}])
            before = copy.deepcopy(obj)
        if version != HUB and random.random() < 0.5 and isinstance(obj["metadata"], dict):
            data = json.dumps(generate.Generator(random, mess=0.2, wrong=0.05).object(group, kind, HUB))
            obj["metadata"]["annotations"] = {
                conversion.DATA_ANNOTATION: random.choice([data, "", "null", "[]", "{", "1", "{}", data[:-5]])
            }
            before = copy.deepcopy(obj)
        for wanted in (HUB, *spokes(generate.kinds.names()[group, kind])):
            try:
                result = conversion.convert(obj, f"{group}/{wanted}", versions)
            except conversion.ConversionFailed:
                continue
            finally:
                assert obj == before
            assert (result["apiVersion"], result["kind"]) == (f"{group}/{wanted}", kind)
            json.dumps(result, allow_nan=False)


def deep(levels: int) -> dict[str, Any]:
    schema: dict[str, Any] = {"type": "object"}
    for _ in range(levels):
        schema = {"type": "array", "items": schema}
    variable = {"name": "v", "required": True, "schema": {"openAPIV3Schema": schema}}
    return {"apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "ClusterClass", "metadata": {"name": "x"}, "spec": {"variables": [variable]}}


@pytest.mark.parametrize(
    "obj",
    [
        None, [], "x", 5, {}, {"apiVersion": 1, "kind": []}, {"apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Nothing"}, deep(20_000),
        {"apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Cluster", "metadata": {"name": "\ud800"}, "spec": {"topology": {"version": "\ud800"}}},
    ],
    ids=lambda obj: type(obj).__name__,
)  # fmt: skip
def test_a_value_that_is_not_an_object_is_refused(obj: Any) -> None:
    with pytest.raises(conversion.ConversionFailed):
        conversion.convert(obj, "cluster.x-k8s.io/v1beta1", versions)


def test_schemas_may_nest_as_deeply_as_an_api_server_takes_them() -> None:
    assert there_and_back(deep(90), "cluster.x-k8s.io/v1beta1") == deep(90)


def test_every_field_is_converted_or_known_to_be_one_sided() -> None:
    """No field of either version is forgotten: it has the same name in the other, a row, or is named here."""
    found = {
        f"{path.rpartition('.')[2]}"
        for group, kind, version in SPOKES
        for path in unconverted(generate.kinds.version(group, kind, version).pair, "", set())
    }
    assert found == {f"{name} (old)" for name in ONLY_OLD} | {f"{name} (hub)" for name in ONLY_HUB}


ONLY_OLD = {
    "rolloutAfter", "progressDeadlineSeconds", "revisionHistoryLimit", "clusterName", "kubernetesVersion", "networking", "apiVersion", "kind",
    "timeoutForControlPlane", "timeout",  # by hooks
}  # fmt: skip
ONLY_HUB = {"clusterName", "failureDomain", "minReadySeconds", "naming", "timeouts"}
"""From the annotation, from a label, or moved there from another struct."""


def unconverted(pair: Pair, path: str, seen: set[int]) -> list[str]:
    if id(pair) in seen:
        return []
    seen.add(id(pair))
    old, new = {step.spoke for step in pair.steps}, {step.hub for step in pair.steps}
    given_up = {row.spoke for row in pair.rows if row.lost} | {row.target for row in pair.rows if row.lost}
    found = [f"{path}.{name} (old)" for name in leaves(pair.spoke, old) if name not in given_up]
    found += [f"{path}.{name} (hub)" for name in leaves(pair.hub, new) if name not in given_up]
    for step in pair.steps:
        if step.nested is not None:
            found += unconverted(step.nested, f"{path}.{'.'.join(step.spoke)}", seen)
    return found


def leaves(struct: Struct, covered: set[tuple[str, ...]], above: tuple[str, ...] = ()) -> list[str]:
    """Fields that no step covers, where no step goes deeper."""
    found = []
    for name, field in struct.fields.items():
        here = (*above, name)
        if here in covered:
            continue
        if any(step[: len(here)] == here for step in covered) and isinstance(field.type, Struct):
            found += leaves(field.type, covered, here)
        else:
            found.append(".".join(here))
    return found


def test_every_kind_has_rules_and_every_rule_a_kind() -> None:
    assert {kind for _, kind, _ in SPOKES} == set(generate.kinds.RULES)
    assert {one["names"]["kind"] for name, one in definitions().items() if not spokes(name)} == {"DevMachinePool", "DevMachinePoolTemplate"}
