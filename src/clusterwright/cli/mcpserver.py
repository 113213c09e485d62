"""The Model Context Protocol over two streams of lines: JSON-RPC 2.0, negotiation, and tools that only read."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

import msgspec

from clusterwright.api.meta import Json

VERSIONS: Final = ("2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05")
"""The versions that start with `initialize`, the newest first."""
STATELESS: Final = ("2026-07-28",)
"""The versions in which every request names its version, and `server/discover` returns the capabilities."""
_STRUCTURED: Final = "2025-06-18"
"""The first version in which a tool may also answer with structured data."""
LONGEST: Final = 1 << 20
"""The largest message, in bytes."""
AT_ONCE: Final = 8
"""How many calls run at a time; others wait."""
SECONDS: Final = 120.0
"""The time limit of a call, in seconds."""
PARSE_ERROR, INVALID_REQUEST, METHOD_NOT_FOUND, INVALID_PARAMS, INTERNAL_ERROR = -32700, -32600, -32601, -32602, -32603
UNSUPPORTED_VERSION: Final = -32022
_META: Final = "io.modelcontextprotocol/"
_CACHED: Final[Json] = {"ttlMs": 0, "cacheScope": "private"}


class ToolFailed(Exception):
    """The tool failed; the text is shown to the caller."""


class BadArguments(ValueError):
    """The arguments do not fit the tool; the text says which."""


@dataclass(frozen=True, slots=True)
class Answer:
    """The answer of a tool: a text, and the same as structured data."""

    text: str
    data: Json


@dataclass(frozen=True, slots=True, kw_only=True)
class Tool:
    """A read-only tool."""

    name: str
    title: str
    description: str
    properties: Mapping[str, Json]
    """Arguments by name, each with its JSON Schema; all of them are strings or booleans."""
    call: Callable[[Mapping[str, Any]], Awaitable[Answer]]
    required: tuple[str, ...] = ()

    def to_json(self) -> Json:
        """Return the tool as `tools/list` shows it."""
        schema = {"type": "object", "properties": dict(self.properties), "required": list(self.required), "additionalProperties": False}
        hints = {"title": self.title, "readOnlyHint": True, "destructiveHint": False, "idempotentHint": True, "openWorldHint": True}
        return {"name": self.name, "title": self.title, "description": self.description, "inputSchema": schema, "annotations": hints}

    def checked(self, arguments: Any) -> Mapping[str, Any]:
        """Return the arguments if they are valid; raises BadArguments."""
        if not isinstance(arguments, dict):
            raise BadArguments("arguments: an object is expected")
        if unknown := sorted(arguments.keys() - self.properties.keys()):
            raise BadArguments(f"{', '.join(unknown)}: unknown; known: {', '.join(self.properties)}")
        if missing := [name for name in self.required if not arguments.get(name)]:
            raise BadArguments(f"{', '.join(missing)}: missing")
        for name, value in arguments.items():
            wanted = self.properties[name]["type"]
            if not isinstance(value, bool if wanted == "boolean" else str):
                raise BadArguments(f"{name}: a {wanted} is expected")
        return arguments


class Server:
    """Answers messages, several at a time. `send` gets each answer as a line without its line end."""

    def __init__(self, name: str, version: str, instructions: str, tools: list[Tool], send: Callable[[bytes], None]) -> None:
        self._info = {"name": name, "title": "Clusterwright", "version": version}
        self._instructions = instructions
        self._tools = {tool.name: tool for tool in tools}
        self._send = send
        self._version = VERSIONS[0]
        self._calls: dict[str, asyncio.Task[Json | None]] = {}
        self._gate = asyncio.Semaphore(AT_ONCE)

    async def serve(self, lines: AsyncIterator[bytes]) -> None:
        """Answer until the lines end; finish the calls under way."""
        tasks: set[asyncio.Task[None]] = set()
        async for line in lines:
            if not line.strip():
                continue
            task = asyncio.create_task(self._answer_line(line))
            tasks.add(task)
            task.add_done_callback(tasks.discard)
            await asyncio.sleep(0)  # in order, as far as nothing has to be waited for
        if tasks:
            await asyncio.wait(tasks)

    async def _answer_line(self, line: bytes) -> None:
        if len(line) > LONGEST:
            self._say(_error(None, INVALID_REQUEST, f"a message has at most {LONGEST} bytes"))
            return
        try:
            message = msgspec.json.decode(line)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            self._say(_error(None, PARSE_ERROR, f"not JSON: {error}"))
            return
        if not isinstance(message, list):
            answer = await self._answer(message)
            if answer is not None:
                self._say(answer)
            return
        answers = [a for a in await asyncio.gather(*map(self._answer, message)) if a is not None]
        if answers or not message:
            self._say(answers or _error(None, INVALID_REQUEST, "the batch is empty"))

    def _say(self, answer: Any) -> None:
        self._send(msgspec.json.encode(answer))

    async def _answer(self, message: Any) -> Json | None:
        """Return the answer to a message; None for a notification, an answer, or a call that was cancelled."""
        if not isinstance(message, dict) or message.get("jsonrpc") != "2.0":
            return _error(None, INVALID_REQUEST, "not a JSON-RPC 2.0 message")
        method, identity, params = message.get("method"), message.get("id"), message.get("params") or {}
        if method is None and ("result" in message or "error" in message):
            return None  # nothing was asked from here
        if not isinstance(method, str) or not isinstance(params, dict) or isinstance(identity, bool | float | list | dict):
            return _error(None, INVALID_REQUEST, "not a request: method must be a string, params an object, id a string or an integer")
        if identity is None:
            self._notified(method, params)
            return None
        call = self._calls[_key(identity)] = asyncio.ensure_future(self._result(method, params))
        try:
            return {"jsonrpc": "2.0", "id": identity, "result": await call}
        except asyncio.CancelledError:
            return None
        except _Refused as error:
            return _error(identity, error.code, str(error), error.data)
        except Exception as error:
            return _error(identity, INTERNAL_ERROR, f"{type(error).__name__}: {error}")
        finally:
            self._calls.pop(_key(identity), None)

    def _notified(self, method: str, params: Mapping[str, Any]) -> None:
        call = self._calls.get(_key(params.get("requestId"))) if method == "notifications/cancelled" else None
        if call is not None:
            call.cancel()

    async def _result(self, method: str, params: Mapping[str, Any]) -> Json:
        meta = params.get("_meta")
        version = meta.get(f"{_META}protocolVersion") if isinstance(meta, dict) else None
        if version is None:
            return await self._done(method, params, self._version)
        if version not in (*STATELESS, *VERSIONS):
            supported = {"supported": [*STATELESS, *VERSIONS], "requested": version}
            raise _Refused(UNSUPPORTED_VERSION, f"protocol version {version}: unknown", supported)
        result = await self._done(method, params, version)
        return {"resultType": "complete", **result} if version in STATELESS else result

    async def _done(self, method: str, params: Mapping[str, Any], version: str) -> Json:
        capabilities: Json = {"tools": {"listChanged": False}}
        if method == "initialize":
            asked = params.get("protocolVersion")
            self._version = asked if asked in VERSIONS else VERSIONS[0]
            told = {"protocolVersion": self._version, "capabilities": capabilities, "serverInfo": self._info}
            return {**told, "instructions": self._instructions}
        if method == "server/discover":
            told = {"supportedVersions": [*STATELESS, *VERSIONS], "capabilities": capabilities, "instructions": self._instructions}
            return {**told, **_CACHED, "_meta": {f"{_META}serverInfo": self._info}}
        if method == "ping":
            return {}
        if method == "tools/list":
            listed: Json = {"tools": [tool.to_json() for tool in self._tools.values()]}
            return {**listed, **_CACHED} if version in STATELESS else listed
        if method == "tools/call":
            return await self._called(params, version)
        raise _Refused(METHOD_NOT_FOUND, f"{method}: unknown")

    async def _called(self, params: Mapping[str, Any], version: str) -> Json:
        tool = self._tools.get(str(params.get("name")))
        if tool is None:
            raise _Refused(INVALID_PARAMS, f"no tool {params.get('name')!r}; known: {', '.join(self._tools)}")
        try:
            arguments = tool.checked(params.get("arguments") or {})
        except BadArguments as error:
            raise _Refused(INVALID_PARAMS, f"{tool.name}: {error}") from None
        try:
            async with self._gate, asyncio.timeout(SECONDS):
                answer = await tool.call(arguments)
        except (ToolFailed, TimeoutError) as error:
            text = str(error) or f"no answer within {SECONDS:g} s"
            return {"content": [{"type": "text", "text": text}], "isError": True}
        result: Json = {"content": [{"type": "text", "text": answer.text}], "isError": False}
        return {**result, "structuredContent": answer.data} if version >= _STRUCTURED else result


class _Refused(Exception):
    """A request that is refused; `code` is that of JSON-RPC."""

    def __init__(self, code: int, text: str, data: Json | None = None) -> None:
        super().__init__(text)
        self.code, self.data = code, data


def _key(identity: object) -> str:
    return msgspec.json.encode(identity).decode()


def _error(identity: Any, code: int, text: str, data: Json | None = None) -> Json:
    error: Json = {"code": code, "message": text}
    return {"jsonrpc": "2.0", "id": identity, "error": error if data is None else {**error, "data": data}}
