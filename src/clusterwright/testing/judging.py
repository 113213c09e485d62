"""Judge a provider that runs on a plane of a test, by the rules of the contract."""

from __future__ import annotations

import asyncio

from clusterwright.api.copying import replace
from clusterwright.api.meta import Json
from clusterwright.api.wire import Request, Response
from clusterwright.apiserver.identity import User
from clusterwright.apiserver.serving.inprocess import InProcessTransport
from clusterwright.conformance import Judgement, Options, Role, Write
from clusterwright.conformance import judge as judge_through_api
from clusterwright.runtime.rest import RestClient
from clusterwright.simulation.plane import Plane


async def judge(plane: Plane, role: Role, template: Json, options: Options | None = None) -> Judgement:
    """Return the outcome of all rules for the kind that a template (or an object of the kind) names; writes are counted.

    Raises UnknownKind, ApiError.
    """
    loop, writes, before = asyncio.get_running_loop(), list[Write](), plane.server.audit

    def count(request: Request, user: User, response: Response) -> None:
        writes.append(Write(loop.time(), request.path, response.status))
        if before is not None:
            before(request, user, response)

    plane.server.audit = count
    try:
        client = RestClient(InProcessTransport(plane.server), clock=plane.clock)
        return await judge_through_api(client, role, template, replace(options or Options(), writes=lambda: writes))
    finally:
        plane.server.audit = before
