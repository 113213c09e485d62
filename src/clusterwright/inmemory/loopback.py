"""Reaching a simulated cluster without a network: the same refusals and identities as over TLS, none of the cost."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import msgspec
from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.x509.oid import NameOID

from clusterwright.api.wire import Duplex, Request, Response
from clusterwright.apiserver.identity import ANONYMOUS, User
from clusterwright.apiserver.inprocess import InProcessTransport, UpgradeRefused
from clusterwright.inmemory.cluster import SimulatedCluster
from clusterwright.runtime.errors import ApiError, ConnectionFailed, from_response


class LoopbackTransport:
    """A transport to one simulated cluster, as the holder of a client certificate."""

    def __init__(self, cluster: SimulatedCluster, authority: bytes, certificate: bytes) -> None:
        self._cluster = cluster
        self._authority = authority
        self._certificate = certificate
        self._gone = asyncio.Event()
        self._unsubscribe = cluster.on_change(self._changed)

    def _changed(self) -> None:
        if not self._cluster.is_serving:
            self._gone.set()
            self._gone = asyncio.Event()

    def _inner(self) -> InProcessTransport:
        cluster = self._cluster
        if not cluster.is_serving or cluster.serving is None:
            raise ConnectionFailed(f"dial tcp {cluster.endpoint}: connect: connection refused")
        if not _share_a_certificate(self._authority, cluster.serving.authority.certificate):
            raise ConnectionFailed("tls: failed to verify certificate: x509: certificate signed by unknown authority")
        return InProcessTransport(cluster.server, user_of(self._certificate, cluster.serving.authority.certificate))

    async def send(self, request: Request) -> Response:
        """One request, one whole answer; refused while the cluster does not answer."""
        return await self._inner().send(request)

    async def stream(self, request: Request) -> tuple[Response, AsyncIterator[bytes]]:
        """A watch; cut when the cluster ceases to answer."""
        response, lines = await self._inner().stream(request)
        return response, self._until_gone(lines)

    async def _until_gone(self, lines: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
        gone = asyncio.ensure_future(self._gone.wait())
        try:
            while True:
                line = asyncio.ensure_future(anext(lines))
                await asyncio.wait({gone, line}, return_when=asyncio.FIRST_COMPLETED)
                if not line.done():
                    line.cancel()
                    raise ConnectionFailed(f"read tcp {self._cluster.endpoint}: connection reset by peer")
                try:
                    yield line.result()
                except StopAsyncIteration:
                    return
        finally:
            gone.cancel()

    async def upgrade(self, request: Request, protocols: tuple[str, ...]) -> Duplex:
        """A stream in both directions."""
        try:
            return await self._inner().upgrade(request, protocols)
        except UpgradeRefused as refused:
            raise _refusal(refused) from refused

    async def close(self) -> None:
        """No longer follow the cluster."""
        self._unsubscribe()


def _refusal(refused: UpgradeRefused) -> ApiError:
    code = refused.status.get("code", 500)
    return from_response(code if isinstance(code, int) else 500, msgspec.json.encode(refused.status))


def user_of(certificate: bytes, authority: bytes) -> User:
    """Whom a client certificate names, if the authority has signed it; anonymous without one. Raises ConnectionFailed."""
    if not certificate:
        return ANONYMOUS
    try:
        client = x509.load_pem_x509_certificate(certificate)
        client.verify_directly_issued_by(x509.load_pem_x509_certificate(authority))
    except (ValueError, TypeError, InvalidSignature) as error:
        raise ConnectionFailed("remote error: tls: unknown certificate authority") from error
    names = [str(a.value) for a in client.subject.get_attributes_for_oid(NameOID.COMMON_NAME)]
    groups = [str(a.value) for a in client.subject.get_attributes_for_oid(NameOID.ORGANIZATION_NAME)]
    return User(names[0] if names else "", (*groups, "system:authenticated"))


def _share_a_certificate(one: bytes, other: bytes) -> bool:
    try:
        return bool(set(x509.load_pem_x509_certificates(one)) & set(x509.load_pem_x509_certificates(other)))
    except ValueError:
        return False
