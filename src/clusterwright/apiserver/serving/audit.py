"""The audit log: one record for each request, including refused ones and those of our own controllers. No bodies: they may hold Secrets."""

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
"""Parameters whose values are written to the audit log."""


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
            "stage": "ResponseComplete",
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
    """Hide the values of parameters that the API does not have: clients put tokens and passwords there by mistake."""
    return [(key if key in _PARAMETERS else key[:64], value if key in _PARAMETERS else "REDACTED") for key, value in query]


def _micro(time: datetime) -> str:
    return time.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


class Seen:
    """A request and its user as far as they are known; recorded once, when it is answered or refused."""

    def __init__(self, server: Core, request: Request, log: Callable[[Record], None] | None) -> None:
        self._server = server
        self._request = request
        self._log = log
        self._received = server.now()
        self.real = self.user = ANONYMOUS
        """The authenticated user, and the user that it acts as."""

    def answered(self, answer: Response | Stream) -> None:
        """Record the outcome."""
        log, self._log = self._log, None
        if log is None:
            return
        code = answer.response.status if isinstance(answer, Stream) else answer.status
        now = self._server.now()
        log(Record(self._received, now, self.real, self.user, self._request, code, self._server.new_uid()))


def in_process(server: Core, log: Callable[[Record], None], request: Request, user: User, answer: Response) -> None:
    """Record a request that did not come over the network."""
    log(Record(server.now(), server.now(), user, user, request, answer.status, server.new_uid()))
