"""An adversary between the controllers and the API server: it delays, refuses or loses exactly the requests that a scenario names."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import suppress
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, Final

import msgspec

from clusterwright.api.wire import Duplex, Request, Response, Transport
from clusterwright.runtime.errors import ConnectionFailed


class Fate(Enum):
    """The fate of a request."""

    REFUSED = "is answered 500 and has no effect"
    FORBIDDEN = "is answered 403 and has no effect"
    LOST_ANSWER = "takes effect, and its answer is lost"
    CRASH_BEFORE = "has no effect, and the controllers crash"
    CRASH_AFTER = "takes effect, and the controllers crash"


_CODES: Final = {Fate.REFUSED: (500, "InternalError"), Fate.FORBIDDEN: (403, "Forbidden")}


def _refusal(code: int, reason: str) -> Response:
    status = {"kind": "Status", "apiVersion": "v1", "status": "Failure", "message": "refused by a policy", "reason": reason, "code": code}
    return Response(status=code, headers={"content-type": "application/json"}, body=msgspec.json.encode(status))


@dataclass(slots=True)
class Trap:
    """A fate for requests with a method to a resource, applied `times` times."""

    method: str
    resource: str
    fate: Fate
    times: int = 1
    when: Callable[[Request], bool] = lambda _: True
    sprung: int = 0

    def catches(self, request: Request) -> bool:
        """Return whether the trap applies to the request."""
        is_meant = request.method == self.method and self.resource in request.path.split("/")
        return self.sprung < self.times and is_meant and self.when(request)


@dataclass(slots=True)
class Adversary:
    """The traps and delays, which outlive crashes of the controllers. `lag`: the delay of a resource's watches in seconds."""

    crash: Callable[[], None]
    lag: dict[str, float] = field(default_factory=dict)
    traps: list[Trap] = field(default_factory=list)

    def trap(self, method: str, resource: str, fate: Fate, times: int = 1, when: Callable[[Request], bool] = lambda _: True) -> Trap:
        """Set a trap."""
        made = Trap(method, resource, fate, times, when)
        self.traps.append(made)
        return made

    def delay(self, path: str) -> float:
        """Return the current delay of a watch's lines."""
        return self.lag.get(path.rpartition("/")[2], 0.0) if self.lag else 0.0


class Between:
    """The transport of one process to the API server, through the adversary."""

    def __init__(self, inner: Transport, adversary: Adversary) -> None:
        self._inner = inner
        self._adversary = adversary

    async def send(self, request: Request) -> Response:
        """Send one request, unless a trap catches it."""
        trap = next((t for t in self._adversary.traps if t.catches(request)), None)
        if trap is None:
            return await self._inner.send(request)
        trap.sprung += 1
        if trap.fate in _CODES:
            return _refusal(*_CODES[trap.fate])
        if trap.fate is not Fate.CRASH_BEFORE:
            await self._inner.send(request)
        if trap.fate is not Fate.LOST_ANSWER:
            self._adversary.crash()
        raise ConnectionFailed("the adversary took the answer")

    async def stream(self, request: Request) -> tuple[Response, AsyncIterator[bytes]]:
        """Return a watch whose lines the adversary delays."""
        response, lines = await self._inner.stream(request)
        return response, self._late(lines, request.path)

    async def _late(self, lines: AsyncIterator[bytes], path: str) -> AsyncIterator[bytes]:
        loop = asyncio.get_running_loop()
        under_way: asyncio.Queue[tuple[float, bytes | BaseException | None]] = asyncio.Queue()

        async def pump() -> None:
            try:
                async for line in lines:
                    under_way.put_nowait((loop.time() + self._adversary.delay(path), line))
                under_way.put_nowait((0.0, None))
            except ConnectionFailed as error:
                under_way.put_nowait((0.0, error))

        pumping = loop.create_task(pump())
        try:
            while True:
                due, line = await under_way.get()
                if due > loop.time():
                    await asyncio.sleep(due - loop.time())
                if line is None:
                    return
                if isinstance(line, BaseException):
                    raise line
                yield line
        finally:
            pumping.cancel()
            with suppress(asyncio.CancelledError):
                await pumping
            close: Any = getattr(lines, "aclose", None)
            if close is not None:
                await close()

    async def forward(self, request: Request, port: int) -> Duplex:
        """Pass the request on."""
        return await self._inner.forward(request, port)

    async def close(self) -> None:
        """Close the inner transport."""
        await self._inner.close()
