"""Make a plan: apply a change to a replica, let the production controllers act on it in virtual time, and compare.

    plan(captured, changes)

A plan writes nothing outside of its own process, and takes the same steps every time.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from statistics import median
from typing import Any, Final, TypeVar

from clusterwright.api.meta import Json, ObjectKey, Unstructured
from clusterwright.api.wellknown import CLUSTER_NAME_LABEL
from clusterwright.apiserver.serving.inprocess import InProcessTransport
from clusterwright.offline.ownership import name_of
from clusterwright.plan import booting, quiet
from clusterwright.plan.captured import Captured
from clusterwright.plan.changes import Apply, Change, Delete, Refused, apply
from clusterwright.plan.explaining import verdicts
from clusterwright.plan.extensions import Answering
from clusterwright.plan.lists import touched, trace
from clusterwright.plan.machines import rollouts
from clusterwright.plan.recorder import Recorder
from clusterwright.plan.replica import content, definitions, replica
from clusterwright.plan.result import Duration, Hook, Plan, Stuck
from clusterwright.plan.summary import by_cluster
from clusterwright.plan.waits import waits
from clusterwright.runtimesdk.client import Post
from clusterwright.simulation.loop import VirtualLoop

R = TypeVar("R")
SETTLE: Final = 10.0
"""Seconds that the controllers of a replica have before the change, to look at every object once."""
FEW_MOVES: Final = 3_000
"""A plan with more writes is computed only once: its duration is the sum of many stages, which varies little."""
RUNS: Final = 3


@dataclass(slots=True)
class _Run:
    """One run of a change."""

    before: dict[str, Mapping[str, Any]] = field(default_factory=dict)
    after: dict[str, Mapping[str, Any]] = field(default_factory=dict)
    start: dict[str, Mapping[str, Any]] = field(default_factory=dict)
    """The objects as they were captured."""
    recorder: Recorder = field(default_factory=lambda: Recorder(lambda: 0.0))
    refused: list[Refused] = field(default_factory=list)
    unsettled_before: dict[str, str] = field(default_factory=dict)
    unsettled: dict[str, str] = field(default_factory=dict)
    endless: str = ""
    verdicts: dict[str, str] = field(default_factory=dict)
    hooks: list[Hook] = field(default_factory=list)
    doubts: list[str] = field(default_factory=list)


def plan(captured: Captured, changes: Sequence[Change], *, runs: int = 0, call: Post | None = None) -> Plan:
    """Return what the changes would do, in their order.

    `runs`: how often the duration is computed, with other random numbers; 0: as often as is cheap. `call` sends requests to runtime
    extensions; None: their answers are assumed.
    """
    limited = captured.limited_to(_names(changes)) if changes else captured
    first = _in_virtual_time(lambda: _run(limited, changes, 1, call))
    made = Plan(refused=first.refused, notes=list(captured.notes))
    if first.refused:
        return made
    anyway: set[tuple[str, str]] = set()
    if first.unsettled_before and changes:
        idle = _in_virtual_time(lambda: _run(limited, (), 1, call))
        anyway = {(s.verb, s.name) for s in idle.recorder.steps}
    made.created, made.changed, made.deleted = touched(first.start, first.before, first.after, first.recorder.steps, anyway)
    made.rollouts = rollouts(first.before, first.after, first.recorder.steps, first.recorder.machines, first.recorder.outdated)
    made.objects = first.after
    made.waits = waits(first.recorder.told)
    made.hooks = first.hooks
    made.notes += first.doubts
    made.trace = trace(first.recorder.steps)
    known = first.unsettled_before
    made.stuck = [Stuck(name, why, _verdict_on(first, name)) for name, why in first.unsettled.items() if known.get(name) != why]
    made.notes += [f"{name} was like this before the change: it {why}" for name, why in first.unsettled.items() if known.get(name) == why]
    made.notes += [first.endless] if first.endless else []
    clusters = by_cluster(made, first.before, first.after)
    made.clusters = [c.to_json() for c in clusters] if len(clusters) > 1 else []
    more = runs or (RUNS if first.recorder.moves <= FEW_MOVES else 1)
    if made.stuck or first.endless:
        made.duration = Duration(None)
    else:
        took = [first.recorder.elapsed]
        took += [_in_virtual_time(lambda seed=seed: _run(limited, changes, seed, call)).recorder.elapsed for seed in range(2, more + 1)]  # type: ignore[misc]
        made.duration = Duration(median(took), min(took), max(took), len(took))
    return made


def _verdict_on(run: _Run, name: str) -> str:
    obj = run.after.get(name)
    if obj is None:
        return ""
    one = Unstructured(obj)
    cluster = one.key.name if one.kind == "Cluster" else one.metadata.labels.get(CLUSTER_NAME_LABEL) or one.at("spec", "clusterName")
    return run.verdicts.get(name_of("Cluster", one.key.namespace, str(cluster)), "")


async def _run(captured: Captured, changes: Sequence[Change], seed: int, call: Post | None) -> _Run:
    made = _Run()
    post = Answering(call, captured.objects)
    async with replica(captured, seed=seed, post=post, coming=_manifests(changes)) as p:
        rebooted = booting.again(captured.objects)[1]
        made.start = content(p.server)
        recorder = made.recorder = Recorder(p.clock.monotonic)
        recorder.follow(p.server)
        await p.clock.sleep(SETTLE)
        now = content(p.server)
        made.start |= {name: now[name] for name in rebooted & set(now)}  # they differ from the original only because of us
        made.unsettled_before = quiet.unsettled(recorder)
        if changes:
            made.before = now
            recorder.forget_past()
        else:
            made.before = made.start
        recorder.begin()
        post.begin(p.clock.monotonic)
        made.refused = await apply(InProcessTransport(p.server), changes)
        if made.refused:
            return made
        for cluster in captured.clusters():
            found = p.cloud.find(cluster.key)
            if found is not None:
                recorder.follow_workload(found.server)
        made.endless = await quiet.until_quiet(recorder, p.clock, quiet.patience([*captured.objects, *_manifests(changes)]))
        made.after = content(p.server)
        made.unsettled = quiet.unsettled(recorder)
        made.hooks, made.doubts = post.hooks, post.doubts()
        if made.unsettled:
            made.verdicts = verdicts(made.after, definitions(p.server), _workloads(p.cloud, captured), p.clock.now(), made.unsettled)
    return made


def _workloads(cloud: Any, captured: Captured) -> dict[ObjectKey, list[Json]]:
    found = {}
    for cluster in captured.clusters():
        simulated = cloud.find(cluster.key)
        if simulated is not None and simulated.is_serving:
            found[cluster.key] = [dict(o) for o in content(simulated.server).values()]
    return found


def _manifests(changes: Iterable[Change]) -> list[Json]:
    return [c.object for c in changes if isinstance(c, Apply)]


def _names(changes: Iterable[Change]) -> set[str]:
    """Return the objects that a change touches, and the Clusters that new ones belong to."""
    found = {change.name for change in changes}
    for change in changes:
        if isinstance(change, Apply):
            obj = Unstructured(change.object)
            named = (obj.metadata.labels.get(CLUSTER_NAME_LABEL), obj.at("spec", "clusterName"))
            found |= {name_of("Cluster", obj.key.namespace, c) for c in named if isinstance(c, str)}
        elif isinstance(change, Delete) and change.kind.kind == "Namespace":
            found.add(change.name)
    return found


def _in_virtual_time(main: Callable[[], Coroutine[Any, Any, R]]) -> R:
    """Run in virtual time; in a thread of its own if an event loop is running here already."""

    def run() -> R:
        with asyncio.Runner(loop_factory=VirtualLoop) as runner:
            return runner.run(main())

    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return run()
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(run).result()
