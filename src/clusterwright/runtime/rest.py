"""The client without a cache, over any transport: HTTP to a kube-apiserver, or a call in this process.

It turns kinds into paths, answers into objects and failures into the tree of `errors`. It holds no objects: see `cache`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from contextlib import AbstractAsyncContextManager, nullcontext
from typing import Any, Final, Literal, Protocol, TypeVar

import msgspec

from clusterwright.api.meta import GroupVersionKind, Json, Object, ObjectKey, OwnerReference, Unstructured
from clusterwright.api.scheme import Resource
from clusterwright.api.wire import UNREADABLE, Request, Response, Transport
from clusterwright.runtime import models
from clusterwright.runtime.client import Original, PatchType, Query, Reader
from clusterwright.runtime.clock import Clock
from clusterwright.runtime.errors import ApiError, ConnectionFailed, NotFound, ServerError, from_response
from clusterwright.runtime.resources import Kind, Lookup, Resources, gvk_of_json, no_kind_match

T = TypeVar("T", bound=Object)

PAGE_SIZE = 500
_MAX_TRIES = 5
_PATCH_CONTENT_TYPES: dict[str, str] = {
    "merge": "application/merge-patch+json",
    "json": "application/json-patch+json",
    "strategic": "application/strategic-merge-patch+json",
    "apply": "application/apply-patch+yaml",
}


class _ListMeta(msgspec.Struct, rename={"resource_version": "resourceVersion", "continue_": "continue"}):
    resource_version: str = ""
    continue_: str = ""


class Page(msgspec.Struct):
    """One page of a list, with items as bytes (views into the page: copy what is kept)."""

    metadata: _ListMeta = msgspec.field(default_factory=_ListMeta)
    items: list[msgspec.Raw] | None = None


_PAGE = msgspec.json.Decoder(Page)
_MOST_PAGES: Final = 20_000
"""The most pages of one list: ten million objects."""


class Pages:
    """The `continue` tokens of one list; they guarantee that it ends, whatever the server answers."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._tokens: set[str] = set()

    def after(self, page: Page) -> str:
        """Return the token for the next page, empty if this is the last; raises ServerError for an endless list."""
        token = page.metadata.continue_
        if token and (token in self._tokens or len(self._tokens) >= _MOST_PAGES):
            fault = "repeats a continue token" if token in self._tokens else f"has more than {_MOST_PAGES} pages"
            raise ServerError(f"GET {self._path}: the API server's list does not end: it {fault}")
        self._tokens.add(token)
        return token


class _Owned(msgspec.Struct):
    """The fields that a filter by owner needs."""

    class Meta(msgspec.Struct, rename="camel"):
        owner_references: tuple[OwnerReference, ...] = ()

    metadata: Meta = msgspec.field(default_factory=Meta)


class _Keyed(msgspec.Struct):
    class Meta(msgspec.Struct):
        name: str = ""
        namespace: str = ""

    metadata: Meta = msgspec.field(default_factory=Meta)


_KEY = msgspec.json.Decoder(_Keyed)
_OWNED = msgspec.json.Decoder(_Owned)


def selector(labels: str | Mapping[str, str]) -> str:
    """Return a label selector as text; a mapping means equality of every entry."""
    return labels if isinstance(labels, str) else ",".join(f"{key}={value}" for key, value in sorted(labels.items()))


def is_owned_by(raw: bytes | msgspec.Raw, uid: str) -> bool:
    """Return whether the object has an ownerReference of this UID."""
    try:
        return any(reference.uid == uid for reference in _OWNED.decode(raw).metadata.owner_references)
    except UNREADABLE:
        return False


class WriteObserver(Protocol):
    """Is called for every write, so that a cache need not wait for its own events."""

    def begins(self, gvk: GroupVersionKind) -> int:
        """Handle a write that is about to be sent; the result is passed to `wrote`."""

    def wrote(self, gvk: GroupVersionKind, key: ObjectKey, body: bytes, *, deleted: bool, began: int) -> None:
        """Handle the acknowledgement `body` of a write: the object, or (for some deletions) a Status."""

    def doubts(self, gvk: GroupVersionKind) -> None:
        """Handle a failure after which the effect of a write is unknown."""


class RestClient:
    """A `Client` whose reads are all live.

    After an answer 429, or 5xx with Retry-After, wait and send the request again: the API server did not act on it. After a broken
    connection only reads are retried; for writes the caller must check the effect. POSTs to subresources are never retried: a refused
    eviction is a 429.
    """

    def __init__(
        self,
        transport: Transport,
        *,
        known: Lookup = models.known_resource,
        clock: Clock | None = None,
        user_agent: str = "clusterwright",
        max_tries: int = _MAX_TRIES,
        observer: WriteObserver | None = None,
    ) -> None:
        self.transport = transport
        self.resources = Resources(self.raw_get, known)
        self._clock = clock
        self.headers = {"accept": "application/json", "user-agent": user_agent}
        self._max_tries = max_tries
        self.observer = observer

    def known(self, kind: type[Object] | GroupVersionKind, key: ObjectKey) -> bytes | None:
        """Return None: nothing is cached."""
        return None

    def turn(self, kind: type[Object] | GroupVersionKind, key: ObjectKey) -> AbstractAsyncContextManager[None]:
        """Return a lock that never waits: conflicts show concurrent writes."""
        return nullcontext()

    # Reads.

    async def get(self, kind: Any, key: ObjectKey) -> Any:
        """Return the object; raises NotFound."""
        return models.decode(kind, await self.get_bytes(kind, key))

    async def find(self, kind: Any, key: ObjectKey) -> Any:
        """Return the object, or None if it does not exist."""
        try:
            return await self.get(kind, key)
        except NotFound:
            return None

    async def read(self, kind: type[T], key: ObjectKey) -> Original[T] | None:
        """Return the object with its bytes, or None if it does not exist."""
        try:
            raw = await self.get_bytes(kind, key)
        except NotFound:
            return None
        return Original(models.decode(kind, raw), raw)

    async def list(self, kind: Any, *, namespace: str = "", labels: str | Mapping[str, str] = "", fields: str = "", owner: str = "") -> Any:
        """Return all objects of the kind that match, ordered by namespace and name."""
        found: list[Any] = []
        query = [(name, value) for name, value in (("labelSelector", selector(labels)), ("fieldSelector", fields)) if value]
        token = ""
        restarts = 0
        resource = await self.resources.of(kind)
        pages = Pages(resource.path(namespace))
        while True:
            try:
                page = await self.page(resource, namespace, (*query, ("continue", token)) if token else tuple(query))
            except ApiError as error:
                # the continue token has outlived its snapshot: begin again, once
                if error.code == 410 and token and not restarts:
                    found, token, restarts = [], "", 1
                    pages = Pages(resource.path(namespace))
                    continue
                raise
            found += [models.decode(kind, item) for item in page.items or () if not owner or is_owned_by(item, owner)]
            token = pages.after(page)
            if not token:
                break
        found.sort(key=lambda obj: obj.key)
        return found

    async def get_bytes(self, kind: Kind, key: ObjectKey) -> bytes:
        """Return the object's JSON as the API server sent it; raises NotFound."""
        resource = await self.resources.of(kind)
        return (await self._send(resource, "GET", _path_of(resource, key))).body

    async def page(self, resource: Resource, namespace: str = "", query: tuple[tuple[str, str], ...] = (), limit: int = PAGE_SIZE) -> Page:
        """Return one page of a consistent list; `limit` 0 asks for everything at once."""
        if limit:
            query = (*query, ("limit", str(limit)))
        path = resource.path(namespace)
        response = await self._send(resource, "GET", path, query=query)
        try:
            return _PAGE.decode(response.body)
        except UNREADABLE as error:
            raise _not_json("GET", path) from error

    async def raw_get(self, path: str, *, query: Query = (), accept: str = "", timeout: float | None = None) -> bytes:
        """Send GET to any path; a `timeout` in seconds ends in ConnectionFailed."""
        headers = {**self.headers, "accept": accept} if accept else self.headers
        try:
            async with asyncio.timeout(timeout):
                return (await self._exchange(Request(method="GET", path=path, query=query, headers=headers))).body
        except TimeoutError as error:
            raise ConnectionFailed(f"GET {path}: no answer within {timeout:g} s") from error

    @property
    def live(self) -> Reader:
        """Return this client, which never reads from a cache."""
        return self

    # Writes.

    async def create(self, obj: Object | Json, *, field_manager: str = "", dry_run: bool = False) -> Unstructured:
        """Create the object; raises AlreadyExists. With `dry_run`, only return what would be created."""
        json = models.to_json(obj)
        resource = await self.resources.of(gvk_of_json(json))
        path = resource.path(json.get("metadata", {}).get("namespace", ""))
        query, body = _manager(field_manager), msgspec.json.encode(json)
        if dry_run:
            return _object(await self._send(resource, "POST", path, query=(*query, ("dryRun", "All")), body=body))
        return _object(await self._write(resource, "POST", path, query=query, body=body))

    async def update(self, obj: Object | Json, *, subresource: str = "") -> Unstructured:
        """Replace the whole object; with a resourceVersion only if it is still current."""
        json = models.to_json(obj)
        resource = await self.resources.of(gvk_of_json(json))
        metadata = json.get("metadata", {})
        path = _path_of(resource, ObjectKey(metadata.get("namespace", ""), metadata["name"]), subresource)
        return _object(await self._write(resource, "PUT", path, body=msgspec.json.encode(json)))

    async def patch(
        self,
        kind: type[Object] | GroupVersionKind,
        key: ObjectKey,
        patch: Json | Sequence[Json],
        *,
        type: PatchType = "merge",
        subresource: str = "",
        field_manager: str = "",
    ) -> Unstructured:
        """Patch the object or its subresource."""
        resource = await self.resources.of(kind)
        path = _path_of(resource, key, subresource)
        body = msgspec.json.encode(patch)
        return _object(
            await self._write(resource, "PATCH", path, query=_manager(field_manager), body=body, content_type=_PATCH_CONTENT_TYPES[type])
        )

    async def apply(
        self, obj: Object | Json, *, field_manager: str, force: bool = True, subresource: str = "", dry_run: bool = False
    ) -> Unstructured:
        """Apply server-side; `dry_run`: only return the result."""
        json = models.to_json(obj)
        resource = await self.resources.of(gvk_of_json(json))
        metadata = json.get("metadata", {})
        path = _path_of(resource, ObjectKey(metadata.get("namespace", ""), metadata["name"]), subresource)
        query = (*_manager(field_manager), ("force", "true" if force else "false"))
        body = msgspec.json.encode(json)
        if dry_run:
            query = (*query, ("dryRun", "All"))
            return _object(await self._send(resource, "PATCH", path, query=query, body=body, content_type=_PATCH_CONTENT_TYPES["apply"]))
        return _object(await self._write(resource, "PATCH", path, query=query, body=body, content_type=_PATCH_CONTENT_TYPES["apply"]))

    async def delete(
        self,
        kind: type[Object] | GroupVersionKind,
        key: ObjectKey,
        *,
        uid: str = "",
        resource_version: str = "",
        propagation: Literal["", "Background", "Foreground", "Orphan"] = "",
        grace_period_seconds: int | None = None,
    ) -> None:
        """Request the deletion; raises NotFound."""
        options: Json = {"apiVersion": "v1", "kind": "DeleteOptions"}
        preconditions = {name: value for name, value in (("uid", uid), ("resourceVersion", resource_version)) if value}
        if preconditions:
            options["preconditions"] = preconditions
        if propagation:
            options["propagationPolicy"] = propagation
        if grace_period_seconds is not None:
            options["gracePeriodSeconds"] = grace_period_seconds
        resource = await self.resources.of(kind)
        path = _path_of(resource, key)
        await self._write(resource, "DELETE", path, body=msgspec.json.encode(options), key=key)

    async def create_subresource(self, kind: type[Object] | GroupVersionKind, key: ObjectKey, subresource: str, body: Json) -> Json:
        """Send POST to a subresource, only once. NotFound concerns the object or subresource, not the kind."""
        resource = await self.resources.of(kind)
        headers = {**self.headers, "content-type": "application/json"}
        request = Request(method="POST", path=_path_of(resource, key, subresource), headers=headers, body=msgspec.json.encode(body))
        try:
            response = await self._exchange(request, 1)
        finally:
            # what it did to the object is not in the answer
            if self.observer is not None:
                self.observer.doubts(resource.gvk)
        try:
            answer = msgspec.json.decode(response.body) if response.body else {}
        except UNREADABLE as error:
            raise _not_json("POST", request.path) from error
        return answer if isinstance(answer, dict) else {}

    async def close(self) -> None:
        """Release the transport's connections."""
        await self.transport.close()

    # The exchange.

    async def _write(
        self,
        resource: Resource,
        method: str,
        path: str,
        *,
        query: tuple[tuple[str, str], ...] = (),
        body: bytes = b"",
        content_type: str = "application/json",
        key: ObjectKey | None = None,
    ) -> Response:
        """Send a write, and inform the observer; `key` if the answer may be a Status."""
        if self.observer is None:
            return await self._send(resource, method, path, query=query, body=body, content_type=content_type)
        settled = False
        began = self.observer.begins(resource.gvk)
        try:
            response = await self._send(resource, method, path, query=query, body=body, content_type=content_type)
            settled = True
        except ApiError as error:
            # 5xx and broken connections leave open what happened; so does being cancelled while waiting (finally)
            settled = not isinstance(error, ServerError | ConnectionFailed)
            raise
        finally:
            if not settled:
                self.observer.doubts(resource.gvk)
        try:
            answered = _KEY.decode(response.body).metadata
        except UNREADABLE as error:
            self.observer.doubts(resource.gvk)
            raise _not_json(method, path) from error
        if method != "DELETE" or key is None:
            key = ObjectKey(answered.namespace, answered.name)
        self.observer.wrote(resource.gvk, key, response.body, deleted=method == "DELETE", began=began)
        return response

    async def _send(
        self,
        resource: Resource,
        method: str,
        path: str,
        *,
        query: tuple[tuple[str, str], ...] = (),
        body: bytes = b"",
        content_type: str = "application/json",
    ) -> Response:
        headers = {**self.headers, "content-type": content_type} if body else self.headers
        try:
            return await self._exchange(Request(method=method, path=path, query=query, headers=headers, body=body))
        except NotFound as error:
            if is_missing_object(error):
                raise
            # the path itself is unknown: a missing CRD must never look like a missing object
            self.resources.forget(resource.gvk)
            raise no_kind_match(resource.gvk) from error

    async def _exchange(self, request: Request, max_tries: int = 0) -> Response:
        tries = max_tries or self._max_tries
        for attempt in range(1, tries + 1):
            try:
                response = await self.transport.send(request)
            except ConnectionFailed:
                if request.method != "GET" or attempt == min(tries, 3):
                    raise
                await self._sleep(0.1 * 4 ** (attempt - 1))
                continue
            if response.status < 300:
                return response
            wait = retry_after(response)
            error = from_response(response.status, response.body, wait)
            will_retry = response.status == 429 or (response.status >= 500 and wait is not None)
            if not will_retry or attempt == tries:
                raise error
            await self._sleep(1.0 if wait is None else wait)
        raise AssertionError("unreachable: the last attempt returns or raises")

    async def _sleep(self, seconds: float) -> None:
        await (self._clock.sleep(seconds) if self._clock else asyncio.sleep(seconds))


def is_missing_object(error: NotFound) -> bool:
    """Return whether the 404 is about an object (a Status with reason NotFound that names one), not about the path."""
    details = error.status.get("details")
    return error.reason == "NotFound" and isinstance(details, Mapping) and bool(details.get("name"))


def retry_after(response: Response) -> float | None:
    """Return the seconds of the Retry-After header; None if it is absent or not a number."""
    try:
        return max(0.0, float(response.headers["retry-after"]))
    except (KeyError, ValueError):
        return None


def _path_of(resource: Resource, key: ObjectKey, subresource: str = "") -> str:
    """Return the path of one object or of its subresource; raises NotFound for an impossible name.

    Such a name must never reach the server: an empty one would mean the whole collection, one with a slash something below it.
    """
    if not key.name or key.name in {".", ".."} or "/" in key.name or "%" in key.name:
        message = f'{resource.plural} "{key.name}" not found'
        details = {"name": key.name, "group": resource.gvk.group, "kind": resource.plural}
        raise NotFound(
            message, {"kind": "Status", "status": "Failure", "message": message, "reason": "NotFound", "details": details, "code": 404}
        )
    return resource.path(key.namespace, key.name, subresource)


def _manager(name: str) -> tuple[tuple[str, str], ...]:
    return (("fieldManager", name),) if name else ()


def _object(response: Response) -> Unstructured:
    try:
        return Unstructured(msgspec.json.decode(response.body, type=dict[str, Any]))
    except UNREADABLE as error:
        raise ConnectionFailed("the answer to a write is not an object: the peer may not be an API server") from error


def _not_json(method: str, path: str) -> ConnectionFailed:
    return ConnectionFailed(f"{method} {path}: the answer is not a valid answer of an API server")
