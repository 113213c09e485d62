"""Choose the objects of a move and their order: owners before the objects that they own. Pure.

The rules are clusterctl's, so that either tool can move the other's objects: everything below Clusters, ClusterClasses,
ClusterResourceSets and what is labelled for it; Secrets that belong to a Cluster by their name only.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from clusterwright.api.meta import GroupVersionKind, Json
from clusterwright.api.wellknown import CORE_GROUP, DELETE_FOR_MOVE_ANNOTATION, MOVE_HIERARCHY_LABEL, MOVE_LABEL, PAUSED_ANNOTATION
from clusterwright.kubeadm.certificates import Purpose

_HIERARCHIES = {"Cluster", "ClusterClass", "ClusterResourceSet"}
_SERVERS_OWN = ("uid", "resourceVersion", "creationTimestamp", "generation", "managedFields", "selfLink", "deletionGracePeriodSeconds")
_SECRETS = tuple(f"-{purpose.value}" for purpose in Purpose)


class CannotMove(Exception):
    """The objects are not in a state in which they can be moved; each argument is one reason."""

    def __str__(self) -> str:
        return "; ".join(str(reason) for reason in self.args)


@dataclass(frozen=True, slots=True)
class MovedKind:
    """A kind that a move reads, and whether its definition asks to move all its objects, with those that they own."""

    gvk: GroupVersionKind
    is_namespaced: bool = True
    moves: bool = False
    with_owned: bool = False


@dataclass(frozen=True, slots=True)
class Moved:
    """One object to move. `owners` are its owners among the moved objects, by UID."""

    json: Json
    kind: MovedKind
    owners: frozenset[str] = field(default_factory=frozenset)

    @property
    def uid(self) -> str:
        """The UID in the source cluster."""
        return str(self.json["metadata"]["uid"])

    @property
    def name(self) -> str:
        """The name for messages."""
        return f"{self.kind.gvk.kind}/{self.json['metadata']['name']}"


def kinds(definitions: Iterable[Json]) -> list[MovedKind]:
    """Return the kinds that CustomResourceDefinitions marked for clusterctl define, in their stored versions."""
    found = []
    for crd in definitions:
        spec, labels = crd["spec"], crd["metadata"].get("labels") or {}
        version = next(v["name"] for v in spec["versions"] if v.get("storage"))
        gvk = GroupVersionKind(spec["group"], version, spec["names"]["kind"])
        with_owned = MOVE_HIERARCHY_LABEL in labels or (gvk.kind in _HIERARCHIES and gvk.group.endswith(CORE_GROUP))
        found.append(MovedKind(gvk, spec["scope"] == "Namespaced", with_owned or MOVE_LABEL in labels, with_owned))
    return found


def in_order(objects: Sequence[tuple[MovedKind, Json]]) -> list[Moved]:
    """Return the objects to move, owners first."""
    by_uid = {str(json["metadata"]["uid"]): (kind, json) for kind, json in objects}
    owners = {uid: _owners(json, by_uid) for uid, (_, json) in by_uid.items()}
    taken = _taken(by_uid, owners)
    ordered: dict[str, Moved] = {}

    def add(uid: str, below: tuple[str, ...] = ()) -> None:
        if uid in ordered or uid in below:  # objects that own each other are rare, and no reason to hang
            return
        for owner in sorted(owners[uid] & taken, key=lambda u: _key(by_uid[u])):
            add(owner, (*below, uid))
        kind, json = by_uid[uid]
        ordered[uid] = Moved(json, kind, frozenset(owners[uid] & taken))

    for uid in sorted(taken, key=lambda u: _key(by_uid[u])):
        add(uid)
    return list(ordered.values())


def _key(entry: tuple[MovedKind, Json]) -> tuple[str, ...]:
    kind, json = entry
    return (kind.gvk.group, kind.gvk.kind, json["metadata"]["name"])


def _owners(json: Json, present: Mapping[str, tuple[MovedKind, Json]]) -> frozenset[str]:
    """Return the owners of an object, by reference or by a name that implies it."""
    references = json["metadata"].get("ownerReferences") or ()
    found = {str(r["uid"]) for r in references}
    namespace = json["metadata"].get("namespace", "")
    if json["kind"] == "Secret" and not references:
        found |= {uid for uid, name in _named(present, "Cluster", namespace) if json["metadata"]["name"] in {name + s for s in _SECRETS}}
    if json["kind"] == "ClusterResourceSetBinding":
        wanted = (json.get("spec") or {}).get("clusterName")
        found |= {uid for uid, name in _named(present, "Cluster", namespace) if name == wanted}
    if json["kind"] == "Cluster" and (reference := class_of(json)):
        found |= {uid for uid, name in _named(present, "ClusterClass", reference[0]) if name == reference[1]}
    return frozenset(found)


def _named(present: Mapping[str, tuple[MovedKind, Json]], kind: str, namespace: str) -> Iterator[tuple[str, str]]:
    for uid, (_, json) in present.items():
        if json["kind"] == kind and json["metadata"].get("namespace", "") == namespace:
            yield uid, json["metadata"]["name"]


def class_of(cluster: Json) -> tuple[str, str] | None:
    """Return namespace and name of a Cluster's class."""
    reference = ((cluster["spec"].get("topology") or {}).get("classRef")) or {}
    return (reference.get("namespace") or cluster["metadata"]["namespace"], reference["name"]) if reference.get("name") else None


def _taken(by_uid: Mapping[str, tuple[MovedKind, Json]], owners: Mapping[str, frozenset[str]]) -> set[str]:
    """Return the objects that are moved for their own sake, or because they belong to such an object."""

    def labels(uid: str) -> Mapping[str, str]:
        return by_uid[uid][1]["metadata"].get("labels") or {}

    roots = {uid for uid, (kind, _) in by_uid.items() if kind.with_owned or MOVE_HIERARCHY_LABEL in labels(uid)}
    taken, fresh = set(roots), set(roots)
    while fresh:
        fresh = {uid for uid, above in owners.items() if above & fresh} - taken
        taken |= fresh
    return taken | {uid for uid, (kind, _) in by_uid.items() if kind.moves or MOVE_LABEL in labels(uid)}


def unready(moved: Sequence[Moved], *, paused: bool = False) -> list[str]:
    """Return why the objects cannot be moved now, one line each. `paused`: we have paused them."""
    reasons = []
    for obj in moved:
        metadata, status = obj.json["metadata"], obj.json.get("status") or {}
        is_ours = obj.kind.gvk.group == CORE_GROUP
        if metadata.get("deletionTimestamp"):
            reasons.append(f"{obj.name} is being deleted")
        if not paused and is_ours and obj.json["kind"] in {"Cluster", "ClusterClass"} and is_paused(obj.json):
            reasons.append(f"{obj.name} is paused")
        elif is_ours and obj.json["kind"] == "Cluster":
            done = status.get("initialization") or {}
            if not done.get("infrastructureProvisioned"):
                reasons.append(f"the infrastructure of {obj.name} is not provisioned yet")
            elif not done.get("controlPlaneInitialized"):
                reasons.append(f"the control plane of {obj.name} is not initialized yet")
        if is_ours and obj.json["kind"] == "Machine" and not (status.get("nodeRef") or {}).get("name"):
            reasons.append(f"{obj.name} has no Node yet")
    return reasons


def is_paused(json: Json) -> bool:
    """Return whether a Cluster or ClusterClass is paused."""
    return bool((json.get("spec") or {}).get("paused")) or PAUSED_ANNOTATION in (json["metadata"].get("annotations") or {})


def pausing(obj: Moved, *, paused: bool) -> Json | None:
    """Return the patch that pauses or resumes an object; None: the object cannot be paused."""
    if obj.kind.gvk.group != CORE_GROUP:
        return None
    if obj.json["kind"] == "Cluster":
        return {"spec": {"paused": True if paused else None}}
    if obj.json["kind"] == "ClusterClass":
        return {"metadata": {"annotations": {PAUSED_ANNOTATION: "" if paused else None}}}
    return None


def arriving(obj: Moved, uids: Mapping[str, str]) -> Json:
    """Return the object to create in the target, paused if possible; `uids` maps the owners' old UIDs to their new ones."""
    metadata = {name: value for name, value in obj.json["metadata"].items() if name not in _SERVERS_OWN}
    references = metadata.pop("ownerReferences", None) or ()
    kept = [{**r, "uid": uids[r["uid"]]} for r in references if r["uid"] in uids]
    if kept:
        metadata["ownerReferences"] = kept
    json = {name: value for name, value in obj.json.items() if name != "status"} | {"metadata": metadata}
    pause = pausing(obj, paused=True)
    if pause and "spec" in pause:
        json["spec"] = {**json.get("spec", {}), **pause["spec"]}
    elif pause:
        metadata["annotations"] = {**(metadata.get("annotations") or {}), **pause["metadata"]["annotations"]}
    return json


def applied_fields(obj: Moved) -> list[Json]:
    """Return which managers apply which fields: this is lost, and fields that they drop later would stay forever."""
    fields = obj.json["metadata"].get("managedFields") or []
    return fields if any(entry.get("operation") == "Apply" for entry in fields) else []


MARK: Json = {"metadata": {"annotations": {DELETE_FOR_MOVE_ANNOTATION: ""}}}
"""The patch before an object is deleted in the source."""
LET_GO: Json = {"metadata": {"finalizers": None}}
"""The patch after that, which removes finalizers. Done earlier, a controller could add its finalizer again."""
