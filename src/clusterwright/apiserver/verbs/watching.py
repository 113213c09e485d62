"""Watch: a stream of events, in the version of the request and the form that the client accepts."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable

import msgspec

from clusterwright.api.meta import Json
from clusterwright.api.wire import Response
from clusterwright.apiserver.calls import Call
from clusterwright.apiserver.encoding import printing, protobuf, rendering
from clusterwright.apiserver.encoding.negotiation import PROTOBUF, YAML, boolean, integer
from clusterwright.apiserver.status import StatusError, failure, not_acceptable
from clusterwright.apiserver.storage.store import Entry, Event
from clusterwright.apiserver.storage.streams import QUEUE_LIMIT, Feed, Stream, Watcher, line, replay
from clusterwright.apiserver.verbs.reads import check_options, revision_of, selection, too_large

_encode = msgspec.json.Encoder().encode
_BATCH = 500
"""How many objects are converted together."""


async def watch(call: Call) -> Response | Stream:
    """Answer GET with watch by a stream of events."""
    check_options(call, watch=True)
    query, store, table = call.query, call.server.store, call.table
    selects = selection(call)
    timeout = integer(query["timeoutSeconds"]) if query.get("timeoutSeconds") else 0
    asked = revision_of(query["resourceVersion"]) if query.get("resourceVersion") else 0
    if call.form.media == YAML:
        text = "application/json;stream=watch, application/vnd.kubernetes.protobuf;stream=watch"
        raise not_acceptable(f"only the following media types are accepted: {text}")
    namespace = call.info.namespace if call.resource.namespaced else ""
    if namespace:
        inner = selects
        if inner is None:
            selects = lambda entry: entry.namespace == namespace  # noqa: E731
        else:
            selects = lambda entry: entry.namespace == namespace and inner(entry)  # noqa: E731
    await _check_readable(call)
    is_protobuf = call.form.media == PROTOBUF
    headers = {"content-type": f"{PROTOBUF};stream=watch" if is_protobuf else call.form.media}
    stream = Stream(Response(status=200, headers=headers, warnings=tuple(call.warnings)))
    render, variant = _renderer(call)
    if is_protobuf:
        render, variant = _enveloped(call, render), (PROTOBUF, variant)
    watcher = Watcher(stream, selects, render, variant, protobuf.watch_event if is_protobuf else line)
    initial = query.get("sendInitialEvents")
    bookmarks = boolean(query.get("allowWatchBookmarks"), "allowWatchBookmarks")
    visible = store.visible_revision
    if asked > store.revision:
        if initial is not None and boolean(initial, ""):
            raise too_large(asked, store.revision)
        watcher.last_rv = asked
    feed: Feed = watcher if call.versions.immediate else _Relay(call, watcher)
    if initial is not None and boolean(initial, "sendInitialEvents"):
        _initial(call, feed, namespace, visible)
        if bookmarks:
            feed.push(bookmark(call, visible, end=True))
    elif asked == 0 and (initial is None or boolean(initial, "")):
        _initial(call, feed, namespace, visible)
    elif asked:
        try:
            replay(table, asked, visible, feed)
        except StatusError as e:  # an event of the stream, not an answer
            stream.push(_error(call, e))
            stream.close()
            return stream
    stream.on_close(table.observe(feed))
    mark = (lambda: bookmark(call, store.visible_revision, end=False)) if bookmarks else None
    call.server.watches.hold(call.resource, stream, timeout, mark)
    return stream


async def _check_readable(call: Call) -> None:
    """Raise StatusError (429) while an object of the kind, in any namespace, cannot be converted to the version.

    Objects that were converted before are not tried again.
    """
    resource = call.resource
    if not resource.custom or resource.api_version == call.storage_version:
        return
    readable = call.table.readable.setdefault(resource.api_version, set())
    present = {entry.rv: entry for entry in call.table.objects.values()}
    readable &= present.keys()
    unknown = sorted(present.keys() - readable)
    try:
        for start in range(0, len(unknown), _BATCH):
            batch = [present[rv] for rv in unknown[start : start + _BATCH]]
            await call.prepare(batch)
            for entry in batch:
                call.load(entry)
                readable.add(entry.rv)
    except StatusError as error:
        text = f"storage is (re)initializing: failed to list {resource.api_version}, Kind={resource.kind}: {error}"
        raise failure(429, "TooManyRequests", text, {"retryAfterSeconds": 30}, retry_after=30) from None


def _initial(call: Call, feed: Feed, namespace: str, visible: int) -> None:
    for entry in call.table.at(visible, namespace):
        feed.begin(entry)


class _Relay:
    """Converts events by webhook before a watcher gets them, in order."""

    def __init__(self, call: Call, watcher: Watcher) -> None:
        self._call, self._watcher, self._stream = call, watcher, watcher.stream
        self._waiting: deque[Entry | Event | bytes] = deque()
        self._task: asyncio.Task[None] | None = None
        self._stream.on_close(self._stop)

    def begin(self, entry: Entry) -> None:
        """Pass on an existing object, as `Watcher.begin`."""
        self._wait(entry)

    def offer(self, event: Event) -> None:
        """Pass on a change, as `Watcher.offer`."""
        self._wait(event)

    def push(self, line: bytes) -> None:
        """Pass on a line, as `Watcher.push`."""
        self._wait(line)

    def _wait(self, item: Entry | Event | bytes) -> None:
        if self._stream.closed:
            return
        self._waiting.append(item)
        if len(self._waiting) > QUEUE_LIMIT and isinstance(item, Event):
            self._stream.close()
        elif self._task is None:
            self._task = asyncio.get_running_loop().create_task(self._run())

    def _stop(self) -> None:
        self._waiting.clear()
        if self._task is not None:
            self._task.cancel()

    async def _run(self) -> None:
        try:
            while self._waiting:
                batch = [self._waiting.popleft() for _ in range(min(len(self._waiting), _BATCH))]
                await self._call.prepare(e for item in batch for e in _entries(item))
                for item in batch:
                    if isinstance(item, bytes):
                        self._watcher.push(item)
                    elif isinstance(item, Event):
                        self._watcher.offer(item)
                    else:
                        self._watcher.begin(item)
        except StatusError as e:
            self._stream.push(_error(self._call, e))
            self._task = None
            self._stream.close()
        finally:
            self._task = None


def _entries(item: Entry | Event | bytes) -> list[Entry]:
    if isinstance(item, Event):
        return [item.entry] if item.old is None else [item.entry, item.old]
    return [item] if isinstance(item, Entry) else []


def bookmark(call: Call, rv: int, *, end: bool) -> bytes:
    """Return a BOOKMARK event; `end` marks the one after the initial events."""
    meta: Json = {"resourceVersion": str(rv)}
    if not call.resource.custom:
        meta["creationTimestamp"] = None
    if end:
        meta["annotations"] = {"k8s.io/initial-events-end": "true"}
    obj: Json = {"kind": call.resource.kind, "apiVersion": call.resource.api_version, "metadata": meta}
    return _event(call, "BOOKMARK", rendering.bookmark_shape(call, obj))


def _error(call: Call, error: StatusError) -> bytes:
    return _event(call, "ERROR", error.status)


def _event(call: Call, kind: str, obj: Json) -> bytes:
    if call.form.media != PROTOBUF:
        return line(kind, _encode(obj))
    return protobuf.watch_event(kind, protobuf.encode(obj) or b"")


def _enveloped(call: Call, render: Callable[[Entry], bytes] | None) -> Callable[[Entry], bytes]:
    """Return `render` with a protobuf result."""
    shown = render or call.raw
    return lambda entry: protobuf.encode(msgspec.json.decode(shown(entry))) or b""


def _renderer(call: Call) -> tuple[Callable[[Entry], bytes] | None, object]:
    form = call.form
    if form.render == "":
        if call.resource.api_version == call.storage_version and not call.table.stale_before:
            return None, ""
        return call.raw, call.resource.api_version
    if form.render.startswith("PartialObjectMetadata"):
        return (lambda entry: _encode(printing.partial(call.load(entry)))), ("partial", call.resource.api_version)
    server, handler = call.server, call.resource.handler
    include = call.query.get("includeObject", "Metadata")
    first = [True]

    def row(entry: Entry) -> bytes:
        obj = call.load(entry)
        meta = {"resourceVersion": obj["metadata"].get("resourceVersion", "")}
        table = printing.table(handler, [obj], now=server.now(), include=include, list_metadata=meta, columns=first[0])
        first[0] = False
        return _encode(table)

    return row, object()  # each watcher has its own: only its first event names the columns
