"""gRPC on a stream, as either side, with good peers and bad; etcd's messages in both of their forms."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Any

import h2.config
import h2.connection
import h2.events
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from clusterwright.streams import etcdrpc, grpc, protobuf
from clusterwright.streams.grpc import Channel, GrpcError
from clusterwright.streams.pipe import duplex_pair
from clusterwright.streams.protobuf import Malformed


async def answer(path: str, message: bytes) -> bytes:
    if path == "/large":
        return message * int(1e6)
    if path != "/echo":
        raise GrpcError(grpc.NOT_FOUND, f"nothing at {path}: 100 % sure, née")
    return message


@asynccontextmanager
async def served() -> AsyncIterator[Channel]:
    near, far = duplex_pair()
    serving = asyncio.ensure_future(grpc.serve(far, answer))
    channel = Channel(near, "etcd-a")
    try:
        yield channel
    finally:
        await channel.close()
        with suppress(GrpcError):  # it may have been in the middle of an answer
            await serving


async def test_calls_are_answered_one_after_the_other() -> None:
    async with served() as channel:
        for text in (b"", b"hello", b"x" * 60_000):
            assert await channel.unary("/echo", text, seconds=9) == text


async def test_messages_larger_than_all_windows_come_whole() -> None:
    async with served() as channel:
        assert await channel.unary("/large", b"ab", seconds=9) == b"ab" * 1_000_000
        assert await channel.unary("/echo", b"and on", seconds=9) == b"and on"


async def test_failures_carry_code_and_text_and_the_connection_goes_on() -> None:
    async with served() as channel:
        with pytest.raises(GrpcError, match="nothing at /no: 100 % sure, née") as failed:
            await channel.unary("/no", b"x", seconds=9)
        assert failed.value.code == grpc.NOT_FOUND
        with pytest.raises(GrpcError, match="longer than 65536") as refused:
            await channel.unary("/echo", b"x" * 65_537, seconds=9)
        assert refused.value.code == grpc.RESOURCE_EXHAUSTED
        assert await channel.unary("/echo", b"hello", seconds=9) == b"hello"


async def test_an_endless_answer_is_abandoned() -> None:
    async with served() as channel:
        with pytest.raises(GrpcError, match="longer than"):
            await channel.unary("/large", b"abcdef", seconds=9)


class Peer:
    """The other side of a connection, spoken by hand."""

    def __init__(self, duplex: Any, *, is_client: bool) -> None:
        self.duplex = duplex
        self.http = h2.connection.H2Connection(h2.config.H2Configuration(client_side=is_client, header_encoding="utf-8"))
        self.http.initiate_connection()

    async def flush(self) -> None:
        await self.duplex.send(self.http.data_to_send())

    async def until(self, kind: type) -> Any:
        while (data := await self.duplex.receive()) is not None:
            for event in self.http.receive_data(data):
                if isinstance(event, kind):
                    return event
        raise ConnectionResetError


REQUEST = [(":method", "POST"), (":scheme", "https"), (":path", "/echo"), (":authority", "a"), ("content-type", "application/grpc")]


@pytest.mark.parametrize(
    ("headers", "data", "status"),
    [
        (REQUEST, b"\x01\x00\x00\x00\x01x", "12"),
        (REQUEST, b"\x00\x00\x00\x00\x09x", "13"),
        (REQUEST, b"", "13"),
        ([*REQUEST[:4], ("content-type", "text/plain")], b"x", None),
    ],
    ids=["compressed", "truncated", "empty", "no gRPC"],
)
async def test_invalid_calls_are_refused(headers: Any, data: bytes, status: str | None) -> None:
    near, far = duplex_pair()
    serving = asyncio.ensure_future(grpc.serve(far, answer))
    peer = Peer(near, is_client=True)
    peer.http.send_headers(1, headers)
    peer.http.send_data(1, data, end_stream=True)
    await peer.flush()

    told = dict((await peer.until(h2.events.ResponseReceived)).headers)

    assert told.get("grpc-status") == status
    assert status is not None or told[":status"] == "415"
    await near.close()
    await serving


@pytest.mark.parametrize(
    "said", [b"GET / HTTP/1.1\r\n\r\n", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + b"\0\0\1\0\0\0\0\0\0x"], ids=["HTTP/1.1", "data on no stream"]
)
async def test_a_peer_without_http2_gets_an_error_and_is_disconnected(said: bytes) -> None:
    near, far = duplex_pair()
    serving = asyncio.ensure_future(grpc.serve(far, answer))
    await near.send(said)
    with pytest.raises(GrpcError, match="connection error"):
        await serving


async def test_invalid_answers_are_failures() -> None:
    async def play(*frames: Any) -> str:
        near, far = duplex_pair()
        channel, peer = Channel(near, "a"), Peer(far, is_client=False)
        calling = asyncio.ensure_future(channel.unary("/echo", b"x", seconds=9))
        await peer.until(h2.events.StreamEnded)
        for frame in frames:
            frame(peer.http)
        await peer.flush()
        await far.close()
        with pytest.raises(GrpcError) as failed:
            await calling
        return str(failed.value)

    assert "HTTP status 502" in await play(lambda http: http.send_headers(1, [(":status", "502")], end_stream=True))
    assert "reset" in await play(lambda http: http.reset_stream(1))
    assert "closed" in await play(lambda http: http.close_connection())
    assert "closed" in await play()
    assert "one whole message" in await play(
        lambda http: http.send_headers(1, [(":status", "200")]), lambda http: http.send_headers(1, [("grpc-status", "0")], end_stream=True)
    )


# --------------------------------------------------------------------------------------------------------- messages


HEADER = {"cluster_id": "7", "revision": "-1"}
MEMBER = {"ID": "9372538179322589801", "name": "n1", "peerURLs": ["https://a:1", "https://b:2"], "isLearner": True}
STATUS = {"version": "3.5.1", "dbSize": "20480", "leader": "5", "raftIndex": "9", "raftTerm": "2", "raftAppliedIndex": "9", "errors": ["x"]}


@pytest.mark.parametrize(
    ("name", "value", "wire"),
    [
        (
            "MembersResponse",
            {"header": HEADER, "members": [MEMBER]},
            "0a0d080718ffffffffffffffffff01122b08e9e4bcb28fbafc88820112026e311a0b68747470733a2f2f613a311a0b68747470733a2f2f623a322801",
        ),
        ("AlarmResponse", {"alarms": [{"memberID": "3", "alarm": "CORRUPT"}]}, "120408031002"),
        (
            "StatusResponse",
            {"header": HEADER, **STATUS, "dbSizeInUse": "4096", "isLearner": True},
            "0a0d080718ffffffffffffffffff011205332e352e311880a00120052809300238094201784880205001",
        ),
        ("RangeRequest", {"key": "aGVhbHRo", "limit": "1"}, "0a066865616c74681801"),
        ("MoveLeaderRequest", {"targetID": "9"}, "0809"),
    ],
)
def test_messages_are_what_etcds_own_library_writes(name: str, value: dict[str, Any], wire: str) -> None:
    assert etcdrpc.encode(name, value).hex() == wire
    assert etcdrpc.decode(name, bytes.fromhex(wire)) == value


def test_fields_of_a_newer_etcd_are_skipped() -> None:
    wire = etcdrpc.encode("StatusResponse", {"leader": "5"}) + protobuf.tagged(11, b"3.6.0") + protobuf.tagged_number(12, 9) + b"\x7d1234"
    assert etcdrpc.decode("StatusResponse", wire) == {"leader": "5"}


@pytest.mark.parametrize(
    "value", [{"ID": "x"}, {"ID": None}, {"id": "1"}, {"ID": [1]}, {"ID": {}}], ids=["text", "null", "unknown", "list", "object"]
)
def test_json_that_fits_no_message_is_refused(value: dict[str, Any]) -> None:
    with pytest.raises(Malformed, match=r"ID|id"):
        etcdrpc.encode("MemberRequest", value)


@settings(max_examples=200, deadline=None)
@given(st.sampled_from(sorted(etcdrpc.MESSAGES)), st.binary(max_size=60))
def test_arbitrary_bytes_do_no_harm(name: str, data: bytes) -> None:
    try:
        decoded = etcdrpc.decode(name, data)
    except Malformed:
        return
    assert etcdrpc.decode(name, etcdrpc.encode(name, decoded)) == decoded
