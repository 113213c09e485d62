"""For tests of providers, runtime extensions and automation: a management plane in a function, in virtual time.

    @with_plane()
    async def test_a_cluster_comes_up(plane: Plane) -> None:
        await plane.apply(samples.cluster("c", has_control_plane_object=True))
        await plane.apply(samples.control_plane("c", replicas=3))
        await plane.until_available("c", control_plane=3)

It is what `clusterwright up` runs, without its sockets: the API server with admission and our kinds, all controllers, and
simulated machines. See docs/testing.md.
"""

from __future__ import annotations

from clusterwright.simulation import samples
from clusterwright.simulation.loop import Stalled, VirtualLoop, run_virtual
from clusterwright.simulation.plane import NAMESPACE, Overdue, Plane, plane
from clusterwright.simulation.world import START
from clusterwright.testing.judging import judge
from clusterwright.testing.planes import virtual_plane, with_plane

__all__ = [
    "NAMESPACE",
    "START",
    "Overdue",
    "Plane",
    "Stalled",
    "VirtualLoop",
    "judge",
    "plane",
    "run_virtual",
    "samples",
    "virtual_plane",
    "with_plane",
]
