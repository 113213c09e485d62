"""A Machine that goes while its MachineHealthCheck writes on it."""

from __future__ import annotations

import json
import logging
from random import Random
from typing import Any

import pytest

from clusterwright.api.core import MachineHealthCheck
from clusterwright.api.meta import ObjectKey
from clusterwright.api.wire import Request, Response
from clusterwright.apiserver.serving.inprocess import InProcessTransport
from clusterwright.runtime.clock import LoopClock
from clusterwright.simulation import samples
from clusterwright.simulation.plane import NAMESPACE, management_server, plane
from clusterwright.testing import START, run_virtual

GONE = {
    "kind": "Status",
    "apiVersion": "v1",
    "status": "Failure",
    "reason": "NotFound",
    "code": 404,
    "message": 'machines.cluster.x-k8s.io "cp" not found',
    "details": {"name": "cp", "group": "cluster.x-k8s.io", "kind": "machines"},
}


class Late:
    """The controllers' way to the API server, on which the check's writes come too late."""

    def __init__(self, inner: Any) -> None:
        self._inner, self.refused = inner, 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    async def send(self, request: Request) -> Any:
        if request.method == "PATCH" and "/machines/" in request.path and b"HealthCheckSucceeded" in (request.body or b""):
            self.refused += 1
            return Response(status=404, headers={"content-type": "application/json"}, body=json.dumps(GONE).encode())
        return await self._inner.send(request)


def test_a_machine_deleted_meanwhile_is_not_an_error(caplog: pytest.LogCaptureFixture) -> None:
    async def scenario() -> None:
        clock = LoopClock(START)
        server = management_server(clock, Random(1))
        late = Late(InProcessTransport(server))
        async with plane(clock, server=server, transport=late) as world:
            await world.apply(samples.cluster("c"))
            await world.apply(samples.machine("c", "cp", is_control_plane=True))
            await world.until_available("c")
            await world.apply([samples.machine_health_check("c", "check", NAMESPACE, labels={"cluster.x-k8s.io/cluster-name": "c"})])

            async def judged() -> bool:
                check = await world.client.get(MachineHealthCheck, ObjectKey(NAMESPACE, "check"))
                return late.refused > 0 and check.status.expected_machines == 1

            await world.until(judged, "the check has judged and written")
        server.close()

    with caplog.at_level(logging.WARNING):
        run_virtual(scenario())
    told: list[Any] = [getattr(record, "fields", {}) for record in caplog.records if record.levelno >= logging.ERROR]
    assert [fields for fields in told if fields.get("controller") == "machinehealthcheck"] == []
