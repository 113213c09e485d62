"""Webhooks as a part of a process: started before their registration, then renewed and kept up to date."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from clusterwright.admission.workloads import Workloads
from clusterwright.api.meta import ObjectKey
from clusterwright.runtime.client import Client
from clusterwright.runtime.clock import Clock
from clusterwright.runtime.errors import ApiError
from clusterwright.webhooks.certificates import CertificateMissing, Certificates, Made, Mounted
from clusterwright.webhooks.configurations import SERVICE, Target, Tell, check, install, trust
from clusterwright.webhooks.definitions import Definitions
from clusterwright.webhooks.server import WebhookServer

log = logging.getLogger(__name__)
INTERVAL: Final = 60.0
"""Seconds between two checks of certificates and configurations, if no change is reported."""


@dataclass(frozen=True, slots=True)
class WebhookOptions:
    """The listening address of webhooks, and their registration."""

    host: str = "0.0.0.0"  # noqa: S104 - the API server asks from elsewhere
    port: int = 9443
    url: str = ""
    """The URL for the API server; empty: the Service `service`."""
    service: ObjectKey = SERVICE
    certificates: Path | None = None
    """A mounted directory; None: our own certificates, in a Secret."""
    interval: float = INTERVAL
    install: bool = True
    """Whether to create and maintain CRDs and configurations; otherwise only trust is set in configurations that already call us."""


@dataclass(frozen=True, slots=True)
class Running:
    """Running webhooks."""

    server: WebhookServer
    changed: asyncio.Event
    """Set this when our registration may be out of date: it is then checked at once."""


@asynccontextmanager
async def serving(
    client: Client, clock: Clock, options: WebhookOptions, gates: Mapping[str, bool], workloads: Workloads | None = None
) -> AsyncIterator[Running]:
    """Serve webhooks within the block. They are registered when it begins."""
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
        workloads=workloads,
    )
    async with server:
        if options.url.endswith(":0"):
            target = Target(f"{options.url[:-2]}:{server.port}")
        tell = install if options.install else trust
        await tell(client, target, identity.bundle)
        running = Running(server, asyncio.Event())
        task = asyncio.create_task(_keep(client, clock, running, certificates, target, options.interval, tell), name="webhooks")
        try:
            yield running
        finally:
            task.cancel()
            await asyncio.wait([task])


async def _keep(
    client: Client, clock: Clock, running: Running, certificates: Certificates, target: Target, interval: float, tell: Tell
) -> None:
    while True:
        await _changed_or_after(running.changed, clock, interval)
        running.changed.clear()
        try:
            identity = await certificates.current()
            running.server.use(identity)
            await check(tell, client, target, identity.bundle)
        except (ApiError, CertificateMissing, OSError) as error:  # the certificate in use is still good: try again
            log.warning("the certificate of the webhooks could not be checked: %s", error)
        except Exception:  # an error of ours: giving up here would leave webhooks with expired certificates
            log.exception("webhook configurations could not be maintained")


async def _changed_or_after(changed: asyncio.Event, clock: Clock, seconds: float) -> None:
    waits = [asyncio.ensure_future(changed.wait()), asyncio.ensure_future(clock.sleep(seconds))]
    try:
        await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for wait in waits:
            wait.cancel()
