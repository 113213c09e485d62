"""The API server: one request in, one answer (or stream) out. No sockets here; `http` and `inprocess` bring requests.

Everything a server knows is in its store; instances share compiled handlers and nothing else. Time and randomness are given.
"""

from __future__ import annotations

import asyncio
import dataclasses
import logging
import random as random_module
import uuid
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from functools import cache
from typing import Any, Final, Protocol

import msgspec

from clusterwright.api.meta import Json
from clusterwright.api.wire import Duplex, Request, Response
from clusterwright.apiserver import kinds
from clusterwright.apiserver.admission import Admission
from clusterwright.apiserver.auth import tokens
from clusterwright.apiserver.auth.identity import ADMIN, User
from clusterwright.apiserver.calls import Call, query_of
from clusterwright.apiserver.encoding import rendering
from clusterwright.apiserver.encoding.negotiation import PLAIN, accepted
from clusterwright.apiserver.interfaces import Resource
from clusterwright.apiserver.metadata import rfc3339
from clusterwright.apiserver.registry import Registry, ResourceKey, index, storage_key
from clusterwright.apiserver.requestinfo import RequestInfo, parse
from clusterwright.apiserver.schema.permissive import known_resources
from clusterwright.apiserver.selectors import field_requirements
from clusterwright.apiserver.serving import nonresource
from clusterwright.apiserver.serving.metrics import Metrics
from clusterwright.apiserver.status import StatusError, bad_request, failure, forbidden_error, generic, internal, not_found
from clusterwright.apiserver.storage.lifetimes import Watches
from clusterwright.apiserver.storage.store import Entry, Journal, Store, Table
from clusterwright.apiserver.storage.streams import Stream
from clusterwright.apiserver.system import budgets, garbage, loading
from clusterwright.apiserver.system.definitions import CLEANUP, CrdController, mark_deleting
from clusterwright.apiserver.system.definitions import TABLE as CRD_TABLE
from clusterwright.apiserver.verbs import deletes, evictions, patching, reads, reviews, subresources, writes

log = logging.getLogger(__name__)
_REGISTERED: Final = (reviews, evictions)
"""Modules that register what they serve when they are imported."""
_encode = msgspec.json.Encoder().encode
_READS: Final = frozenset({"get", "list", "watch"})
NOT_FOUND_TEXT: Final = Response(status=404, headers={"content-type": "text/plain; charset=utf-8"}, body=b"404 page not found\n")
_MAXIMUM_BODY: Final = 3 * 1024 * 1024


class Authorizer(Protocol):
    """Decides who may do what."""

    def allows(self, server: ApiServer, user: User, info: RequestInfo) -> bool:
        """Whether the request may go on."""


class Upgrade(Protocol):
    """Opens a stream in both directions for a path, e.g. a port-forward; raises StatusError."""

    async def __call__(self, request: Request, info: RequestInfo, user: User) -> Duplex:
        """The stream."""


@cache
def _builtin_index() -> dict[ResourceKey, Resource]:
    return index(kinds.builtin_resources())


@cache
def _known_index() -> dict[ResourceKey, Resource]:
    return index(known_resources())


class ApiServer:
    """A Kubernetes API server in memory."""

    def __init__(
        self,
        *,
        now: Callable[[], datetime],
        random: random_module.Random,
        journal: Journal | None = None,
        history: int = 2000,
        permissive: bool = False,
        resources: Mapping[ResourceKey, Resource] | None = None,
        namespaces: Iterable[str] = ("default", "kube-system", "kube-public", "kube-node-lease"),
        require_namespaces: bool = True,
        authorizer: Authorizer | None = None,
        admission: Iterable[Admission] = (),
        upgrade: Upgrade | None = None,
        version: str = "v1.36.1",
    ) -> None:
        """Make a server.

        `permissive`: an offline world. All kinds that have a model are served, without schemas, and namespaces need not
        exist. `history`: events kept per kind for watches to resume. `resources`: what is served without CRDs, the
        built-ins if not given. `require_namespaces`: objects can be created only in namespaces that exist. Without an
        `authorizer` everybody may do everything. With a `journal`: call `recover`, start the journal, then
        `ensure_namespaces` before anything is served.
        """
        self.now = now
        self.random = random
        self.store = Store(history=history, journal=journal)
        if resources is None:
            resources = _known_index() if permissive else _builtin_index()
        self.registry = Registry(resources)
        self.require_namespaces = require_namespaces and not permissive
        self.authorizer = authorizer
        self.admission = list(admission)
        self.upgrade_handler = upgrade
        self.version = version
        self.watches = Watches(self)
        self.metrics: Metrics | None = None
        self.inflight = {"mutating": 0, "readOnly": 0}
        self.tokens: tokens.ServiceAccountTokens | None = None
        self._tables: tuple[int, dict[str, Resource]] = (-1, {})
        self._computes_budgets = False
        self.token_sources: list[Callable[[str], User | None]] = []
        self._stamp: tuple[datetime | None, str] = (None, "")
        self._later: deque[Callable[[], None]] = deque()
        self._draining = False
        self.crds = CrdController(self)
        self.store.table(CRD_TABLE).hooks.append(self.crds)
        self.initial_namespaces = () if permissive else tuple(namespaces)
        if journal is None:
            self.ensure_namespaces()

    @property
    def bookmark_interval(self) -> float:
        """Seconds between the bookmarks of a watch."""
        return self.watches.bookmark_interval

    @bookmark_interval.setter
    def bookmark_interval(self, seconds: float) -> None:
        self.watches.bookmark_interval = seconds

    # ------------------------------------------------------------------ requests

    async def handle(self, request: Request, user: User = ADMIN) -> Response | Stream:
        """Answer one request. Failures are answers too; this raises nothing but cancellation."""
        if self.metrics is None:
            return await self._handle(request, user)
        loop = asyncio.get_running_loop()
        kind = "readOnly" if request.method in {"GET", "HEAD"} else "mutating"
        begin = loop.time()
        self.inflight[kind] += 1
        try:
            answer = await self._handle(request, user)
        finally:
            self.inflight[kind] -= 1
        query = query_of(request.query)
        code = answer.response.status if isinstance(answer, Stream) else answer.status
        self.metrics.observe(self._parse(request, query), code, loop.time() - begin, dry_run="dryRun" in query)
        return answer

    async def _handle(self, request: Request, user: User) -> Response | Stream:
        form = PLAIN
        call: Call | None = None
        try:
            query = query_of(request.query) if request.query else {}
            info = self._parse(request, query)
            if self.authorizer is not None and not self.authorizer.allows(self, user, info):
                raise self._refusal(user, info)
            if not info.is_resource:
                return nonresource.answer(self, request, info, query)
            resource = self.registry.find(info.group, info.version, info.resource)
            if resource is None or not self._scope_fits(resource, info):
                return self._unknown(info)
            accept = request.headers.get("accept", "")
            if accept and accept != "application/json":
                form = accepted(accept, custom=resource.custom)
            call = Call(self, request, info, user, resource, query, form)
            call.begin()
            answer = await self._dispatch(call)
            if query.get("pretty") in {"true", "1"} and isinstance(answer, Response) and form.media == "application/json":
                answer = dataclasses.replace(answer, body=msgspec.json.format(answer.body, indent=2) + b"\n")
            return answer
        except StatusError as e:
            return rendering.failed(e, form, () if call is None else tuple(call.warnings))
        except RecursionError:
            return rendering.failed(bad_request("the request nests too deeply"), form)
        except Exception:
            log.exception("request failed", extra={"path": request.path, "method": request.method})
            return rendering.failed(internal("the request could not be served"), form)
        finally:
            self.drain()

    @staticmethod
    def _parse(request: Request, query: Mapping[str, str]) -> RequestInfo:
        watch = query.get("watch") is not None and query["watch"].lower() not in {"false", "0", ""}
        name = ""
        if "fieldSelector" in query:
            try:
                found = [v for label, equal, v in field_requirements(query["fieldSelector"]) if label == "metadata.name" and equal]
                name = found[0] if len(found) == 1 else ""
            except StatusError:
                name = ""
        return parse(request.method, request.path, watch=watch, name_selector=name)

    @staticmethod
    def _scope_fits(resource: Resource, info: RequestInfo) -> bool:
        if resource.namespaced:
            return bool(info.namespace) or info.verb in {"list", "watch"} or not (resource.custom or info.name)
        return not info.namespace or (resource.plural == "namespaces" and info.name == info.namespace)

    def _unknown(self, info: RequestInfo) -> Response:
        if any(r.group == info.group and not r.custom for r in self.registry) or not info.group:
            return rendering.failed(generic(404, "", "", "", ""), PLAIN)
        return NOT_FOUND_TEXT

    async def _dispatch(self, call: Call) -> Response | Stream:
        info, resource = call.info, call.resource
        if info.subresource:
            return await subresources.answer(call)
        if len(call.request.body) > _MAXIMUM_BODY:
            raise failure(413, "RequestEntityTooLarge", "Request entity too large: limit is 3145728", {})
        verb = info.verb
        if not resource.custom and (call.request.method == "HEAD" or (resource.namespaced and not info.namespace and verb not in _READS)):
            raise generic(405, "", "", "", "")  # no route of theirs
        in_path = bool(info.name) and len(info.path.rstrip("/").rsplit("/", 2)) > 0 and info.path.rstrip("/").endswith("/" + info.name)
        if verb == "get":
            return await reads.get(call)
        if verb not in resource.verbs:
            raise subresources.not_allowed(call)
        if verb == "list":
            return await reads.list_objects(call)
        if verb == "watch":
            return await reads.watch(call)
        if verb == "create":
            if in_path and not resource.custom:
                raise generic(405, "", "", "", "")
            return await subresources.create(call)
        if verb in {"update", "patch"} and not info.name:
            if resource.custom:
                raise bad_request("name must be provided")
            raise generic(405, "", "", "", "")
        if verb == "update":
            return await writes.update(call)
        if verb == "patch":
            return await patching.patch(call)
        if verb == "delete":
            return await deletes.delete(call)
        if verb == "deletecollection":
            return await deletes.delete_collection(call)
        raise subresources.not_allowed(call)

    def _refusal(self, user: User, info: RequestInfo) -> StatusError:
        if not info.is_resource:
            text = f'User "{user.name}" cannot {info.verb} path "{info.path}"'
            return failure(403, "Forbidden", f"forbidden: {text}", {})
        resource = f"{info.resource}/{info.subresource}" if info.subresource else info.resource
        where = f'in the namespace "{info.namespace}"' if info.namespace else "at the cluster scope"
        text = f'User "{user.name}" cannot {info.verb} resource "{resource}" in API group "{info.group}" {where}'
        return forbidden_error(info.group, info.resource, info.name, text)

    async def upgrade(self, request: Request, user: User = ADMIN) -> Duplex:
        """Open a stream in both directions (port-forward); raises StatusError."""
        info = self._parse(request, query_of(request.query))
        if self.authorizer is not None and not self.authorizer.allows(self, user, info):
            raise self._refusal(user, info)
        if self.upgrade_handler is None:
            raise generic(404, "", "", "", "")
        return await self.upgrade_handler(request, info, user)

    # ------------------------------------------------------------------ answers

    # ------------------------------------------------------------------ system

    def timestamp(self) -> str:
        """Now, to the second."""
        now = self.now().replace(microsecond=0)
        if now != self._stamp[0]:
            self._stamp = (now, rfc3339(now))
        return self._stamp[1]

    def new_uid(self) -> str:
        """A random uid."""
        return str(uuid.UUID(int=self.random.getrandbits(128), version=4))

    def token_user(self, token: str) -> User | None:
        """Whose bearer token this is."""
        found = (source(token) for source in self.token_sources)
        return next((user for user in found if user is not None), None)

    def admission_chain(self) -> list[Admission]:
        """The links that a write passes."""
        return self.admission

    def check_namespace(self, call: Call, namespace: str, name: str) -> None:
        """A new namespaced object needs a namespace that exists and is not being deleted."""
        if not self.require_namespaces or not call.resource.namespaced:
            return
        entry = self.store.table("namespaces").objects.get(namespace)
        if entry is None:
            raise not_found("", "namespaces", namespace)
        if b'"deletionTimestamp":' in entry.raw and msgspec.json.decode(entry.raw)["metadata"].get("deletionTimestamp"):
            text = f"unable to create new content in namespace {namespace} because it is being terminated"
            cause = {
                "reason": "NamespaceTerminating",
                "message": f"namespace {namespace} is being terminated",
                "field": "metadata.namespace",
            }
            raise forbidden_error(call.resource.group, call.resource.plural, name, text, [cause])

    def may_vanish(self, call: Call, obj: Json) -> bool:
        """Whether nothing but metadata.finalizers holds the object back."""
        if call.resource.plural == "namespaces" and not call.resource.group:
            return not (obj.get("spec") or {}).get("finalizers")
        return True

    def mark_deleting(self, call: Call, obj: Json) -> bool:
        """What a kind's status says when its deletion begins."""
        if call.resource.plural == "namespaces" and not call.resource.group:
            status = obj.setdefault("status", {})
            if status.get("phase") != "Terminating":
                status["phase"] = "Terminating"
                return True
        if storage_key(call.resource) == CRD_TABLE:
            return mark_deleting(obj, self.timestamp())
        return False

    @staticmethod
    def deletion_finalizers(call: Call) -> tuple[str, ...]:
        """Finalizers that the server itself adds when a deletion begins."""
        return (CLEANUP,) if storage_key(call.resource) == CRD_TABLE else ()

    def grace_period(self, call: Call, obj: Json, options: Json) -> int:
        """Seconds an object stays after its deletion was asked for."""
        if not call.resource.grace:
            return 0
        return subresources.pod_grace_period(obj, options)

    async def remove(self, call: Call, entry: Entry) -> int:
        """Take an object out of the store; returns the revision when that is durable."""
        rv = self.remove_system(call.table, entry)
        await self.store.durable(rv)
        return rv

    def remove_system(self, table: Table, entry: Entry) -> int:
        """Take an object out, at once; returns the revision."""
        rv = self.store.next_revision()
        last = msgspec.json.decode(entry.raw)  # watches show what was stored last, not what the last write would have made of it
        last["metadata"]["resourceVersion"] = str(rv)
        raw = _encode(writes.ordered(last, custom=self._is_custom(table)))
        self.store.delete(table, Entry(entry.key, entry.namespace, entry.name, entry.uid, rv, raw))
        return rv

    def put_system(self, table: Table, entry: Entry, obj: Json) -> Entry:
        """Write an object that the server itself changed, at once."""
        rv = self.store.next_revision()
        obj["metadata"]["resourceVersion"] = str(rv)
        new = Entry(entry.key, entry.namespace, entry.name, entry.uid, rv, _encode(writes.ordered(obj, custom=self._is_custom(table))))
        self.store.put(table, new)
        return new

    def _is_custom(self, table: Table) -> bool:
        resource = self.resource_of(table.name)
        return resource is None or resource.custom

    def delete_system(self, table: Table, entry: Entry, resource: Resource) -> None:
        """Delete as a controller would: finalizers are respected."""
        obj = msgspec.json.decode(entry.raw)
        meta = obj["metadata"]
        if not meta.get("finalizers"):
            self.remove_system(table, entry)
        elif not meta.get("deletionTimestamp"):
            meta["deletionTimestamp"] = self.timestamp()
            meta["deletionGracePeriodSeconds"] = 0
            if resource.generation:
                meta["generation"] = (meta.get("generation") or 0) + 1
            self.put_system(table, entry, obj)

    def drop_finalizer(self, table: Table, entry: Entry, obj: Json, finalizer: str) -> None:
        """Take a finalizer off an object that is being deleted; it vanishes with its last one."""
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

    def resource_of(self, table: str) -> Resource | None:
        """The resource whose objects a table holds."""
        if self._tables[0] != self.registry.generation:
            self._tables = (self.registry.generation, garbage.resource_index(self))
        return self._tables[1].get(table)

    def start_controllers(self) -> None:
        """Collect garbage, empty deleted namespaces, aggregate roles and keep disruption budgets from now on."""
        self._computes_budgets = True
        garbage.start_controllers(self)

    def refresh_budget(self, entry: Entry, budget: Json) -> None:
        """Bring a PodDisruptionBudget's status up to date, if that is our task."""
        if self._computes_budgets:
            budgets.refresh(self, entry, budget)

    def later(self, action: Callable[[], None]) -> None:
        """Run after the request that is being served (or now, if none is)."""
        self._later.append(action)

    def drain(self) -> None:
        """Do now what was put off to the end of a request."""
        if self._draining:
            return
        self._draining = True
        try:
            while self._later:
                try:
                    self._later.popleft()()
                except Exception:
                    log.exception("a controller of the API server failed")
        finally:
            self._draining = False

    def when_empty(self, table: Table, action: Callable[[], None]) -> None:
        """Run once the table has no objects."""
        watcher = _Empty(self, table, action)
        table.hooks.append(watcher)

    def close(self) -> None:
        """End all watches."""
        self.watches.close()

    # ------------------------------------------------------------------ documents

    def metrics_text(self) -> bytes:
        """Metrics in Prometheus' text form."""
        return self.metrics.text(self) if self.metrics is not None else b""

    def openapi(self, group: str, version: str, resources: list[Resource]) -> bytes | None:
        """The OpenAPI v3 document of a group version."""
        return nonresource.document(group, version, resources)

    # ------------------------------------------------------------------ worlds

    def ensure(self, objects: Iterable[Json], *, update: bool = False) -> None:
        """Have these objects, past admission: created if they are not there; with `update`, replaced if they differ."""
        loading.ensure(self, objects, update=update)
        self.drain()

    def ensure_namespaces(self) -> None:
        """Make the namespaces that a cluster begins with."""
        existing = self.store.table("namespaces").objects
        for name in self.initial_namespaces:
            if name not in existing:
                loading.make_namespace(self, name)

    def recover(self, entries: Iterable[tuple[str, Entry]], revision: int) -> None:
        """Take over what a journal holds, before anything is served."""
        for name, entry in entries:
            self.store.seed(self.store.table(name), entry)
        self.store.revision = max(self.store.revision, revision)
        self.store.seeded()
        for entry in list(self.store.table(CRD_TABLE).objects.values()):
            self.crds.resume(entry)
        self.drain()

    def load(self, objects: Iterable[Mapping[str, Any]]) -> None:
        """Put objects in as they are: no admission, uid, resourceVersion and times kept; unknown kinds are served too."""
        loading.load(self, objects)
        self.drain()


class _Empty:
    def __init__(self, server: ApiServer, table: Table, action: Callable[[], None]) -> None:
        self.server, self.table, self.action = server, table, action

    def offer(self, event: object) -> None:
        if not self.table.objects and self in self.table.hooks:
            self.table.hooks.remove(self)
            self.server.later(self.action)
