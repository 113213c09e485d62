"""The audit log: one record per request, refused ones and those of our own controllers included; no bodies (they may hold Secrets)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from clusterwright.api.meta import Json
from clusterwright.api.wire import Request, Response
from clusterwright.apiserver.auth.identity import ANONYMOUS, User
from clusterwright.apiserver.core import Core
from clusterwright.apiserver.metadata import rfc3339
from clusterwright.apiserver.requestinfo import parse
from clusterwright.apiserver.storage.streams import Stream


@dataclass(frozen=True, slots=True)
class Record:
    """Who did what, when, and with which outcome."""

    time: str
    user: User
    acting_as: User
    """The user that was impersonated; `user` itself where nobody was."""
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
        if self.acting_as is not self.user:
            event["impersonatedUser"] = {"username": self.acting_as.name, "groups": list(self.acting_as.groups)}
        if info.is_resource:
            event["objectRef"] = {k: v for k, v in reference.items() if v}
        return event


class Seen:
    """A request as far as it is known who makes it; it is recorded once, when it is answered, refusals included."""

    def __init__(self, server: Core, request: Request, log: Callable[[Record], None] | None) -> None:
        self._server = server
        self._request = request
        self._log = log
        self._time = rfc3339(server.now()) if log is not None else ""
        self.real = self.user = ANONYMOUS
        """Who asks, and as whom."""

    def answered(self, answer: Response | Stream) -> None:
        """Record the outcome."""
        log, self._log = self._log, None
        if log is None:
            return
        code = answer.response.status if isinstance(answer, Stream) else answer.status
        log(Record(self._time, self.real, self.user, self._request.method, self._request.path, code, self._server.new_uid()))


def in_process(server: Core, log: Callable[[Record], None], request: Request, user: User, answer: Response) -> None:
    """Record a request that did not come over the network."""
    log(Record(rfc3339(server.now()), user, user, request.method, request.path, answer.status, server.new_uid()))
