"""Machines that were about to boot at the moment of the capture: in the replica they get bootstrap data again. Pure.

Their data are secret, so a capture does not have them. A Machine with a Node needs none.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from clusterwright.api.meta import Json, Unstructured
from clusterwright.offline.ownership import name_of


def again(objects: Sequence[Json]) -> tuple[list[Json], frozenset[str]]:
    """Return the objects as they were before such Machines got bootstrap data, and the names of those that differ."""
    configs, secrets, machines = set(), set(), set()
    for one in map(Unstructured, objects):
        reference, secret = one.at("spec", "bootstrap", "configRef"), one.at("spec", "bootstrap", "dataSecretName")
        if one.kind != "Machine" or one.at("status", "nodeRef") or not isinstance(secret, str) or not isinstance(reference, Mapping):
            continue
        if reference.get("kind") == "KubeadmConfig":
            machines.add(name_of("Machine", *one.key))
            configs.add(name_of("KubeadmConfig", one.key.namespace, str(reference.get("name"))))
            secrets.add(name_of("Secret", one.key.namespace, secret))
    return list(_before(objects, machines, configs, secrets)), frozenset(machines | configs | secrets)


def _before(objects: Iterable[Json], machines: set[str], configs: set[str], secrets: set[str]) -> Iterable[Json]:
    for obj in objects:
        one = Unstructured(obj)
        name = name_of(one.kind, *one.key)
        if name in secrets:
            continue
        if name in machines:
            bootstrap = _less(obj["spec"]["bootstrap"], "dataSecretName")
            yield {**obj, "spec": {**obj["spec"], "bootstrap": bootstrap}, "status": _less(obj.get("status"), "initialization")}
        elif name in configs:
            yield _without_data(obj)
        else:
            yield obj


def _without_data(config: Json) -> Json:
    status = _less(config.get("status"), "dataSecretName", "initialization")
    status["conditions"] = [c for c in status.get("conditions") or () if c.get("type") == "Paused"]
    spec = config.get("spec") or {}
    join = spec.get("joinConfiguration")
    if isinstance(join, Mapping) and isinstance(join.get("discovery"), Mapping) and join["discovery"].get("bootstrapToken"):
        spec = {**spec, "joinConfiguration": _less(join, "discovery")}
    return {**config, "spec": spec, "status": status}


def _less(value: Any, *names: str) -> Json:
    return {k: v for k, v in value.items() if k not in names} if isinstance(value, Mapping) else {}
