"""Decisions of a plane in the timeline of a cluster."""

from __future__ import annotations

import pytest
from aiohttp import web

from clusterwright.cli.errors import Failed
from clusterwright.cli.record import running_at
from clusterwright.cli.timeline import moments_of
from clusterwright.offline.bundle import assemble
from clusterwright.offline.observation import API_VERSION

TRACE = {
    "at": "2026-01-01T00:00:01.500000Z",
    "until": "2026-01-01T00:00:09.000000Z",
    "passes": 3,
    "controller": "cluster",
    "kind": "Cluster",
    "namespace": "default",
    "name": "c",
    "rows": {"Available": "all well"},
}
CLUSTER = {
    "apiVersion": "cluster.x-k8s.io/v1beta2",
    "kind": "Cluster",
    "metadata": {"name": "c", "namespace": "default", "creationTimestamp": "2026-01-01T00:00:00Z", "uid": "1"},
    "spec": {},
}


async def test_what_controllers_decided_is_told_in_its_place() -> None:
    async def traces(request: web.Request) -> web.Response:
        assert dict(request.query) == {"namespace": "default"}
        assert request.headers["Authorization"] == "Bearer a-token"
        return web.json_response({"controllers": {"cluster": "Cluster"}, "traces": [TRACE, {**TRACE, "name": "somebody-elses"}]})

    app = web.Application()
    app.router.add_get("/traces", traces)
    runner = web.AppRunner(app)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    try:
        found = await running_at(runner.addresses[0][1], "default", "a-token")
    finally:
        await runner.cleanup()

    observation = {"apiVersion": API_VERSION, "kind": "Observation", "running": found}
    moments = moments_of(assemble([CLUSTER, observation]), "c")

    assert [(m.sort, m.about, m.text) for m in moments] == [("created", "", "was created"), ("decision", "Available", "row all well fired")]


async def test_a_port_where_nobody_is_is_named() -> None:
    with pytest.raises(Failed, match="--health-port 1: no decisions at http"):
        await running_at(1, "default", "a-token")
