"""Detect permissions that the API server denies us, and report them as long as they are missing.

A controller without a permission looks idle. So all answers are checked for refusals: the first is logged at once with verb, resource and
effect; readiness fails with the same words until the same request succeeds.
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
"""Authorizers answer `User "x" cannot list resource "r" in API group "g" ...`; admission, which also answers 403, has other texts.

The text names the missing permission, which may differ from the request: an apply of a missing object needs `create`.
"""

_log = get_logger("rights")


@dataclass(frozen=True, slots=True, order=True)
class Right:
    """The permission for a verb on a resource; `namespace` empty: everywhere."""

    verb: str
    resource: str
    """The resource, for example `machines.cluster.x-k8s.io/status`."""
    namespace: str = ""

    def __str__(self) -> str:
        return f"{self.verb} {self.resource}" + (f" in namespace {self.namespace}" if self.namespace else "")


class _Status(msgspec.Struct):
    message: str = ""


class Rights:
    """The permissions that are missing now. `stands_still` describes the effect of a missing one."""

    def __init__(self, stands_still: Callable[[Right], str]) -> None:
        self._stands_still = stands_still
        self.missing: dict[Right, str] = {}
        """The effect of each missing permission."""

    def answered(self, request: Request, status: int, body: bytes) -> None:
        """Handle an answer."""
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
        _log.warning("A permission is missing", right=str(right), stands_still=what, answer=message)

    def _granted(self, request: Request, status: int) -> None:
        right = right_of(request)
        made = (replace(right, verb="create"),) if request.method == "PATCH" and status == 201 else ()
        for now in (right, *made):
            if self.missing.pop(now, None) is not None:
                _log.warning("A permission was granted", right=str(now))

    @property
    def complaint(self) -> str:
        """Return what is missing, for readiness; empty: nothing."""
        return "; ".join(f"not allowed to {right} ({what})" for right, what in sorted(self.missing.items()))


class Listening(Around):
    """A transport that passes every answer to `Rights`."""

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
    """Return the permission that a request needs."""
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
