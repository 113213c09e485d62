"""The life of CustomResourceDefinitions: names accepted, established, served; cleaned up when deleted."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec

from clusterwright.api.meta import Json
from clusterwright.apiserver.interfaces import Resource, Scale
from clusterwright.apiserver.kinds import compile_crd
from clusterwright.apiserver.store import Entry, Event, Table

if TYPE_CHECKING:
    from clusterwright.apiserver.server import ApiServer

TABLE: Final = "customresourcedefinitions.apiextensions.k8s.io"
CLEANUP: Final = "customresourcecleanup.apiextensions.k8s.io"


def resources_of(crd: Json) -> list[Resource]:
    """What a CRD serves, one resource per served version."""
    spec = crd["spec"]
    names = (crd.get("status") or {}).get("acceptedNames") or spec["names"]
    storage = next((v["name"] for v in spec["versions"] if v.get("storage")), spec["versions"][0]["name"])
    found = []
    for version in spec["versions"]:
        if not version.get("served"):
            continue
        sub = version.get("subresources") or {}
        scale = sub.get("scale")
        found.append(
            Resource(
                group=spec["group"],
                version=version["name"],
                kind=names["kind"],
                plural=spec["names"]["plural"],
                singular=names.get("singular") or names["kind"].lower(),
                namespaced=spec.get("scope") == "Namespaced",
                list_kind=names.get("listKind") or names["kind"] + "List",
                short_names=tuple(names.get("shortNames") or ()),
                categories=tuple(names.get("categories") or ()),
                status="status" in sub,
                scale=Scale(scale["specReplicasPath"], scale["statusReplicasPath"], scale.get("labelSelectorPath") or "")
                if scale
                else None,
                storage=f"{spec['group']}/{storage}",
                deprecation=_deprecation(spec, version),
                custom=True,
                unconditional_update=False,
                handler=compile_crd(crd, version["name"]),
            )
        )
    return found


def _deprecation(spec: Json, version: Json) -> str:
    if not version.get("deprecated"):
        return ""
    return version.get("deprecationWarning") or f"{spec['group']}/{version['name']} {spec['names']['kind']} is deprecated"


class CrdController:
    """Watches the server's own CRDs. Everything happens within the write that causes it."""

    def __init__(self, server: ApiServer) -> None:
        self.server = server
        self._served: dict[str, bytes] = {}

    def offer(self, event: Event) -> None:
        """React to a change of a CRD."""
        crd = msgspec.json.decode(event.entry.raw)
        if event.type == "DELETED":
            self.withdraw(crd)
            return
        meta = crd["metadata"]
        if meta.get("deletionTimestamp"):
            self.server.later(lambda: self.clean_up(event.entry.name))
            return
        self.server.later(lambda: self.establish(event.entry.name))

    def resume(self, entry: Entry) -> None:
        """Take up a CRD that was there before."""
        crd = msgspec.json.decode(entry.raw)
        conditions = (crd.get("status") or {}).get("conditions") or ()
        if any(c["type"] == "Established" and c["status"] == "True" for c in conditions):
            self.serve(crd)
        if crd["metadata"].get("deletionTimestamp"):
            self.server.later(lambda: self.clean_up(entry.name))
        else:
            self.server.later(lambda: self.establish(entry.name))

    def serve(self, crd: Json) -> None:
        """Serve a CRD as it stands."""
        resources = resources_of(crd)
        spec = crd["spec"]
        fingerprint = msgspec.json.encode([spec, (crd.get("status") or {}).get("acceptedNames")])
        if self._served.get(crd["metadata"]["name"]) == fingerprint:
            return
        self._served[crd["metadata"]["name"]] = fingerprint
        self.server.registry.remove(spec["group"], spec["names"]["plural"])
        self.server.registry.add(resources)
        self.server.end_watches(f"{spec['names']['plural']}.{spec['group']}", keep={r.api_version for r in resources})

    def withdraw(self, crd: Json) -> None:
        """Serve it no longer and forget its objects."""
        spec = crd["spec"]
        self._served.pop(crd["metadata"]["name"], None)
        self.server.registry.remove(spec["group"], spec["names"]["plural"])
        self.server.end_watches(f"{spec['names']['plural']}.{spec['group']}", keep=set())

    def _load(self, name: str) -> tuple[Table, Entry, Json] | None:
        table = self.server.store.table(TABLE)
        entry = table.objects.get(name)
        return None if entry is None else (table, entry, msgspec.json.decode(entry.raw))

    def establish(self, name: str) -> None:
        """Accept names, set conditions, and serve."""
        found = self._load(name)
        if found is None:
            return
        table, entry, crd = found
        if crd["metadata"].get("deletionTimestamp"):
            return
        before = msgspec.json.decode(entry.raw)
        status = crd.setdefault("status", {})
        conditions: list[Json] = status.setdefault("conditions", [])
        conflicts = self._conflicts(crd)
        now = self.server.timestamp()
        if conflicts:
            reason, message = conflicts
            _condition(conditions, "NamesAccepted", "False", reason, message, now)
            if not any(c["type"] == "Established" and c["status"] == "True" for c in conditions):
                _condition(conditions, "Established", "False", "NotAccepted", "not all names are accepted", now)
            status.setdefault("acceptedNames", {"plural": "", "kind": ""})
        else:
            status["acceptedNames"] = crd["spec"]["names"]
            _condition(conditions, "NamesAccepted", "True", "NoConflicts", "no conflicts found", now)
            _condition(conditions, "Established", "True", "InitialNamesAccepted", "the initial names have been accepted", now)
        storage = next((v["name"] for v in crd["spec"]["versions"] if v.get("storage")), None)
        stored = status.setdefault("storedVersions", [])
        if storage and storage not in stored:
            stored.append(storage)
        finalizers = crd["metadata"].setdefault("finalizers", [])
        if CLEANUP not in finalizers:
            finalizers.append(CLEANUP)
        if crd != before:
            self.server.put_system(table, entry, crd)
        if any(c["type"] == "Established" and c["status"] == "True" for c in conditions):
            self.serve(crd)

    def _conflicts(self, crd: Json) -> tuple[str, str] | None:
        spec = crd["spec"]
        names = spec["names"]
        for entry in self.server.store.table(TABLE).objects.values():
            if entry.name == crd["metadata"]["name"]:
                continue
            other = msgspec.json.decode(entry.raw)
            if other["spec"]["group"] != spec["group"]:
                continue
            theirs = (other.get("status") or {}).get("acceptedNames") or {}
            taken = {theirs.get("plural"), theirs.get("singular"), *(theirs.get("shortNames") or ())} - {None, ""}
            for field, reason in (("plural", "PluralConflict"), ("singular", "SingularConflict")):
                if names.get(field) in taken:
                    return reason, f'"{names[field]}" is already in use'
            for short in names.get("shortNames") or ():
                if short in taken:
                    return "ShortNamesConflict", f'"{short}" is already in use'
            kinds = {theirs.get("kind"), theirs.get("listKind")} - {None, ""}
            if names.get("kind") in kinds:
                return "KindConflict", f'"{names["kind"]}" is already in use'
            if names.get("listKind") in kinds:
                return "ListKindConflict", f'"{names["listKind"]}" is already in use'
        return None

    def clean_up(self, name: str) -> None:
        """Delete all objects of a CRD that is being deleted, then let it go."""
        found = self._load(name)
        if found is None:
            return
        table, entry, crd = found
        finalizers = crd["metadata"].get("finalizers") or []
        if not crd["metadata"].get("deletionTimestamp") or CLEANUP not in finalizers:
            return
        spec = crd["spec"]
        resource = next(iter(resources_of(crd)), None)
        objects = self.server.store.table(f"{spec['names']['plural']}.{spec['group']}")
        for item in list(objects.objects.values()):
            if resource is not None:
                self.server.delete_system(objects, item, resource)
        conditions = crd.setdefault("status", {}).setdefault("conditions", [])
        now = self.server.timestamp()
        if objects.objects:
            text = f"{len(objects.objects)} items remain"
            _condition(conditions, "Terminating", "True", "InstanceDeletionInProgress", text, now)
            if crd != msgspec.json.decode(entry.raw):
                self.server.put_system(table, entry, crd)
            self.server.when_empty(objects, lambda: self.clean_up(name))
            return
        _condition(conditions, "Terminating", "False", "InstanceDeletionCompleted", "removed all instances", now)
        remaining = [f for f in finalizers if f != CLEANUP]
        if remaining:
            crd["metadata"]["finalizers"] = remaining
            self.server.put_system(table, entry, crd)
        else:
            crd["metadata"].pop("finalizers", None)
            self.server.remove_system(table, entry, crd)


def _condition(conditions: list[Json], kind: str, status: str, reason: str, message: str, now: str) -> None:
    for condition in conditions:
        if condition["type"] == kind:
            if condition["status"] != status:
                condition["lastTransitionTime"] = now
            if (condition["status"], condition.get("reason"), condition.get("message")) != (status, reason, message):
                condition.update(status=status, reason=reason, message=message)
            return
    conditions.append({"type": kind, "status": status, "lastTransitionTime": now, "reason": reason, "message": message})
