"""The Cluster controller on a network on which everything goes wrong: it ends where it should, and one-way things stay one-way."""

from __future__ import annotations

import asyncio
from random import Random
from typing import Any

import pytest

from clusterwright.api.copying import replace
from clusterwright.api.meta import ObjectKey
from clusterwright.apiserver.serving.inprocess import InProcessTransport
from clusterwright.runtime.manager import Manager, Options
from clusterwright.simulation.faults import ALL_FAULTS, FaultyTransport
from clusterwright.simulation.loop import run_virtual
from clusterwright.simulation.trace import Trace
from controllers.cluster.cluster_plane import CLUSTER, CONTROL_PLANE_KIND, INFRA_KIND, KEY, NAMESPACE, Plane
from seeds.seed_worlds import CONTROL_PLANE, INFRASTRUCTURE, cluster, control_plane, infrastructure

PLAN = replace(ALL_FAULTS, crash=0.0)
INFRA = ObjectKey(NAMESPACE, INFRASTRUCTURE["name"])
PROVIDER = ObjectKey(NAMESPACE, CONTROL_PLANE["name"])


class Bad(Plane):
    """A plane whose controller is behind a bad network; the user is not."""

    def __init__(self, seed: int) -> None:
        super().__init__()
        self.faulty = FaultyTransport(InProcessTransport(self.server), Random(seed), PLAN, Trace(), process="controller")
        self.manager = Manager(self.faulty, clock=self.clock, random=Random(seed), options=Options())

    async def until(self, holds: Any, within: float = 3600) -> None:
        begin = asyncio.get_running_loop().time()
        while not await holds():
            assert asyncio.get_running_loop().time() - begin < within
            await asyncio.sleep(1)


async def life(seed: int) -> None:
    plane = Bad(seed)
    await plane.start()
    latched: set[str] = set()

    async def initialization() -> dict[str, bool]:
        found = await plane.user.find(CLUSTER, KEY)
        now = (found.at("status", "initialization") if found else None) or {}
        assert latched <= {k for k, v in now.items() if v} or found is None
        latched.update(k for k, v in now.items() if v)
        return dict(now)

    try:
        await plane.create(cluster(spec={"controlPlaneEndpoint": None}, finalizers=None), status=False)
        await plane.create(
            infrastructure(labels=None, ownerReferences=None, spec={"controlPlaneEndpoint": {"host": "a", "port": 443}}, finalizers=None)
        )
        await plane.create(control_plane(labels=None, ownerReferences=None, finalizers=None))

        async def up() -> bool:
            await initialization()
            # the endpoint is another request than the status: it may come later
            known = (await plane.cluster()).at("spec", "controlPlaneEndpoint") is not None
            return known and (await plane.condition("Available"))[0] == "True"

        await plane.until(up)
        assert (await plane.cluster()).at("spec", "controlPlaneEndpoint") == {"host": "a", "port": 443}
        for kind, key in ((INFRA_KIND, INFRA), (CONTROL_PLANE_KIND, PROVIDER)):
            assert len((await plane.user.get(kind, key)).metadata.owner_references) == 1

        await plane.user.delete(CLUSTER, KEY)

        async def gone() -> bool:
            await initialization()
            cluster_left, infra_left, plane_left = [
                await plane.user.find(k, i) for k, i in ((CLUSTER, KEY), (INFRA_KIND, INFRA), (CONTROL_PLANE_KIND, PROVIDER))
            ]
            if infra_left is None:
                assert plane_left is None  # the control plane goes before the infrastructure
            if cluster_left is None:
                assert infra_left is None
            return cluster_left is None

        await plane.until(gone)
    finally:
        plane.faulty.calm()
        await plane.stop()


@pytest.mark.parametrize("seed", range(6))
def test_a_cluster_lives_and_dies_on_a_bad_network(seed: int) -> None:
    run_virtual(life(seed))
