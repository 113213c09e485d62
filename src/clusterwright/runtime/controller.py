"""A controller: watches queue keys, workers reconcile them.

Guarantees: never two passes of one key at once; every change that passes a watch's predicate leads to a pass that begins
after it; a pass that fails, by whatever exception, is run again with backoff and disturbs no other key; a pass that takes
longer than the deadline is cancelled and counts as failed. Nothing is ever run because time has passed, unless a pass asked
for it (`Result.after`) or failed, or nobody has looked at the object for the time of a resync: the last net, which is wide.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from random import Random
from typing import Any

from clusterwright.api.meta import Object, ObjectKey
from clusterwright.api.scheme import gvk_of
from clusterwright.runtime.cache import Cache
from clusterwright.runtime.cancellation import heed_cancellation
from clusterwright.runtime.client import Reader
from clusterwright.runtime.errors import ApiError, Terminal, is_expected
from clusterwright.runtime.failures import Failures
from clusterwright.runtime.informer import Entry, Informer
from clusterwright.runtime.logging import Logger, bound, get_logger, is_foreseen, leaves
from clusterwright.runtime.metrics import RuntimeMetrics
from clusterwright.runtime.reconcile import Predicate, Reconciler, Watch
from clusterwright.runtime.reports import Reports
from clusterwright.runtime.resources import Kind
from clusterwright.runtime.shards import Shards
from clusterwright.runtime.tracing import NoTracer, Tracer
from clusterwright.runtime.workqueue import Backoff, Priority, Request, ShutDown, WorkQueue

DEADLINE = 300.0
_MAPPING_TRIES = 8

_log = get_logger("controller")


@dataclass(slots=True)
class _Change:
    """A change that passed a predicate and waits to be mapped to keys."""

    watch: Watch
    informer: Informer
    old: Entry | None
    new: Entry | None
    initial: bool
    tries: int = 0


@dataclass(frozen=True, slots=True)
class Resync:
    """How long after a pass an object is reconciled again at the latest: `seconds`, or up to half of it sooner, to spread the load."""

    seconds: float
    random: Random

    def delay(self) -> float:
        """Return the seconds until the next resync."""
        return self.seconds * self.random.uniform(0.5, 1.0)


class Controller:
    """One controller. `make` is called once, with the controller, for the reconciler that needs its `enqueue` and `watch`."""

    def __init__(
        self,
        name: str,
        kind: type[Object],
        make: Callable[[Controller], Reconciler],
        *,
        cache: Cache,
        reader: Reader,
        watches: tuple[Watch, ...] = (),
        when: Predicate | None = None,
        concurrency: int = 10,
        deadline: float = DEADLINE,
        backoff: Backoff | None = None,
        resync: Resync | None = None,
        metrics: RuntimeMetrics | None = None,
        tracer: Tracer | None = None,
        shards: Shards | None = None,
        failures: Failures | None = None,
        longest_wait: Callable[[], float] = lambda: float("inf"),
    ) -> None:
        self.name = name
        self.kind = kind
        self.queue = WorkQueue(name, backoff=backoff, metrics=metrics)
        self.reports = Reports()
        """The delayed writes of its passes. Workers send them like passes, while the object belongs to this process."""
        self._cache = cache
        self._reader = reader
        self._watches = watches
        self._when = when
        self._concurrency = concurrency
        self._deadline = deadline
        self._resync = resync
        self._informer: Informer | None = None
        self._shards = shards
        self._failures = failures
        self._longest_wait = longest_wait
        self._slots: dict[ObjectKey, int] = {}
        """The slot of each key at its last pass, because a deleted object has none."""
        self._metrics = metrics
        self._tracer = tracer or NoTracer()
        self._changes: deque[_Change] = deque()
        self._wake = asyncio.Event()
        self._watched: dict[tuple[Any, Any], None] = {}
        self._mapping = False
        self._active = 0
        self._reconciler = make(self)
        if metrics:
            metrics.workers.set(concurrency, name)
            metrics.active.set(lambda: self._active, name)

    def enqueue(self, key: ObjectKey, reason: str) -> None:
        """Queue a key."""
        self.queue.add(key, reason)

    def enqueue_after(self, key: ObjectKey, delay: timedelta, reason: str) -> None:
        """Queue a key after a while, unless another event queues it before."""
        self.queue.add_after(key, delay.total_seconds(), reason)

    async def watch(self, watch: Watch) -> None:
        """Watch one more kind and queue the mapped keys, from now on; repeated calls for the same kind and mapping do nothing.

        Raises the errors of finding the kind; then nothing was registered, and the next call tries again.
        """
        identity = (gvk_of(watch.kind), watch.map)
        if identity in self._watched:
            return
        informer = await self._cache.informer(watch.kind)
        if identity in self._watched:
            return
        self._watched[identity] = None
        kind_name = gvk_of(watch.kind).kind

        def handle(old: Entry | None, new: Entry | None, initial: bool) -> None:
            if self._counts(watch.when, watch.kind, informer, old, new, kind_name):
                self._changes.append(_Change(watch, informer, old, new, initial))
                self._wake.set()

        informer.subscribe(handle)

    @property
    def kinds(self) -> tuple[Kind, ...]:
        """The watched kinds, its own first."""
        return (self.kind, *(watch.kind for watch in self._watches))

    async def start(self) -> None:
        """Subscribe to all watches. Keys are queued until `run`."""
        informer = self._informer = await self._cache.informer(self.kind)
        kind_name = gvk_of(self.kind).kind

        def handle(old: Entry | None, new: Entry | None, initial: bool) -> None:
            if self._counts(self._when, self.kind, informer, old, new, kind_name):
                key = (new or old).key  # type: ignore[union-attr]  # one of them is there
                self.queue.add(key, _reason(kind_name, key, old, new, initial), Priority.LOW if initial else Priority.NORMAL)

        informer.subscribe(handle)
        for watch in self._watches:
            await self.watch(watch)

    async def run(self) -> None:
        """Reconcile until `stop` or cancellation. After `stop` it returns when the running passes are done."""
        async with asyncio.TaskGroup() as group:
            mapper = group.create_task(self._map_changes(), name=f"{self.name} mapper")
            workers = [group.create_task(self._work(), name=f"{self.name} worker {n}") for n in range(self._concurrency)]
            for worker in workers:
                await worker
            mapper.cancel()
            for key in self.reports.keys:  # the last that is written; after a crash, the next process finds it out again
                await self._share(Request(key, is_report=True))

    def stop(self) -> None:
        """Start no more passes."""
        self.queue.close()

    @property
    def is_idle(self) -> bool:
        """Whether no key waits to be mapped or reconciled now; delayed keys do not count."""
        return self.queue.is_idle and not self._changes and not self._mapping

    # Changes to keys.

    def _counts(self, when: Predicate | None, kind: Kind, informer: Informer, old: Entry | None, new: Entry | None, kind_name: str) -> bool:
        if when is None:
            return True
        try:
            return when(_decoded(informer, kind, old), _decoded(informer, kind, new))
        except Exception as error:  # a predicate that fails must not lose the change, nor stop the informer
            _log.error("Predicate failed; the change counts", cause=error, controller=self.name, kind=kind_name)
            return True

    async def _map_changes(self) -> None:
        while True:
            while self._changes:
                change = self._changes.popleft()
                self._mapping = True
                try:
                    await self._map(change)
                finally:
                    self._mapping = False
                heed_cancellation()
            self._wake.clear()
            await self._wake.wait()

    async def _map(self, change: _Change) -> None:
        kind, kind_name = change.watch.kind, gvk_of(change.watch.kind).kind
        source = (change.new or change.old).key  # type: ignore[union-attr]  # one of them is there
        reason = _reason(kind_name, source, change.old, change.new, change.initial)
        try:
            keys: dict[ObjectKey, None] = {}
            for entry in (change.new, change.old):
                if entry is not None:
                    keys |= dict.fromkeys(await change.watch.map(_decoded(change.informer, kind, entry), self._reader))
        except Exception as error:  # whatever it is, a change must not be lost for it at once, nor block the others
            change.tries += 1
            _log.error("Mapping failed", cause=error, controller=self.name, kind=kind_name, source=str(source), tries=change.tries)
            if change.tries < _MAPPING_TRIES:
                asyncio.get_running_loop().call_later(0.1 * 2.0**change.tries, self._map_again, change)
            return
        # whoever waits for an object to go waits for no other change
        settle = 0.0 if change.initial or change.new is None else change.watch.settle
        for key in keys:
            if settle:
                self.queue.add_after(key, settle, reason)
            else:
                self.queue.add(key, reason, Priority.LOW if change.initial else Priority.NORMAL)

    def _map_again(self, change: _Change) -> None:
        self._changes.append(change)
        self._wake.set()

    # Keys to passes.

    async def _work(self) -> None:
        while True:
            try:
                request = await self.queue.get()
            except ShutDown:
                return
            self._active += 1
            try:
                await self._share(request)
            finally:
                self._active -= 1
                self.queue.done(request.key)
            heed_cancellation()

    async def _share(self, request: Request) -> None:
        """Process the key if its slot is ours; if not, forget it: `gained` queues it when that changes."""
        if self._shards is None:
            await self._process(request)
            return
        key, gvk = request.key, gvk_of(self.kind)
        entry = self._informer.find(key) if self._informer is not None else None
        slot = self._slots.pop(key, None) if entry is None else self._shards.slot(gvk, key, entry.raw)
        if slot is None or not self._shards.enter(slot):
            self._slots.pop(key, None)
            self._succeeded(key)
            self.reports.leave(key)
            return
        try:
            if entry is not None:
                self._slots[key] = slot
            await self._process(request)
        finally:
            self._shards.leave(slot)

    def gained(self, slots: frozenset[int]) -> None:
        """Handle the objects in these slots from now on."""
        if self._shards is None or self._informer is None:
            return
        for entry in self._informer.entries():
            if self._shards.slot(gvk_of(self.kind), entry.key, entry.raw) in slots:
                self.queue.add(entry.key, "shard gained", Priority.LOW)

    async def _process(self, request: Request) -> None:
        key = request.key
        loop = asyncio.get_running_loop()
        started = loop.time()
        with (
            bound(controller=self.name, namespace=key.namespace, name=key.name),
            self._tracer.span("reconcile", controller=self.name, key=str(key), reasons="; ".join(request.reasons)),
        ):
            outcome = await self._attempt(request)
        if (wait := self.reports.wait(key)) is not None:
            self.queue.add_report(key, wait)
        if self._metrics and not request.is_report:
            self._metrics.reconciles.add(self.name, outcome)
            self._metrics.seconds.observe(loop.time() - started, self.name)

    async def _attempt(self, request: Request) -> str:
        key = request.key
        log = _log.bind(reasons="; ".join(request.reasons))
        try:
            async with asyncio.timeout(self._deadline):
                result = None if request.is_report else await self._reconciler.reconcile(key)
                if request.is_report or self.reports.wait(key) == 0:
                    await self.reports.send(key)
        except asyncio.CancelledError as error:
            task = asyncio.current_task()
            if task is not None and task.cancelling():
                raise
            return self._failed(key, log, error)  # the pass cancelled itself; the worker lives on
        except Exception as error:  # one key's failure, whatever it is, must not stop the others
            return self._failed(key, log, error)
        if self.reports.wait(key) is None:  # or a report that fails each time would be tried without backoff
            self._succeeded(key)
        if result is None:
            return "report"
        self._look_again(key)
        if result.requeue_after is not None:
            self.queue.add_after(key, result.requeue_after.total_seconds(), "requeue")
            return "requeue_after"
        return "success"

    def _look_again(self, key: ObjectKey) -> None:
        """Queue the object after the resync time; forget one that is gone."""
        if self._resync is not None and self._informer is not None and self._informer.find(key) is not None:
            self.queue.add_after(key, self._resync.delay(), "resync")

    def _failed(self, key: ObjectKey, log: Logger, error: BaseException) -> str:
        self._count("errors")
        parts = list(leaves(error))
        if all(isinstance(part, Terminal) for part in parts):
            self._count("terminal")
            self.queue.succeed(key)
            self._note(key, error, None)
            self._look_again(key)
            log.error("Reconcile failed permanently", cause=error)
            return "error"
        if any(isinstance(part, TimeoutError) for part in parts):
            self._count("timeouts")
        if not all(is_foreseen(part) for part in parts):
            self._count("panics")
        waits = [part.retry_after or 0.0 for part in parts if isinstance(part, ApiError)]
        delay = self.queue.fail(key, "retry", max(waits, default=0.0), self._longest_wait())
        fields = {"failures": self.queue.failures(key), "retry_in_seconds": round(delay, 3)}
        if all(is_expected(part) for part in parts):
            log.info("Reconcile must wait", error=str(error), **fields)
        else:
            self._note(key, error, delay)
            log.error("Reconcile failed", cause=error, **fields)
        return "error"

    def _succeeded(self, key: ObjectKey) -> None:
        self.queue.succeed(key)
        if self._failures is not None:
            self._failures.forget(self.name, key)

    def _note(self, key: ObjectKey, error: BaseException, retry_in: float | None) -> None:
        if self._failures is not None:
            self._failures.failed(self.name, self.kind.__name__, key, error, retry_in)

    def _count(self, what: str) -> None:
        if self._metrics:
            getattr(self._metrics, what).add(self.name)


def _decoded(informer: Informer, kind: Kind, entry: Entry | None) -> Any:
    return None if entry is None else informer.told(kind, entry)


def _reason(kind: str, key: ObjectKey, old: Entry | None, new: Entry | None, initial: bool) -> str:
    verb = "exists" if initial else "deleted" if new is None else "created" if old is None else "changed"
    return f"{kind} {key} {verb}"
