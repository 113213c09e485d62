"""An API server in this process, and a transport that remembers what was sent."""

import asyncio
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from random import Random
from typing import Any

import msgspec
import pytest

from clusterwright.api.meta import ObjectKey
from clusterwright.api.wire import Request, Response
from clusterwright.apiserver.server import ApiServer
from clusterwright.apiserver.serving.inprocess import InProcessTransport
from clusterwright.runtime.rest import RestClient
from clusterwright.simulation.sample import GROUP, crds

NOW = datetime(2026, 5, 1, 12, tzinfo=UTC)


class SteadyClock:
    """Sleeping moves it, nothing else."""

    def __init__(self) -> None:
        self.at = 0.0

    def now(self):
        return NOW + timedelta(seconds=self.at)

    def monotonic(self):
        return self.at

    async def sleep(self, seconds):
        self.at += seconds
        await asyncio.sleep(0)


@dataclass
class Recording:
    """Passes requests on and remembers them; `before` may answer instead, or change the world first."""

    inner: Any
    sent: list[Request] = field(default_factory=list)
    before: Any = None

    @property
    def writes(self):
        return [r for r in self.sent if r.method != "GET"]

    async def send(self, request):
        self.sent.append(request)
        if self.before is not None:
            answer = await self.before(request)
            if isinstance(answer, Response):
                return answer
        return await self.inner.send(request)

    async def stream(self, request):
        self.sent.append(request)
        if self.before is not None:
            answer = await self.before(request)
            if isinstance(answer, Response):
                return answer, _nothing()
        return await self.inner.stream(request)

    async def forward(self, request, port):
        return await self.inner.forward(request, port)

    async def close(self):
        await self.inner.close()


async def _nothing():
    for line in ():
        yield line


@dataclass
class World:
    """`client` is the subject's, over the recording transport; `user` is somebody else."""

    server: ApiServer
    transport: Recording
    client: RestClient
    user: RestClient
    clock: SteadyClock

    async def make(self, name="ada", **fields):
        parent = {"apiVersion": f"{GROUP}/v1", "kind": "Parent", "metadata": {"namespace": "default", "name": name}}
        status = fields.pop("status", None)
        parent["metadata"] |= fields.pop("metadata", {})
        made = await self.user.create({**parent, **fields})
        if status is not None:
            await self.user.patch(made.gvk, made.key, {"status": status}, subresource="status")
        self.transport.sent.clear()
        return ObjectKey("default", name)

    async def json(self, name="ada"):
        return msgspec.json.decode((await InProcessTransport(self.server).send(Request(method="GET", path=path(name)))).body)


def path(name, plural="parents"):
    return f"/apis/{GROUP}/v1/namespaces/default/{plural}/{name}"


@pytest.fixture
async def world():
    clock = SteadyClock()
    server = ApiServer(now=clock.now, random=Random(1))
    transport = Recording(InProcessTransport(server))
    user = RestClient(InProcessTransport(server), clock=clock)
    for crd in crds():
        await user.create(crd)
    return World(server, transport, RestClient(transport, clock=clock), user, clock)


def failure(code, reason, message="no", **headers):
    body = {"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": reason, "message": message, "code": code}
    return Response(status=code, body=msgspec.json.encode(body), headers={k.replace("_", "-"): v for k, v in headers.items()})
