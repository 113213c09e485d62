"""TLS on a stream of bytes, for either side, through memory buffers; and the key pair of a side."""

from __future__ import annotations

import os
import ssl
import tempfile
from collections.abc import Callable
from typing import Final, TypeVar

from clusterwright.api.wire import Duplex

T = TypeVar("T")

LONGEST_KEY: Final = 8 * 1024
"""The longest private key in PEM, in bytes. RSA with 8,192 bits has 6,400; the cost of a handshake grows with the cube of the size."""
LONGEST_BUNDLE: Final = 1024 * 1024
"""The longest PEM of all authorities, in bytes; the bundle of a Linux distribution has 250,000."""


def use_certificate(context: ssl.SSLContext, chain: bytes, key: bytes) -> None:
    """Make the context present this certificate (PEM). Raises ssl.SSLError if it cannot be used or its key is too long.

    The ssl module reads keys from files only, so the key is in a private temporary file for a moment.
    """
    if len(key) > LONGEST_KEY:
        raise ssl.SSLError(f"the private key has {len(key)} bytes, at most {LONGEST_KEY} are allowed: use RSA with at most 8192 bits")
    descriptor, path = tempfile.mkstemp()
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(chain + b"\n" + key)
        context.load_cert_chain(path)
    finally:
        os.unlink(path)


def authorities(pem: bytes) -> str:
    """Return a bundle of authorities (PEM) in the form for SSL contexts. Raises ssl.SSLError if it has no certificate or is too long.

    Comments between certificates may be in any language. They are removed, because the ssl module refuses the whole bundle for them.
    """
    if len(pem) > LONGEST_BUNDLE:
        raise ssl.SSLError(f"the bundle of authorities has {len(pem)} bytes, at most {LONGEST_BUNDLE} are allowed")
    text = pem.decode("ascii", "ignore").replace("\0", "")
    if "-----BEGIN" not in text:
        raise ssl.SSLError("the PEM data contain no certificate")
    return text


class TlsStream:
    """A Duplex of bytes inside another.

    `server_name` is the name that a client requests; None: this is the server's side. `session`: the session of an earlier stream with the
    same context and server, which allows a shorter handshake.
    """

    def __init__(
        self, duplex: Duplex, context: ssl.SSLContext, server_name: str | None = None, session: ssl.SSLSession | None = None
    ) -> None:
        self._duplex = duplex
        self._incoming, self._outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._tls = context.wrap_bio(
            self._incoming, self._outgoing, server_side=server_name is None, server_hostname=server_name or None, session=session
        )

    async def handshake(self) -> None:
        """Agree on keys; raises ssl.SSLError, ConnectionResetError."""
        try:
            await self._until(self._tls.do_handshake)
        except ssl.SSLError:
            await self._flush()  # the alert says why
            raise

    def peer_certificate(self) -> bytes:
        """Return the peer's certificate, DER; empty if it sent none."""
        return self._tls.getpeercert(binary_form=True) or b""

    def session(self) -> ssl.SSLSession | None:
        """Return the session for a later stream; the server sends it with its first bytes."""
        return self._tls.session

    def is_resumed(self) -> bool:
        """Return whether the server resumed the session."""
        return bool(self._tls.session_reused)

    def protocol(self) -> str:
        """Return the protocol that both sides agreed on (ALPN); empty if there is none."""
        return self._tls.selected_alpn_protocol() or ""

    async def send(self, message: bytes) -> None:
        """Send all bytes."""
        view = memoryview(message)
        while view:
            view = view[self._tls.write(view) :]
            await self._flush()

    async def receive(self) -> bytes | None:
        """Return some bytes; None at the end of the stream."""
        try:
            return await self._until(lambda: self._tls.read(65536)) or None
        except (ssl.SSLZeroReturnError, ssl.SSLEOFError, ConnectionResetError):
            return None

    async def close(self) -> None:
        """Close the carrying stream."""
        await self._duplex.close()

    async def _until(self, step: Callable[[], T]) -> T:
        while True:
            try:
                result = step()
            except ssl.SSLWantReadError:
                await self._flush()
                data = await self._duplex.receive()
                if data is None:
                    raise ConnectionResetError("connection closed during the TLS handshake or in the middle of a record") from None
                self._incoming.write(data)
            else:
                await self._flush()
                return result

    async def _flush(self) -> None:
        if pending := self._outgoing.read():
            await self._duplex.send(pending)
