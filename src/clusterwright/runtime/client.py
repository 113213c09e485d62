"""Interfaces to read and write objects: by typed class, or by GroupVersionKind for kinds learned at run time.

`Reader` may answer from a cache, which is never older than this process's own last write to the object's kind;
`Client.live` always asks the API server. Reading never changes anything, so code that only observes gets a `Reader`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import Any, Generic, Literal, Protocol, TypeVar, overload

from clusterwright.api.meta import GroupVersionKind, Json, Object, ObjectKey, Unstructured

T = TypeVar("T", bound=Object)
PatchType = Literal["merge", "json", "strategic"]
Query = tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class Original(Generic[T]):
    """An object as read: its model, and the bytes to which the final patch is relative.

    Python 3.11: call Original(x, raw), never Original[X](x, raw).
    """

    object: T
    raw: bytes


class Reader(Protocol):
    """Reads objects of one cluster. Errors are `runtime.errors.ApiError`s."""

    @overload
    async def get(self, kind: type[T], key: ObjectKey) -> T: ...
    @overload
    async def get(self, kind: GroupVersionKind, key: ObjectKey) -> Unstructured: ...
    async def get(self, kind: Any, key: ObjectKey) -> Any:
        """Return the object; raises NotFound."""

    @overload
    async def find(self, kind: type[T], key: ObjectKey) -> T | None: ...
    @overload
    async def find(self, kind: GroupVersionKind, key: ObjectKey) -> Unstructured | None: ...
    async def find(self, kind: Any, key: ObjectKey) -> Any:
        """Return the object, or None if `get` raises NotFound; other errors are raised."""

    @overload
    async def list(
        self,
        kind: type[T],
        *,
        namespace: str = "",
        labels: str | Mapping[str, str] = "",
        fields: str = "",
        owner: str = "",
    ) -> Sequence[T]: ...
    @overload
    async def list(
        self,
        kind: GroupVersionKind,
        *,
        namespace: str = "",
        labels: str | Mapping[str, str] = "",
        fields: str = "",
        owner: str = "",
    ) -> Sequence[Unstructured]: ...
    async def list(self, kind: Any, *, namespace: str = "", labels: str | Mapping[str, str] = "", fields: str = "", owner: str = "") -> Any:
        """Return all objects of the kind, ordered by namespace and name.

        `namespace` empty: all of them. `labels`, `fields`: selectors (a mapping means equality). `owner`: only those with an ownerReference
        of this UID.
        """

    async def read(self, kind: type[T], key: ObjectKey) -> Original[T] | None:
        """Return the object with its bytes, for a pass that will patch it; None if it does not exist."""


class Writer(Protocol):
    """Writes objects. Every method returns the object from the API server's answer."""

    async def create(self, obj: Object | Json, *, field_manager: str = "") -> Unstructured:
        """Create an object; raises AlreadyExists. The API server handles `metadata.generateName`."""

    async def update(self, obj: Object | Json, *, subresource: str = "") -> Unstructured:
        """Replace the whole object. Controllers patch instead; Leases are the exception."""

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
        """Patch the object or its subresource (`status`, `scale`). A resourceVersion in the patch is an optimistic lock."""

    async def apply(
        self, obj: Object | Json, *, field_manager: str, force: bool = True, subresource: str = "", dry_run: bool = False
    ) -> Unstructured:
        """Apply server-side; `dry_run`: only return the result."""

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
        """Request the deletion; raises NotFound. `uid` and `resource_version` are preconditions."""

    async def create_subresource(self, kind: type[Object] | GroupVersionKind, key: ObjectKey, subresource: str, body: Json) -> Json:
        """Send POST to a subresource, for example `eviction` of a Pod."""


class Client(Reader, Writer, Protocol):
    """Reads (possibly cached) and writes of one cluster."""

    @property
    def live(self) -> Reader:
        """A reader that always asks the API server."""

    def known(self, kind: type[Object] | GroupVersionKind, key: ObjectKey) -> bytes | None:
        """Return the newest cached state of the object, including our own writes; None: it is not cached."""

    def turn(self, kind: type[Object] | GroupVersionKind, key: ObjectKey) -> AbstractAsyncContextManager[None]:
        """Return a lock: while it is held, no other task of this process writes the object."""

    async def raw_get(self, path: str, *, query: Query = (), accept: str = "", timeout: float | None = None) -> bytes:
        """Send GET to any path, for example `/` for a connection probe or `/version`."""
