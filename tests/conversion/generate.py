"""Random objects of every kind and version, made from the types that conversions work with."""

from __future__ import annotations

from random import Random
from typing import Any

from clusterwright.api.versions import HUB, definitions, spokes
from clusterwright.conversion import kinds
from clusterwright.conversion.types import Field, Leaf, List, Map, Struct, Type

ALL = [
    (one["group"], one["names"]["kind"], version)
    for name, one in sorted(definitions().items())
    for version in (*spokes(name), HUB)
    if spokes(name)
]
"""Group, kind and version of everything that can be converted."""


def type_of(group: str, kind: str, version: str) -> Struct:
    found = kinds.version(group, kind, version)
    return kinds.hub_type(group, kind) if found is None else found.pair.spoke


class Generator:
    """`mess`: how often a value is absent, null, empty or of a strange form. Without it objects are as a server keeps them."""

    def __init__(self, random: Random, *, fill: float = 0.6, mess: float = 0.0, wrong: float = 0.0) -> None:
        self.random, self.fill, self.mess, self.wrong = random, fill, mess, wrong

    def object(self, group: str, kind: str, version: str) -> dict[str, Any]:
        body = self.struct(type_of(group, kind, version), 0)
        metadata: dict[str, Any] = {"name": "x", "namespace": "ns"}
        if self.random.random() < 0.3:
            metadata["labels"] = {"a": "b"}
        if self.random.random() < 0.3:
            metadata["annotations"] = {"c": "d"}
        return {"apiVersion": f"{group}/{version}", "kind": kind, "metadata": metadata, **body}

    def struct(self, struct: Struct, depth: int) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for name, field in struct.fields.items():
            if self.random.random() > self.fill * (0.85**depth):
                continue
            value = self.field(name, field, depth)
            if value is not None or self.mess:
                found[name] = value
        return found

    def field(self, name: str, field: Field, depth: int) -> Any:
        if self.wrong and self.random.random() < self.wrong:
            return self.random.choice([1, "x", True, [], {}, [1], {"a": 1}, -1, 2**40, 1.5, "", [[]], [{}], {"a": {}}])
        if self.mess and self.random.random() < self.mess:
            return self.strange(field.type)
        if name == "apiVersion":
            return self.random.choice(["g.io/v1", "infrastructure.cluster.x-k8s.io/v1beta2"])
        if name in {"kind", "apiGroup"} and isinstance(field.type, Leaf):
            return self.random.choice(["Thing", "Other"])
        value = self.value(field.type, depth, optional=field.optional)
        if not self.mess and not field.optional and value in ("", 0, False, [], {}):
            return None
        return value

    def value(self, kind: Type, depth: int, *, optional: bool = True) -> Any:
        match kind:
            case Struct():
                return self.struct(kind, depth + 1)
            case List():
                return [self.value(kind.item, depth + 1) for _ in range(self.random.randint(1, 3))] if depth < 12 else []
            case Map():
                return {f"k{self.random.randint(0, 9)}": self.value(kind.value, depth + 1) for _ in range(self.random.randint(1, 3))}
            case Leaf():
                return self.leaf(kind)
        raise TypeError(kind)

    def leaf(self, kind: Leaf) -> Any:
        random = self.random
        match kind.kind:
            case "string":
                return random.choice(["a", "b", "c", "äö", "RollingUpdate", "Running"])
            case "bool":
                return random.random() < 0.5
            case "int":
                return random.choice([0, 1, 7, 2147483647])
            case "number":
                return random.choice([0, 1.5])
            case "time":
                return random.choice(["2026-01-02T03:04:05Z", "1999-12-31T23:59:59Z"])
            case "duration":
                return random.choice(["10s", "1m0s", "1h0m0s", "0s"])
            case "quantity":
                return random.choice(["1", "500m", "1Gi", "0"])
            case "int-or-string":
                return random.choice([0, 1, "20%"])
            case "bytes":
                return "YWJj"
            case "token":
                return "abcdef.0123456789abcdef"
            case _:
                return random.choice([1, "x", True, {"a": [1, None, {"b": "c"}]}, [1, 2], 1.5, "", False])

    def strange(self, kind: Type) -> Any:
        random = self.random
        match kind:
            case Struct():
                return random.choice([None, {}, {"unknown": 1}])
            case List():
                return random.choice([None, [], [None], [self.value(kind.item, 9)] * 2])
            case Map():
                return random.choice([None, {}, {"": self.value(kind.value, 9)}, {"z": None}])
            case Leaf(kind="duration"):
                return random.choice([None, "90s", "0", "1.5h", "500ms", "-3s", "1h1m1.5s", "2540400h", "-500ms", "+1m"])
            case Leaf(kind="time"):
                return random.choice([None, "2026-01-02T03:04:05+02:00", "2026-01-02T03:04:05.678Z", "0001-01-01T00:00:00Z"])
            case Leaf(kind="quantity"):
                return random.choice([None, 1, "1000m", "0.5", "1024Mi", "1e3", "1500Mi", "0.001Gi", "-1", "100000"])
            case Leaf(kind="string"):
                return random.choice([None, ""])
            case Leaf(kind="bool"):
                return random.choice([None, False])
            case Leaf(kind="int"):
                return random.choice([None, 0, -5])
            case Leaf(kind="int-or-string"):
                return random.choice([None, "", "x", -1])
            case Leaf(kind="bytes"):
                return random.choice([None, ""])
        return None
