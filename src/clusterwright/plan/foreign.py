"""Stand in for the providers of others in a replica: their objects become ready after some time, and go when they are deleted.

They follow the contract of Cluster API and know nothing else of their kinds. The time is that which earlier objects took.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from random import Random
from typing import Any, Final

import msgspec

from clusterwright.api.meta import Json, Unstructured
from clusterwright.api.wellknown import BOOT_MACHINES_ANNOTATION
from clusterwright.apiserver.server import ApiServer
from clusterwright.apiserver.storage.store import Entry, Event, Table, object_key
from clusterwright.controllers.inmemory.others import ENDPOINT_GIVEN
from clusterwright.inmemory.distributions import UNIDENTIFIED
from clusterwright.inmemory.objects import provider_id
from clusterwright.runtime.clock import Clock

_FAMILIES: Final = ("Cluster", "Machine", "MachinePool")
OURS: Final = frozenset({f"{p}{k}" for p in ("Dev", "Docker") for k in _FAMILIES} | {"KubeadmConfig", "KubeadmControlPlane"})
"""Kinds whose providers run in a replica."""
MACHINE_SECONDS: Final = 150.0
"""How long a machine takes from its bootstrap data to its Node, if no earlier one shows it."""
CLUSTER_SECONDS: Final = 60.0
DELETION_SECONDS: Final = 30.0
_SIMULATED: Final = provider_id("")
LONGEST: Final = 3600.0
"""A longer time is that of an accident, not of a machine."""
MOST_SAMPLES: Final = 50


@dataclass(slots=True)
class Kinds:
    """The kinds of others, by what they do: pairs of group and kind."""

    machines: set[tuple[str, str]] = field(default_factory=set)
    clusters: set[tuple[str, str]] = field(default_factory=set)
    configs: set[tuple[str, str]] = field(default_factory=set)
    control_planes: set[tuple[str, str]] = field(default_factory=set)

    @staticmethod
    def of(objects: Iterable[Mapping[str, Any]]) -> Kinds:
        """Return the kinds that Clusters, Machines and templates of Machines refer to."""
        found = Kinds()
        for one in map(Unstructured, objects):
            if one.kind == "ClusterClass":
                found._learn_class(one)
            for path, kinds in (
                (("spec", "infrastructureRef"), found.clusters if one.kind == "Cluster" else found.machines),
                (("spec", "controlPlaneRef"), found.control_planes),
                (("spec", "bootstrap", "configRef"), found.configs),
                (("spec", "template", "spec", "infrastructureRef"), found.machines),
                (("spec", "template", "spec", "bootstrap", "configRef"), found.configs),
                (("spec", "machineTemplate", "spec", "infrastructureRef"), found.machines),
            ):
                reference = one.at(*path)
                if isinstance(reference, Mapping) and str(reference.get("kind")).removesuffix("Template") not in OURS:
                    kinds.add((_group(reference), str(reference.get("kind")).removesuffix("Template")))
        return found

    def _learn_class(self, one: Unstructured) -> None:
        """Add the kinds that are made from the templates of a class."""
        places = [(("spec", "infrastructure"), self.clusters), (("spec", "controlPlane"), self.control_planes)]
        found = [(one.at(*path, "templateRef"), kinds) for path, kinds in places]
        found.append((one.at("spec", "controlPlane", "machineInfrastructure", "templateRef"), self.machines))
        for workers in one.at("spec", "workers", "machineDeployments") or ():
            found.append(((workers.get("infrastructure") or {}).get("templateRef"), self.machines))
            found.append(((workers.get("bootstrap") or {}).get("templateRef"), self.configs))
        for reference, kinds in found:
            kind = str(reference.get("kind")).removesuffix("Template") if isinstance(reference, Mapping) else ""
            if kind and kind not in OURS:
                kinds.add((_group(reference), kind))


def _group(reference: Mapping[str, Any]) -> str:
    named = reference.get("apiGroup")
    return named if isinstance(named, str) else str(reference.get("apiVersion") or "").partition("/")[0]


def asking(objects: Iterable[Json]) -> list[Json]:
    """Return the objects; Clusters on infrastructure of others ask for simulated Nodes of their Machines."""
    made = []
    for obj in objects:
        kind = Unstructured(obj).at("spec", "infrastructureRef", "kind") if obj.get("kind") == "Cluster" else None
        if kind is not None and kind not in OURS:
            annotations = {BOOT_MACHINES_ANNOTATION: "true", **(obj["metadata"].get("annotations") or {})}
            obj = {**obj, "metadata": {**obj["metadata"], "annotations": annotations}}
        made.append(obj)
    return made


def is_stand_in(obj: Mapping[str, Any]) -> bool:
    """Return whether an object is a simulated machine or cluster behind those of another provider: no plan shows it."""
    if obj.get("kind") == "DevCluster":
        return ENDPOINT_GIVEN in (obj["metadata"].get("annotations") or {})
    if obj.get("kind") == "DevMachine" and UNIDENTIFIED in (obj["metadata"].get("annotations") or {}):
        return True
    provider = str((obj.get("spec") or {}).get("providerID") or "")
    return obj.get("kind") == "DevMachine" and bool(provider) and not provider.startswith(_SIMULATED)


def boot_times(objects: Iterable[Mapping[str, Any]]) -> list[float]:
    """Return how long earlier Machines took from their bootstrap data to a ready Node, in seconds."""
    found = []
    for one in map(Unstructured, objects):
        if one.kind == "Machine":
            times = _transitions(one)
            begin, end = times.get("BootstrapConfigReady"), times.get("NodeReady")
            if begin is not None and end is not None and 0 < (end - begin).total_seconds() <= LONGEST:
                found.append((end - begin).total_seconds())
    return sorted(found)[:MOST_SAMPLES]


def _transitions(machine: Unstructured) -> dict[str, datetime]:
    found = {}
    listed = machine.at("status", "conditions")
    for condition in listed if isinstance(listed, list) else ():
        try:
            if condition.get("status") == "True":
                found[str(condition.get("type"))] = datetime.fromisoformat(str(condition.get("lastTransitionTime")))
        except (AttributeError, ValueError):
            continue
    return found


class Providers:
    """The stand-ins of one replica."""

    def __init__(self, server: ApiServer, clock: Clock, random: Random, objects: Sequence[Json]) -> None:
        self._server, self._clock, self._random = server, clock, random
        self._kinds = Kinds.of(objects)
        self._times = boot_times(objects)
        self._tasks: set[asyncio.Task[None]] = set()
        self._under_way: set[str] = set()
        self._machines = server.store.table("machines.cluster.x-k8s.io")
        self._clusters = server.store.table("clusters.cluster.x-k8s.io")
        self._tables: dict[str, tuple[Table, Callable[[Entry], None]]] = {}

    def start(self) -> None:
        """Follow the kinds of others from now on. For use in a running event loop."""
        roles: list[tuple[set[tuple[str, str]], Callable[[Table, Entry], None]]] = [
            (self._kinds.machines, self._see_machine),
            (self._kinds.clusters, self._see_cluster),
            (self._kinds.configs, self._see_config),
            (self._kinds.control_planes, self._see_control_plane),
        ]
        for resource in list(self._server.registry):
            for kinds, see in roles:
                if (resource.group, resource.kind) in kinds and resource.storage_key not in self._tables:
                    table = self._server.store.table(resource.storage_key)
                    self._tables[resource.storage_key] = table, partial(see, table)
                    table.hooks.append(_Ear(partial(self._hear, resource.storage_key)))
        self._clusters.hooks.append(_Ear(self._hear_of_cluster))
        self._machines.hooks.append(_Ear(self._hear_of_machine))
        for table, see_one in list(self._tables.values()):
            for entry in list(table.objects.values()):
                see_one(entry)

    async def stop(self) -> None:
        """End all waits."""
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _hear(self, key: str, event: Event) -> None:
        if event.type != "DELETED":
            self._tables[key][1](event.entry)

    def _hear_of_cluster(self, event: Event) -> None:
        """Let a new Cluster ask for simulated Nodes, once it refers to infrastructure of others."""

        def ask() -> None:
            entry = self._clusters.objects.get(event.entry.key)
            if entry is not None and (made := asking([msgspec.json.decode(entry.raw)])[0]) != msgspec.json.decode(entry.raw):
                self._server.put_system(self._clusters, entry, made)

        if event.type != "DELETED":
            self._server.later(ask)

    def _hear_of_machine(self, event: Event) -> None:
        """Look at the objects of a Machine again: its bootstrap data may be there now."""
        if event.type == "DELETED":
            return
        machine = Unstructured(msgspec.json.decode(event.entry.raw))
        reference = machine.at("spec", "infrastructureRef")
        if not isinstance(reference, Mapping):
            return
        for table, see in self._tables.values():
            entry = table.objects.get(object_key(machine.key.namespace, str(reference.get("name"))))
            if entry is not None and msgspec.json.decode(entry.raw).get("kind") == reference.get("kind"):
                see(entry)

    def _see_machine(self, table: Table, entry: Entry) -> None:
        obj = self._deleted_or(table, entry)
        if obj is None or obj.at("spec", "providerID"):
            return
        owner = next((o for o in obj.metadata.owner_references if o.kind == "Machine"), None)
        machine = self._machines.objects.get(object_key(obj.key.namespace, owner.name)) if owner is not None else None
        if machine is None or not Unstructured(msgspec.json.decode(machine.raw)).at("spec", "bootstrap", "dataSecretName"):
            return
        seconds = self._random.choice(self._times) if self._times else MACHINE_SECONDS
        changes = {
            "spec": {"providerID": f"replica://{obj.key.name}"},
            "status": {**_READY, "addresses": [{"type": "InternalIP", "address": "10.0.0.1"}]},
        }
        self._after(seconds, table, entry, partial(_merged, changes=changes))

    def _see_cluster(self, table: Table, entry: Entry) -> None:
        obj = self._deleted_or(table, entry)
        if obj is None or _is_ready(obj) or not obj.metadata.owner_references:
            return
        endpoint = obj.at("spec", "controlPlaneEndpoint") or {"host": f"{obj.key.name}.replica.invalid", "port": 6443}
        self._after(CLUSTER_SECONDS, table, entry, partial(_merged, changes={"spec": {"controlPlaneEndpoint": endpoint}, "status": _READY}))

    def _see_config(self, table: Table, entry: Entry) -> None:
        obj = self._deleted_or(table, entry)
        if obj is None or obj.at("status", "dataSecretName") or not obj.metadata.owner_references:
            return
        secret = f"{obj.key.name}-data"
        metadata = {"name": secret, "namespace": obj.key.namespace, "ownerReferences": [_owner(obj)]}
        made = {"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "data": {"value": "Iw=="}}
        self._server.later(lambda: self._server.ensure([made]))
        status = {"dataSecretName": secret, "ready": True, "initialization": {"dataSecretCreated": True}}
        self._after(1.0, table, entry, partial(_merged, changes={"status": status}))

    def _see_control_plane(self, table: Table, entry: Entry) -> None:
        obj = self._deleted_or(table, entry)
        if obj is None:
            return
        version, replicas = obj.at("spec", "version"), obj.at("spec", "replicas")
        status: Json = {"observedGeneration": obj.metadata.generation}
        if isinstance(version, str):
            status["version"] = version
        if isinstance(replicas, int):
            status |= dict.fromkeys(("replicas", "readyReplicas", "availableReplicas", "upToDateReplicas", "updatedReplicas"), replicas)
        present = obj.at("status") or {}
        known = {name: value for name, value in status.items() if name in present}
        if any(present[name] != value for name, value in known.items()):
            self._after(MACHINE_SECONDS, table, entry, partial(_merged, changes={"status": known}))

    def _deleted_or(self, table: Table, entry: Entry) -> Unstructured | None:
        """Return an object that lives; let the finalizers of another one be removed."""
        obj = Unstructured(msgspec.json.decode(entry.raw))
        if obj.metadata.deletion_timestamp is None:
            return obj
        if obj.metadata.finalizers:
            self._after(DELETION_SECONDS, table, entry, None)
        return None

    def _after(self, seconds: float, table: Table, entry: Entry, change: Callable[[Json], Json] | None) -> None:
        """Change an object, or (None) let it go, when some time is over. Only one change of an object is under way at a time."""
        label = f"{table.name}/{entry.key}/{change is None}"
        if label in self._under_way:
            return
        self._under_way.add(label)

        async def later() -> None:
            await self._clock.sleep(seconds)
            self._under_way.discard(label)
            now = table.objects.get(entry.key)
            if now is None or now.uid != entry.uid:
                return
            obj: Json = msgspec.json.decode(now.raw)
            if change is None:
                self._server.remove_system(table, now)
            elif (made := change(obj)) != obj:
                self._server.put_system(table, now, made)
            self._server.drain()

        task = asyncio.get_running_loop().create_task(later(), name=f"stand-in of {label}")
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)


_READY: Final[Mapping[str, Any]] = {"ready": True, "initialization": {"provisioned": True}}


class _Ear:
    def __init__(self, hear: Callable[[Event], None]) -> None:
        self.offer = hear


def _is_ready(obj: Unstructured) -> bool:
    return obj.at("status", "ready") is True or obj.at("status", "initialization", "provisioned") is True


def _merged(obj: Json, changes: Mapping[str, Any]) -> Json:
    made = dict(obj)
    for name, value in changes.items():
        there = made.get(name)
        made[name] = _merged(dict(there), value) if isinstance(there, Mapping) and isinstance(value, Mapping) else value
    return made


def _owner(obj: Unstructured) -> Json:
    return {"apiVersion": obj.gvk.api_version, "kind": obj.kind, "name": obj.key.name, "uid": obj.metadata.uid, "controller": True}
