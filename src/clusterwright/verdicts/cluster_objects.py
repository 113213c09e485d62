"""The objects of each Cluster, as the informers of this process know them, and the Cluster that a change is about."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final

import msgspec

from clusterwright.api.addons import ClusterResourceSet
from clusterwright.api.contract import NoContract, resolve_version
from clusterwright.api.core import Cluster, Machine, MachineDeployment, MachineHealthCheck, MachinePool, MachineSet
from clusterwright.api.meta import GroupVersionKind, Json, ObjectKey, Unstructured
from clusterwright.api.runtime import ExtensionConfig
from clusterwright.api.scheme import gvk_of
from clusterwright.api.selectors import Selector
from clusterwright.api.wellknown import CLUSTER_NAME_LABEL
from clusterwright.controllers.external import CustomResourceDefinitionMeta
from clusterwright.offline.ownership import PURPOSES, SHARED_KINDS, mentioned, name_of, selects
from clusterwright.offline.record import slim_definition
from clusterwright.offline.reported import WEBHOOK_CONFIGURATIONS
from clusterwright.runtime.cache import Cache
from clusterwright.runtime.errors import ApiError
from clusterwright.runtime.informer import Entry, Informer
from clusterwright.runtime.logging import get_logger

PATIENCE: Final = 5.0
"""Seconds that a question waits until all objects are known."""
AT_ONCE: Final = 50
"""The number of objects that are read before other work gets its turn."""
BYTES_AT_ONCE: Final = 256 * 1024
"""The same in bytes."""
MOST_OBJECTS: Final = 20_000
"""Of a cluster; one with more is judged by its Cluster alone."""
MOST_BYTES: Final = 64 * 1024 * 1024
"""The same in bytes."""
MOST_EVENTS: Final = 5_000
CLUSTER: Final = gvk_of(Cluster)
_EVENT: Final = GroupVersionKind("", "v1", "Event")
_EXTENSION: Final = gvk_of(ExtensionConfig)
_WEBHOOKS: Final = tuple(GroupVersionKind("admissionregistration.k8s.io", "v1", kind) for kind in WEBHOOK_CONFIGURATIONS)
_NAMING: Final = frozenset(map(gvk_of, (Machine, MachineSet, MachineDeployment, MachinePool, MachineHealthCheck)))
"""Kinds whose spec names the Cluster, also before a label does."""
_RESOURCE_SET: Final = gvk_of(ClusterResourceSet)
_COMMON: Final = frozenset({_EXTENSION, *_WEBHOOKS})
"""Kinds that belong to no cluster and matter to many."""
_CORE: Final = tuple(GroupVersionKind("", "v1", kind) for kind in ("Secret", "ConfigMap", "Event", "ResourceQuota", "LimitRange"))
_log = get_logger("verdicts")


@dataclass(frozen=True, slots=True)
class ClusterObjects:
    """A Cluster, which comes first, what belongs to it, and their Events."""

    objects: Sequence[Json]
    events: Sequence[Json] = ()
    common: Sequence[Json] = field(default=(), repr=False)
    """Objects that belong to no cluster and may matter to this one."""

    is_partial: bool = False
    """Whether there is too much of it, so that only the Cluster is here."""

    @property
    def cluster(self) -> Json:
        """The Cluster."""
        return self.objects[0]

    @property
    def names(self) -> set[str]:
        """`Kind/namespace/name` of all objects."""
        return {name_of(o.kind, *o.key) for o in map(Unstructured, self.objects)}


class ObjectsByCluster:
    """Follows informers. `everything`: of all kinds that a cluster can be made of; else of those only that somebody watches anyway."""

    def __init__(self, cache: Cache, changed: Callable[[ObjectKey], None], *, everything: bool) -> None:
        """`changed` is called with the Cluster that a change is about."""
        self._cache, self._tell, self._everything = cache, changed, everything
        self._informers: dict[GroupVersionKind, Informer] = {}
        self._by_kind: dict[str, list[Informer]] = {}
        self._by_uid: dict[str, ObjectKey] = {}
        """The Clusters."""
        self._definitions: dict[str, Json] = {}
        self._starting: set[asyncio.Task[None]] = set()
        self._on_appearance: list[Callable[[Entry], None]] = []
        self._opening = asyncio.Lock()
        self._is_open = False

    # ------------------------------------------------------------------------------------------------ reading

    def clusters(self) -> list[ObjectKey]:
        """Return the Clusters that are there."""
        informer = self._informers.get(CLUSTER)
        return [entry.key for entry in informer.entries()] if informer is not None else []

    def find(self, cluster: ObjectKey) -> Entry | None:
        """Return the Cluster itself."""
        informer = self._informers.get(CLUSTER)
        return informer.find(cluster) if informer is not None else None

    def objects_of(self, cluster: ObjectKey) -> list[Json]:
        """Whatever carries the cluster's name, and what that names and owns; the Cluster first. Empty where it is not there.

        Secrets are among them, because verdicts are about them, too: what is shown is decided by whoever shows it.
        """
        return [obj for obj, _ in self._walk(cluster)]

    async def of(self, cluster: ObjectKey) -> ClusterObjects | None:
        """Return all about a Cluster, between other work of the event loop; None where it is not there."""
        objects: list[Json] = []
        size = step = number = 0
        for obj, length in self._walk(cluster):
            objects.append(obj)
            size, step, number = size + length, step + length, number + 1
            if size > MOST_BYTES or len(objects) > MOST_OBJECTS:
                _log.warning("Cluster is too large, it is judged by its own words", cluster=str(cluster), objects=len(objects), bytes=size)
                return ClusterObjects(objects[:1], is_partial=True)
            if number >= AT_ONCE or step > BYTES_AT_ONCE:
                step = number = 0
                await asyncio.sleep(0)
        if not objects:
            return None
        cluster_objects = ClusterObjects(objects)
        return ClusterObjects(objects, self.events_of(cluster_objects.names), [*self.definitions, *self._common()])

    def _walk(self, cluster: ObjectKey) -> Iterator[tuple[Json, int]]:
        """Yield every object of a cluster with its length in bytes."""
        own = self.find(cluster)
        if own is None:
            return
        labelled = Selector(((CLUSTER_NAME_LABEL, cluster.name),), ())
        found: set[str] = set()
        queue = [(CLUSTER, own)]
        for gvk, one in list(self._informers.items()):
            if gvk.kind in SHARED_KINDS:
                queue += [(gvk, entry) for entry in one.select(namespace=cluster.namespace)]
            elif gvk not in {_EVENT, CLUSTER}:
                queue += [(gvk, entry) for entry in one.select(namespace=cluster.namespace, labels=labelled)]
            if gvk in _NAMING:
                queue += [(gvk, e) for e in one.select(namespace=cluster.namespace, fields=f"spec.clusterName={cluster.name}")]
        queue += self._resource_sets(own)
        unlabelled = [name_of("Secret", cluster.namespace, f"{cluster.name}-{purpose}") for purpose in PURPOSES]
        queue += self._found([*unlabelled, name_of("ConfigMap", cluster.namespace, f"{cluster.name}-lock")], found)
        while queue:
            gvk, entry = queue.pop(0)
            name = name_of(gvk.kind, *entry.key)
            if name in found:
                continue
            found.add(name)
            json = _decoded(gvk, entry)
            yield json, len(entry.raw)
            queue += self._found(mentioned(Unstructured(json)), found)
            queue += [(one.gvk, owned) for one in list(self._informers.values()) for owned in one.owned(entry.uid)]

    def _resource_sets(self, cluster: Entry) -> Iterator[tuple[GroupVersionKind, Entry]]:
        obj = Unstructured(_decoded(CLUSTER, cluster))
        informer = self._informers.get(_RESOURCE_SET)
        for entry in informer.select(namespace=cluster.key.namespace) if informer is not None else ():
            if selects(msgspec.json.decode(entry.raw).get("spec", {}).get("clusterSelector"), obj):
                yield _RESOURCE_SET, entry

    def _found(self, names: Iterable[str], known: set[str]) -> Iterator[tuple[GroupVersionKind, Entry]]:
        for name in names:
            if name in known:
                continue
            kind, _, rest = name.partition("/")
            namespace, _, bare = rest.rpartition("/")
            for informer in self._by_kind.get(kind, ()):
                if (entry := informer.find(ObjectKey(namespace, bare))) is not None:
                    yield informer.gvk, entry

    def events_of(self, names: Iterable[str]) -> list[Json]:
        """Return the Events about the objects."""
        informer = self._informers.get(_EVENT)
        if informer is None:
            return []
        wanted = set(names)
        found = []
        for bare in {name.rpartition("/")[2] for name in wanted}:
            for entry in informer.select(fields=f"involvedObject.name={bare}"):
                event = _decoded(_EVENT, entry)
                about = event.get("involvedObject") or {}
                if name_of(str(about.get("kind")), str(about.get("namespace") or ""), bare) in wanted:
                    found.append(event)
                if len(found) >= MOST_EVENTS:
                    return found
        return found

    def _common(self) -> list[Json]:
        return [_decoded(gvk, e) for gvk in _COMMON if gvk in self._informers for e in self._informers[gvk].entries()]

    @property
    def definitions(self) -> list[Json]:
        """The CRDs of all kinds, without their schemas."""
        return list(self._definitions.values())

    @property
    def seen(self) -> frozenset[str]:
        """The kinds of which everything is known."""
        return frozenset(gvk.kind for gvk, informer in self._informers.items() if informer.is_synced and not informer.namespace)

    @property
    def unseen(self) -> Mapping[str, str]:
        """The kinds of which nothing follows if an object is not found, and why: they cannot be listed, or nobody watches them."""
        waiting = {gvk.kind: "not listed yet" for gvk, informer in self._informers.items() if not informer.is_synced}
        return waiting if self._everything else _Unwatched(waiting, self.seen)

    # ----------------------------------------------------------------------------------------------- watching

    async def open(self) -> None:
        """Begin to look, once; raises ApiError if nothing can be known yet."""
        async with self._opening:
            if self._is_open:
                return
            definitions = await self._cache.informer(CustomResourceDefinitionMeta)
            self._is_open = True
            await self._watch(CLUSTER)
            if self._everything:
                for gvk in (*_CORE, *_WEBHOOKS):
                    await self._watch(gvk)
            else:
                self._cache.when_added(self._take)
            definitions.subscribe(self._defined)

    def when_cluster_appears(self, appeared: Callable[[Entry], None]) -> None:
        """Call back with every Cluster that is new."""
        self._on_appearance.append(appeared)

    async def ready(self) -> None:
        """Begin to look, and wait a while until all objects are known."""
        await self.open()
        with suppress(TimeoutError):  # a kind that cannot be listed is never known
            async with asyncio.timeout(PATIENCE):
                await self._cache.synced()  # definitions of kinds lead to further kinds
                while self._starting:
                    await asyncio.wait(set(self._starting))
                await self._cache.synced()

    async def close(self) -> None:
        """Stop looking."""
        for task in self._starting:
            task.cancel()
        await asyncio.gather(*self._starting, return_exceptions=True)

    def _defined(self, old: Entry | None, new: Entry | None, initial: bool) -> None:
        if new is None:
            self._definitions.pop(old.key.name if old is not None else "", None)
            return
        crd = Unstructured(msgspec.json.decode(new.raw))
        self._definitions[new.key.name] = slim_definition(crd)
        gvk = _version_of(crd)
        is_part = crd.at("spec", "scope") == "Namespaced" or gvk == _EXTENSION
        if self._everything and is_part and gvk is not None and gvk not in self._informers:
            task = asyncio.get_running_loop().create_task(self._watch(gvk))
            self._starting.add(task)
            task.add_done_callback(self._starting.discard)

    async def _watch(self, gvk: GroupVersionKind) -> None:
        try:
            informer = await self._cache.informer(gvk)
        except ApiError as error:  # a CRD that is not served yet, or not any more: its next change leads here again
            _log.info("Kind cannot be watched", kind=gvk.kind, error=str(error))
            return
        self._take(informer)

    def _take(self, informer: Informer) -> None:
        gvk = informer.gvk
        if gvk not in self._informers and gvk.kind != "CustomResourceDefinition":
            self._informers[gvk] = informer
            self._by_kind.setdefault(gvk.kind, []).append(informer)
            informer.subscribe(partial(self._changed, gvk))

    def _changed(self, gvk: GroupVersionKind, old: Entry | None, new: Entry | None, initial: bool) -> None:
        if gvk == CLUSTER:
            for entry in (old, new):
                if entry is not None:
                    self._by_uid[entry.uid] = entry.key
            if new is None and old is not None:
                self._by_uid.pop(old.uid, None)
            if old is None and new is not None:
                for appeared in self._on_appearance:
                    appeared(new)
        if gvk in _WEBHOOKS:
            return  # what they refuse is told by the objects
        concerned = self._with_topology() if gvk == _EXTENSION else {self._cluster_of(gvk, e) for e in (old, new) if e is not None}
        for cluster in concerned:
            if cluster is not None:
                self._tell(cluster)

    def _with_topology(self) -> list[ObjectKey | None]:
        """Return the Clusters that runtime extensions may have a say in."""
        return [e.key for e in self._informers[CLUSTER].entries() if b'"topology"' in e.raw]

    def _cluster_of(self, gvk: GroupVersionKind, entry: Entry) -> ObjectKey | None:
        if gvk == CLUSTER:
            return entry.key
        if gvk == _EVENT:
            about = msgspec.json.decode(entry.raw).get("involvedObject") or {}
            key = ObjectKey(str(about.get("namespace") or ""), str(about.get("name")))
            for informer in self._by_kind.get(str(about.get("kind")), ()):
                if informer.gvk != _EVENT and (found := informer.find(key)) is not None:
                    return self._cluster_of(informer.gvk, found)
            return None
        name = entry.labels.get(CLUSTER_NAME_LABEL)
        if name is None and gvk in _NAMING:
            name = (msgspec.json.decode(entry.raw).get("spec") or {}).get("clusterName")
        if name:
            return ObjectKey(entry.key.namespace, name)
        return next((self._by_uid[uid] for uid in entry.owners if uid in self._by_uid), None)


class _Unwatched(dict[str, str]):
    """Has every kind that was not seen; only those that are being listed are named to people."""

    def __init__(self, waiting: Mapping[str, str], seen: Collection[str]) -> None:
        super().__init__(waiting)
        self._seen = seen

    def __contains__(self, kind: object) -> bool:
        return kind not in self._seen


def _decoded(gvk: GroupVersionKind, entry: Entry) -> Json:
    """Return an object that says what it is: items of lists need not name their kind."""
    return {"apiVersion": gvk.api_version, "kind": gvk.kind, **msgspec.json.decode(entry.raw)}


def _version_of(crd: Unstructured) -> GroupVersionKind | None:
    """In which version a kind is looked at: the one that follows the contract, else the one that is stored."""
    group, kind = crd.at("spec", "group"), crd.at("spec", "names", "kind")
    versions: Any = crd.at("spec", "versions")
    served = [v.get("name") for v in versions if v.get("served")] if isinstance(versions, list) else []
    stored = [v.get("name") for v in versions if v.get("served") and v.get("storage")] if isinstance(versions, list) else []
    try:
        version = resolve_version({"name": crd.metadata.name, "labels": crd.metadata.labels}).version
    except NoContract:
        version = ""
    if version not in served:
        version = next(iter((*stored, *served)), "")
    return GroupVersionKind(str(group), str(version), str(kind)) if version else None
