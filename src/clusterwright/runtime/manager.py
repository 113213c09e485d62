"""Run all parts in one TaskGroup: endpoints, caches, leader election, controllers.

Order of starting: endpoints; caches, until every kind is listed; leadership or a share of the work, if that is wanted; then
controllers and other parts that need it. A process that waits to lead has warm caches and takes over at once.

Order of stopping: controllers begin no more passes; passes under way may finish within the grace period, what passes left to be written is
sent, and the rest is cut off
(every pass may be cut off anywhere: the next one goes on from what the API server holds); leases are given back.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Awaitable, Callable, Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from random import Random
from typing import Any

from clusterwright.api.copying import replace
from clusterwright.api.meta import GroupVersionKind, Json, Object, ObjectKey
from clusterwright.api.wire import Request, Response, Transport
from clusterwright.runtime import garbage
from clusterwright.runtime.access import Gate
from clusterwright.runtime.backlogs import waiting
from clusterwright.runtime.cache import Cache, CachedClient
from clusterwright.runtime.clock import Clock
from clusterwright.runtime.controller import DEADLINE, Controller, Resync
from clusterwright.runtime.endpoints import Check, Endpoints, Insight, Probes
from clusterwright.runtime.events import Recorder
from clusterwright.runtime.failures import Failures
from clusterwright.runtime.fence import Fence, Fenced
from clusterwright.runtime.lease_thread import LeasePlace, LeaseThread, OnThisLoop
from clusterwright.runtime.leases import LeaderElector, LeaseTimes
from clusterwright.runtime.logging import bound_fields, get_logger
from clusterwright.runtime.metrics import Registry, RuntimeMetrics
from clusterwright.runtime.outages import Outages
from clusterwright.runtime.predicates import all_of, has_watch_filter
from clusterwright.runtime.reconcile import Predicate, Reconciler, Watch
from clusterwright.runtime.resources import Kind
from clusterwright.runtime.rest import RestClient
from clusterwright.runtime.rights import Listening, Right, Rights
from clusterwright.runtime.shards import ShardOptions, Shards
from clusterwright.runtime.traces import Traces, of_objects
from clusterwright.runtime.tracing import NoTracer, OpenTelemetryTracer
from clusterwright.runtime.transports import Measured, Throttled
from clusterwright.runtime.workqueue import Backoff

_log = get_logger("manager")
Witness = Callable[[Mapping[str, str]], Any]
"""Returns plain data about the objects that a query asks for (`runtime.traces.SELECTORS`)."""
GRACE_PERIOD = 30.0
RESYNC = 600.0
"""Seconds after which every object is reconciled again without an event, by default."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """The flags of a manager."""

    component: str = "clusterwright"
    namespace: str = ""
    """The only watched namespace; empty: all."""
    watch_filter: str = ""
    """Reconcile only objects whose watch-filter label has this value; empty: all."""
    qps: float = 0.0
    """Requests per second to the API server on average; 0: no limit."""
    burst: int = 100
    concurrency: dict[str, int] = field(default_factory=dict)
    """The number of concurrent passes, by controller; others use their own default."""
    reconcile_deadline: float = DEADLINE
    backoff: Backoff = field(default_factory=Backoff)
    resync: float = RESYNC
    """Seconds after which every object is reconciled again without an event; 0: never."""
    leader_election: ObjectKey | None = None
    """The Lease; None: this process is the only one."""
    identity: str = ""
    lease_times: LeaseTimes = field(default_factory=LeaseTimes)
    shards: ShardOptions | None = None
    """The settings for sharing the work; None: this process does all of it."""
    fence: Fence | None = None
    """Closed whenever this process must not write; transports share it."""
    health_host: str = "127.0.0.1"
    health_port: int | None = None
    """The port for health and readiness; None: they are not served."""
    health_insight: bool = True
    """Whether metrics, traces and diagnosis are served there, too, if they have no other address."""
    health_guarded: bool = True
    """Whether callers of these are checked with the API server."""
    metrics: MetricsAddress | None = None
    grace_period: float = GRACE_PERIOD
    """Seconds that passes have to finish when the process is stopped."""
    tracing: bool = False
    freeze_caches: bool = False
    """Exclude the caches of the first sync from garbage collection: for long-lived processes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MetricsAddress:
    """The address of metrics, traces and diagnosis."""

    host: str
    port: int
    tls: ssl.SSLContext | None = None
    """The certificate; None: plain HTTP."""
    is_guarded: bool = True
    """Whether every caller is checked with the API server."""


class Manager:
    """One process's controllers on one API server.

    `unfenced` is a transport to the same API server for requests that the fence must not block: leases, and checks of callers.
    `lease_transport`, if given, renews leases on a separate thread; it is closed at the end.
    """

    def __init__(
        self,
        transport: Transport,
        *,
        clock: Clock,
        random: Random,
        options: Options | None = None,
        registry: Registry | None = None,
        unfenced: Transport | None = None,
        lease_transport: Transport | None = None,
    ) -> None:
        self.options = options or Options()
        self.clock = clock
        self.random = random
        self.registry = registry or Registry()
        self.metrics = RuntimeMetrics(self.registry)
        self.rights = Rights(self._stands_still)
        self.fence = self.options.fence or Fence(clock)
        self._outages = Outages(clock)
        self._measured = Measured(unfenced or transport, self.metrics, clock, self._outages)
        self._unfenced = RestClient(Listening(self._measured, self.rights), clock=clock, user_agent=self.options.component)
        self._lease_thread = (
            LeaseThread(lease_transport, clock, self.options.component, self._heard) if lease_transport is not None else None
        )
        self._leases: LeasePlace = self._lease_thread or OnThisLoop(self._unfenced)
        paced: Transport = Listening(Measured(Fenced(transport, self.fence), self.metrics, clock, self._outages), self.rights)
        if self.options.qps:
            paced = Throttled(paced, clock, qps=self.options.qps, burst=self.options.burst, metrics=self.metrics)
        self.rest = RestClient(paced, clock=clock, user_agent=self.options.component)
        self.cache = Cache(self.rest, random=random, namespace=self.options.namespace, metrics=self.metrics)
        self.client = CachedClient(self.rest, self.cache)
        self.events = Recorder(self.client, clock, self.options.component)
        self.traces = Traces(clock)
        self.failures = Failures(clock)
        self._witnesses: dict[str, Witness] = {}
        self.controllers: list[Controller] = []
        self.features: Mapping[str, bool] = {}
        self.idle: dict[str, tuple[str, str]] = {}
        """Known controllers that do not run, by name: their kind, and why."""
        self._tracer = OpenTelemetryTracer(self.options.component) if self.options.tracing else NoTracer()
        self._parts: list[tuple[str, Callable[[], Awaitable[None]], bool]] = [("events", self.events.run, False)]
        self._elector: LeaderElector | None = None
        self._shards: Shards | None = None
        if self.options.shards is not None:
            self._shards = Shards(self._unfenced, clock, Random(random.getrandbits(64)), self.options.shards, self.fence, self._leases)
            self._shards.on_gain.append(self._gained)
            self.metrics.slots.set(lambda: float(len(self._shards.held) if self._shards is not None else 0), str(self.options.shards.group))
        self._keeping: asyncio.Task[None] | None = None
        self._stop = asyncio.Event()
        self._started = False
        self.endpoints: Endpoints | None = None
        """The endpoints of health."""
        self.insight: Endpoints | None = None
        """The endpoints of metrics, if separate."""
        self._readiness: dict[str, Check] = {}

    def add_controller(
        self,
        name: str,
        kind: type[Object],
        make: Callable[[Controller], Reconciler],
        *,
        watches: tuple[Watch, ...] = (),
        when: Predicate | None = None,
        concurrency: int = 10,
        look: float = 0.0,
        everywhere: bool = False,
    ) -> Controller:
        """Return a controller of `kind`, started with the others. The watch filter applies to the kind and to every typed watch.

        `look`: seconds after which its objects are reconciled again, if that is sooner than the resync; for facts without a watch.
        `everywhere`: it only reads, so that every process that shares the work runs it for all objects.
        """
        looks = [seconds for seconds in (look, self.options.resync) if seconds > 0]
        controller = Controller(
            name,
            kind,
            make,
            cache=self.cache,
            reader=self.client,
            watches=tuple(self._filtered(watch) for watch in watches),
            when=all_of(when, has_watch_filter(self.options.watch_filter)),
            concurrency=self.options.concurrency.get(name, concurrency),
            deadline=self.options.reconcile_deadline,
            backoff=self.options.backoff,
            resync=Resync(min(looks), Random(self.random.getrandbits(64))) if looks else None,
            metrics=self.metrics,
            tracer=self._tracer,
            shards=None if everywhere else self._shards,
            failures=self.failures,
            longest_wait=self._outages.longest_wait,
        )
        self.controllers.append(controller)
        return controller

    def _filtered(self, watch: Watch) -> Watch:
        if not self.options.watch_filter or not isinstance(watch.kind, type):
            return watch
        return replace(watch, when=all_of(watch.when, has_watch_filter(self.options.watch_filter)))

    def add_part(self, name: str, run: Callable[[], Awaitable[None]], *, needs_leadership: bool = True) -> None:
        """Add a function that runs as long as the manager; if it ends with an error, so does the manager."""
        self._parts.append((name, run, needs_leadership))

    def add_readiness(self, name: str, check: Check) -> None:
        """Add a check of readiness; it returns True, or what is missing."""
        self._readiness[name] = check

    def add_witness(self, name: str, witness: Witness) -> None:
        """Add a named part to `report`."""
        self._witnesses[name] = witness

    def holds(self, kind: GroupVersionKind, key: ObjectKey, raw: bytes) -> bool:
        """Return whether an object belongs to the share of this process."""
        return self._shards is None or self._shards.slot(kind, key, raw) in self._shards.held

    def when_shared(self, changed: Callable[[], None]) -> None:
        """Call back whenever the share of this process changes."""
        if (shards := self._shards) is not None:

            async def lost(slots: frozenset[int]) -> None:
                changed()

            shards.on_gain.append(lambda slots: changed())
            shards.on_loss.append(lost)

    def when_given_up(self, tell: Callable[[Callable[[GroupVersionKind, ObjectKey], bool]], Awaitable[None]]) -> None:
        """Await `tell` before other processes may take over a share of ours, with a predicate that selects its objects."""
        if (shards := self._shards) is None:
            return

        async def given_up(slots: frozenset[int]) -> None:
            def is_lost(kind: GroupVersionKind, key: ObjectKey) -> bool:
                informer = self.cache.serving(kind, key.namespace)
                entry = informer.find(key) if informer is not None else None
                return entry is None or shards.slot(kind, key, entry.raw) in slots

            await tell(is_lost)

        shards.on_loss.append(given_up)

    def _gained(self, slots: frozenset[int]) -> None:
        for controller in self.controllers:
            controller.gained(slots)

    def _heard(self, request: Request, response: Response | None, seconds: float) -> None:
        self._measured.note(request, response, seconds)
        if response is not None:
            self.rights.answered(request, response.status, response.body)

    def report(self, query: Mapping[str, str]) -> Json:
        """Return the report about this process; raises UnknownSelector.

        It lists the running controllers, those that do not run and why, missing permissions, and for the selected objects: the decisions,
        the errors of their passes, and how many keys precede them in the queues.
        """
        traces = self.traces.selected(query) if query.get("only") != "now" else []
        return {**self.workings(query), "traces": traces, **{name: witness(query) for name, witness in self._witnesses.items()}}

    def workings(self, query: Mapping[str, str]) -> Json:
        """Return the report without earlier decisions."""
        return {
            "features": dict(self.features),
            "controllers": {controller.name: controller.kind.__name__ for controller in self.controllers},
            "idle": {name: {"kind": kind, "why": why} for name, (kind, why) in self.idle.items()},
            "watchFilter": self.options.watch_filter,
            "rights": [f"{right} ({what})" for right, what in sorted(self.rights.missing.items())],
            "failures": [failure.to_json() for failure in self.failures.selected(**of_objects(query))],
            # before controllers run, nobody comes to what waits
            "queues": [q for c in self.controllers if (q := waiting(c, query)) is not None] if self._started else [],
        }

    def stop(self) -> None:
        """Let `run` end."""
        self._stop.set()

    def _stands_still(self, right: Right) -> str:
        if right.verb in {"list", "watch"}:
            waiting = [c.name for c in self.controllers if right.resource in map(self._resource_name, c.kinds)]
            if not self._started:
                return f"no controller starts before it is granted; needed by {', '.join(waiting)}" if waiting else "waiting to start"
            return f"controllers without changes from a watch: {', '.join(waiting)}"
        controller = bound_fields().get("controller", "")
        return f"passes of {controller} that need it fail and are retried" if controller else "requests that need it are retried"

    def _resource_name(self, kind: Kind) -> str:
        found = self.rest.resources.peek(kind)
        return "" if found is None else f"{found.plural}.{found.gvk.group}" if found.gvk.group else found.plural

    @property
    def is_ready(self) -> bool:
        """Whether the caches are filled, and the controllers run or wait to lead."""
        return self._started or (self._elector is not None and self.cache.is_synced and bool(self.controllers))

    @property
    def is_idle(self) -> bool:
        """Whether no controller has anything to do now."""
        return self._started and all(controller.is_idle for controller in self.controllers)

    async def run(self) -> None:
        """Run until `stop`, cancellation, loss of leadership (LeadershipLost), or an error of a part."""
        async with AsyncExitStack() as stack:
            await self._serve(stack)
            if self._lease_thread is not None:
                await stack.enter_async_context(self._lease_thread)
            try:
                async with asyncio.TaskGroup() as group:
                    main = group.create_task(self._main(group), name="manager")
                    await self._stop.wait()
                    await self._shut_down(main)
                    raise _Stopped
            except* _Stopped:
                _log.info("Stopped")

    async def _serve(self, stack: AsyncExitStack) -> None:
        options, at = self.options, self.options.metrics
        is_guarded = options.health_guarded if at is None else at.is_guarded
        gate = Gate(self._unfenced, self.clock) if is_guarded else None
        insight = Insight(registry=self.registry, report=self.report, gate=gate)
        if options.health_port is not None:
            probes = Probes(
                health={"ping": lambda: True},
                readiness={
                    "caches": lambda: self.cache.is_synced,
                    "controllers": lambda: self.is_ready,
                    "rights": lambda: self.rights.complaint or True,
                    **self._readiness,
                },
            )
            beside = insight if at is None and options.health_insight else None
            served = Endpoints(options.health_host, options.health_port, probes=probes, insight=beside)
            self.endpoints = await stack.enter_async_context(served)
        if at is not None:
            self.insight = await stack.enter_async_context(Endpoints(at.host, at.port, insight=insight, tls=at.tls))

    async def _main(self, group: asyncio.TaskGroup) -> None:
        group.create_task(self.cache.run(), name="cache")
        for controller in self.controllers:
            await controller.start()
        await self.cache.synced()
        if self.options.freeze_caches:
            garbage.settle()
        for name, run, needs_leadership in self._parts:
            if not needs_leadership:
                group.create_task(_run_part(run), name=name)
        if self.options.leader_election is not None:
            self._elector = LeaderElector(
                self._leases.client,
                self.clock,
                Random(self.random.getrandbits(64)),
                self.options.leader_election,
                self.options.identity,
                self.options.lease_times,
                self.fence,
            )
            self.metrics.leader.set(lambda: float(self._elector is not None and self._elector.is_leader), str(self.options.leader_election))
            await self._leases.run(self._elector.acquire)
            self._keeping = group.create_task(self._leases.run(self._elector.hold), name="lease")
        if self._shards is not None:
            await self._shards.join()
            self._keeping = group.create_task(self._shards.run(), name="shards")
        for name, run, needs_leadership in self._parts:
            if needs_leadership:
                group.create_task(_run_part(run), name=name)
        self._started = True
        _log.info("Started", controllers=", ".join(controller.name for controller in self.controllers))
        async with asyncio.TaskGroup() as running:
            for controller in self.controllers:
                running.create_task(controller.run(), name=controller.name)

    async def _shut_down(self, main: asyncio.Task[None]) -> None:
        _log.info("Stopping", grace_period_seconds=self.options.grace_period)
        for controller in self.controllers:
            controller.stop()
        if self._started:
            await asyncio.wait([main], timeout=self.options.grace_period)
        main.cancel()
        await asyncio.wait([main])
        await self.events.flush()
        if self._keeping is not None:  # or it would take again what is given back
            self._keeping.cancel()
            await asyncio.wait([self._keeping])
        if self._elector is not None:
            await self._leases.run(self._elector.release)
        if self._shards is not None:
            await self._shards.depart()


class _Stopped(Exception):
    """Ends the TaskGroup after a graceful stop."""


async def _run_part(run: Callable[[], Awaitable[None]]) -> None:
    await run()
