"""The page over HTTP: a few files, a session, two streams and two queries. Everything is read-only."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import aclosing
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Final
from urllib.parse import unquote

import msgspec
from aiohttp import web

from clusterwright.api.meta import Json, ObjectKey
from clusterwright.apiserver.serving.connections import Connection
from clusterwright.dashboard.door import LASTING, Door
from clusterwright.dashboard.fleet import Fleet
from clusterwright.dashboard.reasons import NoTable, Reasons
from clusterwright.runtime.clock import Clock

SEGMENT: Final = "dashboard"
PREFIX: Final = f"/{SEGMENT}"
_FILES: Final[Mapping[str, str]] = {
    "index.html": "text/html",
    "app.js": "text/javascript",
    "fleet.js": "text/javascript",
    "cluster.js": "text/javascript",
    "details.js": "text/javascript",
    "elements.js": "text/javascript",
    "facts.js": "text/javascript",
    "keys.js": "text/javascript",
    "waterfall.js": "text/javascript",
    "style.css": "text/css",
    "icon.svg": "image/svg+xml",
}
_HEADERS: Final[Mapping[str, str]] = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), microphone=(), geolocation=()",
    "Cache-Control": "no-store",
}
STREAMS: Final = 32
"""The most streams at a time: each costs a task and the unread data of its reader."""
NO_SESSION: Final = "there is no session: run `clusterwright web`, or open the link that `clusterwright up` printed last"
_TOKEN_MAXIMUM: Final = 256
_TOKEN_SECONDS: Final = 5.0

Respond = Callable[["Site", web.BaseRequest, tuple[str, ...]], Awaitable[web.StreamResponse]]


@dataclass(frozen=True, slots=True)
class _Route:
    """A method and a path below the prefix; `*` stands for one segment, which is passed to `respond`."""

    method: str
    path: tuple[str, ...]
    respond: Respond
    is_open: bool = False
    """Whether it needs no session."""


class Site:
    """Answers every request below PREFIX."""

    def __init__(
        self,
        door: Door,
        fleet: Fleet,
        reasons: Reasons,
        clock: Clock,
        port: int,
        *,
        url: str = "",
        may_invite: Callable[[web.BaseRequest], bool] = lambda http: False,
        is_secure: bool = True,
    ) -> None:
        """`url`: of the server, for links. `may_invite`: whether a request may ask for a link. `is_secure`: the page is served by HTTPS."""
        self.door = door
        self.fleet = fleet
        self.reasons = reasons
        self.clock = clock
        self._streams = 0
        # browsers keep cookies by host, not by port: two planes on one machine must not take each other's
        self.cookie = f"__Secure-clusterwright-{port}" if is_secure else f"clusterwright-{port}"
        self.url = url
        self.may_invite = may_invite
        self.is_secure = is_secure

    async def __call__(self, http: web.BaseRequest) -> web.StreamResponse:
        """Return the answer to a request."""
        path = http.rel_url.raw_path.removeprefix(PREFIX)
        if not path:
            return web.Response(status=308, headers={**_HEADERS, "Location": f"{PREFIX}/"})
        segments = tuple(map(unquote, path.strip("/").split("/")))
        for route in ROUTES:
            given = _matched(route.path, segments)
            if given is None:
                continue
            if http.method != route.method and not (http.method == "HEAD" and route.method == "GET" and route.is_open):
                continue
            if not route.is_open and not self.admits(http):
                return _failed(401, NO_SESSION)
            return await route.respond(self, http, given)
        if any(_matched(route.path, segments) is not None for route in ROUTES):
            return _failed(405, f"{http.method} is not allowed here")
        return _failed(404, "the page does not exist")

    def admits(self, http: web.BaseRequest) -> bool:
        """Return whether the request has a session; the server then does not count the connection as unknown."""
        is_known = self.door.knows(http.cookies.get(self.cookie, ""))
        if is_known and isinstance(http.protocol, Connection):
            http.protocol.is_known = True
        return is_known

    async def stream(self, http: web.BaseRequest, differences: AsyncIterator[Json]) -> web.StreamResponse:
        """Send differences as server-sent events, as long as the session lasts."""
        if self._streams >= STREAMS:
            return _failed(503, f"{STREAMS} pages are open already")
        response = web.StreamResponse(headers={**_HEADERS, "Content-Type": "text/event-stream"})
        self._streams += 1
        try:
            await response.prepare(http)
            async with aclosing(differences) as all_of_them:  # type: ignore[type-var]  # async generators, each of them
                async for difference in all_of_them:
                    if not self.admits(http):
                        await response.write(b"event: over\ndata: {}\n\n")
                        break
                    said = b"data: " + msgspec.json.encode(difference) + b"\n\n" if difference else b": alive\n\n"
                    await response.write(said)
        except ConnectionError:
            pass  # who looked has gone
        finally:
            self._streams -= 1
        return response


def link(url: str, token: str) -> str:
    """Return a link to the page of a server. Browsers neither send nor log the fragment with the token."""
    return f"{url}{PREFIX}/#token={token}"


def _matched(path: tuple[str, ...], segments: tuple[str, ...]) -> tuple[str, ...] | None:
    if len(path) != len(segments) or any(want not in ("*", got) for want, got in zip(path, segments, strict=True)):
        return None
    return tuple(got for want, got in zip(path, segments, strict=True) if want == "*")


@cache
def _content(name: str) -> bytes:
    return (files(__package__) / "static" / name).read_bytes()


async def _file(site: Site, http: web.BaseRequest, given: tuple[str, ...]) -> web.StreamResponse:
    name = given[0] or "index.html"
    if name not in _FILES:
        return _failed(404, "the page does not exist")
    headers = {**_HEADERS, "Cache-Control": "no-cache"}
    return web.Response(body=_content(name), content_type=_FILES[name], charset="utf-8", headers=headers)


async def _enter(site: Site, http: web.BaseRequest, given: tuple[str, ...]) -> web.StreamResponse:
    """Exchange a token for a session. A page of another origin could send a token, too, but would have to know it."""
    length = http.content_length or 0
    if not 0 < length <= _TOKEN_MAXIMUM:
        return _failed(413, "the body is not a token")
    try:
        async with asyncio.timeout(_TOKEN_SECONDS):
            token = await http.content.readexactly(length)
    except (TimeoutError, asyncio.IncompleteReadError):
        return _failed(408, "the token did not come in time")
    session = site.door.enter(token.decode("utf-8", "replace"))
    if session is None:
        return _failed(401, "this link has already been used or has expired: run `clusterwright web` for a new one")
    response = web.Response(status=204, headers=_HEADERS)
    response.set_cookie(
        site.cookie, session, path=f"{PREFIX}/", secure=site.is_secure, httponly=True, samesite="Strict", max_age=int(LASTING), domain=None
    )
    return response


async def _invite(site: Site, http: web.BaseRequest, given: tuple[str, ...]) -> web.StreamResponse:
    """Return a link that opens one session, for a caller who has that right in RBAC."""
    if not site.may_invite(http):
        return _failed(403, f"creating {PREFIX}/link is not allowed for these credentials")
    return _json(201, {"link": link(site.url, site.door.invite())})


async def _clusters(site: Site, http: web.BaseRequest, given: tuple[str, ...]) -> web.StreamResponse:
    return await site.stream(http, site.fleet.follow_all())


async def _cluster(site: Site, http: web.BaseRequest, given: tuple[str, ...]) -> web.StreamResponse:
    return await site.stream(http, site.fleet.follow(ObjectKey(*given)))


async def _details(site: Site, http: web.BaseRequest, given: tuple[str, ...]) -> web.StreamResponse:
    namespace, cluster, name = given
    found = await site.fleet.details(ObjectKey(namespace, cluster), name)
    if found is None:
        return _failed(404, f"Cluster {namespace}/{cluster} has no {name} that is shown here")
    return _json(200, found)


async def _why(site: Site, http: web.BaseRequest, given: tuple[str, ...]) -> web.StreamResponse:
    namespace, cluster, kind, name, condition = given
    try:
        table = await site.reasons.why(ObjectKey(namespace, cluster), kind, name, condition, site.clock.now())
    except NoTable as error:
        return _failed(404, str(error))
    return _json(200, table)


ROUTES: Final = (
    _Route("GET", ("clusters",), _clusters),
    _Route("GET", ("clusters", "*", "*"), _cluster),
    _Route("GET", ("clusters", "*", "*", "objects", "*"), _details),
    _Route("GET", ("clusters", "*", "*", "why", "*", "*", "*"), _why),
    _Route("POST", ("session",), _enter, is_open=True),
    _Route("POST", ("link",), _invite, is_open=True),
    _Route("GET", ("*",), _file, is_open=True),
)


def _failed(status: int, message: str) -> web.Response:
    return _json(status, {"message": message})


def _json(status: int, value: Json) -> web.Response:
    return web.Response(status=status, body=msgspec.json.encode(value), content_type="application/json", headers=_HEADERS)
