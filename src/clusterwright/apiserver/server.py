"""The API server: one request in, one answer (or stream) out. It has no sockets; `serving` passes requests to it.

All state of a server is in its store; servers share only compiled handlers. Time and randomness are injected.
"""

from __future__ import annotations

import asyncio
import logging
import random as random_module
from collections.abc import Awaitable, Callable, Iterable, Mapping
from datetime import datetime
from functools import cache, partial
from typing import Any, Final, Protocol

import msgspec

from clusterwright.api.copying import replace
from clusterwright.api.meta import Json
from clusterwright.api.wire import Dial, Duplex, Request, Response
from clusterwright.apiserver.admission import policies
from clusterwright.apiserver.attributes import Admission
from clusterwright.apiserver.builtins.kinds import RESOURCES
from clusterwright.apiserver.calls import Call
from clusterwright.apiserver.core import Authorizer, Converters, Core
from clusterwright.apiserver.discovery import nonresource
from clusterwright.apiserver.encoding import rendering
from clusterwright.apiserver.encoding.negotiation import PLAIN, Form, accepted, check_timeout, for_failures
from clusterwright.apiserver.identity import ADMIN, User
from clusterwright.apiserver.interfaces import Resource
from clusterwright.apiserver.registry import Registry, ResourceKey, index
from clusterwright.apiserver.requestinfo import RequestInfo, parse, query_of
from clusterwright.apiserver.selectors import field_requirements
from clusterwright.apiserver.status import StatusError, bad_request, generic, internal, not_found
from clusterwright.apiserver.storage.store import Entry, Journal, NotDurable, Store, object_key
from clusterwright.apiserver.storage.streams import Stream
from clusterwright.apiserver.system import controllers, definitions, loading, namespaces, serviceaddresses
from clusterwright.apiserver.verbs import containers, routing

__all__ = ["ApiServer", "Authorizer", "Forward"]

log = logging.getLogger(__name__)
_NOT_FOUND: Final = Response(status=404, headers={"content-type": "text/plain; charset=utf-8"}, body=b"404 page not found\n")
_INITIAL_NAMESPACES: Final = ("default", "kube-system", "kube-public", "kube-node-lease")


class Forward(Protocol):
    """Opens a port of an existing Pod as a stream of bytes."""

    async def __call__(self, namespace: str, pod: str, port: int) -> Duplex:
        """Open the port. Raises OSError: ConnectionRefusedError if nothing listens."""


@cache
def _builtin_index() -> dict[ResourceKey, Resource]:
    return index(RESOURCES)


class ApiServer(Core):
    """A Kubernetes API server in memory."""

    def __init__(
        self,
        *,
        now: Callable[[], datetime],
        random: random_module.Random,
        journal: Journal | None = None,
        history: int = 1000,
        resources: Mapping[ResourceKey, Resource] | None = None,
        namespaces: Iterable[str] = _INITIAL_NAMESPACES,
        require_namespaces: bool = True,
        authorizer: Authorizer | None = None,
        admission: Iterable[Admission] = (),
        forward: Forward | None = None,
        version: str = "v1.36.1",
        converters: Converters | None = None,
    ) -> None:
        """Create a server.

        `history`: how many events are kept for each kind, so that watches can resume. `resources`: the resources without CRDs; by default
        the built-ins. `require_namespaces`: objects can be created only in namespaces that exist. Without an `authorizer` everybody may do
        everything. With a `journal`: call `recover`, start the journal, then `ensure_namespaces` before anything is served. `converters`:
        kinds whose conversion, a webhook by their CRD, is done in this process. `forward`: serves port-forwards; without it they are
        answered 404.
        """
        super().__init__(
            now=now,
            random=random,
            store=Store(history=history, journal=journal),
            registry=Registry(_builtin_index() if resources is None else resources),
            require_namespaces=require_namespaces,
            authorizer=authorizer,
            admission=admission,
            version=version,
            converters=converters,
        )
        self.forward_handler = forward
        self.allocators[serviceaddresses.SERVICES] = serviceaddresses.ServiceAddresses(self)
        self._definitions = definitions.CrdController(self)
        self.store.table(definitions.TABLE).hooks.append(self._definitions)
        self._policies = policies.Activation(self)
        self._initial_namespaces = tuple(namespaces)
        if journal is None:
            self.ensure_namespaces()

    # ------------------------------------------------------------------ requests

    async def handle(
        self, request: Request, user: User = ADMIN, info: RequestInfo | None = None, read: Callable[[], Awaitable[bytes]] | None = None
    ) -> Response | Stream:
        """Answer one request. Failures are answers too; this raises nothing except cancellation.

        `info`: the parsed request, if the caller has it. `read` reads the body; it is called once the user is authorised.
        """
        if self.metrics is None:
            return await self._handle(request, user, info, read)
        loop = asyncio.get_running_loop()
        kind = "readOnly" if request.method in {"GET", "HEAD"} else "mutating"
        begin = loop.time()
        self.inflight[kind] += 1
        try:
            answer = await self._handle(request, user, info, read)
        finally:
            self.inflight[kind] -= 1
        query = query_of(request.query)
        code = answer.response.status if isinstance(answer, Stream) else answer.status
        info = info or _parse(request, query)
        is_known = self.registry.find(info.group, info.version, info.resource) is not None
        self.metrics.observe(info, code, loop.time() - begin, dry_run="dryRun" in query, is_known=is_known)
        return answer

    async def _handle(
        self, request: Request, user: User, info: RequestInfo | None, read: Callable[[], Awaitable[bytes]] | None
    ) -> Response | Stream:
        form = PLAIN
        call: Call | None = None
        try:
            query = query_of(request.query) if request.query else {}
            info = info or _parse(request, query)
            self.demand(user, info)
            if read is not None:
                request = Request(method=request.method, path=request.path, query=request.query, headers=request.headers, body=await read())
            if "timeout" in query and info.verb != "watch":
                check_timeout(query["timeout"])
            if not info.is_resource:
                return await nonresource.answer(self, request, info, query)
            resource = self.registry.find(info.group, info.version, info.resource)
            if resource is None or not _scope_fits(resource, info):
                return self._unknown(info)
            patch_media = routing.check_route(request, info, resource)
            accept = request.headers.get("accept", "")
            if accept and accept != "application/json":
                form = accepted(accept, custom=resource.custom, collection=info.verb in {"list", "watch"})
            call = Call(self, request, info, user, resource, query, patch_media, form)
            call.weigh(request.body)
            call.begin()
            answer = await routing.dispatch(call)
            if "dryRun" in query:
                await self.store.settled()
            if query.get("pretty") in {"true", "1"} and isinstance(answer, Response) and form.media == "application/json":
                answer = replace(answer, body=msgspec.json.format(answer.body, indent=2) + b"\n")
            return answer
        except StatusError as e:
            return await self._failed(e, for_failures(request.headers.get("accept", "")), call)
        except NotDurable as e:
            log.error("a write could not be stored, check the disk of the data directory: %s", e, extra={"path": request.path})
            return rendering.failed(internal(str(e)), form)
        except RecursionError:
            return rendering.failed(bad_request("the request nests too deeply"), form)
        except Exception:
            log.exception("request failed", extra={"path": request.path, "method": request.method})
            return rendering.failed(internal("the request could not be served"), form)
        finally:
            self.drain()

    def info(self, request: Request) -> RequestInfo:
        """Return the parsed request."""
        return _parse(request, query_of(request.query))

    async def _failed(self, error: StatusError, form: Form, call: Call | None) -> Response:
        """Return a failure once every write that it may depend on is durable: a crash could undo a deletion that caused a 404."""
        if call is not None:
            try:
                await self.store.settled()
            except NotDurable as e:
                return rendering.failed(internal(str(e)), form)
        return rendering.failed(error, form, () if call is None else tuple(call.warnings))

    def _unknown(self, info: RequestInfo) -> Response:
        if any(r.group == info.group and not r.custom for r in self.registry) or not info.group:
            return rendering.failed(generic(404, "", "", "", ""), PLAIN)
        return _NOT_FOUND

    def forward(self, request: Request, user: User = ADMIN) -> Dial:
        """Return a function that opens ports of the Pod whose `portforward` is requested. Raises StatusError.

        A WebSocket begins with a GET, but the user must be allowed to create.
        """
        info = self.info(request)
        self.demand(user, info)
        if info.verb != "create" and info.resource == "pods" and info.subresource:
            self.demand(user, replace(info, verb="create"))
        if info.resource != "pods" or info.group or info.subresource not in {*containers.SUBRESOURCES, "portforward"}:
            raise generic(404, "", "", "", "")
        if object_key(info.namespace, info.name) not in self.store.table("pods").objects:
            raise not_found("", "pods", info.name)
        if info.subresource != "portforward":
            raise containers.refusal(info)
        if self.forward_handler is None:
            raise generic(404, "", "", "", "")
        return partial(self.forward_handler, info.namespace, info.name)

    # ------------------------------------------------------------------ start and end

    def start_controllers(self, authority: bytes = b"") -> None:
        """Run controllers from now on: garbage collection, namespace deletion, role aggregation and disruption budgets.

        With the certificate of its `authority`, also fill namespaces as kube-controller-manager does.
        """
        controllers.start_controllers(self, authority)

    def close(self) -> None:
        """End all watches."""
        self.watches.close()

    def ensure_namespaces(self) -> None:
        """Create the initial namespaces."""
        existing = self.store.table("namespaces").objects
        for name in self._initial_namespaces:
            if name not in existing:
                namespaces.make_namespace(self, name)

    def ensure(self, objects: Iterable[Json], *, update: bool = False) -> None:
        """Create these objects if they are missing, without admission; with `update`, replace those that differ."""
        loading.ensure(self, objects, update=update)
        self.drain()

    def recover(self, entries: Iterable[tuple[str, Entry]], revision: int) -> None:
        """Load the content of a journal, before any request is served."""
        for name, entry in entries:
            self.store.seed(self.store.table(name), entry)
        self.store.reach(revision)
        self.store.seeded()
        for entry in list(self.store.table(definitions.TABLE).objects.values()):
            self._definitions.resume(entry)
        self._policies.resume()
        self.drain()

    def load(self, objects: Iterable[Mapping[str, Any]]) -> None:
        """Store objects as they are, without admission: UID, resourceVersion and times are kept. Unknown kinds are served, too."""
        loading.load(self, objects)
        self.drain()

    def load_from(self, other: ApiServer) -> None:
        """Share the objects that were loaded into another server; later writes to either do not affect the other."""
        self.registry.share(other.registry)
        self.store.share(other.store)


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


def _scope_fits(resource: Resource, info: RequestInfo) -> bool:
    if resource.namespaced:
        return bool(info.namespace) or info.verb in {"list", "watch"} or not (resource.custom or info.name)
    return not info.namespace or (resource.plural == "namespaces" and info.name == info.namespace)
