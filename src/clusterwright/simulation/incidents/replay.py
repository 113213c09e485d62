"""Play an incident in virtual time, and keep the records that show it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import datetime

from clusterwright.api.meta import Unstructured
from clusterwright.offline.timeline import Moment, Sort, timeline
from clusterwright.simulation.faults import NO_FAULTS
from clusterwright.simulation.incidents.incident import Incident
from clusterwright.simulation.incidents.scene import Scene
from clusterwright.simulation.incidents.stages import Stage
from clusterwright.simulation.loop import run_virtual
from clusterwright.simulation.world import Violation, World

_SHOWN = frozenset({"bootstrap.cluster.x-k8s.io", "cluster.x-k8s.io", "controlplane.cluster.x-k8s.io", "addons.cluster.x-k8s.io"})


@dataclass(frozen=True, slots=True)
class Replay:
    """The course of an incident. `violation` is empty if it ended as required."""

    seed: int
    violation: str
    began: datetime
    """The time at which the stage was ready and the incident began."""
    notes: tuple[tuple[datetime, str], ...]
    moments: tuple[Moment, ...]
    virtual_seconds: float
    requests: int


@asynccontextmanager
async def begun(stage: Stage, seed: int) -> AsyncIterator[Scene]:
    """Yield a scene at its stage. The controllers end with the context."""
    world = World(seed, NO_FAULTS)
    extension = stage.extension() if stage.extension is not None else None
    scene = Scene(world, features=stage.features, extension=extension)
    try:
        await asyncio.sleep(0)  # the controllers begin
        if extension is not None:
            await scene.p.apply(extension.objects())
        await stage.build(scene)
        yield scene
    finally:
        await world.close()
        await scene.cloud.close()
        await world.server.callouts.close()
        world.server.close()


async def played(incident: Incident, scene: Scene) -> str:
    """Play an incident on its stage. Return the violation, or an empty text."""
    scene.mark()
    try:
        await incident.play(scene)
    except (Violation, AssertionError) as error:
        return str(error)
    return f"the controllers ended: {scene.process.failure!r}" if scene.process.failure is not None else ""


def replay(incident: Incident, seed: int = 1) -> Replay:
    """Play an incident from nothing."""
    return run_virtual(_replay(incident, seed))


async def _replay(incident: Incident, seed: int) -> Replay:
    async with begun(incident.stage, seed) as scene:
        began = scene.world.clock.now()
        violation = await played(incident, scene)
        return Replay(
            seed=seed,
            violation=violation,
            began=began,
            notes=tuple(scene.notes),
            moments=tuple(_moments(scene)),
            virtual_seconds=scene.world.clock.monotonic(),
            requests=scene.world.trace.requests,
        )


def _moments(scene: Scene) -> list[Moment]:
    """Return the moments in all versions of all objects, the Events, and the decisions since the controllers last started.

    A condition that kept its status has only its last message.
    """
    told: dict[tuple[str, ...], Moment] = {}
    for written in scene.history:
        if written.type == "DELETED" or written.table == "events":
            continue
        version = Unstructured(written.json)
        if version.gvk.group in _SHOWN:
            for moment in timeline([version]):
                what = moment.text.split(maxsplit=2)[:2] if moment.sort is Sort.CONDITION else ()
                told[moment.at, moment.object, moment.sort, moment.about, *what] = moment
    events = {w.name: w.json for w in scene.history if w.table == "events"}
    decisions = scene.manager.traces.history() if scene.manager is not None else ()
    return sorted([*told.values(), *timeline((), events.values(), decisions)], key=lambda moment: moment.at)
