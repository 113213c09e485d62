"""The part of the gallery that speaks no proper HTTP: ambiguous requests, other protocols, streams without an end."""

from __future__ import annotations

from typing import Final

from security.attacks import HEAD, Raw, _hold, many

_LINE: Final = b"POST /apis/authorization.k8s.io/v1/selfsubjectaccessreviews HTTP/1.1\r\nHost: x\r\n"
_SECOND: Final = b"GET /version HTTP/1.1\r\nHost: x\r\n\r\n"
PIPELINED: Final = _LINE + b"Content-Length: 2\r\n\r\n{}" + _SECOND.replace(b"Host: x", b"Host: x\r\nConnection: close")
"""Two requests, and no doubt where the first one ends."""
SMUGGLED: Final[dict[str, bytes]] = {
    "cl-te": _LINE + b"Content-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n" + _SECOND,
    "te-cl": _LINE + b"Transfer-Encoding: chunked\r\nContent-Length: 3\r\n\r\n0\r\n\r\n" + _SECOND,
    "te-te": _LINE + b"Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n\r\n0\r\n\r\n" + _SECOND,
    "te-odd": _LINE + b"Transfer-Encoding: xchunked\r\nContent-Length: 5\r\n\r\n0\r\n\r\n" + _SECOND,
    "te-space": _LINE + b"Transfer-Encoding : chunked\r\nContent-Length: 5\r\n\r\n0\r\n\r\n" + _SECOND,
    "cl-cl": _LINE + b"Content-Length: 0\r\nContent-Length: 40\r\n\r\n" + _SECOND,
    "cl-list": _LINE + b"Content-Length: 0, 40\r\n\r\n" + _SECOND,
    "cl-plus": _LINE + b"Content-Length: +0\r\n\r\n" + _SECOND,
    "cl-minus": _LINE + b"Content-Length: -1\r\n\r\n" + _SECOND,
    "cl-underscore": _LINE + b"Content-Length: 1_0\r\n\r\n" + _SECOND,
    "cl-digits": _LINE + b"Content-Length: " + b"9" * 5000 + b"\r\n\r\n" + _SECOND,
    "obs-fold": _LINE + b"X: a\r\n Transfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n0\r\n\r\n" + _SECOND,
    "bare-lf": _LINE + b"X: a\nContent-Length: 0\r\n\r\n" + _SECOND,
    "bare-cr": _LINE + b"X: a\rContent-Length: 0\r\n\r\n" + _SECOND,
    "lf-only": (_LINE + b"Content-Length: 40\r\n\r\n").replace(b"\r\n", b"\n") + _SECOND,
    "header-nul": _LINE + b"X: a\0b\r\nContent-Length: 0\r\n\r\n" + _SECOND,
    "chunk-size-sign": _LINE + b"Transfer-Encoding: chunked\r\n\r\n-1\r\n\r\n" + _SECOND,
    "chunk-size-0x": _LINE + b"Transfer-Encoding: chunked\r\n\r\n0x0\r\n\r\n" + _SECOND,
    "chunk-size-huge": _LINE + b"Transfer-Encoding: chunked\r\n\r\n" + b"f" * 400 + b"\r\n\r\n" + _SECOND,
    "no-host": b"GET /version HTTP/1.1\r\n\r\n" + b"\0" * 10 + _SECOND,
    "http2-preface": b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + b"\0\0\0\x04\0\0\0\0\0" + _SECOND,
    "absolute-uri": b"GET https://169.254.169.254/latest HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n" + _SECOND,
}
"""Ambiguous requests with a second one behind them: whoever is in front may see another border, so the second must not be answered."""

_UPGRADE: Final = b"/api/v1/namespaces/default/pods/x/portforward HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: "
_WEBSOCKET: Final = b"websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n"
_CHUNKED: Final = HEAD + b"Transfer-Encoding: chunked\r\n\r\n"
STREAMS: Final[dict[str, Raw]] = {
    "spdy-held": many(20, lambda h, p, c: _hold(h, p, c, b"POST " + _UPGRADE + b"SPDY/3.1\r\n\r\n", 0.5)),
    "spdy-flooded": lambda h, p, c: _hold(h, p, c, b"POST " + _UPGRADE + b"SPDY/3.1\r\n\r\n" + b"\x80\x03\0\x01" * 100_000, 0.5),
    "websocket-held": many(20, lambda h, p, c: _hold(h, p, c, b"GET " + _UPGRADE + _WEBSOCKET, 0.5)),
    "websocket-flooded": lambda h, p, c: _hold(h, p, c, b"GET " + _UPGRADE + _WEBSOCKET + b"\x82\xff" * 200_000, 0.5),
    "chunks-without-end": lambda h, p, c: _hold(h, p, c, _CHUNKED + b"1\r\nx\r\n" * 100_000, 0.5),
    "chunk-extension": lambda h, p, c: _hold(h, p, c, _CHUNKED + b"1;" + b"a" * 200_000, 0.5),
    "chunk-extensions": lambda h, p, c: _hold(h, p, c, _CHUNKED + (b"1;" + b"a" * 50 + b"\r\nx\r\n") * 10_000, 0.5),
    "trailers": lambda h, p, c: _hold(h, p, c, _CHUNKED + b"0\r\n" + b"X: y\r\n" * 50_000, 0.5),
    "http2": lambda h, p, c: _hold(h, p, c, b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + b"\0\0\0\x04\0\0\0\0\0" * 50_000, 0.5),
    "empty-lines": lambda h, p, c: _hold(h, p, c, b"\r\n" * 300_000, 0.5),
}
"""Connections that speak another protocol, or never stop."""
