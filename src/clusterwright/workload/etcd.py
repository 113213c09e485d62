"""An etcd client with gRPC through a tunnel to one member.

The tunnel is a port-forward through the workload cluster's API server; the dialler chooses its target. Member ids are decimal
text.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final
from weakref import WeakKeyDictionary

from clusterwright.api.meta import Json
from clusterwright.api.wire import Duplex
from clusterwright.runtime.errors import ApiError
from clusterwright.streams import etcdrpc
from clusterwright.streams.etcdrpc import METHODS
from clusterwright.streams.grpc import Channel, GrpcError
from clusterwright.streams.protobuf import Malformed
from clusterwright.streams.tls import TlsStream, authorities, use_certificate
from clusterwright.workload.access import EtcdError, EtcdMember, EtcdStatus

DIAL_TIMEOUT = 10.0
CALL_TIMEOUT = 15.0
CLIENT_PORT = 2379

_SESSIONS: Final[WeakKeyDictionary[ssl.SSLContext, dict[str, ssl.SSLSession]]] = WeakKeyDictionary()
"""TLS sessions by endpoint, as long as the context is used: every pass calls members, and signatures are expensive."""

Dial = Callable[[str], Awaitable[Duplex]]
"""Opens a tunnel to the etcd client port of the member on a Node."""


@dataclass(frozen=True, slots=True)
class EtcdCredentials:
    """Credentials for etcd: its CA's certificate, and a client certificate with its key, in PEM."""

    authority: bytes
    certificate: bytes
    key: bytes

    def __repr__(self) -> str:
        return "EtcdCredentials(...)"


def client_context(credentials: EtcdCredentials) -> ssl.SSLContext:
    """Return a TLS context with the client certificate that trusts only etcd's CA.

    The tunnel determines the member, not a host name in its certificate.
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.check_hostname = False
    context.set_alpn_protocols(["h2"])
    context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN  # an authority need not be self-signed
    context.load_verify_locations(cadata=authorities(credentials.authority))
    use_certificate(context, credentials.certificate, credentials.key)
    return context


class MemberClient:
    """An `EtcdClient` from `connect`, which has already called the status."""

    def __init__(self, stream: TlsStream, endpoint: str) -> None:
        self._stream = stream
        self._channel = Channel(stream, endpoint)
        self.endpoint = endpoint
        self.status = EtcdStatus()

    @staticmethod
    async def connect(dial: Dial, node: str, context: ssl.SSLContext) -> MemberClient:
        """Return a client of the member on `node`, once it has answered a status call; raises EtcdError."""
        endpoint = f"etcd-{node}"
        sessions = _SESSIONS.setdefault(context, {})
        stream: TlsStream | None = None
        try:
            async with asyncio.timeout(DIAL_TIMEOUT):
                stream = TlsStream(await dial(node), context, endpoint, sessions.get(endpoint))
                await stream.handshake()
                if stream.protocol() != "h2":
                    raise EtcdError("the member does not offer HTTP/2, which gRPC needs")
            client = MemberClient(stream, endpoint)
            client.status = await client._fetch_status()
        except BaseException as error:  # who is cancelled while it connects leaves no stream open either
            if stream is not None:
                await stream.close()
            if isinstance(error, (EtcdError, OSError, ApiError, TimeoutError)):
                raise EtcdError(f"failed to get etcd status: {_text(error)}") from error
            raise
        if (session := stream.session()) is not None:
            sessions[endpoint] = session
        return client

    async def members(self) -> Sequence[EtcdMember]:
        """Return the members (without alarms)."""
        answer = await self._call("MemberList", linearizable=True)
        leader = self.status.leader_id
        return [
            EtcdMember(
                id=str(m.get("ID", "0")),
                name=str(m.get("name", "")),
                is_learner=bool(m.get("isLearner", False)),
                is_leader=str(m.get("ID", "0")) == leader,
                peer_urls=tuple(m.get("peerURLs") or ()),
            )
            for m in answer.get("members") or ()
        ]

    async def alarms(self) -> Sequence[tuple[str, str]]:
        """Return (member id, alarm type) of every active alarm."""
        answer = await self._call("Alarm", action="GET")
        return [(str(a.get("memberID", "0")), str(a.get("alarm", "NONE"))) for a in answer.get("alarms") or ()]

    async def remove_member(self, member_id: str) -> None:
        """Remove a member for good."""
        await self._call("MemberRemove", ID=member_id)

    async def move_leader(self, member_id: str) -> None:
        """Make a member the leader; this endpoint must be the present one."""
        await self._call("MoveLeader", targetID=member_id)

    async def close(self) -> None:
        """Release the connection."""
        await self._stream.close()

    async def _fetch_status(self) -> EtcdStatus:
        answer = await self._call("Status")
        return EtcdStatus(leader_id=str(answer.get("leader", "0")), errors=tuple(str(e) for e in answer.get("errors") or ()))

    async def _call(self, method: str, **body: Any) -> Json:
        called = METHODS[method]
        try:
            async with asyncio.timeout(CALL_TIMEOUT):
                answer = await self._channel.unary(called.path, etcdrpc.encode(called.request, body), seconds=CALL_TIMEOUT)
            return etcdrpc.decode(called.response, answer)
        except Malformed as error:
            raise EtcdError(f"unreadable answer: {error}") from error
        except (OSError, TimeoutError, GrpcError, ApiError) as error:
            raise EtcdError(_text(error)) from error


def _text(error: BaseException) -> str:
    if isinstance(error, TimeoutError):
        return "context deadline exceeded"
    return str(error) or type(error).__name__


async def first_available(dial: Dial, nodes: Sequence[str], context: ssl.SSLContext) -> MemberClient:
    """Return a client of the first member, in the order of `nodes`, that answers; raises EtcdError naming every failure."""
    if not nodes:
        raise EtcdError("could not establish a connection to any etcd member: there are no Nodes")
    failures: list[str] = []
    for node in nodes:
        try:
            return await MemberClient.connect(dial, node, context)
        except EtcdError as error:
            failures.append(str(error))
    raise EtcdError(f"could not establish a connection to etcd members hosted on {','.join(nodes)}: {'; '.join(failures)}")
