"""POSTs to extensions over HTTPS.

If an ExtensionConfig has a caBundle, only that is trusted. There is one client for each host and bundle; connections are reused. Redirects
are not followed. A client certificate is presented if there is one; when its files change, all clients are created again.
"""

from __future__ import annotations

import asyncio
import base64
import ssl
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

import aiohttp

from clusterwright.runtimesdk.client import NoClient, PostFailed
from clusterwright.runtimesdk.registry import Handler
from clusterwright.streams.tls import authorities

_LARGEST_ANSWER: Final = 32 * 1024 * 1024
_HEADERS: Final = {"Content-Type": "application/json", "Accept": "application/json"}
_KEPT_FOR: Final = 24 * 3600.0
_Stamp = tuple[int, ...]


@dataclass(slots=True)
class _Kept:
    session: aiohttp.ClientSession
    used: float


class HttpsPost:
    """Implements `client.Post`. `certificate` and `key` are PEM files; empty: none is presented."""

    def __init__(self, certificate: str = "", key: str = "") -> None:
        self._files = (Path(certificate), Path(key)) if certificate and key else ()
        self._stamp: _Stamp = ()
        self._sessions: dict[tuple[str, str], _Kept] = {}

    async def __call__(self, handler: Handler, url: str, body: bytes) -> tuple[int, bytes]:
        """Return status code and body of the answer; raises PostFailed, NoClient."""
        session = await self._session(urlsplit(url).hostname or "", handler.client_config.get("caBundle") or "")
        try:
            async with asyncio.timeout(handler.timeout_seconds):
                async with session.post(url, data=body, headers=_HEADERS, allow_redirects=False) as response:
                    return response.status, await _body(response)
        except TimeoutError:
            raise PostFailed("http request timeout expired") from None
        except (aiohttp.ClientError, OSError) as error:
            raise PostFailed(str(error) or type(error).__name__) from None

    async def close(self) -> None:
        """Close all connections."""
        sessions, self._sessions = self._sessions, {}
        for kept in sessions.values():
            await kept.session.close()

    async def _session(self, host: str, bundle: str) -> aiohttp.ClientSession:
        stamp = self._stamp_now()
        if stamp != self._stamp:
            await self.close()
            self._stamp = stamp
        now = asyncio.get_running_loop().time()
        found = self._sessions.get((host, bundle))
        if found is None:
            await self._drop_unused(now)
            connector = aiohttp.TCPConnector(ssl=self._context(bundle))
            session = aiohttp.ClientSession(connector=connector, trust_env=True, cookie_jar=aiohttp.DummyCookieJar())
            found = self._sessions[host, bundle] = _Kept(session, now)
        found.used = now
        return found.session

    async def _drop_unused(self, now: float) -> None:
        """Close clients that are no longer used: bundles change, and their clients must not accumulate."""
        for key in [k for k, kept in self._sessions.items() if now - kept.used > _KEPT_FOR]:
            await self._sessions.pop(key).session.close()

    def _stamp_now(self) -> _Stamp:
        try:
            return tuple(file.stat().st_mtime_ns for file in self._files)
        except OSError:
            return self._stamp  # files are being replaced: the pair that is loaded serves on

    def _context(self, bundle: str) -> ssl.SSLContext:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN  # what the bundle holds is trusted, self-signed or not
        if bundle:
            try:
                context.load_verify_locations(cadata=authorities(base64.b64decode(bundle, validate=True)))
            except (ValueError, ssl.SSLError):
                raise NoClient(
                    "failed to create tls config: unable to load root certificates: no PEM certificate is in the bundle"
                ) from None
        else:
            context.load_default_certs()
        if self._files:
            try:
                context.load_cert_chain(*self._files)
            except (OSError, ssl.SSLError):
                raise NoClient("failed to create tls config: the client certificate cannot be loaded") from None
        return context


async def _body(response: aiohttp.ClientResponse) -> bytes:
    answer = bytearray()
    try:
        async for part in response.content.iter_any():
            answer += part
            if len(answer) > _LARGEST_ANSWER:
                raise PostFailed(f"the answer is larger than {_LARGEST_ANSWER} bytes")
    except aiohttp.ClientError:
        if response.status == 200:
            raise
        raise PostFailed(f"got response with status code {response.status} != 200: failed to read response body") from None
    return bytes(answer)
