"""Rights that the API server denies us: named when they are first missed, and for as long as they are missing.

A controller without a right looks like one that has nothing to do. So every refusal is listened for where all requests pass:
the first is logged at once with verb, resource and what stands still because of it; readiness fails with the same words until
the same request succeeds.
"""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass

import msgspec

from clusterwright.api.copying import replace
from clusterwright.api.wire import UNREADABLE, Request, Response, Transport
from clusterwright.runtime.logging import get_logger
from clusterwright.runtime.transports import Around

_VERBS = {"POST": "create", "PUT": "update", "PATCH": "patch", "DELETE": "delete"}
_DENIED = re.compile(r' cannot (\w+) resource "([^"]+)" in API group "([^"]*)"')
"""Authorizers say `User "x" cannot list resource "r" in API group "g" ...`; admission, which answers 403 as well, says something else.

They name what is missing, which is not always what was asked for: an apply of what is not there needs the right to create it.
"""

_log = get_logger("rights")


@dataclass(frozen=True, slots=True, order=True)
class Right:
    """To do something with a resource; `namespace` empty: everywhere."""

    verb: str
    resource: str
    """`machines.cluster.x-k8s.io/status`."""
    namespace: str = ""

    def __str__(self) -> str:
        return f"{self.verb} {self.resource}" + (f" in namespace {self.namespace}" if self.namespace else "")


class _Status(msgspec.Struct):
    message: str = ""


class Rights:
    """Which rights are missing now. `stands_still` says what cannot go on without one."""

    def __init__(self, stands_still: Callable[[Right], str]) -> None:
        self._stands_still = stands_still
        self.missing: dict[Right, str] = {}
        """What stands still, by right."""

    def answered(self, request: Request, status: int, body: bytes) -> None:
        """Take note of an answer."""
        if status != 403:
            if self.missing and status < 400:
                self._granted(request, status)
            return
        try:
            message = msgspec.json.decode(body, type=_Status).message
        except UNREADABLE:
            return
        denied = _DENIED.search(message)
        if denied is None:
            return
        verb, resource, group = denied.groups()
        plural, slash, subresource = resource.partition("/")
        right = Right(verb, (f"{plural}.{group}" if group else plural) + slash + subresource, right_of(request).namespace)
        if right in self.missing:
            return
        self.missing[right] = what = self._stands_still(right)
        _log.warning("A right is missing", right=str(right), stands_still=what, answer=message)

    def _granted(self, request: Request, status: int) -> None:
        right = right_of(request)
        made = (replace(right, verb="create"),) if request.method == "PATCH" and status == 201 else ()
        for now in (right, *made):
            if self.missing.pop(now, None) is not None:
                _log.warning("A right was granted", right=str(now))

    @property
    def complaint(self) -> str:
        """What is missing, for readiness; empty: nothing."""
        return "; ".join(f"not allowed to {right} ({what})" for right, what in sorted(self.missing.items()))


class Listening(Around):
    """A transport that tells `Rights` of every answer."""

    def __init__(self, inner: Transport, rights: Rights) -> None:
        super().__init__(inner)
        self._rights = rights

    async def send(self, request: Request) -> Response:
        """Send one request."""
        response = await self._inner.send(request)
        self._rights.answered(request, response.status, response.body)
        return response

    async def stream(self, request: Request) -> tuple[Response, AsyncIterator[bytes]]:
        """Return a watch."""
        response, lines = await self._inner.stream(request)
        self._rights.answered(request, response.status, response.body)
        return response, lines


def right_of(request: Request) -> Right:
    """Return the right that a request needs."""
    parts = request.path.strip("/").split("/")
    group, parts = ("", parts[2:]) if parts[0] == "api" else (parts[1] if len(parts) > 1 else "", parts[3:])
    namespace = ""
    if parts[:1] == ["namespaces"] and len(parts) > 2:
        namespace, parts = parts[1], parts[2:]
    plural, name, subresource = (*parts, "", "", "")[:3]
    resource = (f"{plural}.{group}" if group else plural) + (f"/{subresource}" if subresource else "")
    verb = _VERBS.get(request.method, "get" if name else "list")
    if request.method == "GET" and not name and ("watch", "true") in request.query:
        verb = "watch"
    if request.method == "DELETE" and not name:
        verb = "deletecollection"
    return Right(verb, resource or request.path, namespace)
