"""HTTP on an engine's Unix socket: whole answers, streams of lines, and upgraded connections."""

from __future__ import annotations

import asyncio
import io
import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import aiohttp

from clusterwright.engine.errors import EngineError, Slow, Unreachable, refused, unopened

MAX_ANSWER = 32 << 20
"""The longest answer, in bytes: a host with thousands of containers needs a lot."""
MAX_LINE = 1 << 20
MAX_HEAD = 64 << 10
TIMEOUT = 60.0
"""The default time limit of a request, in seconds: a busy engine takes long to create a container."""
SILENCE = 300.0
"""Seconds after which a silent stream, such as the pull of an image, counts as dead."""

Query = Mapping[str, str | int | bool]


class Connection:
    """Carries requests to one engine."""

    def __init__(self, socket: Path) -> None:
        self.socket = socket
        self._session: aiohttp.ClientSession | None = None

    async def close(self) -> None:
        """Close all connections; safe to call twice."""
        if self._session is not None:
            await self._session.close()
        self._session = None

    async def call(
        self,
        method: str,
        path: str,
        query: Query | None = None,
        *,
        body: object = None,
        data: bytes | None = None,
        timeout: float = TIMEOUT,
    ) -> bytes:
        """Return the whole answer; raises EngineError for everything but success. 304 (nothing to change) is success."""
        what = f"{method} {path}"
        async with self._open(method, path, query, body=body, data=data, timeout=aiohttp.ClientTimeout(total=timeout)) as response:
            answer = bytearray()
            async for chunk in response.content.iter_any():
                answer += chunk
                if len(answer) > MAX_ANSWER:
                    raise EngineError(f"{what}: the answer is longer than {MAX_ANSWER} bytes")
            if response.status >= 400:
                raise refused(what, response.status, _message(bytes(answer)))
            return bytes(answer)

    async def json(self, method: str, path: str, query: Query | None = None, *, body: object = None, timeout: float = TIMEOUT) -> Any:
        """Return the parsed answer; None if it is empty."""
        answer = await self.call(method, path, query, body=body, timeout=timeout)
        try:
            return json.loads(answer) if answer.strip() else None
        except ValueError:
            raise EngineError(f"{method} {path}: the answer is not JSON") from None

    async def lines(
        self, method: str, path: str, query: Query | None = None, *, data: bytes | None = None, silence: float | None = SILENCE
    ) -> AsyncIterator[Any]:
        """Yield each JSON document of an answer until the engine closes it.

        `silence`: seconds without any, after which the stream counts as dead; None: never.
        """
        timeout = aiohttp.ClientTimeout(total=None, sock_connect=TIMEOUT, sock_read=silence)
        async with self._open(method, path, query, data=data, timeout=timeout) as response:
            if response.status >= 400:
                raise refused(f"{method} {path}", response.status, _message(await response.content.read(MAX_LINE)))
            rest = b""
            async for chunk in response.content.iter_any():
                *whole, rest = (rest + chunk).split(b"\n")
                if len(rest) > MAX_LINE:
                    raise EngineError(f"{method} {path}: a line is longer than {MAX_LINE} bytes")
                for line in (*whole, *((rest,) if _is_whole(rest) else ())):
                    if line.strip():
                        yield _parsed(line, f"{method} {path}")
                if _is_whole(rest):
                    rest = b""

    async def download(self, path: str, file: Path) -> None:
        """Write an answer of any length into a file."""
        timeout = aiohttp.ClientTimeout(total=None, sock_connect=TIMEOUT, sock_read=SILENCE)
        async with self._open("GET", path, None, timeout=timeout) as response:
            if response.status >= 400:
                raise refused(f"GET {path}", response.status, _message(await response.content.read(MAX_LINE)))
            with await asyncio.to_thread(file.open, "wb") as target:
                async for chunk in response.content.iter_chunked(MAX_LINE):
                    await asyncio.to_thread(target.write, chunk)

    @asynccontextmanager
    async def _open(
        self,
        method: str,
        path: str,
        query: Query | None,
        *,
        timeout: aiohttp.ClientTimeout,
        body: object = None,
        data: bytes | None = None,
    ) -> AsyncIterator[aiohttp.ClientResponse]:
        if self._session is None:
            connector = aiohttp.UnixConnector(path=str(self.socket), limit=0)
            self._session = aiohttp.ClientSession(connector=connector, cookie_jar=aiohttp.DummyCookieJar())
        headers = {"Content-Type": "application/x-tar" if data is not None else "application/json"}
        content = data if data is not None else json.dumps(body).encode() if body is not None else None
        payload = io.BytesIO(content) if content is not None else None  # sent in parts, so that the event loop goes on
        url = f"http://engine{path}{_query(query)}"
        try:
            async with self._session.request(method, url, data=payload, headers=headers, timeout=timeout) as response:
                yield response
        except aiohttp.ClientConnectorError as error:
            raise unopened(str(self.socket), error.os_error) from error
        except TimeoutError as error:
            raise Slow(f"{method} {path}: the container engine at {self.socket} did not answer in time; it may be overloaded") from error
        except (aiohttp.ClientError, OSError) as error:
            raise Unreachable(f"{method} {path}: the connection to the container engine broke: {type(error).__name__}") from error

    async def upgrade(self, method: str, path: str, body: object) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """Return a connection for plain bytes in both directions, after the head of the engine's answer; raises EngineError."""
        try:
            reader, writer = await asyncio.open_unix_connection(str(self.socket), limit=MAX_HEAD)
        except OSError as error:
            raise unopened(str(self.socket), error) from error
        payload = json.dumps(body).encode()
        head = (
            f"{method} {path} HTTP/1.1\r\nHost: engine\r\nContent-Type: application/json\r\nContent-Length: {len(payload)}\r\n"
            "Connection: Upgrade\r\nUpgrade: tcp\r\n\r\n"
        )
        try:
            async with asyncio.timeout(TIMEOUT):
                writer.write(head.encode() + payload)
                await writer.drain()
                answer = await reader.readuntil(b"\r\n\r\n")
                status = int(answer.split(b" ", 2)[1])
                if status not in {101, 200}:
                    raise refused(f"{method} {path}", status, _message(await reader.read(MAX_LINE)))
        except BaseException as error:
            await closed(writer)
            if isinstance(error, TimeoutError):
                raise Slow(f"{method} {path}: the container engine at {self.socket} did not answer in time") from error
            if isinstance(error, OSError | EOFError | ValueError | IndexError | asyncio.LimitOverrunError):
                raise Unreachable(f"{method} {path}: the connection to the container engine broke") from error
            raise
        return reader, writer


async def closed(writer: asyncio.StreamWriter) -> None:
    """Close a connection at once; unread data are dropped."""
    writer.transport.abort()
    with suppress(OSError):
        await writer.wait_closed()


def _query(query: Query | None) -> str:
    if not query:
        return ""
    return "?" + urlencode({k: str(v).lower() if isinstance(v, bool) else v for k, v in query.items()})


def _message(answer: bytes) -> str:
    """Return the message of an error: the engine's `message`, or the unchanged text."""
    text = answer.decode("utf-8", "replace")
    with suppress(ValueError):
        start = text.find("{")
        found = json.loads(text[start:] if start >= 0 else text)
        if isinstance(found, dict):
            return str(found.get("message") or found.get("cause") or "")
    return text


def _is_whole(line: bytes) -> bool:
    """Return whether a line without its end is already a JSON document: not every engine ends the last one."""
    if not line.rstrip().endswith(b"}"):
        return False
    try:
        json.loads(line)
    except ValueError:
        return False
    return True


def _parsed(line: bytes, what: str) -> Any:
    try:
        return json.loads(line)
    except ValueError:
        raise EngineError(f"{what}: a line of the answer is not JSON") from None
