"""Unary gRPC over HTTP/2 on a stream of bytes, both sides, with one call at a time per connection.

`h2` implements HTTP/2. A message is one byte (0: not compressed), its length in 4 bytes, and that many bytes of protobuf.
"""

from __future__ import annotations

import asyncio
import re
from collections import deque
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Final
from urllib.parse import quote, unquote

import h2.config
import h2.connection
import h2.events
import h2.exceptions
import h2.settings

from clusterwright.api.wire import Duplex

OK, INVALID_ARGUMENT, DEADLINE_EXCEEDED, NOT_FOUND, RESOURCE_EXHAUSTED = 0, 3, 4, 5, 8
FAILED_PRECONDITION, UNIMPLEMENTED, INTERNAL, UNAVAILABLE = 9, 12, 13, 14
"""The statuses of calls, by gRPC's numbers."""
MAX_ANSWER: Final = 4 * 1024 * 1024
"""The longest accepted answer; gRPC's own default."""
MAX_REQUEST: Final = 64 * 1024
"""The longest accepted request: requests name a member, or a key."""
_MAX_CALLS: Final = 32
"""The most open calls of a peer; they are answered one after the other."""
_MAX_HEADERS: Final = 16 * 1024
_PREFIX: Final = 5
_AT_ONCE: Final = 4096
"""How many bytes are parsed before other tasks run: frames may have only nine bytes."""

Handler = Callable[[str, bytes], Awaitable[bytes]]
"""Answers a call: from path (`/package.Service/Method`) and message to a message; raises GrpcError."""


class GrpcError(Exception):
    """A call failed; the text is the peer's, or the reason why the connection broke."""

    def __init__(self, code: int, text: str) -> None:
        super().__init__(text)
        self.code = code


class _Http2:
    """An HTTP/2 connection on a stream: events in, bytes out."""

    def __init__(self, stream: Duplex, *, is_client: bool) -> None:
        self.stream = stream
        config = h2.config.H2Configuration(client_side=is_client, header_encoding="utf-8")
        self.http = h2.connection.H2Connection(config=config)
        self.http.local_settings = h2.settings.Settings(
            client=is_client,
            initial_values={
                h2.settings.SettingCodes.ENABLE_PUSH: 0,
                h2.settings.SettingCodes.MAX_CONCURRENT_STREAMS: _MAX_CALLS,
                h2.settings.SettingCodes.MAX_HEADER_LIST_SIZE: _MAX_HEADERS,
            },
        )
        self._events: deque[h2.events.Event] = deque()
        self._unread = memoryview(b"")

    async def begin(self) -> None:
        self.http.initiate_connection()
        await self.flush()

    async def flush(self) -> None:
        if data := self.http.data_to_send():
            await self.stream.send(data)

    async def event(self) -> h2.events.Event | None:
        """Return the next event from the peer; None at the end. Data are acknowledged when they are read. Raises GrpcError."""
        while not self._events:
            if self._unread:
                await asyncio.sleep(0)
            elif (data := await self.stream.receive()) is not None:
                self._unread = memoryview(data)
            else:
                return None
            part, self._unread = self._unread[:_AT_ONCE], self._unread[_AT_ONCE:]
            try:
                self._events.extend(self.http.receive_data(bytes(part)))
            except (h2.exceptions.ProtocolError, UnicodeDecodeError) as error:
                await self._acknowledge()
                raise GrpcError(UNAVAILABLE, f"connection error: {error or type(error).__name__}") from error
            await self._acknowledge()
        event = self._events.popleft()
        if isinstance(event, h2.events.DataReceived) and event.flow_controlled_length and event.stream_id is not None:
            self.http.acknowledge_received_data(event.flow_controlled_length, event.stream_id)
            await self._acknowledge()
        return event

    async def _acknowledge(self) -> None:
        with suppress(ConnectionError):  # a peer that is gone may have said something before
            await self.flush()

    async def send_message(self, number: int, message: bytes, *, last: bool) -> None:
        """Send a message as fast as the peer's windows allow."""
        data = b"\0" + len(message).to_bytes(4, "big") + message
        waiting: list[h2.events.Event] = []
        while data:
            try:
                room = min(self.http.local_flow_control_window(number), self.http.max_outbound_frame_size)
            except h2.exceptions.StreamClosedError:
                break  # what there is to know of it stands in the events
            if room > 0:
                self.http.send_data(number, data[:room], end_stream=last and room >= len(data))
                data = data[room:]
                await self.flush()
            elif (event := await self.event()) is None:
                raise GrpcError(UNAVAILABLE, "connection closed in the middle of a message")
            else:
                waiting.append(event)
        self._events.extendleft(reversed(waiting))


def _message(data: bytes | bytearray) -> bytes:
    """Return the single message in a unary call's data; raises GrpcError."""
    if len(data) < _PREFIX or len(data) != _PREFIX + int.from_bytes(data[1:_PREFIX], "big"):
        raise GrpcError(INTERNAL, "a unary call has exactly one whole message")
    if data[0]:
        raise GrpcError(UNIMPLEMENTED, "compressed messages are not supported")
    return bytes(data[_PREFIX:])


class Channel:
    """A client of one server. Calls are made one after the other; a cancelled call makes the channel unusable."""

    def __init__(self, stream: Duplex, authority: str) -> None:
        self._http2 = _Http2(stream, is_client=True)
        self._authority = authority
        self._is_begun = False

    async def unary(self, path: str, message: bytes, *, seconds: float) -> bytes:
        """Make one call with a deadline for the server. Raises GrpcError, OSError."""
        if not self._is_begun:
            self._is_begun = True
            await self._http2.begin()
        http = self._http2.http
        try:
            number = http.get_next_available_stream_id()
            http.send_headers(
                number,
                [
                    (":method", "POST"),
                    (":scheme", "https"),
                    (":path", path),
                    (":authority", self._authority),
                    ("te", "trailers"),
                    ("content-type", "application/grpc"),
                    ("user-agent", "clusterwright"),
                    ("grpc-timeout", f"{round(seconds * 1000)}m"),
                ],
            )
        except h2.exceptions.ProtocolError as error:
            raise GrpcError(UNAVAILABLE, f"connection error: {error or type(error).__name__}") from error
        await self._http2.send_message(number, message, last=True)
        return await self._answer(number)

    async def _answer(self, number: int) -> bytes:
        data = bytearray()
        headers: dict[str, str] = {}
        while (event := await self._http2.event()) is not None:
            if isinstance(event, h2.events.ConnectionTerminated):
                break
            if getattr(event, "stream_id", None) != number:
                continue
            if isinstance(event, h2.events.ResponseReceived | h2.events.TrailersReceived):
                headers.update((str(name), str(value)) for name, value in event.headers or ())
            elif isinstance(event, h2.events.DataReceived):
                data += event.data or b""
                if len(data) > MAX_ANSWER + _PREFIX:
                    raise GrpcError(RESOURCE_EXHAUSTED, f"the answer is longer than {MAX_ANSWER} bytes")
            elif isinstance(event, h2.events.StreamReset):
                raise GrpcError(UNAVAILABLE, f"the peer has reset the call (HTTP/2 error {event.error_code})")
            elif isinstance(event, h2.events.StreamEnded):
                return self._result(headers, data)
        raise GrpcError(UNAVAILABLE, "connection closed before the answer was complete")

    @staticmethod
    def _result(headers: dict[str, str], data: bytearray) -> bytes:
        status = headers.get("grpc-status", "")
        if re.fullmatch("[0-9]{1,9}", status) is None:
            raise GrpcError(UNAVAILABLE, f"no gRPC answer, but HTTP status {headers.get(':status', 'missing')}")
        if int(status) != OK:
            raise GrpcError(int(status), unquote(headers.get("grpc-message", "")) or f"gRPC status {status}")
        return _message(data)

    async def close(self) -> None:
        """Close the connection."""
        await self._http2.stream.close()


async def serve(stream: Duplex, handle: Handler) -> None:
    """Answer calls until the peer ends the connection; raises GrpcError if it violates HTTP/2, OSError if the stream breaks."""
    await _Server(stream, handle).run()


class _Server:
    def __init__(self, stream: Duplex, handle: Handler) -> None:
        self._http2 = _Http2(stream, is_client=False)
        self._handle = handle
        self._calls: dict[int, tuple[dict[str, str], bytearray]] = {}

    async def run(self) -> None:
        await self._http2.begin()
        while (event := await self._http2.event()) is not None:
            if isinstance(event, h2.events.ConnectionTerminated):
                return
            if isinstance(event, h2.events.RequestReceived) and event.stream_id is not None:
                self._calls[event.stream_id] = {str(n): str(v) for n, v in event.headers or ()}, bytearray()
            elif isinstance(event, h2.events.DataReceived) and event.stream_id in self._calls:
                data = self._calls[event.stream_id][1]
                data += event.data or b""
                if len(data) > MAX_REQUEST + _PREFIX:
                    del self._calls[event.stream_id]
                    await self._fail(event.stream_id, GrpcError(RESOURCE_EXHAUSTED, f"a message is longer than {MAX_REQUEST} bytes"))
            elif isinstance(event, h2.events.StreamReset) and event.stream_id is not None:
                self._calls.pop(event.stream_id, None)
            elif isinstance(event, h2.events.StreamEnded) and event.stream_id in self._calls:
                await self._answer(event.stream_id, *self._calls.pop(event.stream_id))

    async def _answer(self, number: int, headers: dict[str, str], data: bytearray) -> None:
        if not headers.get("content-type", "").startswith("application/grpc"):
            self._http2.http.send_headers(number, [(":status", "415")], end_stream=True)
            await self._http2.flush()
            return
        try:
            answer = await self._handle(headers.get(":path", ""), _message(data))
        except GrpcError as error:
            await self._fail(number, error)
            return
        http = self._http2.http
        try:
            http.send_headers(number, [(":status", "200"), ("content-type", "application/grpc")])
            await self._http2.send_message(number, answer, last=False)
            http.send_headers(number, [("grpc-status", "0")], end_stream=True)
        except h2.exceptions.StreamClosedError:
            return  # the peer does not want to know any more
        await self._http2.flush()

    async def _fail(self, number: int, error: GrpcError) -> None:
        text = quote(str(error), safe=" !\"#$&'()*+,-./:;<=>?@[\\]^_`{|}~")
        headers = [(":status", "200"), ("content-type", "application/grpc"), ("grpc-status", str(error.code)), ("grpc-message", text)]
        try:
            self._http2.http.send_headers(number, headers, end_stream=True)
        except h2.exceptions.StreamClosedError:
            return
        await self._http2.flush()
