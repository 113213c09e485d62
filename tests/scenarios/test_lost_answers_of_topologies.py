"""Answers that are lost: what was made for an object that is there after all is not taken away from it."""

from __future__ import annotations

from random import Random

import pytest

from clusterwright.api.wire import Request, Response
from clusterwright.apiserver.server import ApiServer
from clusterwright.apiserver.serving.inprocess import InProcessTransport
from clusterwright.controllers.kit.features import EMBEDDED_FEATURES
from clusterwright.runtime.clock import LoopClock
from clusterwright.runtime.errors import ConnectionFailed
from clusterwright.simulation import samples
from clusterwright.simulation.plane import management_server, plane
from clusterwright.simulation.world import START
from support.topologies import PATCHES, SIZE, machines, topology, until_settled, virtual


class Losing(InProcessTransport):
    """A way to the API server on which the first answer to a write of one kind is lost, from when it is told to."""

    def __init__(self, server: ApiServer, plural: str) -> None:
        super().__init__(server)
        self._plural = plural
        self.is_armed = False
        self.lost: list[str] = []

    async def send(self, request: Request) -> Response:
        answer = await super().send(request)
        is_it = request.method in {"POST", "PATCH"} and f"/{self._plural}/" in request.path + "/" and "/status" not in request.path
        if self.is_armed and is_it and not any(name == "dryRun" for name, _ in request.query) and answer.status in {200, 201}:
            self.is_armed = False
            self.lost.append(f"{answer.status} {request.path}")
            raise ConnectionFailed("connection lost before the answer arrived")
        return answer


@pytest.mark.parametrize(
    ("plural", "moment"), [("machinedeployments", "made"), ("machinedeployments", "changed"), ("kubeadmcontrolplanes", "changed")]
)
def test_an_object_that_exists_after_all_keeps_its_templates(plural: str, moment: str) -> None:
    async def scenario() -> None:
        clock = LoopClock(START)
        server = management_server(clock, Random(1), EMBEDDED_FEATURES)
        transport = Losing(server, plural)
        async with plane(clock, server=server, transport=transport) as p:
            transport.is_armed = moment == "made"
            await p.apply(samples.cluster_class(seconds=1, variables=[SIZE], patches=PATCHES))
            await p.apply(samples.cluster_class("other", seconds=2, variables=[SIZE], patches=PATCHES))
            await p.client.create(samples.topology("c", workers={"w": 1}))
            await until_settled(p, workers=1)
            if moment == "changed":
                before = set(await machines(p))
                transport.is_armed = True
                await topology(p, {"classRef": {"name": "other"}})  # whose templates are others

                async def is_rolled() -> bool:
                    return not before & set(await machines(p))

                await p.until(is_rolled, "every Machine is another", within=3600, step=5.0)
                await until_settled(p, workers=1)
            assert len(transport.lost) == 1
        server.close()

    virtual(scenario)
