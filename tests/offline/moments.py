"""A plane in virtual time, judged after every single write: whatever a list, a page or a line of progress could have shown."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from random import Random
from typing import Any, Final

import msgspec

from clusterwright.api.crds import crds
from clusterwright.api.kubeconfig import inline
from clusterwright.api.meta import Json, ObjectKey
from clusterwright.api.wire import Transport
from clusterwright.apiserver.server import ApiServer
from clusterwright.apiserver.serving.inprocess import InProcessTransport
from clusterwright.apiserver.storage.store import Entry
from clusterwright.controllers.kit.features import EMBEDDED_FEATURES
from clusterwright.inmemory.cloud import Cloud
from clusterwright.inmemory.cluster import SimulatedCluster
from clusterwright.inmemory.loopback import LoopbackTransport
from clusterwright.offline.glance import Fleet
from clusterwright.offline.reported import Sight
from clusterwright.offline.verdict import Verdict
from clusterwright.runtime.clock import LoopClock
from clusterwright.runtime.errors import ConnectionFailed
from clusterwright.runtime.keys import FixedKeySource
from clusterwright.simulation.faults import FaultPlan, FaultyTransport
from clusterwright.simulation.plane import Plane, management_server, plane
from clusterwright.simulation.trace import Trace
from clusterwright.simulation.world import START
from offline.live import NAMESPACE, key

WALL_CLOCK: Final = FaultPlan(slow=0.9, slowest=0.06, watch_late=0.3, latest=0.15)
"""Requests and watches take as long as they do on a busy machine."""
_KINDS: Final = frozenset({"Secret", "ConfigMap", "Event", *(str(crd["spec"]["names"]["kind"]) for crd in crds())})
"""All of them are looked at."""


@dataclass(frozen=True, slots=True)
class Moment:
    """What the verdict was, from which virtual second on, and after which write."""

    at: float
    after: str
    verdict: Verdict

    def __str__(self) -> str:
        return f"{self.at:8.3f}  {self.verdict.headline}  (after {self.after})"


@dataclass(slots=True)
class Onlooker:
    """Judges the cluster `c` whenever anything was written, by exactly what is there at that moment."""

    plane: Plane
    moments: list[Moment] = field(default_factory=list)
    _decoded: dict[str, tuple[Entry, Json]] = field(default_factory=dict)

    def begin(self) -> None:
        """From now on."""
        self.plane.server.store.listeners.append(lambda table, event: self.look(f"{event.type} {table.name} {event.entry.name}"))

    def look(self, after: str = "a while") -> None:
        """Note the verdict, if the cluster is there."""
        objects = list(self._objects())
        fleet = Fleet(objects, Sight(self.plane.clock.now(), _KINDS))
        if key("c") in fleet.clusters:
            self.moments.append(Moment(self.plane.clock.monotonic(), after, fleet.verdict(key("c"))))

    def _objects(self) -> Iterator[Json]:
        for name, table in self.plane.server.store.tables.items():
            for entry in table.range(NAMESPACE):
                known = self._decoded.get(f"{name}/{entry.key}")
                if known is None or known[0] is not entry:
                    known = self._decoded[f"{name}/{entry.key}"] = entry, msgspec.json.decode(entry.raw)
                yield known[1]


def slow(server: ApiServer, seed: int) -> FaultyTransport:
    """A network between controllers and the API server."""
    return FaultyTransport(InProcessTransport(server), Random(seed), WALL_CLOCK, Trace(), process="manager")


class Distant(Cloud):
    """A cloud whose clusters are reached over a network: connecting takes a while, and so does every request."""

    def __init__(self, *, connecting: float = 0.1, **options: Any) -> None:
        super().__init__(**options)
        self._connecting = connecting

    def at(self, host: str, port: int, of: ObjectKey | None = None) -> SimulatedCluster | None:
        return None

    async def reach(self, kubeconfig: bytes) -> Transport:
        await asyncio.sleep(self._connecting)
        simulated, entry = self.find(key("c")), inline(kubeconfig)
        if simulated is None:
            raise ConnectionFailed("there is no such cluster yet")
        inner = LoopbackTransport(simulated, entry.certificate_authority, entry.client_certificate)
        return FaultyTransport(inner, Random(1), WALL_CLOCK, Trace(), process="workload")


@asynccontextmanager
async def watched(seed: int = 1) -> AsyncIterator[tuple[Plane, Onlooker]]:
    """A plane with admission, with a network between its controllers, the API server and workload clusters, and who looks at it."""
    clock = LoopClock(START)
    server = management_server(clock, Random(seed), EMBEDDED_FEATURES)
    cloud = Distant(now=clock.now, random=Random(seed), keys=FixedKeySource(seed))
    async with plane(clock, seed=seed, server=server, cloud=cloud, transport=slow(server, seed), reach=cloud.reach) as p:
        onlooker = Onlooker(p)
        onlooker.begin()
        yield p, onlooker
    await cloud.close()
    server.close()
