"""Listen for the API server's requests."""

from __future__ import annotations

import logging
import ssl
from collections.abc import Awaitable, Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from types import TracebackType
from typing import Final

import msgspec
from aiohttp import web

from clusterwright.admission.hook import Access
from clusterwright.admission.registry import hook_for
from clusterwright.admission.workloads import Workloads
from clusterwright.api.crds import CONVERT_PATH
from clusterwright.api.meta import Json
from clusterwright.runtime.client import Reader
from clusterwright.streams.tls import use_certificate
from clusterwright.webhooks import reviews
from clusterwright.webhooks.certificates import Identity
from clusterwright.webhooks.definitions import Definitions

log = logging.getLogger(__name__)
LARGEST_BODY: Final = 128 * 1024 * 1024
"""The largest body: a list is converted in one review."""


class WebhookServer:
    """Serves `/convert`, `/mutate/...`, `/validate/...` and `/healthz` over HTTPS. An async context manager."""

    def __init__(
        self,
        host: str,
        port: int,
        *,
        gates: Mapping[str, bool],
        reader: Reader,
        definitions: Definitions,
        identity: Identity,
        workloads: Workloads | None = None,
    ) -> None:
        self._host, self._port = host, port
        worker = ThreadPoolExecutor(max_workers=1, thread_name_prefix="admission")
        self._gates, self._access, self._definitions = gates, Access(reader, workloads or Workloads(), worker=worker), definitions
        self._context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self._context.minimum_version = ssl.TLSVersion.TLSv1_2
        self._identity: Identity | None = None
        self.use(identity)
        app = web.Application(client_max_size=LARGEST_BODY)
        app.router.add_post(CONVERT_PATH, self._answering(self._convert))
        for verb in ("mutate", "validate"):
            for tail in ("", "/{subresource}"):
                app.router.add_post(f"/{verb}/{{group}}/{{kind}}{tail}", self._answering(self._admit))
        app.router.add_get("/healthz", self._healthy)
        self._runner = web.AppRunner(app, access_log=None, shutdown_timeout=5.0)

    def use(self, identity: Identity) -> None:
        """Use this certificate for new connections."""
        if self._identity is not None and identity.serving == self._identity.serving:
            return
        use_certificate(self._context, identity.serving.certificate, identity.serving.key)
        self._identity = identity

    @property
    def port(self) -> int:
        """The listening port, also if 0 was requested."""
        return int(self._runner.addresses[0][1])

    async def __aenter__(self) -> WebhookServer:
        await self._runner.setup()
        await web.TCPSite(self._runner, self._host, self._port, ssl_context=self._context).start()
        return self

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        await self._runner.cleanup()

    @staticmethod
    def _answering(answer: Callable[[web.Request, bytes], Awaitable[Json]]) -> Callable[[web.Request], Awaitable[web.Response]]:
        async def handle(request: web.Request) -> web.Response:
            try:
                found = await answer(request, await request.read())
            except reviews.BadReview as error:
                return web.Response(status=400, text=str(error))
            except RecursionError:
                return web.Response(status=400, text="the review nests too deeply")
            return web.Response(body=msgspec.json.encode(found), content_type="application/json")

        return handle

    async def _convert(self, request: web.Request, body: bytes) -> Json:
        return await reviews.convert(reviews.read(body, reviews.CONVERSION, "ConversionReview"), self._definitions)

    async def _admit(self, request: web.Request, body: bytes) -> Json:
        parts = request.match_info
        hook = hook_for(parts["group"], parts["kind"], parts.get("subresource", ""))
        if hook is None:
            raise web.HTTPNotFound(text="unknown kind")
        asked = reviews.read(body, reviews.ADMISSION, "AdmissionReview")
        mutating = request.path.startswith("/mutate/")
        return await reviews.admit(asked, hook, mutating=mutating, gates=self._gates, access=self._access)

    async def _healthy(self, request: web.Request) -> web.Response:
        return web.Response(text="ok")
