"""All clusters, as the informers know them: what belongs to which, how each is judged, and what of that changed.

Nothing is looked at before somebody asks for the first time, and nothing is computed while nobody looks. Judgements are made one
at a time between other work of the event loop, so that a thousand clusters do not make controllers wait.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from datetime import datetime, timedelta
from functools import partial
from typing import Any, Final

import msgspec

from clusterwright.api.contract import NoContract, resolve_version
from clusterwright.api.core import Cluster
from clusterwright.api.meta import GroupVersionKind, Json, ObjectKey, Unstructured
from clusterwright.api.runtime import ExtensionConfig
from clusterwright.api.scheme import gvk_of
from clusterwright.api.selectors import Selector
from clusterwright.api.wellknown import CLUSTER_NAME_LABEL
from clusterwright.conditions import is_true
from clusterwright.controllers.external import CustomResourceDefinitionMeta
from clusterwright.dashboard.feed import GONE, Feed
from clusterwright.dashboard.views import UNSHOWN, fleet_row, object_view, parents, verdict_shown
from clusterwright.dashboard.waterfall import waterfall
from clusterwright.offline.glance import household_verdict
from clusterwright.offline.kinship import mentioned, name_of
from clusterwright.offline.record import slim_definition
from clusterwright.offline.testimony import Sight
from clusterwright.offline.timeline import Decided, Moment, Sort, conditions_shown, timeline
from clusterwright.offline.verdict import State, Verdict
from clusterwright.runtime.cache import Cache
from clusterwright.runtime.clock import Clock
from clusterwright.runtime.errors import ApiError
from clusterwright.runtime.informer import Entry, Informer
from clusterwright.runtime.logging import get_logger

LOOK_AGAIN: Final = timedelta(seconds=30)
"""After which a cluster that is not fine is judged again though nothing happened: patience ends with time alone."""
FLEET_REST: Final = 0.25
CLUSTER_REST: Final = 0.5
"""Seconds between two differences that are told to a reader."""
SHARE: Final = 1.0
"""How long to rest after a judgement, in times of what it took."""
_SECRET: Final = GroupVersionKind("", "v1", "Secret")
_CONFIG_MAP: Final = GroupVersionKind("", "v1", "ConfigMap")
_EVENT: Final = GroupVersionKind("", "v1", "Event")
_CLUSTER: Final = gvk_of(Cluster)
_EXTENSION: Final = gvk_of(ExtensionConfig)
PATIENCE: Final = 5.0
"""Seconds that a question waits until all objects are known."""
MOMENTS: Final = 300
"""Of a timeline so many are shown, the newest; and as many decisions."""

History = Callable[[str, ObjectKey], Sequence[Decided]]
"""The decisions about an object of a kind, oldest first."""
_log = get_logger("dashboard")


class Fleet:
    """The clusters that one cache can see."""

    def __init__(self, cache: Cache, clock: Clock, history: History) -> None:
        self._cache = cache
        self._clock = clock
        self._history = history
        self._informers: dict[GroupVersionKind, Informer] = {}
        self._by_kind: dict[str, list[Informer]] = {}
        self._definitions: dict[str, Json] = {}
        self._starting: set[asyncio.Task[None]] = set()
        self._dirty: dict[ObjectKey, None] = {}
        self._due: dict[ObjectKey, datetime] = {}
        self._wake = asyncio.Event()
        self._loop: asyncio.Task[None] | None = None
        self._opening = asyncio.Lock()
        self.clusters = Feed()
        """A row of each cluster, by namespace/name."""
        self._single: dict[ObjectKey, Feed] = {}

    # ------------------------------------------------------------------------------------------------ reading

    async def follow_all(self) -> AsyncGenerator[Json, None]:
        """Yield the rows of all clusters, and what changes in them."""
        await self.open()
        async for difference in self.clusters.read(FLEET_REST, self._wake.set):
            yield difference

    async def follow(self, cluster: ObjectKey) -> AsyncGenerator[Json, None]:
        """Everything about one cluster, and what changes in it. One that is not there has no keys, until it is there."""
        await self.open()
        feed = self._single.setdefault(cluster, Feed())
        self._dirty[cluster] = None
        try:
            async for difference in feed.read(CLUSTER_REST, self._wake.set):
                yield difference
        finally:
            if not feed.is_read:
                self._single.pop(cluster, None)

    def objects_of(self, cluster: ObjectKey) -> list[Json]:
        """Whatever carries the cluster's name, and what that names and owns; the Cluster first. Empty where it is not there.

        Secrets are among them, because verdicts are about them, too: what is shown is `views`' to decide.
        """
        informer = self._informers.get(_CLUSTER)
        own = informer.find(cluster) if informer is not None else None
        if own is None:
            return []
        labelled = Selector(((CLUSTER_NAME_LABEL, cluster.name),), ())
        found: dict[str, Json] = {}
        queue = [(_CLUSTER, own)]
        for gvk, one in self._informers.items():
            if gvk not in {_EVENT, _CLUSTER}:
                queue += [(gvk, entry) for entry in one.select(namespace=cluster.namespace, labels=labelled)]
        while queue:
            gvk, entry = queue.pop(0)
            name = name_of(gvk.kind, *entry.key)
            if name in found:
                continue
            json = msgspec.json.decode(entry.raw)
            found[name] = json = {"apiVersion": gvk.api_version, "kind": gvk.kind, **json}  # items of lists need not name their kind
            queue += self._named(Unstructured(json), found)
            queue += [(one.gvk, owned) for one in self._informers.values() for owned in one.owned(entry.uid)]
        return list(found.values())

    def _named(self, obj: Unstructured, known: dict[str, Json]) -> Iterator[tuple[GroupVersionKind, Entry]]:
        for name in mentioned(obj):
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
                event = msgspec.json.decode(entry.raw)
                about = event.get("involvedObject") or {}
                if name_of(str(about.get("kind")), str(about.get("namespace") or ""), bare) in wanted:
                    found.append(event)
        return found

    @property
    def definitions(self) -> list[Json]:
        """The CRDs of all kinds, without their schemas."""
        return list(self._definitions.values())

    @property
    def seen(self) -> frozenset[str]:
        """The kinds of which everything is known."""
        return frozenset(gvk.kind for gvk, informer in self._informers.items() if informer.is_synced and not informer.namespace)

    # ----------------------------------------------------------------------------------------------- watching

    async def open(self) -> None:
        """Begin to look, once."""
        async with self._opening:
            if self._loop is not None:
                return
            for gvk in (_CLUSTER, _SECRET, _CONFIG_MAP, _EVENT):
                await self._watch(gvk)
            definitions = await self._cache.informer(CustomResourceDefinitionMeta)
            definitions.subscribe(self._defined)
            self._loop = asyncio.create_task(self._judge_for_ever(), name="dashboard")

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
        tasks = [task for task in (self._loop, *self._starting) if task is not None]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _defined(self, old: Entry | None, new: Entry | None, initial: bool) -> None:
        if new is None:
            self._definitions.pop(old.key.name if old is not None else "", None)
            return
        crd = Unstructured(msgspec.json.decode(new.raw))
        self._definitions[new.key.name] = slim_definition(crd)
        gvk = _version_of(crd)
        is_part = crd.at("spec", "scope") == "Namespaced" or gvk == _EXTENSION
        if is_part and gvk is not None and gvk not in self._informers:
            task = asyncio.get_running_loop().create_task(self._watch(gvk))
            self._starting.add(task)
            task.add_done_callback(self._starting.discard)

    async def _watch(self, gvk: GroupVersionKind) -> None:
        try:
            informer = await self._cache.informer(gvk)
        except ApiError as error:  # a CRD that is not served yet, or not any more: its next change leads here again
            _log.info("Kind cannot be watched", kind=gvk.kind, error=str(error))
            return
        if gvk not in self._informers:
            self._informers[gvk] = informer
            self._by_kind.setdefault(gvk.kind, []).append(informer)
            informer.subscribe(partial(self._changed, gvk))

    def _changed(self, gvk: GroupVersionKind, old: Entry | None, new: Entry | None, initial: bool) -> None:
        concerned = self._with_topology() if gvk == _EXTENSION else (self._cluster_of(gvk, e) for e in (old, new) if e is not None)
        for cluster in concerned:
            if cluster is not None:
                self._dirty[cluster] = None
                self._wake.set()

    def _with_topology(self) -> list[ObjectKey]:
        """Return the Clusters that runtime extensions may have a say in."""
        return [e.key for e in self._informers[_CLUSTER].entries() if b'"topology"' in e.raw]

    def _cluster_of(self, gvk: GroupVersionKind, entry: Entry) -> ObjectKey | None:
        if gvk == _CLUSTER:
            return entry.key
        if gvk == _EVENT:
            about = msgspec.json.decode(entry.raw).get("involvedObject") or {}
            key = ObjectKey(str(about.get("namespace") or ""), str(about.get("name")))
            for informer in self._by_kind.get(str(about.get("kind")), ()):
                if informer.gvk != _EVENT and (found := informer.find(key)) is not None:
                    return self._cluster_of(informer.gvk, found)
            return None
        name = entry.labels.get(CLUSTER_NAME_LABEL)
        return ObjectKey(entry.key.namespace, name) if name else None

    # ------------------------------------------------------------------------------------------------ judging

    async def _judge_for_ever(self) -> None:
        while True:
            self._wake.clear()
            now = self._clock.now()
            self._dirty |= dict.fromkeys(key for key, due in self._due.items() if due <= now)
            wanted = [key for key in self._dirty if self.clusters.is_read or self._is_followed(key)]
            calm = {}
            for n, key in enumerate(wanted):
                calm[key] = self._introduce(key)
                if n % 50 == 0:
                    await asyncio.sleep(0)
            # what somebody looks at closely comes first, then what is not well
            for key in sorted(wanted, key=lambda k: (not self._is_followed(k), calm[k])):
                begun = self._clock.monotonic()
                self._dirty.pop(key, None)
                self._judge(key)
                # controllers have at least half of the time
                await self._clock.sleep(0.0 if self._is_followed(key) else SHARE * (self._clock.monotonic() - begun))
            if not any(self.clusters.is_read or self._is_followed(key) for key in self._dirty):
                waiting = min(self._due.values(), default=None) if self.clusters.is_read or self._single else None
                try:
                    async with asyncio.timeout(None if waiting is None else max(1.0, (waiting - now).total_seconds())):
                        await self._wake.wait()
                except TimeoutError:
                    pass
                await self._clock.sleep(0.1)  # what changes at once is judged once

    def _is_followed(self, key: ObjectKey) -> bool:
        feed = self._single.get(key)
        return feed is not None and feed.is_read

    def _introduce(self, key: ObjectKey) -> bool:
        """Show a cluster that is new at once, before it is judged; whether it says that it is well."""
        informer = self._informers.get(_CLUSTER)
        entry = informer.find(key) if informer is not None else None
        if entry is None:
            return True
        cluster = Unstructured(msgspec.json.decode(entry.raw))
        if self.clusters.is_read and str(key) not in self.clusters.values:
            self.clusters.put(str(key), fleet_row(cluster, None))
        return is_true(conditions_shown(cluster), "Available")

    def _judge(self, key: ObjectKey) -> None:
        """Look at one cluster and tell what there is to tell; nothing that it holds may end the view of the others."""
        objects = self.objects_of(key)
        self._due.pop(key, None)
        feed = self._single.get(key)
        if not objects:
            self.clusters.put(str(key), GONE)
            if feed is not None:
                feed.replace({})
            return
        now = self._clock.now()
        names = [name_of(o.kind, *o.key) for o in map(Unstructured, objects)]
        events = self.events_of(names)
        try:
            verdict = self._verdict(key, objects, events, now)
            self.clusters.put(str(key), fleet_row(Unstructured(objects[0]), verdict))
            if feed is not None:
                feed.replace(self._whole(objects, events, verdict))
        except Exception as error:
            _log.error("Cluster cannot be shown", cluster=str(key), error=f"{type(error).__name__}: {error}")
            return
        if verdict.state is not State.FINE:
            self._due[key] = now + LOOK_AGAIN

    def _verdict(self, key: ObjectKey, objects: Sequence[Json], events: Sequence[Json], now: datetime) -> Verdict:
        informer = self._informers.get(_EXTENSION)
        extensions = [msgspec.json.decode(e.raw) for e in informer.entries()] if informer is not None else []
        return household_verdict(name_of("Cluster", *key), [*objects, *events, *self.definitions, *extensions], Sight(now, self.seen))

    def _whole(self, objects: Sequence[Json], events: Sequence[Json], verdict: Verdict) -> dict[str, Json]:
        shown = [o for o in map(Unstructured, objects) if o.kind not in UNSHOWN]
        above = parents(shown, name_of("Cluster", *shown[0].key))
        values: dict[str, Json] = {"verdict": verdict_shown(verdict)}
        for obj in shown:
            view = object_view(obj, above[name_of(obj.kind, *obj.key)])
            values[f"object {view['id']}"] = view
        decisions = [d for o in shown for d in self._history(o.kind, o.key)]
        for moment in newest(timeline(shown, events, decisions), MOMENTS):
            values[f"moment {moment.at} {moment.object} {moment.sort} {moment.about}"] = moment.to_json()
        values |= {f"steps {name}": steps for name, steps in waterfall(shown)}
        return values


def newest(moments: Sequence[Moment], most: int) -> list[Moment]:
    """Return the newest moments, and the newest decisions: these are many, and must not take the room of the others."""
    decided = [m for m in moments if m.sort is Sort.DECISION]
    return sorted([*[m for m in moments if m.sort is not Sort.DECISION][-most:], *decided[-most:]])


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
