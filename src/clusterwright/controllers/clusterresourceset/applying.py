"""Apply objects to the workload cluster."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from typing import Any, Final

from clusterwright.api.meta import Json, Unstructured
from clusterwright.controllers.clusterresourceset.content import flaw_of
from clusterwright.runtime.client import Client
from clusterwright.runtime.errors import AlreadyExists, ApiError, BadRequest

FIELD_MANAGER: Final = "capi-clusterresourceset"


async def apply_once(client: Client, obj: Json) -> None:
    """Create the object; leave an existing one unchanged."""
    with suppress(AlreadyExists), _doing("creating", obj):
        await client.create(obj)


async def reconcile(client: Client, obj: Json) -> None:
    """Make the object match the manifest, and leave other fields alone.

    Fields of an earlier manifest are removed, because we own them; fields of others stay. The object is read first, so that one we may not
    read is not overwritten unseen.
    """
    unstructured = Unstructured(obj)
    with _doing("reading", obj):
        found = await client.find(unstructured.gvk, unstructured.key)
    with _doing("creating" if found is None else "patching", obj):
        await client.apply(_intent(obj), field_manager=FIELD_MANAGER, force=True)


STRATEGIES: Final[dict[str, Callable[[Client, Json], Awaitable[None]]]] = {"ApplyOnce": apply_once, "Reconcile": reconcile}


async def apply_all(client: Client, strategy: str, objects: Iterable[Json]) -> list[tuple[int, ApiError]]:
    """Apply objects one after the other, continuing after failures. Return the errors, each with the number of its object, from 1."""
    failed: list[tuple[int, ApiError]] = []
    for number, obj in enumerate(objects, start=1):
        if flaw := flaw_of(obj):
            failed.append((number, BadRequest(flaw)))
            continue
        try:
            await STRATEGIES[strategy](client, obj)
        except ApiError as error:
            failed.append((number, error))
    return failed


@contextmanager
def _doing(what: str, obj: Json) -> Iterator[None]:
    """Add the operation and the object to errors raised inside."""
    try:
        yield
    except ApiError as error:
        raise type(error)(f"{what} object {obj['apiVersion']}, Kind={obj['kind']} {Unstructured(obj).key}: {error}") from error


def _intent(obj: Json) -> Json:
    """Return the manifest without the fields that only the server sets: no client can own them."""
    of_the_server: tuple[Any, ...] = ("managedFields", "resourceVersion", "uid", "creationTimestamp", "generation")
    return {**obj, "metadata": {k: v for k, v in obj["metadata"].items() if k not in of_the_server}}
