"""A terse way to talk to an API server in tests, whatever carries the requests."""

from __future__ import annotations

import asyncio
import base64
import json
import random
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from aiohttp import web

from clusterwright.api.wire import Request, Response, Transport
from clusterwright.apiserver.server import ApiServer
from clusterwright.apiserver.serving.inprocess import InProcessTransport
from clusterwright.apiserver.serving.tls import KeyPair, server_context, sign

WIDGETS = "/apis/widgets.example.com/v1/namespaces/default/widgets"
CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
MERGE = "application/merge-patch+json"
JSON_PATCH = "application/json-patch+json"
APPLY = "application/apply-patch+yaml"
CORPUS = Path(__file__).parent.parent / "conformance"


def widget(name: str, /, labels: dict[str, str] | None = None, **spec: Any) -> dict[str, Any]:
    meta: dict[str, Any] = {"name": name}
    if labels:
        meta["labels"] = labels
    return {"apiVersion": "widgets.example.com/v1", "kind": "Widget", "metadata": meta, "spec": {"color": "red", **spec}}


def configmap(name: str, **extra: Any) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, **extra}


def widget_crds() -> list[dict[str, Any]]:
    return json.loads((CORPUS / "crds.json").read_text())


class Clock:
    """Time that moves when told to."""

    def __init__(self) -> None:
        self.time = datetime(2026, 5, 1, 12, tzinfo=UTC)

    def __call__(self) -> datetime:
        return self.time

    def pass_(self, **span: float) -> None:
        self.time += timedelta(**span)


def make_server(clock: Clock | None = None, **options: Any) -> ApiServer:
    return ApiServer(now=clock or Clock(), random=random.Random(7), **options)


class Answer:
    """A response, its body decoded on demand."""

    def __init__(self, response: Response) -> None:
        self.status = response.status
        self.headers = response.headers
        self.warnings = response.warnings
        self.raw = response.body

    @property
    def json(self) -> Any:
        return json.loads(self.raw)

    def __getitem__(self, key: str) -> Any:
        return self.json[key]

    @property
    def rv(self) -> str:
        return self.json["metadata"]["resourceVersion"]

    @property
    def names(self) -> list[str]:
        return [i["metadata"]["name"] for i in self.json["items"]]

    def __repr__(self) -> str:
        return f"{self.status} {self.raw[:400]!r}"


class Api:
    """Requests to one server."""

    def __init__(self, transport: Transport) -> None:
        self.transport = transport

    @staticmethod
    def of(server: ApiServer) -> Api:
        return Api(InProcessTransport(server))

    @staticmethod
    def request(method: str, path: str, body: Any = None, type: str = "application/json", headers: Any = None, **query: Any) -> Request:
        path, _, rest = path.partition("?")
        pairs = [(name, value) for name, _, value in (p.partition("=") for p in rest.split("&") if p)]
        pairs += [(k, str(v)) for k, v in query.items()]
        raw = body if isinstance(body, bytes) else json.dumps(body).encode() if body is not None else b""
        return Request(
            method=method,
            path=path,
            query=tuple(pairs),
            body=raw,
            headers={"content-type": type, "user-agent": "test/1", **(headers or {})},
        )

    async def do(
        self, method: str, path: str, body: Any = None, type: str = "application/json", headers: Any = None, **query: Any
    ) -> Answer:
        return Answer(await self.transport.send(self.request(method, path, body, type, headers, **query)))

    async def get(self, path: str, **query: Any) -> Answer:
        return await self.do("GET", path, **query)

    async def post(self, path: str, body: Any, **query: Any) -> Answer:
        return await self.do("POST", path, body, **query)

    async def put(self, path: str, body: Any, **query: Any) -> Answer:
        return await self.do("PUT", path, body, **query)

    async def merge(self, path: str, body: Any, **query: Any) -> Answer:
        return await self.do("PATCH", path, body, MERGE, **query)

    async def apply(self, path: str, body: Any, manager: str, **query: Any) -> Answer:
        return await self.do("PATCH", path, body, APPLY, fieldManager=manager, **query)

    async def delete(self, path: str, body: Any = None, **query: Any) -> Answer:
        return await self.do("DELETE", path, body, **query)

    async def watch(self, path: str, **query: Any) -> Watch:
        response, lines = await self.transport.stream(self.request("GET", path, watch="true", **query))
        return Watch(response, lines)


class Watch:
    """Events of a watch."""

    def __init__(self, response: Response, lines: AsyncIterator[bytes]) -> None:
        self.status = response.status
        self.response = response
        self.lines = lines

    async def next(self) -> tuple[str, Any]:
        event = json.loads(await anext(self.lines))
        return event["type"], event["object"]

    async def names(self, count: int) -> list[tuple[str, str]]:
        found = []
        for _ in range(count):
            kind, obj = await self.next()
            found.append((kind, obj["metadata"].get("name", "")))
        return found

    async def ended(self) -> bool:
        try:
            await anext(self.lines)
        except StopAsyncIteration:
            return True
        return False

    async def close(self) -> None:
        await self.lines.aclose()  # type: ignore[attr-defined]


class Hook:
    """An HTTPS server that answers reviews of any kind. `bundle` is the authority of its certificate."""

    def __init__(self) -> None:
        self.reviews: list[dict[str, Any]] = []
        self.respond: Callable[[dict[str, Any]], dict[str, Any]] = lambda request: {"allowed": True}
        self.raw: bytes | None = None
        """Answered instead, whatever it is."""
        self.delay = 0.0
        self.connections: set[Any] = set()
        self.paths: list[str] = []
        self.url = ""
        self.bundle = ""

    async def handle(self, http: web.BaseRequest) -> web.Response:
        review = json.loads(await http.read())
        self.reviews.append(review["request"])
        self.connections.add(http.transport)
        self.paths.append(http.path)
        await asyncio.sleep(self.delay)
        if self.raw is not None:
            return web.Response(body=self.raw)
        response = {"uid": review["request"]["uid"], **self.respond(review["request"])}
        return web.json_response({"apiVersion": review["apiVersion"], "kind": review["kind"], "response": response})

    @classmethod
    @asynccontextmanager
    async def serving(cls, authority: KeyPair, signer: KeyPair | None = None) -> AsyncIterator[Hook]:
        """A hook whose certificate `signer` (or the authority itself) signed."""
        made = cls()
        serving = sign(signer or authority, datetime.now(UTC), "hook", hosts=["127.0.0.1", "hook.default.svc"])
        runner = web.ServerRunner(web.Server(made.handle))
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0, ssl_context=server_context(serving, authority.certificate))
        await site.start()
        made.url = f"https://127.0.0.1:{runner.addresses[0][1]}/review"
        made.bundle = base64.b64encode((signer or authority).certificate).decode()
        yield made
        await runner.cleanup()
