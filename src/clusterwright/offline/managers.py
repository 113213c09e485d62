"""Read Deployments of controllers: whether they are available, and their feature gates. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

from clusterwright.api.meta import Json, Unstructured
from clusterwright.api.wellknown import PROVIDER_LABEL

SELECTORS: Final = (PROVIDER_LABEL, "app.kubernetes.io/name=clusterwright")
"""Labels that select such Deployments: those of providers, and our own."""
_GATES: Final[Mapping[str, str]] = {"MachinePool": "MachinePool", "ClusterClass": "ClusterTopology", "ExtensionConfig": "RuntimeSDK"}
"""By kind: the feature gate that its controller needs."""
TOPOLOGY_GATE: Final = "ClusterTopology"
_FLAG: Final = re.compile(r"^--feature-gates=(.*)$")


def is_manager(obj: Unstructured) -> bool:
    """Return whether an object is a Deployment of controllers."""
    labels = obj.metadata.labels
    return obj.kind == "Deployment" and (PROVIDER_LABEL in labels or labels.get("app.kubernetes.io/name") == "clusterwright")


@dataclass(frozen=True, slots=True)
class Idle:
    """The reason why a controller does not run."""

    why: str
    gate: str = ""
    """The feature gate that is off."""
    namespace: str = ""
    deployment: str = ""


def why_idle(kind: str, provider: str, managers: Iterable[Unstructured], gate: str = "") -> Idle | None:
    """Return why no controller reconciles a kind of a provider, if it is known. `gate`: the feature gate, if the kind does not imply it."""
    gate = gate or _GATES.get(kind, "")
    for manager in managers:
        if manager.metadata.labels.get(PROVIDER_LABEL, provider) != provider:
            continue
        name, wanted = f"Deployment {manager.key}", manager.at("spec", "replicas")
        available = manager.at("status", "availableReplicas") or 0
        if not available:
            why = f"{name} has {available} of {1 if wanted is None else wanted} replicas available"
            return Idle(why, namespace=manager.key.namespace, deployment=manager.key.name)
        if gate and _features(manager).get(gate) == "false":
            return Idle(f"the feature gate {gate} is off in {name}", gate, manager.key.namespace, manager.key.name)
    return None


def slim(manager: Unstructured) -> Json:
    """Return the Deployment with only the fields that matter here: others may hold secrets."""
    gates = ",".join(f"{name}={value}" for name, value in _features(manager).items())
    containers = [{"name": "manager", "args": [f"--feature-gates={gates}"] if gates else []}]
    return {
        "apiVersion": manager.gvk.api_version,
        "kind": manager.kind,
        "metadata": {"name": manager.key.name, "namespace": manager.key.namespace, "labels": dict(manager.metadata.labels)},
        "spec": {"replicas": manager.at("spec", "replicas"), "template": {"spec": {"containers": containers}}},
        "status": {"availableReplicas": manager.at("status", "availableReplicas")},
    }


def _features(manager: Unstructured) -> dict[str, str]:
    """Return the gates that the arguments of a manager set."""
    containers = manager.at("spec", "template", "spec", "containers")
    found: dict[str, str] = {}
    for container in containers if isinstance(containers, list) else ():
        arguments = [str(a) for name in ("command", "args") for a in container.get(name) or ()]
        given = [f"{flag}={value}" for flag, value in pairwise(arguments) if flag == "--feature-gates"]
        for match in map(_FLAG.match, [*arguments, *given]):
            found |= dict(part.strip().split("=", 1) for part in match[1].split(",") if "=" in part) if match else {}
    return found
