"""Read Deployments of controllers, and Providers whose processes the plane runs: whether they run, and their feature gates. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from itertools import pairwise
from typing import Any, Final

from clusterwright.api.meta import GroupVersionKind, Json, Unstructured
from clusterwright.api.wellknown import PROVIDER_LABEL

SELECTORS: Final = (PROVIDER_LABEL, "app.kubernetes.io/name=clusterwright")
"""Labels that select such Deployments: those of providers, and our own."""
_GATES: Final[Mapping[str, str]] = {"MachinePool": "MachinePool", "ClusterClass": "ClusterTopology", "ExtensionConfig": "RuntimeSDK"}
"""By kind: the feature gate that its controller needs."""
TOPOLOGY_GATE: Final = "ClusterTopology"
_FLAG: Final = re.compile(r"^--feature-gates=(.*)$")


PROVIDER: Final = GroupVersionKind("clusterctl.cluster.x-k8s.io", "v1alpha3", "Provider")
_PROCESS: Final = "Running"
"""The condition of a Provider whose process the plane runs."""


def is_manager(obj: Unstructured) -> bool:
    """Return whether an object is a Deployment of controllers, or a Provider."""
    labels = obj.metadata.labels
    if (obj.gvk.group, obj.kind) == (PROVIDER.group, PROVIDER.kind):
        return True
    return obj.kind == "Deployment" and (PROVIDER_LABEL in labels or labels.get("app.kubernetes.io/name") == "clusterwright")


def why_idle(kind: str, provider: str, managers: Iterable[Unstructured], gate: str = "") -> str:
    """Return why no controller reconciles a kind of a provider; empty: unknown. `gate`: the feature gate, if the kind does not imply it."""
    gate = gate or _GATES.get(kind, "")
    for manager in managers:
        names = {manager.metadata.labels.get(PROVIDER_LABEL, provider), manager.at("providerName")}
        if provider not in names:
            continue
        if manager.kind == PROVIDER.kind:
            if (process := _process(manager)).get("status") == "False":
                return f"Provider {manager.key} is {process.get('reason')}: {process.get('message')}"
            continue
        name, wanted = f"Deployment {manager.key}", manager.at("spec", "replicas")
        available = manager.at("status", "availableReplicas") or 0
        if not available:
            return f"{name} has {available} of {1 if wanted is None else wanted} replicas available"
        if gate and _features(manager).get(gate) == "false":
            return f"the feature gate {gate} is off in {name}"
    return ""


def slim(manager: Unstructured) -> Json:
    """Return the Deployment or Provider with only the fields that matter here: others may hold secrets."""
    if manager.kind == PROVIDER.kind:
        metadata = {"name": manager.key.name, "namespace": manager.key.namespace, "labels": dict(manager.metadata.labels)}
        head: Json = {"apiVersion": PROVIDER.api_version, "kind": PROVIDER.kind, "metadata": metadata}
        head["providerName"] = manager.at("providerName")
        return {**head, "status": {"conditions": [dict(process)] if (process := _process(manager)) else []}}
    gates = ",".join(f"{name}={value}" for name, value in _features(manager).items())
    containers = [{"name": "manager", "args": [f"--feature-gates={gates}"] if gates else []}]
    return {
        "apiVersion": manager.gvk.api_version,
        "kind": manager.kind,
        "metadata": {"name": manager.key.name, "namespace": manager.key.namespace, "labels": dict(manager.metadata.labels)},
        "spec": {"replicas": manager.at("spec", "replicas"), "template": {"spec": {"containers": containers}}},
        "status": {"availableReplicas": manager.at("status", "availableReplicas")},
    }


def _process(provider: Unstructured) -> Mapping[str, Any]:
    """Return the condition of a Provider's process; empty if the plane runs none."""
    listed = provider.at("status", "conditions")
    found = [one for one in listed if isinstance(one, Mapping) and one.get("type") == _PROCESS] if isinstance(listed, list) else []
    return found[0] if found else {}


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
