"""Clean up objects that were created for an object whose creation failed."""

from __future__ import annotations

from collections.abc import Iterable

from clusterwright.api.core import Machine
from clusterwright.api.meta import Json, ObjectKey, Unstructured
from clusterwright.runtime.client import Client
from clusterwright.runtime.errors import ApiError, ConnectionFailed, NotFound, ServerTimeout


def may_have_taken_effect(error: BaseException | None) -> bool:
    """Return whether the effect of a failed write is unknown: there was neither an answer nor a refusal."""
    while error is not None:
        if isinstance(error, ConnectionFailed | ServerTimeout):
            return True
        error = error.__cause__
    return False


async def deleted_leftovers(client: Client, machine: Json, made: Iterable[Unstructured], error: Exception) -> list[str]:
    """Delete the objects created for a refused Machine; keep them if it may have been created. Return the failures."""
    errors: list[str] = []
    if not await _was_refused(client, machine, error):
        return errors
    for obj in made:
        try:
            await client.delete(obj.gvk, obj.key, uid=obj.metadata.uid)
        except NotFound:
            continue
        except ApiError as failure:
            errors.append(f"failed to clean up {obj.kind} {obj.key}: {failure}")
    return errors


async def _was_refused(client: Client, machine: Json, error: Exception) -> bool:
    """Return whether the Machine certainly does not exist: not after a broken connection, nor if the API server shows it."""
    if may_have_taken_effect(error):
        return False
    try:
        return await client.live.find(Machine, ObjectKey(machine["metadata"]["namespace"], machine["metadata"]["name"])) is None
    except ApiError:
        return False
