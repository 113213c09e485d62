"""Explain topologies: whether the pass that decides `TopologyReconciled` can run, and the parts that its text blames."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from clusterwright.api.meta import Json
from clusterwright.controllers.topology.blueprint import class_key
from clusterwright.offline.bundle import Bundle
from clusterwright.offline.detectors.extensions import config_of, handlers
from clusterwright.topology.hooks import LIFECYCLE, pending_hooks
from clusterwright.topology.paths import at

CONTROLLER: Final = "topology/cluster"
_VARIABLE: Final = re.compile(r'(?:variables|overrides)\[([^\]]+)\]|required variable "([^"]+)"|variable "([^"]+)"')


def can_run(bundle: Bundle, cluster: Json) -> bool:
    """Return whether the bundle holds all inputs of a pass over a Cluster's topology: else the pass would blame missing records.

    The inputs are its class, all templates that the class names, and the answers of extensions if any are called.
    """
    if not at(cluster, "spec", "topology", "classRef", "name"):
        return False
    key = class_key(cluster)
    known = {(o.get("kind"), o["metadata"].get("namespace") or "", o["metadata"]["name"]): o for o in bundle.objects}
    found = known.get(("ClusterClass", key.namespace, key.name))
    if found is None or not all((r.get("kind"), key.namespace, r.get("name")) in known for r in _references(found.get("spec"))):
        return False
    return bool(bundle.observation.runtime_extensions) or not (_asks_extensions(found) or _has_asked(cluster))


def _asks_extensions(cluster_class: Json) -> bool:
    patches = at(cluster_class, "spec", "patches") or ()
    return bool(at(cluster_class, "spec", "upgrade", "external")) or any(patch.get("external") for patch in patches)


def _has_asked(cluster: Json) -> bool:
    """Return whether the Cluster shows that hooks are called."""
    message = _message(at(cluster, "status", "conditions") or ())
    return not pending_hooks(cluster).isdisjoint(LIFECYCLE) or any(hook in message for hook in LIFECYCLE)


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
    """Return the patch, variable or hook that a text of `TopologyReconciled` names, in words."""
    found = [f"patch {part.partition(chr(34))[0]}" for part in text.split('patch "')[1:]]
    found += [f"variable {next(filter(None, names))}" for names in _VARIABLE.findall(text)]
    found += [f"hook {name}" for name in LIFECYCLE if name in text]
    found += [f"extension handler {name}" for name, _ in handlers(text)]
    return list(dict.fromkeys(found))


def notes(bundle: Bundle, cluster: Json, conditions: Iterable[Mapping[str, Any]]) -> list[str]:
    """Return notes on a Cluster's topology that its condition does not have."""
    message = _message(conditions)
    culprits = blamed(message)
    if not culprits:
        return []
    configs = dict.fromkeys(config_of(name) for name, _ in handlers(message))
    return [
        f"TopologyReconciled is held up by {', '.join(culprits)} (ClusterClass {class_key(cluster)}).",
        *(f"ExtensionConfig {config} {state}" for config in configs if (state := _discovery(bundle, config))),
    ]


def _message(conditions: Iterable[Mapping[str, Any]]) -> str:
    said = next((c for c in conditions if c.get("type") == "TopologyReconciled" and c.get("status") == "False"), {})
    return str(said.get("message") or "")


def _discovery(bundle: Bundle, name: str) -> str:
    """Return the recorded fault of an ExtensionConfig; empty: none."""
    configs = {o["metadata"]["name"]: o for o in bundle.objects if o.get("kind") == "ExtensionConfig"}
    if name not in configs:
        return "does not exist." if configs else ""
    conditions = at(configs[name], "status", "conditions") or ()
    found = next((c for c in conditions if c.get("type") == "Discovered"), None)
    if found is None:
        return "was not discovered yet."
    return f"says: {found.get('message')}" if found.get("status") != "True" else ""
