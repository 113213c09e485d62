"""The state that all parts of a server share: store, registry, time, randomness; and the writes of the server itself.

The core does not handle requests. `server.ApiServer` is a core that does; verbs, controllers and admission get the core.
"""

from __future__ import annotations

import random as random_module
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Executor
from datetime import datetime, timedelta
from typing import Any, Protocol

import msgspec

from clusterwright.api.meta import Json
from clusterwright.api.wire import Request, Response
from clusterwright.apiserver.attributes import Admission
from clusterwright.apiserver.backlog import Backlog
from clusterwright.apiserver.callouts import Callouts
from clusterwright.apiserver.conversion import Converter
from clusterwright.apiserver.encoding.ordering import ordered
from clusterwright.apiserver.identity import User
from clusterwright.apiserver.interfaces import Allocator, Resource
from clusterwright.apiserver.metadata import rfc3339
from clusterwright.apiserver.metrics import Metrics
from clusterwright.apiserver.registry import Registry
from clusterwright.apiserver.requestinfo import RequestInfo
from clusterwright.apiserver.status import StatusError, failure, forbidden_error
from clusterwright.apiserver.storage.lifetimes import Watches
from clusterwright.apiserver.storage.store import Entry, Store, Table

_encode = msgspec.json.Encoder().encode


class Authorizer(Protocol):
    """Decides which user may do what."""

    def allows(self, server: Core, user: User, info: RequestInfo) -> bool:
        """Return whether the request is allowed."""


Converters = Callable[["Core", str, str], Converter | None]
"""Returns the converter of a group and kind for a server, if this process converts that kind."""


class TokenIssuer(Protocol):
    """Makes bearer tokens for service accounts."""

    def issue(
        self, namespace: str, name: str, uid: str, *, audiences: list[str], lifetime: timedelta, bound: Any = None
    ) -> tuple[str, datetime]:
        """Return a token and the time when it expires."""

    def review(self, token: str, audiences: Sequence[str]) -> tuple[User, list[str]] | None:
        """Return the user of a token and its matching audiences; None if the token is not valid."""

    def key_set(self) -> Json:
        """Return the JSON Web Key Set with which other programs verify tokens."""


class Core:
    """The state of one server."""

    def __init__(
        self,
        *,
        now: Callable[[], datetime],
        random: random_module.Random,
        store: Store,
        registry: Registry,
        require_namespaces: bool,
        authorizer: Authorizer | None,
        admission: Iterable[Admission],
        version: str,
        converters: Converters | None,
    ) -> None:
        """Create a core; `server.ApiServer` documents the arguments."""
        self.now = now
        self.random = random
        self.store = store
        self.registry = registry
        self.require_namespaces = require_namespaces
        self.authorizer = authorizer
        self.admission = list(admission)
        self.version = version
        self.watches = Watches(random)
        self.callouts = Callouts(store)
        self.converters = converters
        self.metrics: Metrics | None = None
        self.inflight = {"mutating": 0, "readOnly": 0}
        self.tokens: TokenIssuer | None = None
        self.audit: Callable[[Request, User, Response], None] | None = None
        """Called for each write that does not come over the network: those of controllers in this process."""
        self.report: Callable[[Mapping[str, str]], Json] | None = None
        """Returns the content of /traces for the controllers of this process, by the query; None without controllers."""
        self.checks: dict[str, Callable[[], str]] = {}
        """Further checks of /readyz by name; each returns the problem and what to do, or nothing."""
        self.worker: Executor | None = None
        """Runs heavy work; None: it runs on the event loop, as in virtual time."""
        self.token_sources: list[Callable[[str], User | None]] = []
        self.terminating: set[tuple[str, str]] = set()
        """Group and plural of CRDs that are being deleted: their objects cannot be created."""
        self.allocators: dict[str, Allocator] = {}
        """The allocators, by table."""
        self.computes_budgets = False
        """Whether this server computes the status of PodDisruptionBudgets."""
        self._stamp: tuple[datetime | None, str] = (None, "")
        self._backlog = Backlog()

    def timestamp(self) -> str:
        """Return the time in RFC 3339, to the second."""
        now = self.now().replace(microsecond=0)
        if now != self._stamp[0]:
            self._stamp = (now, rfc3339(now))
        return self._stamp[1]

    def new_uid(self) -> str:
        """Return a random UID."""
        bits = self.random.getrandbits(128) & ~(0xF000 << 64 | 0xC000 << 48) | 0x4000 << 64 | 0x8000 << 48  # version 4
        digits = f"{bits:032x}"  # uuid.UUID takes three times as long
        return f"{digits[:8]}-{digits[8:12]}-{digits[12:16]}-{digits[16:20]}-{digits[20:]}"

    def demand(self, user: User, info: RequestInfo) -> None:
        """Raise StatusError (403) if the user may not do this."""
        if self.authorizer is not None and not self.authorizer.allows(self, user, info):
            raise _refusal(user, info)

    def token_user(self, token: str) -> User | None:
        """Return the user of a bearer token; None if no source knows it."""
        found = (source(token) for source in self.token_sources)
        return next((user for user in found if user is not None), None)

    # ------------------------------------------------------------------ deferred work

    def later(self, action: Callable[[], None]) -> None:
        """Run a short action after the current request (or with the next, if there is none)."""
        self._backlog.add(action)

    def in_steps(self, steps: Iterator[int]) -> None:
        """Do work of unknown length after the current request: in slices, with other requests in between.

        Each step handles one object and yields its size.
        """
        self._backlog.add_steps(steps)

    def drain(self) -> None:
        """Run the work that was deferred to the end of a request, and one slice of long work."""
        self._backlog.run()

    def when_empty(self, table: Table, action: Callable[[], None]) -> None:
        """Run an action as soon as the table has no objects."""
        table.hooks.append(_Empty(self, table, action))

    # ------------------------------------------------------------------ writes of the server itself

    def put_system(self, table: Table, entry: Entry, obj: Json) -> Entry:
        """Write an object that the server itself changed, immediately."""
        rv = self.store.next_revision()
        obj["metadata"]["resourceVersion"] = str(rv)
        new = Entry(entry.key, entry.namespace, entry.name, entry.uid, rv, _encode(ordered(obj, custom=self._is_custom(table))))
        self.store.put(table, new)
        return new

    def remove_system(self, table: Table, entry: Entry, last: Json | None = None) -> int:
        """Remove an object immediately and return the revision. `last`: the stored object, if the caller has decoded it."""
        rv = self.store.next_revision()
        last = last or msgspec.json.decode(entry.raw)  # watches show what was stored last
        last["metadata"]["resourceVersion"] = str(rv)
        raw = _encode(ordered(last, custom=self._is_custom(table)))
        self.store.delete(table, Entry(entry.key, entry.namespace, entry.name, entry.uid, rv, raw))
        return rv

    def delete_system(self, table: Table, entry: Entry, resource: Resource) -> None:
        """Delete an object as a controller would: one with finalizers is only marked."""
        obj = msgspec.json.decode(entry.raw)
        meta = obj["metadata"]
        if not meta.get("finalizers"):
            self.remove_system(table, entry, obj)
        elif not meta.get("deletionTimestamp"):
            meta["deletionTimestamp"] = self.timestamp()
            meta["deletionGracePeriodSeconds"] = 0
            if resource.generation:
                meta["generation"] = (meta.get("generation") or 0) + 1
            self.put_system(table, entry, obj)

    def drop_finalizer(self, table: Table, entry: Entry, obj: Json, finalizer: str) -> None:
        """Remove a finalizer from an object. One that is being deleted is removed with its last finalizer."""
        meta = obj["metadata"]
        remaining = [f for f in meta.get("finalizers") or () if f != finalizer]
        if remaining:
            meta["finalizers"] = remaining
            self.put_system(table, entry, obj)
            return
        meta.pop("finalizers", None)
        if meta.get("deletionTimestamp"):
            self.remove_system(table, entry)
        else:
            self.put_system(table, entry, obj)

    def _is_custom(self, table: Table) -> bool:
        resource = self.registry.of_table(table.name)
        return resource is None or resource.custom


class _Empty:
    def __init__(self, server: Core, table: Table, action: Callable[[], None]) -> None:
        self.server, self.table, self.action = server, table, action

    def offer(self, event: object) -> None:
        if not self.table.objects and self in self.table.hooks:
            self.table.hooks.remove(self)
            self.server.later(self.action)


def _refusal(user: User, info: RequestInfo) -> StatusError:
    if not info.is_resource:
        text = f'User "{user.name}" cannot {info.verb} path "{info.path}"'
        return failure(403, "Forbidden", f"forbidden: {text}", {})
    resource = f"{info.resource}/{info.subresource}" if info.subresource else info.resource
    where = f'in the namespace "{info.namespace}"' if info.namespace else "at the cluster scope"
    text = f'User "{user.name}" cannot {info.verb} resource "{resource}" in API group "{info.group}" {where}'
    return forbidden_error(info.group, info.resource, info.name, text)
