"""Webhooks as a part of a process: up before the API server is told of them, renewed and kept true while it runs."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from clusterwright.api.meta import ObjectKey
from clusterwright.runtime.client import Client
from clusterwright.runtime.clock import Clock
from clusterwright.runtime.errors import ApiError
from clusterwright.webhooks.certificates import CertificateMissing, Certificates, Made, Mounted
from clusterwright.webhooks.configurations import SERVICE, Target, check, install
from clusterwright.webhooks.definitions import Definitions
from clusterwright.webhooks.server import WebhookServer

log = logging.getLogger(__name__)
INTERVAL: Final = 60.0
"""Seconds between two looks at certificates and configurations."""


@dataclass(frozen=True, slots=True)
class WebhookOptions:
    """Where webhooks listen, and how the API server finds them."""

    host: str = "0.0.0.0"  # noqa: S104 - the API server asks from elsewhere
    port: int = 9443
    url: str = ""
    """How the API server reaches us; empty: through the Service `service`."""
    service: ObjectKey = SERVICE
    certificates: Path | None = None
    """A mounted directory; None: we make our own, in a Secret."""
    interval: float = INTERVAL


@asynccontextmanager
async def serving(client: Client, clock: Clock, options: WebhookOptions, gates: Mapping[str, bool]) -> AsyncIterator[WebhookServer]:
    """Serve webhooks as long as the block runs. The API server knows of them when it begins."""
    target = Target(options.url, options.service)
    secret = ObjectKey(options.service.namespace, f"{options.service.name}-certificate")
    certificates: Certificates = (
        Mounted(options.certificates) if options.certificates is not None else Made(client, secret, target.hosts, clock.now)
    )
    identity = await certificates.current()
    server = WebhookServer(
        options.host,
        options.port,
        gates=gates,
        reader=client.live,
        definitions=Definitions(client.live, clock.monotonic),
        identity=identity,
    )
    async with server:
        if options.url.endswith(":0"):
            target = Target(f"{options.url[:-2]}:{server.port}")
        await install(client, target, identity.bundle)
        task = asyncio.create_task(_keep(client, clock, server, certificates, target, options.interval), name="webhooks")
        try:
            yield server
        finally:
            task.cancel()
            await asyncio.wait([task])


async def _keep(client: Client, clock: Clock, server: WebhookServer, certificates: Certificates, target: Target, interval: float) -> None:
    while True:
        await clock.sleep(interval)
        try:
            identity = await certificates.current()
            server.use(identity)
        except (ApiError, CertificateMissing, OSError) as error:  # the certificate in use is still good: try again
            log.warning("the certificate of the webhooks could not be looked at: %s", error)
            continue
        await check(client, target, identity.bundle)
