"""How controllers read and write objects: by typed class, or by GroupVersionKind for kinds learned at run time.

`Reader` may answer from a cache, which is never older than this process's own last write to the object's kind;
`Client.live` always asks the API server. Reading never changes anything, so observers are handed a `Reader` only.
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
    """An object as read: its projection, and the bytes that the patch at the end is computed against.

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
        """Return the object, or None where `get` raises NotFound; other errors are raised."""

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

        `namespace` empty: all of them. `labels`, `fields`: selectors (a mapping means equality). `owner`: only those
        with an ownerReference of this uid.
        """

    async def read(self, kind: type[T], key: ObjectKey) -> Original[T] | None:
        """Return the object with its bytes, for a reconcile that will patch it; None if it does not exist."""


class Writer(Protocol):
    """Writes objects. Every method returns the object as the API server answered it."""

    async def create(self, obj: Object | Json, *, field_manager: str = "") -> Unstructured:
        """Create; raises AlreadyExists. `metadata.generateName` is honoured by the API server."""

    async def update(self, obj: Object | Json, *, subresource: str = "") -> Unstructured:
        """Replace whole. Controllers patch instead; Leases are the exception."""

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
        """Server-side apply; `dry_run`: only answer what would be."""

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
        """Ask for deletion; raises NotFound. `uid` and `resource_version` are preconditions."""

    async def create_subresource(self, kind: type[Object] | GroupVersionKind, key: ObjectKey, subresource: str, body: Json) -> Json:
        """POST to a subresource, e.g. `eviction` of a Pod."""


class Client(Reader, Writer, Protocol):
    """Reads (perhaps cached) and writes of one cluster."""

    @property
    def live(self) -> Reader:
        """Reads that always ask the API server."""

    def known(self, kind: type[Object] | GroupVersionKind, key: ObjectKey) -> bytes | None:
        """Return the newest state of the object that is at hand, our own writes included; None: it would have to be asked for."""

    def turn(self, kind: type[Object] | GroupVersionKind, key: ObjectKey) -> AbstractAsyncContextManager[None]:
        """While it is held, nobody else of this process writes the object."""

    async def raw_get(self, path: str, *, query: Query = (), accept: str = "", timeout: float | None = None) -> bytes:
        """GET of any path, e.g. `/` for a connection probe or `/version`."""
