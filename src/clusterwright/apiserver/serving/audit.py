"""The audit log: one record per request, without bodies (they may hold Secrets)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from clusterwright.api.meta import Json
from clusterwright.api.wire import Request, Response
from clusterwright.apiserver.auth.identity import User
from clusterwright.apiserver.metadata import rfc3339
from clusterwright.apiserver.requestinfo import parse
from clusterwright.apiserver.server import ApiServer
from clusterwright.apiserver.storage.streams import Stream


@dataclass(frozen=True, slots=True)
class Record:
    """Who did what, when, and with which outcome."""

    time: str
    user: User
    method: str
    path: str
    code: int
    audit_id: str

    def event(self) -> Json:
        """The record as an audit.k8s.io/v1 Event at level Metadata."""
        info = parse(self.method, self.path)
        reference = {"resource": info.resource, "namespace": info.namespace, "name": info.name, "apiGroup": info.group,
                     "apiVersion": info.version, "subresource": info.subresource}  # fmt: skip
        event: Json = {
            "kind": "Event",
            "apiVersion": "audit.k8s.io/v1",
            "level": "Metadata",
            "auditID": self.audit_id,
            "stage": "ResponseComplete",
            "requestURI": self.path,
            "verb": info.verb,
            "user": {"username": self.user.name, "groups": list(self.user.groups)},
            "responseStatus": {"metadata": {}, "code": self.code},
            "requestReceivedTimestamp": self.time,
            "stageTimestamp": self.time,
        }
        if info.is_resource:
            event["objectRef"] = {k: v for k, v in reference.items() if v}
        return event


async def handle(server: ApiServer, request: Request, user: User, log: Callable[[Record], None]) -> Response | Stream:
    """Serve a request and record it."""
    time = rfc3339(server.now())
    answer = await server.handle(request, user)
    code = answer.response.status if isinstance(answer, Stream) else answer.status
    log(Record(time, user, request.method, request.path, code, server.new_uid()))
    return answer
