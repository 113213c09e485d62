"""The current request: its target, its user, and the decoding of stored objects for it."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from typing import Any, Final, TypeVar

import msgspec

from clusterwright.api.meta import Json
from clusterwright.api.wire import Request, Response
from clusterwright.apiserver import effort
from clusterwright.apiserver.conversion import Pending, Versions
from clusterwright.apiserver.core import Core
from clusterwright.apiserver.encoding import bodies, rendering
from clusterwright.apiserver.encoding.negotiation import PLAIN, Form
from clusterwright.apiserver.identity import User
from clusterwright.apiserver.interfaces import DecodeError, Resource
from clusterwright.apiserver.requestinfo import RequestInfo
from clusterwright.apiserver.storage.store import Entry, Table

_JSON_HEADERS = {"content-type": "application/json"}
_decode = msgspec.json.Decoder().decode
T = TypeVar("T", bound=msgspec.Struct)
_TURN: Final = 50
"""How many objects are converted in one slice."""
R = TypeVar("R")


@dataclass(slots=True)
class Call:
    """A request to one resource."""

    server: Core
    request: Request
    info: RequestInfo
    user: User
    resource: Resource
    query: dict[str, str]
    patch_media: str = ""
    """The media type of a patch."""
    form: Form = PLAIN
    warnings: list[str] = field(default_factory=list)
    heavy: bool = False
    """Whether the worker must do its work, because it takes long, instead of the event loop."""
    _table: Table | None = None
    _versions: Versions | None = None
    _made: dict[int, bytes] = field(default_factory=dict)
    """Objects that were converted in advance, by revision."""

    def begin(self) -> None:
        """Start an attempt: drop all warnings except that of a deprecated version."""
        self.warnings[:] = [self.resource.deprecation] if self.resource.deprecation else []

    async def off(self, work: Callable[..., R], *arguments: Any, **named: Any) -> R:
        """Run work on the worker if the call is heavy, else here. The work must only use its arguments."""
        if not self.heavy:
            return work(*arguments, **named)
        return await effort.in_worker(self.server.worker, partial(work, *arguments, **named))

    async def metered(self, work: Callable[..., R], *arguments: Any) -> R:
        """Run metered work: on the worker if the call is heavy or the work turns out to be, else here."""
        worker = self.server.worker
        if not self.resource.custom:  # only schemas of custom resources have rules and patterns
            return await self.off(work, *arguments)
        if worker is not None and not self.heavy:
            try:
                return effort.light(work, *arguments)
            except effort.TooMuch:
                self.heavy = True
        return await effort.heavy(worker, work, *arguments)

    def weigh(self, *texts: bytes) -> None:
        """Mark the call as heavy if these bodies or objects are large, or if the kind is costly to validate."""
        if not self.heavy:
            self.heavy = bodies.is_heavy(*texts) or bool(getattr(self.resource.handler, "is_costly", False))

    @property
    def table(self) -> Table:
        """Return the table of the resource's objects."""
        if self._table is None:
            self._table = self.server.store.table(self.resource.storage_key)
        return self._table

    def now(self) -> datetime:
        """Return the server's time."""
        return self.server.now()

    @property
    def storage_version(self) -> str:
        """Return the apiVersion in which objects are stored."""
        return self.resource.storage

    @property
    def manager(self) -> str:
        """Return the field manager: the one in the query, or the program of the User-Agent."""
        named = self.query.get("fieldManager")
        return named or self.request.headers.get("user-agent", "").split("/", 1)[0][:128]

    def load(self, entry: Entry) -> Json:
        """Decode a stored object in the version of the request. Raises Pending if it must be converted by a webhook first."""
        obj: Json
        if entry.rv in self._made:
            obj = _decode(self._made[entry.rv])
            return obj
        obj = _decode(entry.raw)
        stored = obj["apiVersion"]
        wanted = self.resource.api_version
        if stored == wanted and entry.rv > self.table.stale_before:
            return obj
        versions = self.versions
        if not versions.immediate and stored != wanted:
            raw = entry.converted(versions.converter, wanted)
            if raw is None:
                raise Pending(obj, wanted)
            obj = _decode(raw)
            return obj
        return versions.convert(self._fitted(entry, obj), wanted)

    @property
    def versions(self) -> Versions:
        """Return the versions of the resource's kind."""
        if self._versions is None:
            self._versions = self.server.registry.versions(self.resource)
        return self._versions

    @property
    def is_plain(self) -> bool:
        """Whether stored objects have the requested version and need no webhook, so that `prepare` does nothing."""
        return self.resource.api_version == self.resource.storage and self.versions.immediate

    async def prepare(self, entries: Iterable[Entry]) -> None:
        """Convert these entries to the requested version if that takes long or needs a webhook, because `load` cannot wait."""
        versions, wanted = self.versions, self.resource.api_version
        if versions.immediate:
            if wanted != self.storage_version:
                await self._convert_in_turns(list(entries))
            return
        lacking: dict[int, tuple[Entry, Json]] = {}
        head = b'{"apiVersion":"%s",' % wanted.encode()  # `ordered` puts the apiVersion of custom resources first
        for entry in entries:
            if not entry.raw.startswith(head) and entry.converted(versions.converter, wanted) is None:
                obj = _decode(entry.raw)
                if obj["apiVersion"] != wanted:
                    lacking[entry.rv] = (entry, self._fitted(entry, obj))
        while lacking:  # wait for conversions that other requests have begun
            under_way = {rv: versions.under_way[rv, wanted] for rv in lacking if (rv, wanted) in versions.under_way}
            mine = [lacking.pop(rv) for rv in list(lacking) if rv not in under_way]
            if mine:
                await self._convert(mine, versions, wanted)
            for rv, other in under_way.items():
                await other.wait()
                if lacking[rv][0].converted(versions.converter, wanted) is not None:
                    del lacking[rv]

    async def _convert_in_turns(self, entries: list[Entry]) -> None:
        """Convert many objects in advance, in slices with other requests in between: a long list takes seconds."""
        if len(entries) <= _TURN:
            return
        for start in range(0, len(entries), _TURN):
            self._made.update({entry.rv: msgspec.json.encode(self.load(entry)) for entry in entries[start : start + _TURN]})
            await asyncio.sleep(0)

    @staticmethod
    async def _convert(lacking: list[tuple[Entry, Json]], versions: Versions, wanted: str) -> None:
        done = asyncio.Event()
        versions.under_way.update({(entry.rv, wanted): done for entry, _ in lacking})
        try:
            made = await versions.convert_all([obj for _, obj in lacking], wanted)
            for (entry, _), obj in zip(lacking, made, strict=True):
                entry.keep_converted(versions.converter, wanted, msgspec.json.encode(obj))
        finally:
            for entry, _ in lacking:
                del versions.under_way[entry.rv, wanted]
            done.set()

    def _fitted(self, entry: Entry, obj: Json) -> Json:
        """Prune and default an object that was stored under an older schema, in place, and return it."""
        if entry.rv <= self.table.stale_before:
            handler = self.versions.get(obj["apiVersion"])
            if handler is not None:
                with contextlib.suppress(DecodeError):
                    handler.decode(obj)
                handler.default(obj)
        return obj

    def raw(self, entry: Entry) -> bytes:
        """Return a stored object as JSON in the version of the request."""
        if self.resource.api_version == self.storage_version and entry.rv > self.table.stale_before:
            return entry.raw
        return self._made.get(entry.rv) or msgspec.json.encode(self.load(entry))

    def answer(self, status: int, obj: Json | None = None, raw: bytes | None = None) -> Response:
        """Return an answer with the object in the form that the client accepts."""
        if self.form is PLAIN and raw is not None:
            return Response(status=status, headers=_JSON_HEADERS, body=raw, warnings=tuple(self.warnings))
        return rendering.render(self, status, obj, raw)
