"""Whatever is sent: no rule breaks down, defaulting twice is defaulting once, and what is refused is refused in Kubernetes' form."""

from __future__ import annotations

import asyncio
import random
from copy import deepcopy
from typing import Any, cast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from admission.admission_cases import ALL_GATES, BASES, Json, variable
from clusterwright.admission.hook import Access, Hook, Request
from clusterwright.admission.registry import HOOKS
from clusterwright.api.crds import crds
from clusterwright.apiserver.status import StatusError
from clusterwright.runtime.client import Reader

KINDS = {hook.model.__name__: hook for hook in HOOKS}
_WORDS = [
    "", "x", "v1.34.0", "1.2.3", "v", "10%", "0", "ignition", "gzip", "RollingUpdate", "Skip", "10.0.0.1", "::1", "https://a/b%", "{{", "{{ .random }}",
    "inline", "builtin.", "a*", "*", "/spec/0", "add", "cluster.x-k8s.io/cluster-name", "\x00", "é" * 70, "x" * 300, "9" * 25,
]  # fmt: skip
_NUMBERS = [0, 1, -1, 2, 29, 100, 2**31, 2**63, 2**70, 1.5, 1e300]


def _names(schema: Any, into: set[str]) -> set[str]:
    for name, child in (schema.get("properties") or {}).items():
        into.add(name)
        _names(child, into)
    for key in ("items", "additionalProperties"):
        if isinstance(schema.get(key), dict):
            _names(schema[key], into)
    return into


def _field_names() -> dict[str, list[str]]:
    found = {}
    for crd in crds():
        version = next(v for v in crd["spec"]["versions"] if v["name"] == "v1beta2")
        found[crd["spec"]["names"]["kind"]] = sorted(_names(version["schema"]["openAPIV3Schema"], set()))
    return found


FIELDS = _field_names()


def _value(random: random.Random, names: list[str], depth: int = 0) -> Any:
    kind = random.randrange(9 if depth < 3 else 6)
    if kind < 3:
        return random.choice(_WORDS)
    if kind == 3:
        return random.choice(_NUMBERS)
    if kind == 4:
        return random.choice([True, False, None])
    if kind == 5:
        return random.choice([{}, []])
    if kind == 6:
        return [_value(random, names, depth + 1) for _ in range(random.randrange(4))]
    return {random.choice(names): _value(random, names, depth + 1) for _ in range(random.randrange(4))}


def _places(value: Any) -> list[Any]:
    """Every container in an object, itself included."""
    children = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return [value, *(place for child in children if isinstance(child, (dict, list)) for place in _places(child))]


def damaged(kind: str, seed: int) -> Json:
    """An object of the kind after some random changes of it, most of them somewhere below its spec."""
    chance = random.Random(f"{kind}/{seed}")
    obj = deepcopy(BASES[kind])
    names = FIELDS.get(kind) or ["spec", "replicas", "status"]
    for _ in range(chance.randrange(1, 7)):
        places = _places(obj.get("spec")) if isinstance(obj.get("spec"), (dict, list)) and chance.random() < 0.9 else _places(obj)
        place = chance.choice(places)
        if isinstance(place, dict):
            key = chance.choice([*place, *names] if chance.random() < 0.5 and place else names)
            if key in place and chance.random() < 0.2:
                del place[key]
            else:
                place[key] = _value(chance, names)
        elif isinstance(place, list):
            place.append(_value(chance, names))
    obj["metadata"] = obj.get("metadata") if isinstance(obj.get("metadata"), dict) else {"name": "x"}
    return obj


class Surroundings:
    """A class that knows a variable; nothing else is there."""

    async def find(self, kind: Any, key: Any) -> Any:
        if kind.kind != "ClusterClass":
            return None
        schema = {
            "type": "object",
            "properties": {"a": {"type": "integer", "default": 1}},
            "x-kubernetes-validations": [{"rule": "self.a > 0"}],
        }
        status = {"conditions": [{"type": "VariablesReady", "status": "True"}], "variables": variable(schema | {"default": {}})}
        return type("Found", (), {"json": BASES["ClusterClass"] | {"status": status}})()

    async def get(self, kind: Any, key: Any) -> Any:
        return type("Found", (), {"json": BASES["KubeadmControlPlane"]})()

    async def list(self, kind: Any, **_: Any) -> Any:
        return [type("Found", (), {"json": BASES[kind.kind]})()] if kind.kind in BASES else []


async def _no_pause(_: float) -> None:
    """Time that is not waited."""


ACCESS = Access(cast(Reader, Surroundings()), pause=_no_pause)


def request(hook: Hook, new: Json | None, old: Json | None = None, *, dry_run: bool = False) -> Request:
    operation: Any = "DELETE" if new is None else "CREATE" if old is None else "UPDATE"
    return Request(operation=operation, kind=hook.kind, namespace="n", name="x", object=new, old_object=old, dry_run=dry_run)


async def _asked(kind: str, seed: int) -> None:
    hook = KINDS[kind]
    chance = random.Random(seed)
    new, old = damaged(kind, seed), damaged(kind, seed + 1) if chance.random() < 0.3 else deepcopy(BASES[kind])
    gates = {gate: chance.random() < 0.8 for gate in ALL_GATES}
    before = old if chance.random() < 0.5 else None
    for ask in (hook.default, hook.validate):
        try:
            await ask(request(hook, deepcopy(new), deepcopy(before), dry_run=chance.random() < 0.3), gates, ACCESS)
        except StatusError as error:
            _is_a_status(error)
    if chance.random() < 0.2:
        try:
            await hook.validate(request(hook, None, old), gates, ACCESS)
        except StatusError as error:
            _is_a_status(error)


def _is_a_status(error: StatusError) -> None:
    status = error.status
    assert status["kind"] == "Status"
    assert status["code"] in (400, 403, 422)
    assert status["message"].startswith("admission webhook ")
    causes = (status.get("details") or {}).get("causes") or []
    assert (status["code"] == 422) is bool(causes)
    assert all(c["field"] and c["reason"] and c["message"] for c in causes)


@pytest.mark.parametrize("kind", KINDS)
def test_no_object_crashes_a_rule(kind: str) -> None:
    async def many() -> None:
        for seed in range(60):
            await _asked(kind, seed)

    asyncio.run(many())


@pytest.mark.soak
@pytest.mark.parametrize("kind", KINDS)
def test_no_object_of_very_many_crashes_a_rule(kind: str) -> None:
    async def many() -> None:
        for seed in range(60, 5_000):
            await _asked(kind, seed)

    asyncio.run(many())


@pytest.mark.parametrize("kind", [name for name, hook in KINDS.items() if hook.is_mutating])
@settings(max_examples=40)
@given(seed=st.integers(0, 1 << 30), dry_run=st.booleans(), update=st.booleans())
def test_defaulting_twice_is_defaulting_once(kind: str, seed: int, dry_run: bool, update: bool) -> None:
    hook, obj = KINDS[kind], damaged(kind, seed)
    old = deepcopy(BASES[kind]) if update else None

    async def default(obj: Json) -> bool:
        try:
            await hook.default(request(hook, obj, old, dry_run=dry_run), ALL_GATES, ACCESS)
        except StatusError:
            return False
        return True

    if not asyncio.run(default(obj)):
        return  # refused: there is nothing that could be stored
    once = deepcopy(obj)

    assert asyncio.run(default(obj))
    assert obj == once
