"""Explaining topologies: whether the pass that decides `TopologyReconciled` can be run, and whom its text blames."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from clusterwright.api.meta import Json
from clusterwright.controllers.topology.blueprint import class_key
from clusterwright.offline.bundle import Bundle
from clusterwright.topology.hooks import LIFECYCLE
from clusterwright.topology.paths import at

CONTROLLER: Final = "topology/cluster"
_PATCH: Final = re.compile(r'(?:for|of|external) patch "([^"]+)"')
_VARIABLE: Final = re.compile(r'(?:variables|overrides)\[([^\]]+)\]|required variable "([^"]+)"|variable "([^"]+)"')
_HOOK: Final = re.compile("|".join(LIFECYCLE))


def can_run(bundle: Bundle, cluster: Json) -> bool:
    """Whether the bundle holds the class of a Cluster and all templates that it names: else a pass would blame what was not recorded."""
    if not at(cluster, "spec", "topology", "classRef", "name"):
        return False
    key = class_key(cluster)
    known = {(o.get("kind"), o["metadata"].get("namespace") or "", o["metadata"]["name"]) for o in bundle.objects}
    found = next(
        (
            o
            for o in bundle.objects
            if (o.get("kind"), o["metadata"].get("namespace") or "", o["metadata"]["name"]) == ("ClusterClass", key.namespace, key.name)
        ),
        None,
    )
    return found is not None and all((r.get("kind"), key.namespace, r.get("name")) in known for r in _references(found.get("spec")))


def _references(value: Any) -> Iterator[Mapping[str, Any]]:
    if isinstance(value, Mapping):
        for key, item in value.items():
            if key == "templateRef" and isinstance(item, Mapping):
                yield item
            elif key not in ("healthCheck", "variables", "patches"):
                yield from _references(item)
    elif isinstance(value, list):
        for item in value:
            yield from _references(item)


def blamed(text: str) -> list[str]:
    """Which patch, variable or hook a text of `TopologyReconciled` is about, in words."""
    found = [f"patch {name}" for name in _PATCH.findall(text)]
    found += [f"variable {next(filter(None, names))}" for names in _VARIABLE.findall(text)]
    found += [f"hook {name}" for name in _HOOK.findall(text)]
    return list(dict.fromkeys(found))


def notes(cluster: Json, conditions: Iterable[Mapping[str, Any]]) -> list[str]:
    """What is to be said of a Cluster's topology beside its condition."""
    said = next((c for c in conditions if c.get("type") == "TopologyReconciled" and c.get("status") == "False"), None)
    if said is None:
        return []
    culprits = blamed(str(said.get("message") or ""))
    if not culprits:
        return []
    return [f"TopologyReconciled is held up by {', '.join(culprits)} (ClusterClass {class_key(cluster)})."]
