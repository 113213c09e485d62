"""Find a Machine's Node, and compute the labels, annotations and taints that it gets. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from clusterwright.api.core import Machine, MachineTaint
from clusterwright.api.kubernetes import Node, Taint
from clusterwright.api.meta import Json, ObjectKey
from clusterwright.api.wellknown import (
    ANNOTATIONS_FROM_MACHINE_ANNOTATION,
    CLUSTER_NAME_ANNOTATION,
    CLUSTER_NAMESPACE_ANNOTATION,
    INTERRUPTIBLE_LABEL,
    LABELS_FROM_MACHINE_ANNOTATION,
    MACHINE_ANNOTATION,
    MANAGED_NODE_DOMAIN,
    NODE_RESTRICTION_DOMAIN,
    NODE_ROLE_DOMAIN,
    OUTDATED_REVISION_TAINT,
    OWNER_KIND_ANNOTATION,
    OWNER_NAME_ANNOTATION,
    REVISION_ANNOTATION,
    TAINTS_FROM_MACHINE_ANNOTATION,
    UNINITIALIZED_TAINT,
)
from clusterwright.controllers.machine.snapshot import OwnerFacts
from clusterwright.golang.numbers import atoi

BOOKKEEPING = (CLUSTER_NAME_ANNOTATION, CLUSTER_NAMESPACE_ANNOTATION, MACHINE_ANNOTATION, OWNER_KIND_ANNOTATION, OWNER_NAME_ANNOTATION)
"""Annotations of every Node that we manage; they are not listed among those from the Machine."""

UNINITIALIZED = Taint(key=UNINITIALIZED_TAINT, effect="NoSchedule")
OUTDATED_REVISION = Taint(key=OUTDATED_REVISION_TAINT, effect="PreferNoSchedule")


class NodeSyncError(Exception):
    """The desired state of the Node cannot be computed."""


class AmbiguousNode(Exception):
    """Several Nodes have one providerID."""


def node_with(provider_id: str, nodes: Iterable[Node]) -> Node | None:
    """Return the Node with a providerID, compared exactly. Raises AmbiguousNode if there are several."""
    found = [node for node in nodes if node.spec.provider_id == provider_id]
    if len(found) > 1:
        raise AmbiguousNode(f"unexpectedly found more than one Node matching the providerID {provider_id}")
    return found[0] if found else None


def is_of(node: Node, machine: Machine) -> bool:
    """Return whether a Node that was found by its name is still the Machine's: another host may have taken the name meanwhile.

    Upstream compares the name alone, and would drain and delete the newcomer.
    """
    return not machine.spec.provider_id or node.spec.provider_id in {"", machine.spec.provider_id}


def is_unreachable(node: Node) -> bool:
    """Return whether the kubelet has stopped reporting: Ready is Unknown."""
    return any(c.type == "Ready" and c.status == "Unknown" for c in node.status.conditions)


# ------------------------------------------------------------------------------------- what the Machine passes on


def labels_for_node(machine: Machine, *, interruptible: bool, also: Sequence[re.Pattern[str]] = ()) -> dict[str, str]:
    """Return the labels to copy to the Node: those of the node domains, those that `also` matches, and the interruptible mark."""
    found = {k: v for k, v in machine.metadata.labels.items() if _is_node_label(k) or any(p.search(k) for p in also)}
    return {**found, INTERRUPTIBLE_LABEL: ""} if interruptible else found


def annotations_for_node(machine: Machine, *, also: Sequence[re.Pattern[str]] = ()) -> dict[str, str]:
    """Return the annotations to copy to the Node, and the bookkeeping ones."""
    found = {k: v for k, v in machine.metadata.annotations.items() if _within(k, MANAGED_NODE_DOMAIN) or any(p.search(k) for p in also)}
    found |= {
        CLUSTER_NAME_ANNOTATION: machine.spec.cluster_name,
        CLUSTER_NAMESPACE_ANNOTATION: machine.metadata.namespace,
        MACHINE_ANNOTATION: machine.metadata.name,
    }
    owner = machine.metadata.controller
    return found if owner is None else {**found, OWNER_KIND_ANNOTATION: owner.kind, OWNER_NAME_ANNOTATION: owner.name}


def _is_node_label(key: str) -> bool:
    return _domain(key) == NODE_ROLE_DOMAIN or _within(key, NODE_RESTRICTION_DOMAIN) or _within(key, MANAGED_NODE_DOMAIN)


def _within(key: str, domain: str) -> bool:
    mine = _domain(key)
    return mine == domain or mine.endswith("." + domain)


def _domain(key: str) -> str:
    return key.partition("/")[0]


# ------------------------------------------------------------------------------------------------------- syncing


@dataclass(frozen=True, slots=True, kw_only=True)
class Desired:
    """The desired state of a Node. `taints` is None if taints are not propagated; `outdated` is None if unknown."""

    labels: Mapping[str, str]
    annotations: Mapping[str, str]
    taints: tuple[MachineTaint, ...] | None = None
    outdated: bool | None = False


def node_patch(node: Node, desired: Desired) -> Json | None:
    """Return a merge patch, with the resourceVersion, that updates the Node; None if it is up to date.

    It holds only metadata and taints. Labels and annotations that came from the Machine and no longer do are removed; all others are left
    alone.
    """
    old_labels, old_annotations = node.metadata.labels, node.metadata.annotations
    labels = _merged(old_labels, desired.labels, _items(old_annotations.get(LABELS_FROM_MACHINE_ANNOTATION, "")))
    annotations = _merged(
        old_annotations, desired.annotations, (*_items(old_annotations.get(ANNOTATIONS_FROM_MACHINE_ANNOTATION, "")), *BOOKKEEPING)
    )
    annotations[LABELS_FROM_MACHINE_ANNOTATION] = ",".join(sorted(desired.labels))
    annotations[ANNOTATIONS_FROM_MACHINE_ANNOTATION] = ",".join(sorted(set(desired.annotations) - set(BOOKKEEPING)))
    taints = without(node.spec.taints, UNINITIALIZED)
    if desired.taints is not None:
        taints, owned = taints_from_machine(taints, desired.taints, old_annotations.get(TAINTS_FROM_MACHINE_ANNOTATION))
        annotations[TAINTS_FROM_MACHINE_ANNOTATION] = owned
    if desired.outdated is not None:
        taints = ensured(taints, OUTDATED_REVISION) if desired.outdated else without(taints, OUTDATED_REVISION)
    metadata = {
        name: changes
        for name, changes in (("labels", _changes(old_labels, labels)), ("annotations", _changes(old_annotations, annotations)))
        if changes
    }
    patch: Json = {"metadata": {"resourceVersion": node.metadata.resource_version, **metadata}}
    if taints != node.spec.taints:
        patch["spec"] = {"taints": [_taint_json(t) for t in taints] or None}
    return patch if metadata or "spec" in patch else None


def _merged(old: Mapping[str, str], desired: Mapping[str, str], tracked: Iterable[str]) -> dict[str, str]:
    kept = {k: v for k, v in old.items() if k in desired or k not in set(tracked)}
    return {**kept, **desired}


def _changes(old: Mapping[str, str], new: Mapping[str, str]) -> dict[str, str | None]:
    changed: dict[str, str | None] = {k: v for k, v in new.items() if old.get(k) != v}
    return changed | {k: None for k in old if k not in new}


def _items(text: str) -> tuple[str, ...]:
    return tuple(item for item in text.split(",") if item)


# -------------------------------------------------------------------------------------------------------- taints


def taints_from_machine(taints: Sequence[Taint], desired: Sequence[MachineTaint], tracked: str | None) -> tuple[tuple[Taint, ...], str]:
    """Return the Node's taints with those of the Machine, and the new value of the annotation that tracks them.

    A taint is identified by key and effect. `Always` taints are tracked: kept as long as the Machine has them, removed
    afterwards. `OnInitialization` taints are put on once, before the annotation exists, and never touched again.
    """
    always = {_identity(t): t for t in desired if t.propagation == "Always"}
    once = {_identity(t): t for t in desired if t.propagation == "OnInitialization"}
    result = tuple(taints)
    for identity in _tracked(tracked or ""):
        if identity not in always and identity not in once:
            result = tuple(t for t in result if _identity(t) != identity)
    for taint in desired:
        if taint.propagation == "Always" or tracked is None:
            result = ensured(result, Taint(key=taint.key, value=taint.value, effect=taint.effect))
    return result, ",".join(sorted(f"{key}:{effect}" for key, effect in always))


def _tracked(text: str) -> tuple[tuple[str, str], ...]:
    found = []
    for item in _items(text):
        key, colon, effect = item.partition(":")
        if not colon or ":" in effect:
            raise NodeSyncError(f"annotation {TAINTS_FROM_MACHINE_ANNOTATION}: {item!r} is not of the form key:effect")
        found.append((key, effect))
    return tuple(found)


def ensured(taints: Sequence[Taint], taint: Taint) -> tuple[Taint, ...]:
    """Return the taints with this one among them: at the end if it is new, in its place if only the value differs."""
    if not any(_identity(t) == _identity(taint) for t in taints):
        return (*taints, taint)
    return tuple(taint if _identity(t) == _identity(taint) and t.value != taint.value else t for t in taints)


def without(taints: Sequence[Taint], taint: Taint) -> tuple[Taint, ...]:
    """Return the taints without this one; a different value does not matter."""
    return tuple(t for t in taints if _identity(t) != _identity(taint))


def _identity(taint: Taint | MachineTaint) -> tuple[str, str]:
    return taint.key, taint.effect


def _taint_json(taint: Taint) -> Json:
    json: dict[str, Any] = {"key": taint.key, "effect": taint.effect}
    if taint.value:
        json["value"] = taint.value
    if taint.time_added is not None:
        json["timeAdded"] = f"{taint.time_added:%Y-%m-%dT%H:%M:%SZ}"
    return json


def is_outdated(machine_set: OwnerFacts | None, deployment: OwnerFacts | None) -> bool:
    """Return whether the Machine's MachineSet has an earlier revision than its MachineDeployment; a missing revision counts as 0."""
    if machine_set is None or deployment is None:
        return False
    return _revision(machine_set) < _revision(deployment)


def _revision(owner: OwnerFacts) -> int:
    try:
        return atoi(owner.revision)
    except ValueError:
        raise NodeSyncError(f"{owner.described}: annotation {REVISION_ANNOTATION} is not a number: {owner.revision!r}") from None


# -------------------------------------------------------------------------------------------------------- health


@dataclass(frozen=True, slots=True)
class NodeHealth:
    """A Node's four conditions combined into one status, with the problems."""

    status: str
    message: str


def node_health(node: Node) -> NodeHealth:
    """Return whether the Node is healthy: Ready, and under no pressure. An unreported condition is unknown."""
    found = {c.type: c for c in node.status.conditions}
    lines, texts, bad, unknown = [], [], False, False
    for type, good in (("Ready", "True"), ("MemoryPressure", "False"), ("DiskPressure", "False"), ("PIDPressure", "False")):
        condition = found.get(type)
        if condition is None:
            lines.append(f"* Node.{type}: Condition not yet reported")
            unknown = True
        elif condition.status != good:
            texts.append(condition.message or f"Condition is {condition.status}")
            lines.append(f"* Node.{type}: {texts[-1]}")
            unknown |= condition.status == "Unknown"
            bad |= condition.status != "Unknown"
    if len(texts) > 1 and len(set(texts)) == 1:
        lines = [f"* Node.AllConditions: {texts[0]}"]
    return NodeHealth("False" if bad else "Unknown" if unknown else "True", "\n".join(lines))


def node_health_v1beta1(node: Node) -> NodeHealth:
    """Return the deprecated form: unknown only if all four conditions are, and an absent condition does not count."""
    lines, bad, unknown = [], False, 0
    for condition in node.status.conditions:
        good = {"Ready": "True", "MemoryPressure": "False", "DiskPressure": "False", "PIDPressure": "False"}.get(condition.type)
        if good is None or condition.status == good:
            continue
        lines.append(f"Node condition {condition.type} is {condition.status}")
        bad |= condition.status != "Unknown"
        unknown += condition.status == "Unknown"
    return NodeHealth("False" if bad else "Unknown" if unknown >= 4 else "True", ". ".join(lines))


# ------------------------------------------------------------------------------------------------------ watching


def belongs_to(node: Node, cluster: ObjectKey) -> bool:
    """Return whether the Node belongs to this Cluster by its annotation; a Node without one, before the first sync, may."""
    annotations = node.metadata.annotations
    if CLUSTER_NAME_ANNOTATION not in annotations:
        return True
    return (annotations.get(CLUSTER_NAMESPACE_ANNOTATION, ""), annotations[CLUSTER_NAME_ANNOTATION]) == tuple(cluster)
