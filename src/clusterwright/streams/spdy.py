"""The part of SPDY/3.1 that Kubernetes uses: frames to bytes and back. No I/O.

Control frames are 1 bit 1, 15 bits version, 16 bits type; data frames 1 bit 0, 31 bits stream. Both go on with 8 bits flags and 24 bits
length. Headers are packed by one zlib stream per direction, with a dictionary that both ends know.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

NAME: Final = "SPDY/3.1"
PORT_FORWARD: Final = "portforward.k8s.io"
"""The types of streams in a port-forward session."""
TUNNEL: Final = f"{NAME}+{PORT_FORWARD}"
"""The sub-protocol of a WebSocket whose messages carry the bytes of such a session."""

SYN_STREAM, SYN_REPLY, RST_STREAM, SETTINGS, PING, GOAWAY, HEADERS, WINDOW_UPDATE = 1, 2, 3, 4, 6, 7, 8, 9
FIN: Final = 0x01
PROTOCOL_ERROR, INVALID_STREAM, REFUSED_STREAM, CANCEL = 1, 2, 3, 5
"""The reason codes of RST_STREAM."""

MAX_DATA: Final = 1 << 20
"""The longest data frame that is accepted; no port-forward client sends more at a time."""
_MAX_CONTROL: Final = 64 * 1024
_MAX_HEADERS: Final = 64 * 1024
_VERSION: Final = 3
_HEAD: Final = struct.Struct(">II")
_ID: Final = 0x7FFFFFFF

_WORDS: Final = (
    "options head post put delete trace accept accept-charset accept-encoding accept-language accept-ranges age allow authorization "
    "cache-control connection content-base content-encoding content-language content-length content-location content-md5 content-range "
    "content-type date etag expect expires from host if-match if-modified-since if-none-match if-range if-unmodified-since last-modified "
    "location max-forwards pragma proxy-authenticate proxy-authorization range referer retry-after server te trailer transfer-encoding "
    "upgrade user-agent vary via warning www-authenticate method get status"
)
_PHRASES: Final = ("200 OK", "version", "HTTP/1.1", "url", "public", "set-cookie", "keep-alive", "origin")
_CODES: Final = (
    "100101201202205206300302303304305306307402405406407408409410411412413414415416417502504505"
    "203 Non-Authoritative Information204 No Content301 Moved Permanently400 Bad Request401 Unauthorized403 Forbidden404 Not Found"
    "500 Internal Server Error501 Not Implemented503 Service Unavailable"
    "Jan Feb Mar Apr May Jun Jul Aug Sept Oct Nov Dec 00:00:00 Mon, Tue, Wed, Thu, Fri, Sat, Sun, GMT"
    "chunked,text/html,image/png,image/jpg,image/gif,application/xml,application/xhtml+xml,text/plain,text/javascript,public"
    "privatemax-age=gzip,deflate,sdchcharset=utf-8charset=iso-8859-1,utf-,*,enq=0."
)
DICTIONARY: Final = b"".join(struct.pack(">I", len(w)) + w.encode() for w in (*_WORDS.split(), *_PHRASES)) + _CODES.encode()


class SpdyError(Exception):
    """The peer does not speak SPDY/3.1, or sends too much at a time; the connection is unusable."""


@dataclass(frozen=True, slots=True)
class Frame:
    """A frame. `kind` 0: data, in `payload`. `number` is a stream, the id of a PING, or the last good stream of a GOAWAY."""

    kind: int
    number: int
    flags: int = 0
    status: int = 0
    headers: Mapping[str, str] = field(default_factory=dict)
    payload: bytes = b""

    @property
    def is_last(self) -> bool:
        """Whether its sender has finished the stream."""
        return bool(self.flags & FIN)


class Writer:
    """Converts frames to bytes, in sending order: the compression of headers depends on it."""

    def __init__(self) -> None:
        self._packing = zlib.compressobj(zdict=DICTIONARY)

    def data(self, stream: int, payload: bytes, *, last: bool = False) -> bytes:
        """Return a data frame of a stream."""
        return _HEAD.pack(stream & _ID, (FIN if last else 0) << 24 | len(payload)) + payload

    def syn_stream(self, stream: int, headers: Mapping[str, str], *, last: bool = False) -> bytes:
        """Return a frame that opens a stream."""
        return self._control(SYN_STREAM, struct.pack(">IIH", stream, 0, 0) + self._pack(headers), FIN if last else 0)

    def syn_reply(self, stream: int) -> bytes:
        """Return a frame that accepts a stream."""
        return self._control(SYN_REPLY, struct.pack(">I", stream) + self._pack({}))

    def reset(self, stream: int, status: int) -> bytes:
        """Return a frame that ends a stream in both directions."""
        return self._control(RST_STREAM, struct.pack(">II", stream, status))

    def ping(self, number: int) -> bytes:
        """Return a frame that requests or answers a ping."""
        return self._control(PING, struct.pack(">I", number))

    @staticmethod
    def _control(kind: int, payload: bytes, flags: int = 0) -> bytes:
        return _HEAD.pack(0x80000000 | _VERSION << 16 | kind, flags << 24 | len(payload)) + payload

    def _pack(self, headers: Mapping[str, str]) -> bytes:
        parts = [struct.pack(">I", len(headers))]
        for name, value in headers.items():
            for text in (name.lower().encode("latin-1", "replace"), value.encode("latin-1", "replace")):
                parts += [struct.pack(">I", len(text)), text]
        return self._packing.compress(b"".join(parts)) + self._packing.flush(zlib.Z_SYNC_FLUSH)


class Reader:
    """Converts bytes to frames."""

    def __init__(self) -> None:
        self._buffer = bytearray()
        self._unpacking = zlib.decompressobj(zdict=DICTIONARY)

    def feed(self, data: bytes) -> Iterator[Frame]:
        """Yield the complete frames; raises SpdyError. Frames that the caller does not take stay for the next call."""
        self._buffer += data
        while len(self._buffer) >= _HEAD.size:
            first, second = _HEAD.unpack_from(self._buffer)
            is_control, flags, length = bool(first >> 31), second >> 24, second & 0xFFFFFF
            if length > (_MAX_CONTROL if is_control else MAX_DATA):
                raise SpdyError(f"a frame of {length} bytes is longer than allowed")
            end = _HEAD.size + length
            if len(self._buffer) < end:
                return
            payload = bytes(self._buffer[_HEAD.size : end])
            del self._buffer[:end]
            if not is_control:
                yield Frame(0, first & _ID, flags, payload=payload)
            elif (version := first >> 16 & 0x7FFF) != _VERSION:
                raise SpdyError(f"a frame of SPDY version {version}, not {_VERSION}")
            else:
                yield self._control(first & 0xFFFF, flags, payload)

    def _control(self, kind: int, flags: int, payload: bytes) -> Frame:
        """Return a control frame. The content of SETTINGS, WINDOW_UPDATE and unknown frames is not read.

        No peer in Kubernetes counts windows: the connection that carries the frames slows the sender down.
        """
        try:
            if kind == SYN_STREAM:
                number, _, _ = struct.unpack_from(">IIH", payload)
                return Frame(kind, number & _ID, flags, headers=self._unpack(payload[10:]))
            if kind in {SYN_REPLY, HEADERS}:
                (number,) = struct.unpack_from(">I", payload)
                return Frame(kind, number & _ID, flags, headers=self._unpack(payload[4:]))
            if kind in {RST_STREAM, GOAWAY}:
                number, status = struct.unpack_from(">II", payload)
                return Frame(kind, number & _ID, flags, status=status)
            if kind == PING:
                return Frame(kind, struct.unpack_from(">I", payload)[0], flags)
        except struct.error as error:
            raise SpdyError(f"a control frame of type {kind} is truncated") from error
        return Frame(kind, 0, flags)

    def _unpack(self, block: bytes) -> Mapping[str, str]:
        try:
            plain = self._unpacking.decompress(block, _MAX_HEADERS)
        except zlib.error as error:
            raise SpdyError("headers cannot be decompressed") from error
        if self._unpacking.unconsumed_tail:
            raise SpdyError(f"headers are longer than {_MAX_HEADERS} bytes")
        (count,) = struct.unpack_from(">I", plain)
        if count > len(plain) // 8:
            raise SpdyError("a control frame has fewer headers than its count")
        texts, at = [], 4
        for _ in range(2 * count):
            (length,) = struct.unpack_from(">I", plain, at)
            at += 4 + length
            if at > len(plain):
                raise SpdyError("a header is truncated")
            texts.append(plain[at - length : at].decode("latin-1"))
        return {name.lower(): value for name, value in zip(texts[::2], texts[1::2], strict=True)}
