"""List, then watch, forever: a state machine that turns one resource into a stream of events.

    Unlisted --page, page, ...--> Listed --open--> Watching --stream ends--> Listed
        ^______________ 410 in either form, errors in the stream, doubt ___________|

- The list is consistent (no resourceVersion is asked for), in pages, so that it holds every write acknowledged before it.
- A watch resumes from the last resourceVersion seen, bookmarks included. It is opened for 5 to 10 minutes and ends by itself.
- A half-open connection is detected: a watch with bookmarks may not be silent for long; and no watch outlives its requested timeout.
- A line that is cut off or garbled ends the watch, which then resumes: nothing is skipped.
- What fails is tried again with backoff, 0.8 s to 30 s. Nothing here gives up; the caller cancels.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from random import Random
from typing import Any, Protocol

import msgspec

from clusterwright.api.scheme import Resource
from clusterwright.api.wire import UNREADABLE, Request
from clusterwright.runtime.cancellation import heed_cancellation
from clusterwright.runtime.errors import ApiError, Gone, ServerTimeout, ServiceUnavailable, TooManyRequests, from_response
from clusterwright.runtime.logging import get_logger
from clusterwright.runtime.metrics import RuntimeMetrics
from clusterwright.runtime.rest import PAGE_SIZE, Pages, RestClient, retry_after

MIN_WATCH_SECONDS = 300
SILENCE = 150.0
"""How many seconds a watch with bookmarks may be silent before it is ended; API servers send one about every minute."""
_GRACE = 15.0
_BACKOFF = (0.8, 30.0)
_ODD_FAILURES = 6
_SHORT = 1.0
_YIELD_EVERY = 256

_log = get_logger("watcher")


class Sink(Protocol):
    """Receives the events. Calls are synchronous and must not fail."""

    def listing(self) -> None:
        """Begin a list; everything from now on until `listed` is part of it."""

    def item(self, raw: bytes | msgspec.Raw) -> None:
        """Add one object of the list. A Raw is a view into the page."""

    def listed(self) -> None:
        """Complete the list: objects that were not in it do not exist any more."""

    def applied(self, raw: bytes | msgspec.Raw) -> str:
        """Handle an added or changed object; return its resourceVersion."""

    def deleted(self, raw: bytes | msgspec.Raw) -> str:
        """Handle a deleted object in its last state; return its resourceVersion."""


@dataclass(frozen=True, slots=True)
class Unlisted:
    """Nothing is known, or the known state is in doubt. `whole`: paging failed, so list everything at once."""

    whole: bool = False


@dataclass(frozen=True, slots=True)
class Listed:
    """Everything up to `resource_version` is known; no watch is open."""

    resource_version: str


State = Unlisted | Listed


class _WatchLine(msgspec.Struct):
    type: str
    object: msgspec.Raw


class _BookmarkMeta(msgspec.Struct, rename="camel"):
    resource_version: str = ""


class _Bookmark(msgspec.Struct):
    metadata: _BookmarkMeta = msgspec.field(default_factory=_BookmarkMeta)


_LINE = msgspec.json.Decoder(_WatchLine)
_BOOKMARK = msgspec.json.Decoder(_Bookmark)


class Watcher:
    """Feeds one sink. `run` lists and watches until it is cancelled."""

    def __init__(
        self,
        client: RestClient,
        resource: Resource,
        sink: Sink,
        *,
        random: Random,
        namespace: str = "",
        labels: str = "",
        metrics: RuntimeMetrics | None = None,
    ) -> None:
        self._client = client
        self._resource = resource
        self._sink = sink
        self._random = random
        self._namespace = namespace
        self._query = (("labelSelector", labels),) if labels else ()
        self._metrics = metrics
        self._doubts = 0
        self._settled = 0
        self._reached = ""
        self._watchdog: asyncio.Timeout | None = None
        self._wake = asyncio.Event()

    def doubt(self) -> None:
        """Request a new list, because an event may have been missed. A running list does not count."""
        self._doubts += 1
        self._wake.set()
        if self._watchdog is not None and not self._watchdog.expired():  # it may have been told to end just now
            self._watchdog.reschedule(asyncio.get_running_loop().time())

    @property
    def in_doubt(self) -> bool:
        """Whether a list requested by `doubt` is still pending."""
        return self._settled < self._doubts

    async def run(self) -> None:
        """List and watch until cancelled."""
        state: State = Unlisted()
        failures, was_silent = 0, False
        loop = asyncio.get_running_loop()
        while True:
            heed_cancellation()
            started, was = loop.time(), state
            try:
                state = await self.step(state)
                if isinstance(was, Listed):
                    failures = 0  # a list alone proves little: a watch that fails after every list must not become a loop of lists
            except ApiError as error:
                if isinstance(state, Listed):
                    state = Listed(self._reached)  # not where the watch began: what was told must not be told again
                if loop.time() - started > 4 * _BACKOFF[1] or (was_silent and error.code):
                    failures = 0  # the server that was away answers: what it says is the first of its complaints
                was_silent = not error.code
                failures += 1
                if isinstance(error, Gone):
                    state = Unlisted(whole=isinstance(state, Unlisted))
                elif error.code == 0 or isinstance(error, TooManyRequests | ServiceUnavailable | ServerTimeout):
                    pass  # the state stands; only the connection or the server's mood was bad
                else:
                    state = Unlisted()
                wait = max(min(_BACKOFF[0] * 2 ** min(failures - 1, 6), _BACKOFF[1]), error.retry_after or 0.0)
                wait *= 1 + 0.5 * self._random.random()
                if failures == 1 and isinstance(error, Gone):
                    wait = 0.0
                # clusters come and go: only one that stays away is worth a warning
                log = _log.debug if failures == 1 else _log.info if failures < _ODD_FAILURES else _log.warning
                log("Watch failed", kind=self._resource.gvk.kind, error=str(error), retry_in_seconds=round(wait, 1))
                await self._pause(wait)
            except Exception as error:  # a mistake of ours, or of a handler: it must not end the watch, on which everything rests
                failures, was_silent = failures + 1, False
                state = Unlisted()
                _log.error("Watch failed unexpectedly", cause=error, kind=self._resource.gvk.kind)
                await self._pause(_BACKOFF[1])

    async def _pause(self, seconds: float) -> None:
        self._wake.clear()
        try:
            async with asyncio.timeout(seconds):
                await self._wake.wait()
        except TimeoutError:
            pass

    async def step(self, state: State) -> State:
        """Make one transition: a whole list, or the whole life of one watch. Raises ApiError."""
        if isinstance(state, Unlisted) or self.in_doubt:
            return await self._list(whole=isinstance(state, Unlisted) and state.whole)
        return await self._watch(state.resource_version)

    async def _list(self, *, whole: bool) -> State:
        doubts = self._doubts
        if self._metrics:
            self._metrics.lists.add(self._resource.gvk.kind)
        self._sink.listing()
        token, limit = "", 0 if whole else PAGE_SIZE
        pages = Pages(self._resource.path(self._namespace))
        while True:
            query = (*self._query, ("continue", token)) if token else self._query
            page = await self._client.page(self._resource, self._namespace, query, limit)
            for item in page.items or ():
                self._sink.item(item)
            token = pages.after(page)
            if not token:
                break
        # first settled, then told: whoever is woken by the news must find no doubt
        self._settled = doubts
        self._sink.listed()
        return Listed(page.metadata.resource_version)

    async def _watch(self, resource_version: str) -> State:
        seconds = MIN_WATCH_SECONDS + self._random.randrange(MIN_WATCH_SECONDS)
        query = (
            *self._query,
            ("watch", "true"),
            ("allowWatchBookmarks", "true"),
            ("resourceVersion", resource_version),
            ("timeoutSeconds", str(seconds)),
        )
        if self._metrics:
            self._metrics.watches.add(self._resource.gvk.kind)
        request = Request(method="GET", path=self._resource.path(self._namespace), query=query, headers=self._client.headers)
        loop = asyncio.get_running_loop()
        started = loop.time()
        position = _Position(resource_version)
        self._reached = resource_version
        try:
            async with asyncio.timeout_at(started + seconds + _GRACE) as watchdog:
                self._watchdog = watchdog
                response, lines = await self._client.transport.stream(request)
                if response.status >= 300:
                    raise from_response(response.status, response.body, retry_after(response))
                try:
                    await self._consume(lines, position, watchdog, started + seconds + _GRACE)
                finally:
                    self._reached = position.resource_version
                    if (close := getattr(lines, "aclose", None)) is not None:
                        await close()
        except TimeoutError:
            if not self.in_doubt:
                _log.info("Watch went silent, resuming", kind=self._resource.gvk.kind, resource_version=position.resource_version)
        finally:
            self._watchdog = None
        if self.in_doubt:
            return Unlisted()
        if not position.moved and loop.time() - started < _SHORT:
            await self._pause(_BACKOFF[0] * (1 + self._random.random()))  # a server that hangs up at once must not be hammered
        return Listed(position.resource_version)

    async def _consume(self, lines: Any, position: _Position, watchdog: asyncio.Timeout, end: float) -> None:
        loop = asyncio.get_running_loop()
        kind, events = self._resource.gvk.kind, self._metrics.events if self._metrics else None
        checked, bookmarks, count = loop.time(), False, 0
        sink = self._sink
        async for line in lines:
            if not line:
                continue
            try:
                event = _LINE.decode(line)
                marked = _BOOKMARK.decode(event.object).metadata.resource_version if event.type == "BOOKMARK" else ""
            except UNREADABLE:
                _log.info("Watch line is truncated or invalid, resuming", kind=kind)
                return
            match event.type:
                case "MODIFIED" | "ADDED":
                    position.move(sink.applied(event.object))
                case "DELETED":
                    position.move(sink.deleted(event.object))
                case "BOOKMARK":
                    bookmarks = True
                    position.move(marked)
                case "ERROR":
                    raise _stream_error(event.object)
                case _:
                    _log.warning("Unknown type of watch event", kind=kind, type=event.type)
            if events is not None:
                events.add(kind)
            count += 1
            if not count % _YIELD_EVERY:
                await asyncio.sleep(0)  # a burst must not starve the other tasks
            now = loop.time()
            if bookmarks and now - checked > 1.0 and not self.in_doubt:
                checked = now
                watchdog.reschedule(min(now + SILENCE, end))


@dataclass(slots=True)
class _Position:
    """The position of a watch."""

    resource_version: str
    moved: bool = False

    def move(self, resource_version: str) -> None:
        if resource_version:
            self.resource_version, self.moved = resource_version, True


def _stream_error(raw: msgspec.Raw) -> ApiError:
    body = bytes(raw)
    try:
        status = msgspec.json.decode(body)
        code = int(status.get("code") or 500) if isinstance(status, Mapping) else 500
    except (*UNREADABLE, TypeError, ValueError):
        code = 500
    error = from_response(code, body)
    if error.reason == "Expired" and not isinstance(error, Gone):
        return Gone(error.message, error.status)
    return error
