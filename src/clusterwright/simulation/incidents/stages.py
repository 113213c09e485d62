"""Situations in which incidents begin. Several incidents share one, so that tests bring it up once."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from clusterwright.api.runtime import ExtensionConfig
from clusterwright.simulation import samples
from clusterwright.simulation.incidents.extension import Scripted, success, updates
from clusterwright.simulation.incidents.scene import HOUR, Answers, Scene
from clusterwright.topology.pinning import GATE

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


def _topology(**spec: Any) -> Callable[[Scene], Awaitable[None]]:
    async def build(scene: Scene) -> None:
        if scene.extension is not None:
            await scene.until_says(ExtensionConfig, "ext", "Discovered", "True")
        await scene.p.apply(samples.cluster_class(seconds=1, **spec))
        await scene.p.client.create(samples.topology("c", version=OLD, workers={"w": 1}))
        await scene.p.until_available("c", workers=1, within=HOUR)

    return build


async def _in_place(scene: Scene) -> None:
    await scene.until_says(ExtensionConfig, "ext", "Discovered", "True")
    await _cluster(1, 2)(scene)


EMPTY = Stage(name="empty", text="a plane without clusters", build=_nothing)
ONE = Stage(name="one", text="a cluster with one control plane Machine", build=_cluster(1, 0))
WORKERS = Stage(name="workers", text="a cluster with one control plane Machine and two workers", build=_cluster(1, 2))
THREE = Stage(name="three", text="a cluster with three control plane Machines", build=_cluster(3, 0))
TOPOLOGY = Stage(name="topology", text="a cluster of a ClusterClass with one control plane Machine and one worker", build=_topology())
CHAINED = Stage(
    name="chained",
    text="a cluster of a ClusterClass that lists the versions v1.34.0, v1.35.0 and v1.36.0",
    build=_topology(kubernetesVersions=["v1.34.0", "v1.35.0", "v1.36.0"]),
)
PINNING = Stage(
    name="pinning",
    text="a cluster of a ClusterClass that lists the versions v1.34.0, v1.35.0 and v1.36.0, where workers may be pinned to one",
    build=_topology(kubernetesVersions=["v1.34.0", "v1.35.0", "v1.36.0"]),
    features={GATE: True},
)
HOOKED = Stage(
    name="hooked",
    text="a cluster of a ClusterClass, and a runtime extension that is asked before upgrades",
    build=_topology(),
    features={"RuntimeSDK": True},
    extension=lambda: Scripted(BeforeClusterUpgrade=success),
)
IN_PLACE = Stage(
    name="in-place",
    text="a cluster with two workers, and a runtime extension that updates machines in place",
    build=_in_place,
    features={"RuntimeSDK": True, "InPlaceUpdates": True},
    extension=updates,
)
