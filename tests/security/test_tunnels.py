"""A peer with the right to forward ports cannot keep the event loop or fill the memory with small frames."""

from __future__ import annotations

import asyncio
import asyncio.events as loop_events
import struct
import time
from collections.abc import Callable
from typing import Any

import pytest

from clusterwright.apiserver.serving import portforward
from clusterwright.streams import grpc, spdy
from clusterwright.streams.pipe import ROOM, Inbox, duplex_pair
from support.patience import PATIENCE

MESSAGE = 3 * 1024 * 1024
"""Bytes: the longest message of a WebSocket that the server accepts."""
STEP = 0.05
PORT = {"streamtype": "data", "port": "2379"}


def control(kind: int, payload: bytes = b"") -> bytes:
    return spdy.Writer._control(kind, payload)


FLOODS: dict[str, Callable[[], bytes]] = {
    "settings": lambda: control(spdy.SETTINGS),
    "unknown-frames": lambda: control(77),
    "pings": lambda: control(spdy.PING, struct.pack(">I", 1)),
    "data-of-unknown-streams": lambda: spdy.Writer().data(99, b"x"),
    "empty-data": lambda: spdy.Writer().data(1, b""),
    "resets": lambda: control(spdy.RST_STREAM, struct.pack(">II", 99, 1)),
}


@pytest.fixture
def longest(monkeypatch: pytest.MonkeyPatch) -> Callable[[], float]:
    """Return the CPU time of the longest step of the event loop since the test began."""
    found, run = [0.0], loop_events.Handle._run

    def measured(handle: Any) -> None:
        begun = time.thread_time()
        run(handle)
        found[0] = max(found[0], time.thread_time() - begun)

    monkeypatch.setattr(loop_events.Handle, "_run", measured)
    return lambda: found[0]


async def refuse(port: int) -> Any:
    raise ConnectionRefusedError(port)


@pytest.mark.parametrize("name", FLOODS)
async def test_many_frames_in_one_message_leave_the_loop_to_others(name: str, longest: Callable[[], float]) -> None:
    server, client = duplex_pair()
    serving = asyncio.ensure_future(portforward.serve_session(server, refuse, "pod"))

    async def read_answers() -> None:
        while await client.receive() is not None:
            pass

    reading = asyncio.ensure_future(read_answers())
    frame = FLOODS[name]()
    await client.send(spdy.Writer().syn_stream(1, PORT) + frame * (MESSAGE // len(frame)))
    await client.send(control(spdy.GOAWAY, struct.pack(">II", 0, 0)))
    await serving
    reading.cancel()

    assert longest() < STEP


class Burst:
    """A WebSocket whose messages have all come already."""

    def __init__(self, count: int) -> None:
        self.left = count

    async def send(self, message: bytes) -> None:
        pass

    async def receive(self) -> bytes | None:
        self.left -= 1
        return b"\x00" if self.left >= 0 else None

    async def close(self) -> None:
        pass


async def test_many_messages_in_one_packet_leave_the_loop_to_others(longest: Callable[[], float]) -> None:
    await portforward.serve_channels(Burst(200_000), [2379], refuse, "pod")

    assert longest() < STEP


@pytest.mark.parametrize(
    "frame",
    [b"\0\0\0\x04\0\0\0\0\0", b"\0\0\x08\x06\0\0\0\0\0" + b"x" * 8, b"\0\0\x04\x08\0\0\0\0\0\0\0\0\x01"],
    ids=["settings", "ping", "window"],
)
async def test_many_frames_of_a_peer_of_etcd_leave_the_loop_to_others(frame: bytes, longest: Callable[[], float]) -> None:
    server, client = duplex_pair()

    async def answer(path: str, message: bytes) -> bytes:
        return b""

    serving = asyncio.ensure_future(grpc.serve(server, answer))
    last = b"\0\0\x08\x06\0\0\0\0\0" + b"the last"
    await client.send(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + b"\0\0\0\x04\0\0\0\0\0" + frame * (65536 // len(frame)) + last)
    answers = b""
    while b"the last" not in answers:
        received = await asyncio.wait_for(client.receive(), PATIENCE)
        answers = answers[-8:] + (received or b"")
    serving.cancel()

    assert longest() < STEP / 2


def test_unread_single_bytes_fill_an_inbox_soon() -> None:
    inbox, count = Inbox(), 0
    while not inbox.is_full:
        inbox.put_nowait(b"x")
        count += 1

    assert count <= ROOM / 64
