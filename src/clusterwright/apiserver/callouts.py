"""Send the server's own requests: to admission and conversion webhooks, by URL or by Service.

If a clientConfig has a caBundle, only that is trusted. TLS contexts are made once for each bundle, and connections are reused.
"""

from __future__ import annotations

import asyncio
import base64
import os
import posixpath
import ssl
from collections import OrderedDict
from typing import TYPE_CHECKING, Final

import msgspec

from clusterwright.api.meta import Json
from clusterwright.apiserver.storage.store import Store
from clusterwright.golang.quoting import quote
from clusterwright.streams.tls import authorities

if TYPE_CHECKING:
    import aiohttp

_CONTEXTS: Final = 64
_LARGEST_ANSWER: Final = 32 * 1024 * 1024
_HEADERS: Final = {"Content-Type": "application/json", "Accept": "application/json", "Accept-Encoding": "identity"}


class CalloutFailed(Exception):
    """A webhook could not be called, or its answer is not valid; the text is that of Go's HTTP client."""


class Callouts:
    """Calls webhooks over HTTPS. Endpoints of Services are in the server's own objects."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._contexts: OrderedDict[str, ssl.SSLContext] = OrderedDict()
        self._session: aiohttp.ClientSession | None = None
        self._loop: asyncio.AbstractEventLoop | None = None

    async def post(self, client: Json, body: bytes, *, timeout: float, query: str = "") -> bytes:
        """Send a POST to the target of a clientConfig and return the body of a 200. Raises CalloutFailed."""
        url, host = self._target(client)
        url += query
        try:
            async with asyncio.timeout(timeout):
                return await self._exchange(url, host, self._context(client.get("caBundle") or ""), body)
        except TimeoutError:
            raise CalloutFailed(f"Post {quote(url)}: context deadline exceeded") from None

    async def _exchange(self, url: str, host: str, context: ssl.SSLContext, body: bytes) -> bytes:
        import aiohttp

        try:
            async with self._client().post(
                url, data=body, headers=_HEADERS, ssl=context, server_hostname=host or None, allow_redirects=False
            ) as response:
                if response.status != 200:
                    raise CalloutFailed(f"the server rejected our request with status {response.status}")
                if response.headers.get("Content-Encoding", "identity").lower() != "identity":
                    raise CalloutFailed(f"Post {quote(url)}: the answer is packed, which was not asked for")
                answer = bytearray()
                async for part in response.content.iter_any():
                    answer += part
                    if len(answer) > _LARGEST_ANSWER:
                        raise CalloutFailed(f"Post {quote(url)}: the answer is larger than {_LARGEST_ANSWER} bytes")
                return bytes(answer)
        except (aiohttp.ClientError, OSError) as e:
            raise CalloutFailed(f"Post {quote(url)}: {_problem(e)}") from None

    def _client(self) -> aiohttp.ClientSession:
        import aiohttp

        loop = asyncio.get_running_loop()
        if self._session is None or self._session.closed or self._loop is not loop:
            self._session, self._loop = (
                aiohttp.ClientSession(trust_env=False, auto_decompress=False, cookie_jar=aiohttp.DummyCookieJar()),
                loop,
            )
        return self._session

    async def close(self) -> None:
        """Close all connections."""
        session, self._session = self._session, None
        if session is not None and self._loop is asyncio.get_running_loop():
            await session.close()

    def _context(self, bundle: str) -> ssl.SSLContext:
        found = self._contexts.get(bundle)
        if found is not None:
            self._contexts.move_to_end(bundle)
            return found
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN  # certificates of the bundle are trusted even if they are not self-signed
        if not bundle:
            context.load_default_certs()
        else:
            try:
                context.load_verify_locations(cadata=authorities(base64.b64decode(bundle, validate=True)))
            except (ValueError, ssl.SSLError):
                raise CalloutFailed("unable to load root certificates: unable to parse bytes as PEM block") from None
        self._contexts[bundle] = context
        while len(self._contexts) > _CONTEXTS:
            self._contexts.popitem(last=False)
        return context

    def _target(self, client: Json) -> tuple[str, str]:
        """Return the URL, and the name that the certificate must have if it differs from the URL's."""
        url = client.get("url")
        if url:
            if not str(url).startswith("https://"):
                raise CalloutFailed("only https is spoken to webhooks")
            return _cleaned(str(url)), ""
        service = client.get("service") or {}
        namespace, name, port = service.get("namespace") or "", service.get("name") or "", service.get("port") or 443
        address = self._endpoint(namespace, name, port)
        if address is None:
            raise CalloutFailed(f"service {quote(name)} not found or has no endpoints")
        return _cleaned(f"https://{address}{service.get('path') or ''}"), f"{name}.{namespace}.svc"

    def _endpoint(self, namespace: str, name: str, port: int) -> str | None:
        entry = self._store.table("endpoints").objects.get(f"{namespace}/{name}")
        if entry is None:
            return None
        for subset in msgspec.json.decode(entry.raw).get("subsets") or ():
            for address in subset.get("addresses") or ():
                ports = [p.get("port") for p in subset.get("ports") or ()]
                return f"{address.get('ip')}:{ports[0] if ports else port}"
        return None


def _cleaned(url: str) -> str:
    """Join URL and path as Go does, without doubled slashes: Go servers redirect those, and redirects are not followed."""
    scheme, rest = url.split("://", 1)
    host, slash, path = rest.partition("/")
    if not slash:
        return url
    clean = posixpath.normpath("/" + path)
    return f"{scheme}://{host}/{clean.lstrip('/')}" + ("/" if path.endswith("/") and clean != "/" else "")


def _problem(error: BaseException) -> str:
    """Return the error text that Go would give."""
    import aiohttp

    cause: BaseException | None = getattr(error, "certificate_error", None) or getattr(error, "os_error", None) or error
    if isinstance(cause, ssl.SSLCertVerificationError):
        return f"tls: failed to verify certificate: x509: {cause.verify_message}"
    if isinstance(cause, ssl.SSLError):
        return f"tls: {cause.reason or 'handshake failed'}"
    if isinstance(error, aiohttp.ClientConnectorError) and isinstance(cause, OSError):
        where = f"{error.host}:{error.port}"
        if isinstance(error, aiohttp.ClientConnectorDNSError):
            return f"dial tcp: lookup {error.host}: no such host"
        told = os.strerror(cause.errno).lower() if cause.errno else "connection refused"
        return f"dial tcp {where}: connect: {told}"
    if isinstance(error, aiohttp.ServerDisconnectedError):
        return "EOF"
    return str(error) or type(error).__name__
