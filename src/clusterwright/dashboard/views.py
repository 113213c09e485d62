"""Select what the page shows of a cluster and its objects. Pure. It shows counts and versions of a spec, and nothing of a Secret."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from clusterwright.api.meta import Condition, Json, Unstructured
from clusterwright.offline.ownership import name_of
from clusterwright.offline.timeline import conditions_shown
from clusterwright.offline.verdict import Verdict
from clusterwright.offline.workings import Past

_ORDER: Final = ("Cluster", "KubeadmControlPlane", "MachineDeployment", "MachineSet", "MachinePool", "Machine", "MachineHealthCheck")
_SUMMARIES: Final = ("Available", "Ready", "RemediationAllowed", "TopologyReconciled", "VariablesReady", "ResourcesApplied")
UNSHOWN: Final = frozenset({"Secret", "Event", "CustomResourceDefinition", "ConfigMap"})
"""Kinds that verdicts use and that have no place in the tree."""


LOOKING: Final[Json] = {"state": "looking", "object": None, "what": "", "since": None}
"""The text before the first verdict."""


MOST_PAST: Final = 24
"""How many earlier verdicts of a cluster its row has."""


def fleet_row(cluster: Unstructured, verdict: Verdict | None, past: Sequence[Past] = ()) -> Json:
    """Return a cluster as a row of the list; without a verdict before the first one. `past`: its verdicts so far, oldest first."""
    key = cluster.key
    return {
        "namespace": key.namespace,
        "name": key.name,
        "phase": _text(cluster.at("status", "phase")) or "Pending",
        "version": _versions(cluster),
        "controlPlane": _counts(cluster.at("status", "controlPlane")),
        "workers": _counts(cluster.at("status", "workers")),
        "class": _text(cluster.at("spec", "topology", "classRef", "name")),
        "verdict": LOOKING if verdict is None else verdict_shown(verdict),
        "created": _time(cluster.at("metadata", "creationTimestamp")),
        "past": [[one.at, one.state] for one in past[-MOST_PAST:]],
    }


def verdict_shown(verdict: Verdict) -> Json:
    """Return a verdict without its time, so that it changes only with its content."""
    shown = verdict.to_json()
    del shown["headline"]
    return shown


def object_view(obj: Unstructured, parent: str) -> Json:
    """Return an object in the tree of its cluster, with its conditions."""
    conditions = conditions_shown(obj)
    summary = next((c for wanted in _SUMMARIES for c in conditions if c.type == wanted), None)
    return {
        "id": name_of(obj.kind, *obj.key),
        "kind": obj.kind,
        "name": obj.key.name,
        "parent": parent,
        "rank": _rank(obj),
        "deleting": obj.metadata.deletion_timestamp is not None,
        "phase": _text(obj.at("status", "phase")),
        "version": _text(obj.at("spec", "version")) or _text(obj.at("spec", "topology", "version")),
        "class": _text(obj.at("spec", "topology", "classRef", "name")),
        "target": _target(obj),
        "versions": _counted_versions(obj),
        "upgradePlan": _upgrade_plan(obj),
        "replicas": _replicas(obj),
        "created": _time(obj.at("metadata", "creationTimestamp")),
        "summary": condition_view(summary) if summary is not None else None,
        "conditions": [condition_view(c) for c in conditions],
    }


def condition_view(condition: Condition) -> Json:
    """Return a condition."""
    at = condition.last_transition_time
    return {
        "type": condition.type,
        "status": condition.status,
        "reason": condition.reason,
        "message": condition.message,
        "since": f"{at:%Y-%m-%dT%H:%M:%SZ}" if at is not None else None,
    }


def parents(objects: Iterable[Unstructured], cluster: str) -> dict[str, str]:
    """Return each object's parent in the tree: the controller if it exists, else any existing owner, else the Cluster."""
    known = {name_of(o.kind, *o.key): o for o in objects}
    above: dict[str, str] = {}
    for name, obj in known.items():
        references = sorted(obj.metadata.owner_references, key=lambda r: not r.controller)
        owners = (name_of(r.kind, obj.key.namespace, r.name) for r in references)
        above[name] = "" if name == cluster else next((o for o in owners if o in known and o != name), cluster)
    for name, at in above.items():  # nobody may be their own ancestor: such a ring would hang in the air
        seen = {name}
        while at and at not in seen:
            seen.add(at)
            at = above.get(at, "")
        if at:
            above[name] = cluster
    return above


def _rank(obj: Unstructured) -> int:
    """Return the position of an object among its siblings."""
    group = obj.gvk.group
    if obj.kind in _ORDER:
        return _ORDER.index(obj.kind) + 1
    if obj.kind.endswith("Template"):
        return len(_ORDER) + 3
    if group.startswith("infrastructure.") and obj.kind.endswith("Cluster"):
        return 0
    return 1 if group.startswith("controlplane.") else len(_ORDER) + 2


def _counts(value: object) -> Json | None:
    if not isinstance(value, Mapping):
        return None
    wanted, ready = value.get("desiredReplicas"), value.get("readyReplicas")
    return {"wanted": wanted if isinstance(wanted, int) else 0, "ready": ready if isinstance(ready, int) else 0}


def _replicas(obj: Unstructured) -> Json | None:
    wanted, ready = obj.at("spec", "replicas"), obj.at("status", "readyReplicas")
    if not isinstance(wanted, int):
        return None
    return {"wanted": wanted, "ready": ready if isinstance(ready, int) else 0}


def _versions(cluster: Unstructured) -> str:
    """Return the versions of the Machines, oldest first, and the version that the topology wants: `v1.34.1 → v1.35.0`."""
    used = [one.get("version") for part in ("controlPlane", "workers") for one in _items(cluster.at("status", part, "versions"))]
    return " → ".join(dict.fromkeys(filter(None, map(_text, [*used, cluster.at("spec", "topology", "version")]))))


def _target(obj: Unstructured) -> str:
    """Return the version that an object wants for its Machines."""
    return (
        _text(obj.at("spec", "version"))
        or _text(obj.at("spec", "template", "spec", "version"))
        or _text(obj.at("spec", "topology", "version"))
    )


def _counted_versions(obj: Unstructured) -> list[Json]:
    """Return how many Machines of each version an object has, the oldest version first."""
    found = [(_text(one.get("version")), one.get("replicas")) for one in _items(obj.at("status", "versions"))]
    return [{"version": version, "replicas": count} for version, count in found if version and isinstance(count, int)]


def _upgrade_plan(obj: Unstructured) -> list[str]:
    """Return the versions through which the control plane of a Cluster is still to be upgraded."""
    return list(filter(None, (_text(one.get("version")) for one in _items(obj.at("status", "controlPlane", "upgradePlan")))))


def _items(value: object) -> list[Mapping[str, Any]]:
    return [one for one in value if isinstance(one, Mapping)] if isinstance(value, list) else []


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""


def _time(value: object) -> str | None:
    return value if isinstance(value, str) and value else None
