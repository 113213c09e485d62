"""Reach a simulated cluster without a network: with the same refusals and identities as over TLS."""

from __future__ import annotations

from collections.abc import AsyncIterator

import msgspec
from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.x509.oid import NameOID

from clusterwright.api.wire import Duplex, Request, Response
from clusterwright.apiserver.identity import ANONYMOUS, User
from clusterwright.apiserver.serving.inprocess import ForwardRefused, InProcessTransport
from clusterwright.inmemory.cluster import Serving, SimulatedCluster
from clusterwright.kubeadm.certificates import decode_certificate, decode_certificates
from clusterwright.runtime.errors import ApiError, ConnectionFailed, from_response


class LoopbackTransport:
    """A transport to one simulated cluster, as the holder of a client certificate."""

    def __init__(self, cluster: SimulatedCluster, authority: bytes, certificate: bytes) -> None:
        self._cluster = cluster
        self._authority = authority
        self._certificate = certificate
        self._known: tuple[Serving, InProcessTransport] | None = None

    def _inner(self) -> InProcessTransport:
        cluster, serving = self._cluster, self._cluster.serving
        if not cluster.is_serving or serving is None:
            raise ConnectionFailed(f"dial tcp {cluster.endpoint}: connect: connection refused")
        if self._known is None or self._known[0] is not serving:  # both sides show their certificates once, as in a TLS session
            if not _share_a_certificate(self._authority, serving.authority.certificate):
                raise ConnectionFailed("tls: failed to verify certificate: x509: certificate signed by unknown authority")
            user = user_of(self._certificate, serving.client_authorities)
            self._known = serving, InProcessTransport(cluster.server, user)
        return self._known[1]

    async def send(self, request: Request) -> Response:
        """Send one request and return its whole answer. Refused while the cluster does not answer."""
        return await self._inner().send(request)

    async def stream(self, request: Request) -> tuple[Response, AsyncIterator[bytes]]:
        """Return a watch; it ends when the cluster stops to answer."""
        return await self._inner().stream(request)

    async def forward(self, request: Request, port: int) -> Duplex:
        """Return a port of a Pod."""
        try:
            return await self._inner().forward(request, port)
        except ForwardRefused as refused:
            raise _refusal(refused) from refused

    async def close(self) -> None:
        """Do nothing: there is nothing to release."""


def _refusal(refused: ForwardRefused) -> ApiError:
    code = refused.status.get("code", 500)
    return from_response(code if isinstance(code, int) else 500, msgspec.json.encode(refused.status))


def user_of(certificate: bytes, authorities: bytes) -> User:
    """Return the user of a client certificate, if one of the authorities has signed it; anonymous without one. Raises ConnectionFailed."""
    if not certificate:
        return ANONYMOUS
    try:
        client = decode_certificate(certificate)  # of a bounded size, because the cost of the check grows with it
        known = any(_has_signed(authority, client) for authority in decode_certificates(authorities))
    except ValueError as error:
        raise ConnectionFailed("remote error: tls: unknown certificate authority") from error
    if not known:
        raise ConnectionFailed("remote error: tls: unknown certificate authority")
    names = [str(a.value) for a in client.subject.get_attributes_for_oid(NameOID.COMMON_NAME)]
    groups = [str(a.value) for a in client.subject.get_attributes_for_oid(NameOID.ORGANIZATION_NAME)]
    return User(names[0] if names else "", (*groups, "system:authenticated"))


def _has_signed(authority: x509.Certificate, client: x509.Certificate) -> bool:
    try:
        client.verify_directly_issued_by(authority)
    except (ValueError, TypeError, InvalidSignature):
        return False
    return True


def _share_a_certificate(one: bytes, other: bytes) -> bool:
    try:
        return bool(set(x509.load_pem_x509_certificates(one)) & set(x509.load_pem_x509_certificates(other)))
    except ValueError:
        return False
