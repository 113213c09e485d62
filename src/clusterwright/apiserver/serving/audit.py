"""The audit log: each request, including refused ones and those of our own controllers. No bodies: they may hold Secrets.

A request is recorded when it is answered or refused; a watch, whose answer is a stream, when the stream begins and when it ends.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final
from urllib.parse import urlencode

from clusterwright.api.meta import Json
from clusterwright.api.wire import Request, Response
from clusterwright.apiserver.core import Core
from clusterwright.apiserver.identity import ANONYMOUS, User, user_info
from clusterwright.apiserver.requestinfo import parse
from clusterwright.apiserver.storage.streams import Stream

# fmt: off
_PARAMETERS: Final = frozenset({
    "allowWatchBookmarks", "container", "continue", "dryRun", "fieldManager", "fieldSelector", "fieldValidation", "follow",
    "force", "gracePeriodSeconds", "hash", "ignoreStoreReadErrorWithClusterBreakingPotential", "includeObject",
    "insecureSkipTLSVerifyBackend", "labelSelector", "limit", "limitBytes", "orphanDependents", "ports", "pretty", "previous",
    "propagationPolicy", "resourceVersion", "resourceVersionMatch", "sendInitialEvents", "sinceSeconds", "sinceTime", "stderr",
    "stdin", "stdout", "tailLines", "timeout", "timeoutSeconds", "timestamps", "tty", "verbose", "exclude", "watch",
})
# fmt: on
"""Query parameters whose values are written to the audit log."""


COMPLETE: Final = "ResponseComplete"
STARTED: Final = "ResponseStarted"


@dataclass(frozen=True, slots=True)
class Record:
    """The audit log: user, action, time and outcome of each request."""

    received: datetime
    answered: datetime
    user: User
    acting_as: User
    """The impersonated user; `user` itself if there is none."""
    request: Request
    code: int
    audit_id: str
    stage: str = COMPLETE

    def event(self) -> Json:
        """Return the record as an audit.k8s.io/v1 Event at level Metadata."""
        request = self.request
        info = parse(request.method, request.path, watch=any(k == "watch" and v.lower() not in {"false", "0"} for k, v in request.query))
        reference = {"resource": info.resource, "namespace": info.namespace, "name": info.name, "apiGroup": info.group,
                     "apiVersion": info.version, "subresource": info.subresource}  # fmt: skip
        event: Json = {
            "kind": "Event",
            "apiVersion": "audit.k8s.io/v1",
            "level": "Metadata",
            "auditID": self.audit_id,
            "stage": self.stage,
            "requestURI": f"{request.path}?{urlencode(_redacted(request.query))}" if request.query else request.path,
            "verb": info.verb,
            "user": user_info(self.user),
            "userAgent": request.headers.get("user-agent", ""),
            "responseStatus": {"metadata": {}, "code": self.code},
            "requestReceivedTimestamp": _micro(self.received),
            "stageTimestamp": _micro(self.answered),
        }
        if self.acting_as is not self.user:
            event["impersonatedUser"] = user_info(self.acting_as)
        if info.is_resource:
            event["objectRef"] = {k: v for k, v in reference.items() if v}
        return event


def _redacted(query: Iterable[tuple[str, str]]) -> list[tuple[str, str]]:
    """Hide the values of unknown parameters: clients put tokens and passwords there by mistake."""
    return [(key if key in _PARAMETERS else key[:64], value if key in _PARAMETERS else "REDACTED") for key, value in query]


def _micro(time: datetime) -> str:
    return time.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


class Seen:
    """A request and its user, as far as known; recorded when it is answered or refused."""

    def __init__(self, server: Core, request: Request, log: Callable[[Record], None] | None) -> None:
        self._server = server
        self._request = request
        self._log = log
        self._received = server.now()
        self._stream: tuple[int, str] | None = None
        """The status code and audit ID of a stream that has begun."""
        self.real = self.user = ANONYMOUS
        """The authenticated user, and the impersonated one."""

    def answered(self, answer: Response | Stream) -> None:
        """Record the outcome, or the beginning of a stream."""
        log, self._log = self._log, None
        if log is None:
            return
        audit_id = self._server.new_uid()
        if isinstance(answer, Stream):
            self._log, self._stream = log, (answer.response.status, audit_id)
            self._record(log, answer.response.status, audit_id, STARTED)
        else:
            self._record(log, answer.status, audit_id, COMPLETE)

    def ended(self) -> None:
        """Record the end of a stream; do nothing for other answers."""
        log, stream, self._log, self._stream = self._log, self._stream, None, None
        if log is not None and stream is not None:
            self._record(log, *stream, COMPLETE)

    def _record(self, log: Callable[[Record], None], code: int, audit_id: str, stage: str) -> None:
        log(Record(self._received, self._server.now(), self.real, self.user, self._request, code, audit_id, stage))


def in_process(server: Core, log: Callable[[Record], None], request: Request, user: User, answer: Response) -> None:
    """Record a request that did not come over the network."""
    log(Record(server.now(), server.now(), user, user, request, answer.status, server.new_uid()))
