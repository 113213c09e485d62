"""SPDY/3.1: frames as Go's spdystream writes them, sessions with peers of every kind."""

from __future__ import annotations

import asyncio
import struct
import zlib
from contextlib import asynccontextmanager
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from clusterwright.streams import spdy
from clusterwright.streams.pipe import ROOM, duplex_pair, join
from clusterwright.streams.session import MAX_STREAMS, Session
from clusterwright.streams.spdy import Frame, Reader, SpdyError, Writer


def test_the_dictionary_is_that_of_the_protocol() -> None:
    assert len(spdy.DICTIONARY) == 1423
    assert zlib.adler32(spdy.DICTIONARY) == 0xE3C6A7C2


texts = st.text(st.characters(min_codepoint=33, max_codepoint=126), min_size=1, max_size=20)


@settings(max_examples=50, deadline=None)
@given(
    st.lists(st.tuples(st.dictionaries(texts.map(str.lower), texts, max_size=5), st.binary(max_size=200), st.booleans()), max_size=8),
    st.data(),
)
def test_frames_come_out_as_they_went_in_however_they_are_cut(said, data) -> None:
    writer, reader = Writer(), Reader()
    wire, expected = b"", []
    for n, (headers, payload, last) in enumerate(said):
        number = 2 * n + 1
        wire += (
            writer.syn_stream(number, headers, last=last)
            + writer.data(number, payload, last=last)
            + writer.ping(n)
            + writer.reset(number, 5)
        )
        flags = 1 if last else 0
        expected += [
            Frame(1, number, flags, headers=headers),
            Frame(0, number, flags, payload=payload),
            Frame(6, n),
            Frame(3, number, status=5),
        ]

    seen: list[Frame] = []
    while wire:
        cut = data.draw(st.integers(1, len(wire)))
        seen += reader.feed(wire[:cut])
        wire = wire[cut:]

    assert seen == expected


@pytest.mark.parametrize(
    ("wire", "why"),
    [
        (b"GET / HTTP/1.1\r\n\r\n", "longer than allowed"),
        (b"\x80\x02\x00\x01\x00\x00\x00\x00", "version 2"),
        (b"\x80\x03\x00\x01\x00\x00\x00\x02ab", "truncated"),
        (b"\x80\x03\x00\x01\x00\x00\x00\x0e" + struct.pack(">IIH", 1, 0, 0) + b"nope", "decompressed"),
        (b"\x80\x03\x00\x01\x00\xff\xff\xff", "longer than allowed"),
        (b"\x00\x00\x00\x01\x00\xff\xff\xff", "longer than allowed"),
    ],
)
def test_input_that_is_not_spdy_is_refused(wire: bytes, why: str) -> None:
    with pytest.raises(SpdyError, match=why):
        list(Reader().feed(wire))


def packed(plain: bytes) -> bytes:
    packing = zlib.compressobj(zdict=spdy.DICTIONARY)
    block = struct.pack(">IIH", 1, 0, 0) + packing.compress(plain) + packing.flush(zlib.Z_SYNC_FLUSH)
    return b"\x80\x03\x00\x01" + struct.pack(">I", len(block)) + block


@pytest.mark.parametrize(
    "plain", [struct.pack(">I", 1 << 30), struct.pack(">II", 1, 1 << 30) + b"x" * 9, struct.pack(">I", 1) + b"\x00" * (10 << 20), b""]
)
def test_headers_that_lie_about_their_size_are_refused_at_little_cost(plain: bytes) -> None:
    with pytest.raises(SpdyError):
        list(Reader().feed(packed(plain)))


def test_the_content_of_settings_and_windows_is_not_read() -> None:
    settings_frame = b"\x80\x03\x00\x04\x00\x00\x00\x0c" + struct.pack(">III", 1, 4, 100)
    window = b"\x80\x03\x00\x09\x00\x00\x00\x08" + struct.pack(">II", 1, 65536)

    assert list(Reader().feed(settings_frame + window + Writer().ping(1))) == [Frame(4, 0), Frame(9, 0), Frame(6, 1)]


# --------------------------------------------------------------------------------------------------------- sessions


@asynccontextmanager
async def sessions():
    """A client's session, a server's, and what the server was offered."""
    near, far = duplex_pair()
    offered: asyncio.Queue[Any] = asyncio.Queue()
    client, server = Session(near, is_server=False), Session(far, is_server=True, accept=offered.put_nowait)
    running = [asyncio.ensure_future(s.run()) for s in (client, server)]
    try:
        yield client, server, offered
    finally:
        await client.close()
        await server.close()
        await asyncio.gather(*running, return_exceptions=True)


async def test_streams_are_apart_from_each_other_and_end_apart() -> None:
    async with sessions() as (client, _, offered):
        one, two = await client.open({"n": "1"}), await client.open({"n": "2"})
        far_one, far_two = await offered.get(), await offered.get()
        assert [far_one.headers, far_two.headers] == [{"n": "1"}, {"n": "2"}]

        await two.send(b"second")
        await one.send(b"first")
        await one.finish()
        assert await far_one.receive() == b"first"
        assert await far_one.receive() is None
        await far_one.send(b"still heard")
        await far_one.finish()
        assert await one.receive() == b"still heard"
        assert await one.receive() is None
        assert await far_two.receive() == b"second"
        await far_two.reset()
        with pytest.raises(ConnectionResetError):
            await two.receive()
        with pytest.raises(ConnectionResetError):
            await two.send(b"x")


async def test_a_fast_sender_waits_and_nothing_is_lost() -> None:
    async with sessions() as (client, _, offered):
        stream = await client.open({})
        far = await offered.get()
        sent = bytes(range(256)) * 8192
        sending = asyncio.ensure_future(stream.send(sent))
        for _ in range(50):
            await asyncio.sleep(0)
        assert not sending.done()
        assert far.inbox.is_full

        read = bytearray()
        while len(read) < len(sent):
            read += await far.receive()
        await sending
        assert read == sent
        assert len(sent) > 4 * ROOM


async def test_the_end_of_the_carrier_ends_every_stream() -> None:
    async with sessions() as (client, server, offered):
        streams = [await client.open({}) for _ in range(3)]
        far = [await offered.get() for _ in range(3)]
        await server.close()
        for stream in streams + far:
            with pytest.raises(ConnectionResetError):
                await stream.receive()
        with pytest.raises(ConnectionResetError):
            await client.open({})


async def test_the_streams_of_a_peer_are_bounded() -> None:
    async with sessions() as (client, _, _offered):
        streams = [await client.open({}) for _ in range(MAX_STREAMS)]
        surplus = await client.open({})
        with pytest.raises(ConnectionResetError, match="status 3"):
            await surplus.receive()
        await streams[0].reset()
        await streams[1].send(b"x")
        another = await client.open({})
        await another.send(b"x")
        receiving = asyncio.ensure_future(another.receive())
        for _ in range(50):
            await asyncio.sleep(0)
        assert not receiving.done()
        receiving.cancel()


async def test_pings_are_answered_and_rules_are_kept() -> None:
    near, far = duplex_pair()
    server = Session(far, is_server=True, accept=lambda _: None)
    running = asyncio.ensure_future(server.run())
    writer, reader = Writer(), Reader()

    await near.send(writer.ping(7) + writer.ping(8) + writer.data(99, b"nobody's"))
    seen: list[Frame] = []
    while len(seen) < 2:
        seen += reader.feed(await near.receive() or b"")
    assert seen == [Frame(6, 7), Frame(3, 99, status=2)]

    await near.send(writer.syn_stream(2, {}))  # of a server's numbers
    with pytest.raises(SpdyError, match="stream 2"):
        await running
    while (rest := await near.receive()) is not None:
        assert not rest


async def test_joined_streams_end_together() -> None:
    (a, b), (c, d) = duplex_pair(), duplex_pair()
    joining = asyncio.ensure_future(join(b, c))
    await a.send(b"there")
    assert await d.receive() == b"there"
    await d.send(b"and back")
    await d.close()
    assert await a.receive() == b"and back"
    assert await a.receive() is None
    await joining
    with pytest.raises(ConnectionResetError):
        await a.send(b"x")


async def test_joined_streams_are_closed_even_if_cancelled_twice() -> None:
    (a, b), (c, d) = duplex_pair(), duplex_pair()
    joining = asyncio.ensure_future(join(b, c))
    await a.send(b"there")
    assert await d.receive() == b"there"
    joining.cancel()
    await asyncio.sleep(0)  # it begins to end
    joining.cancel()
    with pytest.raises(asyncio.CancelledError):
        await joining
    assert (await a.receive(), await d.receive()) == (None, None)
