"""Port-forwards: ports of one Pod, each as a pair of streams (errors, data) of a session, or as channels of a WebSocket."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Iterable, Sequence
from contextlib import suppress
from typing import Any, Final

from clusterwright.api.wire import Dial, Duplex
from clusterwright.streams import spdy
from clusterwright.streams.pipe import Inbox, join
from clusterwright.streams.session import Session, Stream
from clusterwright.streams.spdy import SpdyError

CHANNELS: Final = "v4.channel.k8s.io"
"""The older protocol: each message begins with its channel, two for each port. Python and JavaScript clients use it."""
_PAIRED_WITHIN: Final = 30.0
"""How many seconds a stream waits for the other stream of its pair."""
_MOST_PORTS: Final = 64
_DATA, _ERROR = "data", "error"


async def serve_session(carrier: Duplex, dial: Dial, name: str) -> None:
    """Serve the ports of a Pod on a SPDY session until it ends, with as many connections as the peer opens."""
    await _Forwarder(carrier, dial, name).run()


class _Forwarder:
    def __init__(self, carrier: Duplex, dial: Dial, name: str) -> None:
        self._session = Session(carrier, is_server=True, accept=self._accept)
        self._dial = dial
        self._name = name
        self._waiting: dict[str, tuple[Stream, asyncio.TimerHandle]] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    async def run(self) -> None:
        try:
            await self._session.run()
        except (SpdyError, ConnectionError):
            pass  # close the connection, as a kubelet does
        finally:
            for _, timer in self._waiting.values():
                timer.cancel()
            for task in self._tasks:
                task.cancel()
            await asyncio.gather(*self._tasks, return_exceptions=True)

    def _accept(self, stream: Stream) -> None:
        kind, port = stream.headers.get("streamtype", ""), stream.headers.get("port", "")
        if kind not in {_DATA, _ERROR} or _port(port) is None:
            self._start(stream.reset(spdy.PROTOCOL_ERROR))
            return
        # without an id, a pair is known by its stream numbers; the error stream has the lower one
        request = stream.headers.get("requestid") or f"#{stream.number if kind == _ERROR else stream.number - 2}"
        other, timer = self._waiting.pop(request, (None, None))
        if timer is not None:
            timer.cancel()
        if other is None:
            late = asyncio.get_running_loop().call_later(_PAIRED_WITHIN, self._give_up, request)
            self._waiting[request] = stream, late
        elif other.headers["streamtype"] == kind:
            self._start(_refuse(stream, other, f"error processing stream for request {request}: {kind} stream already assigned".encode()))
        else:
            data, error = (stream, other) if kind == _DATA else (other, stream)
            self._start(self._forward(data, error))

    def _give_up(self, request: str) -> None:
        stream, _ = self._waiting.pop(request)
        self._start(_refuse(stream, stream, f"timed out waiting for the streams of request {request}".encode()))

    async def _forward(self, data: Stream, errors: Stream) -> None:
        port = _port(data.headers["port"]) or 0
        try:
            pod = await self._dial(port)
        except OSError as error:
            await _refuse(data, errors, _report(port, self._name, error))
        else:
            await _carry(data, pod)
        finally:
            await errors.close()

    def _start(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.ensure_future(_quietly(work))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)


class _Channel:
    """One channel of a WebSocket as a stream."""

    def __init__(self, carrier: Duplex, number: int, sending: asyncio.Lock) -> None:
        self.inbox = Inbox()
        self._carrier = carrier
        self._prefix = bytes([number])
        self._sending = sending

    async def send(self, message: bytes) -> None:
        async with self._sending:
            await self._carrier.send(self._prefix + message)

    async def receive(self) -> bytes | None:
        return await self.inbox.get()

    async def close(self) -> None:
        self.inbox.drop()


async def serve_channels(carrier: Duplex, ports: Sequence[int], dial: Dial, name: str) -> None:
    """Serve the requested ports, one connection each: channel 2i has the data of port i, 2i+1 its errors.

    The first message on each channel is the port's number, 2 bytes in little-endian order.
    """
    sending = asyncio.Lock()
    channels = [_Channel(carrier, number, sending) for number in range(2 * len(ports))]

    async def forward(data: _Channel, errors: _Channel, port: int) -> None:
        await data.send(port.to_bytes(2, "little"))
        await errors.send(port.to_bytes(2, "little"))
        try:
            pod = await dial(port)
        except OSError as error:
            await errors.send(_report(port, name, error))
        else:
            await _carry(data, pod)

    async def distribute() -> None:
        while (message := await carrier.receive()) is not None:
            if message and message[0] < len(channels):
                await channels[message[0]].inbox.put(message[1:])
            await asyncio.sleep(0)  # many small messages come in one packet

    pairs = zip(channels[::2], channels[1::2], ports, strict=True)
    work = [asyncio.ensure_future(_quietly(forward(*pair))) for pair in pairs]
    reading = asyncio.ensure_future(_quietly(distribute()))
    either: list[asyncio.Future[Any]] = [reading, asyncio.gather(*work)]
    try:
        await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in (reading, *work):
            task.cancel()
        await asyncio.gather(reading, *work, return_exceptions=True)
        await carrier.close()


def asked_ports(values: Iterable[str]) -> list[int] | None:
    """Return the ports of a request's `ports` parameters, which may be lists with commas; None if they are not valid."""
    ports = [_port(text.strip()) for value in values for text in value.split(",")]
    return None if not ports or len(ports) > _MOST_PORTS or None in ports else [p for p in ports if p is not None]


def _port(text: str) -> int | None:
    return int(text) if text.isascii() and text.isdigit() and 0 < int(text[:6]) < 65536 else None


def _report(port: int, name: str, error: OSError) -> bytes:
    return f"error forwarding port {port} to pod {name}: {error}".encode()


async def _refuse(data: Stream, errors: Stream, text: bytes) -> None:
    await errors.send(text)
    await errors.finish()
    await data.close()


async def _carry(data: Duplex, pod: Duplex) -> None:
    """Copy bytes until either side ends. The end is not reported: clients would end the whole tunnel."""
    with suppress(OSError):
        await join(data, pod)


async def _quietly(work: Coroutine[Any, Any, None]) -> None:
    """Await work on a stream, and ignore that the peer has closed it."""
    with suppress(ConnectionError):
        await work
