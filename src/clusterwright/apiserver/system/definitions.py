"""CustomResourceDefinitions: accept their names, serve them, and delete their objects when they are deleted."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

import msgspec

from clusterwright.api.contract import version_priority
from clusterwright.api.meta import Json
from clusterwright.apiserver.conversion import RELABEL, Converter
from clusterwright.apiserver.conversionwebhooks import WebhookConverter
from clusterwright.apiserver.core import Core
from clusterwright.apiserver.interfaces import Checks, Resource, Scale
from clusterwright.apiserver.schema.customresource import compile_crd
from clusterwright.apiserver.schema.structural import copy_json
from clusterwright.apiserver.storage.store import Entry, Event, Table


class _Names(msgspec.Struct, rename="camel"):
    plural: str = ""
    singular: str = ""
    kind: str = ""
    list_kind: str = ""
    short_names: tuple[str, ...] | None = None


class _Status(msgspec.Struct, rename="camel"):
    accepted_names: _Names | None = None


class _Spec(msgspec.Struct):
    group: str
    names: _Names


class _Metadata(msgspec.Struct, rename="camel"):
    deletion_timestamp: str | None = None


class _Definition(msgspec.Struct):
    """The names of a CRD, without decoding the rest: most CRDs are large."""

    metadata: _Metadata
    spec: _Spec
    status: _Status | None = None


_names_of = msgspec.json.Decoder(_Definition).decode
TABLE: Final = "customresourcedefinitions.apiextensions.k8s.io"
CLEANUP: Final = "customresourcecleanup.apiextensions.k8s.io"


def converter_of(server: Core, crd: Json) -> Converter:
    """Return the converter of a CRD."""
    spec = crd["spec"]
    conversion = spec.get("conversion") or {}
    if conversion.get("strategy") != "Webhook":
        return RELABEL
    known = server.converters(server, spec["group"], spec["names"]["kind"]) if server.converters is not None else None
    return known or WebhookConverter(conversion.get("webhook") or {}, server.callouts, server.new_uid)


def resources_of(crd: Json, converter: Converter = RELABEL) -> list[Resource]:
    """Return the resources of a CRD, one for each served version."""
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
                checks=Checks(finalizers=0),
                unconditional_update=False,
                handler=compile_crd(crd, version["name"]),
                converter=converter,
            )
        )
    return found


def _deprecation(spec: Json, version: Json) -> str:
    if not version.get("deprecated"):
        return ""
    if version.get("deprecationWarning"):
        return str(version["deprecationWarning"])
    group, kind = spec["group"], spec["names"]["kind"]
    newer = [
        other["name"]
        for other in spec["versions"]
        if other.get("served") and not other.get("deprecated") and version_priority(other["name"]) > version_priority(version["name"])
    ]
    text = f"{group}/{version['name']} {kind} is deprecated"
    return f"{text}; use {group}/{max(newer, key=version_priority)} {kind}" if newer else text


RESOURCE: Final = "resource"
KIND: Final = "kind"


class TakenNames:
    """The accepted names of all CRDs, so that a new CRD is not compared with each of the others."""

    def __init__(self) -> None:
        self._names: dict[str, frozenset[tuple[str, str, str]]] = {}
        """The accepted names, by CRD: group, use and name."""
        self._holders: dict[tuple[str, str, str], set[str]] = {}

    def put(self, crd: str, definition: _Definition) -> None:
        """Replace the accepted names of a CRD."""
        accepted = definition.status.accepted_names if definition.status is not None else None
        found: set[tuple[str, str, str]] = set()
        if accepted is not None:
            group = definition.spec.group
            found |= {(group, RESOURCE, n) for n in (accepted.plural, accepted.singular, *(accepted.short_names or ()))}
            found |= {(group, KIND, n) for n in (accepted.kind, accepted.list_kind)}
        before, after = self._names.get(crd, frozenset()), frozenset(found)
        for gone in before - after:
            self._holders[gone].discard(crd)
            if not self._holders[gone]:
                del self._holders[gone]
        for new in after - before:
            self._holders.setdefault(new, set()).add(crd)
        self._names[crd] = after

    def remove(self, crd: str) -> None:
        """Free the names of a CRD."""
        self.put(crd, _Definition(metadata=_Metadata(), spec=_Spec("", _Names())))
        del self._names[crd]

    def by_another(self, crd: str, group: str, use: str, name: str) -> bool:
        """Return whether another CRD of the group has the name."""
        return bool(self._holders.get((group, use, name), frozenset()) - {crd})


class CrdController:
    """Serves CRDs within the write that changes them; deletes the objects of deleted CRDs in steps."""

    def __init__(self, server: Core) -> None:
        self.server = server
        self._served: dict[str, bytes] = {}
        self._taken = TakenNames()
        self._cleaning: set[str] = set()
        """CRDs whose objects are being deleted."""

    def offer(self, event: Event) -> None:
        """React to a change of a CRD."""
        if event.type == "DELETED":
            self.withdraw(msgspec.json.decode(event.entry.raw))
            return
        crd = _names_of(event.entry.raw)
        self._taken.put(event.entry.name, crd)
        if crd.metadata.deletion_timestamp:
            self.server.terminating.add((crd.spec.group, crd.spec.names.plural))
            self._begin_clean_up(event.entry.name)
            return
        self.server.later(lambda: self.establish(event.entry.name))

    def resume(self, entry: Entry) -> None:
        """Serve a stored CRD after a start."""
        crd = msgspec.json.decode(entry.raw)
        self._taken.put(entry.name, _names_of(entry.raw))
        conditions = (crd.get("status") or {}).get("conditions") or ()
        if _is_true(conditions, "Established"):
            self.serve(crd)
        if crd["metadata"].get("deletionTimestamp"):
            self.server.terminating.add((crd["spec"]["group"], crd["spec"]["names"]["plural"]))
            self._begin_clean_up(entry.name)
        else:
            self.server.later(lambda: self.establish(entry.name))

    def serve(self, crd: Json) -> None:
        """Serve a CRD."""
        spec = crd["spec"]
        fingerprint = msgspec.json.encode([spec, (crd.get("status") or {}).get("acceptedNames")])
        if self._served.get(crd["metadata"]["name"]) == fingerprint:
            return
        resources = resources_of(crd, converter_of(self.server, crd))
        table = self.server.store.table(f"{spec['names']['plural']}.{spec['group']}")
        if table.objects or table.history:  # later objects were written under this definition
            table.stale_before = int(crd["metadata"]["resourceVersion"])
        self._served[crd["metadata"]["name"]] = fingerprint
        self.server.registry.remove(spec["group"], spec["names"]["plural"])
        self.server.registry.add(resources)
        self.server.watches.end(f"{spec['names']['plural']}.{spec['group']}")  # clients watch again, under the new definition

    def withdraw(self, crd: Json) -> None:
        """Stop serving a CRD and forget its objects."""
        spec = crd["spec"]
        self._served.pop(crd["metadata"]["name"], None)
        self._taken.remove(crd["metadata"]["name"])
        self._cleaning.discard(crd["metadata"]["name"])
        self.server.terminating.discard((spec["group"], spec["names"]["plural"]))
        self.server.registry.remove(spec["group"], spec["names"]["plural"])
        self.server.watches.end(f"{spec['names']['plural']}.{spec['group']}")

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
        status = crd["status"] = crd.get("status") or {}
        before = copy_json(status)
        conditions: list[Json] = status.get("conditions") or []
        status["conditions"] = conditions
        accepted, problem = self._accept(crd)
        now = self.server.timestamp()
        status["acceptedNames"] = accepted
        if problem is not None:
            reason, message = problem
            _condition(conditions, "NamesAccepted", "False", reason, message, now)
            if not _is_true(conditions, "Established"):
                _condition(conditions, "Established", "False", "NotAccepted", "not all names are accepted", now)
        else:
            _condition(conditions, "NamesAccepted", "True", "NoConflicts", "no conflicts found", now)
            _condition(conditions, "Established", "True", "InitialNamesAccepted", "the initial names have been accepted", now)
        storage = next((v["name"] for v in crd["spec"]["versions"] if v.get("storage")), None)
        stored = status["storedVersions"] = status.get("storedVersions") or []
        if storage and storage not in stored:
            stored.append(storage)
        if status != before:
            self.server.put_system(table, entry, crd)
        if _is_true(conditions, "Established"):
            self.serve(crd)

    def _accept(self, crd: Json) -> tuple[Json, tuple[str, str] | None]:
        """Return the names that no other CRD of the group has, and the last conflict if there is one."""
        name, group = crd["metadata"]["name"], crd["spec"]["group"]
        wanted: Json = crd["spec"]["names"]
        before: Json = (crd.get("status") or {}).get("acceptedNames") or {}
        accepted: Json = {"plural": before.get("plural") or "", "kind": before.get("kind") or ""}
        problem: tuple[str, str] | None = None
        for field, use, reason in (
            ("plural", RESOURCE, "PluralConflict"),
            ("singular", RESOURCE, "SingularConflict"),
            ("shortNames", RESOURCE, "ShortNamesConflict"),
            ("kind", KIND, "KindConflict"),
            ("listKind", KIND, "ListKindConflict"),
            ("categories", "", ""),
        ):
            value = wanted.get(field)
            if not value:
                continue
            values = value if isinstance(value, list) else [value]
            clash = [v for v in values if use and self._taken.by_another(name, group, use, v)]
            if clash:
                problem = (reason, ", ".join(f'"{c}" is already in use' for c in clash))
            else:
                accepted[field] = value
        return accepted, problem

    def _begin_clean_up(self, name: str) -> None:
        if name not in self._cleaning:
            self._cleaning.add(name)
            self.server.in_steps(self._clean_up(name))

    def _clean_up(self, name: str) -> Iterator[int]:
        """Delete all objects of a CRD that is being deleted, then remove its finalizer."""
        found = self._load(name)
        resource = next(iter(resources_of(found[2])), None) if found is not None else None
        if found is not None and resource is not None and CLEANUP in (found[2]["metadata"].get("finalizers") or ()):
            objects = self._objects(found[2])
            for key in list(objects.objects):
                item = objects.objects.get(key)
                if item is not None:
                    self.server.delete_system(objects, item, resource)
                    yield len(item.raw)
        self._conclude(name)

    def _objects(self, crd: Json) -> Table:
        return self.server.store.table(f"{crd['spec']['names']['plural']}.{crd['spec']['group']}")

    def _conclude(self, name: str) -> None:
        """Remove the finalizer of a CRD that is being deleted if it has no objects, else set its condition."""
        found = self._load(name)
        if found is None:
            return
        table, entry, crd = found
        finalizers = crd["metadata"].get("finalizers") or []
        if not crd["metadata"].get("deletionTimestamp") or CLEANUP not in finalizers:
            return
        objects = self._objects(crd)
        status = crd["status"] = crd.get("status") or {}
        conditions = status["conditions"] = status.get("conditions") or []
        now = self.server.timestamp()
        if objects.objects:
            text = "CustomResource deletion is in progress"
            _condition(conditions, "Terminating", "True", "InstanceDeletionInProgress", text, now)
            if crd != msgspec.json.decode(entry.raw):
                self.server.put_system(table, entry, crd)
            self.server.when_empty(objects, lambda: self._conclude(name))
            return
        _condition(conditions, "Terminating", "False", "InstanceDeletionCompleted", "removed all instances", now)
        remaining = [f for f in finalizers if f != CLEANUP]
        if remaining:
            crd["metadata"]["finalizers"] = remaining
            self.server.put_system(table, entry, crd)
        else:
            crd["metadata"].pop("finalizers", None)
            self.server.remove_system(table, entry)


def mark_deleting(crd: Json, now: str) -> bool:
    """Set the condition that the deletion was requested."""
    status = crd["status"] = crd.get("status") or {}
    conditions = status["conditions"] = status.get("conditions") or []
    if any(c["type"] == "Terminating" for c in conditions):
        return False
    text = "CustomResourceDefinition marked for deletion; CustomResource deletion will begin soon"
    _condition(conditions, "Terminating", "True", "InstanceDeletionPending", text, now)
    return True


def _is_true(conditions: Iterable[Json], kind: str) -> bool:
    return any(c["type"] == kind and c["status"] == "True" for c in conditions)


def _condition(conditions: list[Json], kind: str, status: str, reason: str, message: str, now: str) -> None:
    for condition in conditions:
        if condition["type"] == kind:
            if condition["status"] != status:
                condition["lastTransitionTime"] = now
            if (condition["status"], condition.get("reason"), condition.get("message")) != (status, reason, message):
                condition.update(status=status, reason=reason, message=message)
            return
    conditions.append({"type": kind, "status": status, "lastTransitionTime": now, "reason": reason, "message": message})
