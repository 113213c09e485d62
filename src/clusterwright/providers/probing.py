"""Ask a provider's process on loopback whether it is well."""

from __future__ import annotations

import asyncio
import ssl
from contextlib import suppress
from typing import Final

from clusterwright.providers.deployment import Probe
from clusterwright.providers.hooks import HOST

TIMEOUT: Final = 5.0
"""Seconds for an answer: more than a kubelet's one second, because the machine is shared with the plane."""


async def problem(probe: Probe) -> str:
    """Return why a probe fails; empty if it succeeds."""
    try:
        async with asyncio.timeout(TIMEOUT):
            return await _asked(probe)
    except TimeoutError:
        return f"no answer on port {probe.port} within {TIMEOUT:.0f} s"
    except (OSError, asyncio.IncompleteReadError, ValueError) as error:
        return f"port {probe.port}: {getattr(error, 'strerror', None) or error}"


async def _asked(probe: Probe) -> str:
    context = None
    if probe.is_tls:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE  # as a kubelet: the certificate is not checked
    reader, writer = await asyncio.open_connection(HOST, probe.port, ssl=context, limit=4096)
    try:
        if not probe.path:
            return ""
        writer.write(f"GET {probe.path} HTTP/1.1\r\nHost: {HOST}:{probe.port}\r\nConnection: close\r\n\r\n".encode("latin-1", "replace"))
        await writer.drain()
        words = (await reader.readline()).split()
        status = int(words[1]) if len(words) > 1 and words[1].isdigit() else 0
        return "" if 200 <= status < 400 else f"port {probe.port} answers {probe.path} with status {status}"
    finally:
        writer.close()
        with suppress(OSError, TimeoutError):
            await writer.wait_closed()
