"""Read Deployments of controllers, and Providers whose processes the plane runs: whether they run, gates and filters. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Final

from clusterwright.api.meta import GroupVersionKind, Json, Unstructured
from clusterwright.api.wellknown import PROVIDER_LABEL, WATCH_FILTER_LABEL

SELECTORS: Final = (PROVIDER_LABEL, "app.kubernetes.io/name=clusterwright")
"""Labels that select such Deployments: those of providers, and our own."""
_GATES: Final[Mapping[str, str]] = {"MachinePool": "MachinePool", "ClusterClass": "ClusterTopology", "ExtensionConfig": "RuntimeSDK"}
"""By kind: the feature gate that its controller needs."""
TOPOLOGY_GATE: Final = "ClusterTopology"
_FEATURES: Final = "--feature-gates"
_FILTER: Final = "--watch-filter"


PROVIDER: Final = GroupVersionKind("clusterctl.cluster.x-k8s.io", "v1alpha3", "Provider")
_PROCESS: Final = "Running"
"""The condition of a Provider whose process the plane runs."""


def is_manager(obj: Unstructured) -> bool:
    """Return whether an object is a Deployment of controllers, or a Provider."""
    labels = obj.metadata.labels
    if (obj.gvk.group, obj.kind) == (PROVIDER.group, PROVIDER.kind):
        return True
    return obj.kind == "Deployment" and (PROVIDER_LABEL in labels or labels.get("app.kubernetes.io/name") == "clusterwright")


@dataclass(frozen=True, slots=True)
class Idle:
    """The reason why a controller does not run."""

    why: str
    gate: str = ""
    """The feature gate that is off."""
    namespace: str = ""
    deployment: str = ""
    process: str = ""
    """The Provider whose process does not run."""
    wanted: str = ""
    """The value of the watch-filter label that the object lacks."""


def filtered(obj: Unstructured, wanted: str, by: str) -> Idle | None:
    """Return that controllers with a watch filter leave an object alone, if they do. `by`: words for these controllers."""
    if not wanted or obj.metadata.labels.get(WATCH_FILTER_LABEL) == wanted:
        return None
    return Idle(f"{by} with {_FILTER}={wanted}, and the object has no label {WATCH_FILTER_LABEL}={wanted}", wanted=wanted)


def why_idle(obj: Unstructured, provider: str, managers: Iterable[Unstructured], gate: str = "") -> Idle | None:
    """Return why no controller reconciles an object, if it is known. `gate`: the feature gate, if the kind does not imply it."""
    gate = gate or _GATES.get(obj.kind, "")
    for manager in managers:
        if provider not in {manager.metadata.labels.get(PROVIDER_LABEL, provider), manager.at("providerName")}:
            continue
        if manager.kind == PROVIDER.kind:
            if (process := _process(manager)).get("status") == "False":
                why = f"Provider {manager.key} is {process.get('reason')}: {process.get('message')}"
                return Idle(why, process=manager.key.name)
            continue
        name, wanted = f"Deployment {manager.key}", manager.at("spec", "replicas")
        available = manager.at("status", "availableReplicas") or 0
        if not available:
            why = f"{name} has {available} of {1 if wanted is None else wanted} replicas available"
            return Idle(why, namespace=manager.key.namespace, deployment=manager.key.name)
        if gate and _features(manager).get(gate) == "false":
            return Idle(f"the feature gate {gate} is off in {name}", gate, manager.key.namespace, manager.key.name)
        if left := filtered(obj, "".join(_values(manager, _FILTER)), f"{name} runs"):
            return left
    return None


def slim(manager: Unstructured) -> Json:
    """Return the Deployment or Provider with only the fields that matter here: others may hold secrets."""
    if manager.kind == PROVIDER.kind:
        metadata = {"name": manager.key.name, "namespace": manager.key.namespace, "labels": dict(manager.metadata.labels)}
        head: Json = {"apiVersion": PROVIDER.api_version, "kind": PROVIDER.kind, "metadata": metadata}
        head["providerName"] = manager.at("providerName")
        return {**head, "status": {"conditions": [dict(process)] if (process := _process(manager)) else []}}
    gates = ",".join(f"{name}={value}" for name, value in _features(manager).items())
    flags = [f"{_FEATURES}={gates}"] if gates else []
    flags += [f"{_FILTER}={value}" for value in _values(manager, _FILTER)]
    containers = [{"name": "manager", "args": flags}]
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


def _values(manager: Unstructured, flag: str) -> list[str]:
    """Return the values that the arguments of a manager give to a flag, in one argument or in two."""
    containers = manager.at("spec", "template", "spec", "containers")
    found: list[str] = []
    for container in containers if isinstance(containers, list) else ():
        arguments = [str(a) for name in ("command", "args") for a in container.get(name) or ()]
        found += [a.removeprefix(f"{flag}=") for a in arguments if a.startswith(f"{flag}=")]
        found += [value for name, value in pairwise(arguments) if name == flag]
    return found


def _features(manager: Unstructured) -> dict[str, str]:
    """Return the gates that the arguments of a manager set."""
    parts = [part.strip() for value in _values(manager, _FEATURES) for part in value.split(",")]
    return dict(part.split("=", 1) for part in parts if "=" in part)
