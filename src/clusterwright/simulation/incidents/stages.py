"""Situations in which incidents begin. Several incidents share one, so that tests bring it up once."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field

from clusterwright.simulation import samples
from clusterwright.simulation.incidents.scene import HOUR, Answers, Scene

OLD, NEW = "v1.34.0", "v1.34.1"


@dataclass(frozen=True, slots=True, kw_only=True)
class Stage:
    """A situation: what there is, in words, and how it comes about. `features` differ from those of `up`."""

    name: str
    text: str
    build: Callable[[Scene], Awaitable[None]]
    features: Mapping[str, bool] = field(default_factory=dict)
    extension: Callable[[], Answers] | None = None
    """Makes what answers runtime hooks."""


async def _nothing(scene: Scene) -> None:
    """There is nothing yet."""


def _cluster(control_plane: int, workers: int) -> Callable[[Scene], Awaitable[None]]:
    async def build(scene: Scene) -> None:
        objects = samples.cluster("c", has_control_plane_object=True)
        objects += samples.control_plane("c", replicas=control_plane, seconds=1, version=OLD)
        if workers:
            objects += samples.workers("c", "w", replicas=workers, seconds=1, version=OLD)
        await scene.p.apply(objects)
        await scene.p.until_available("c", control_plane=control_plane, workers=workers, within=HOUR)

    return build


async def _topology(scene: Scene) -> None:
    await scene.p.apply(samples.cluster_class(seconds=1))
    await scene.p.client.create(samples.topology("c", version=OLD, workers={"w": 1}))
    await scene.p.until_available("c", workers=1, within=HOUR)


EMPTY = Stage(name="empty", text="a plane without clusters", build=_nothing)
ONE = Stage(name="one", text="a cluster with one control plane Machine", build=_cluster(1, 0))
WORKERS = Stage(name="workers", text="a cluster with one control plane Machine and two workers", build=_cluster(1, 2))
THREE = Stage(name="three", text="a cluster with three control plane Machines", build=_cluster(3, 0))
TOPOLOGY = Stage(name="topology", text="a cluster of a ClusterClass with one control plane Machine and one worker", build=_topology)
