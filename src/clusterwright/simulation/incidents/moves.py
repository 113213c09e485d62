"""Incidents of moves between management clusters."""

from __future__ import annotations

from typing import Final

from clusterwright.api.core import Machine
from clusterwright.api.infrastructure import DevMachine
from clusterwright.apiserver.serving.inprocess import InProcessTransport
from clusterwright.moving.plan import CannotMove
from clusterwright.moving.transfer import move
from clusterwright.runtime.rest import RestClient
from clusterwright.simulation.incidents.incident import Incident
from clusterwright.simulation.incidents.scene import Scene
from clusterwright.simulation.incidents.stages import WORKERS
from clusterwright.simulation.plane import NAMESPACE, Plane, plane

_STAYS: Final = frozenset({"namespaces", "events", "serviceaccounts", "configmaps"})


async def _hosts(p: Plane) -> dict[str, str]:
    return {m.metadata.name: m.spec.provider_id for m in await p.client.list(DevMachine)}


async def _moved(scene: Scene) -> None:
    lag = scene.random.uniform(3, 8)
    scene.adversary.lag |= dict.fromkeys(("machines", "devmachines", "machinesets", "kubeadmconfigs"), lag)
    before = await _hosts(scene.p)
    async with plane(scene.world.clock, seed=scene.random.randrange(1000)) as target:
        here, there = (RestClient(InProcessTransport(s), clock=scene.world.clock) for s in (scene.world.server, target.server))
        try:
            await move(here, there, NAMESPACE, 120, scene.did)
        except CannotMove as error:
            scene.must(False, f"the move failed: {error}")
        await target.until_available("c", control_plane=1, workers=2, within=600)
        await scene.wait(120)
        scene.must(await _hosts(target) == before, f"the hosts are {await _hosts(target)}, they were {before}")
        scene.must(len(await target.client.list(Machine)) == 3, "controllers of the target made Machines of their own")
        left = {table: keys for table, keys in scene.p.leftovers().items() if table not in _STAYS}
        scene.must(not left, f"left in the source: {left}")


MOVES: Final = (
    Incident(
        project="metal3-io/cluster-api-provider-metal3",
        number=3603,
        also=("kubernetes-sigs/cluster-api#11812", "kairos-io/kairos#110"),
        title="A move leaves objects behind, or the target makes them again",
        there="After a move, templates and objects with a finalizer that had come back were still in the source; controllers of the "
        "target made objects again before the moved ones had arrived.",
        here="All objects arrive paused and with their owners, the target adopts the same hosts, and nothing is left in the source.",
        adversary="the caches of the source are late while its objects go",
        stage=WORKERS,
        play=_moved,
    ),
)
