"""What is not plain storage: renderings, the status and scale subresources, evictions, reviews."""

from __future__ import annotations

from typing import Any

from clusterwright.api.meta import Json
from clusterwright.api.wire import Response
from clusterwright.apiserver.calls import Call
from clusterwright.apiserver.status import StatusError, failure, generic, not_found
from clusterwright.apiserver.storage.streams import Stream
from clusterwright.apiserver.verbs import patching, reads, scale, writes


async def answer(call: Call) -> Response | Stream:
    """A request to a subresource."""
    resource, info = call.resource, call.info
    if info.subresource == "status" and resource.status:
        return await _object_like(call)
    if info.subresource == "finalize" and (resource.group, resource.plural) == ("", "namespaces"):
        return await _finalize(call)
    if info.subresource == "scale" and resource.scale is not None:
        if info.verb not in {"get", "update", "patch"}:
            raise not_allowed(call)
        return await scale.answer(call)
    special = SPECIAL.get((resource.group, resource.plural, info.subresource))
    if special is not None:
        return await special(call)  # type: ignore[no-any-return]
    if resource.custom:
        raise not_found(resource.group, resource.plural, info.name)
    raise generic(404, "", "", "", "")


SPECIAL: dict[tuple[str, str, str], Any] = {}
"""Handlers of subresources by group, plural and name."""

CREATES: dict[tuple[str, str], Any] = {}
"""Handlers of kinds that are asked, not stored: reviews."""


async def create(call: Call) -> Response:
    """POST to a collection: stored, or answered by a special handler."""
    special = CREATES.get((call.resource.group, call.resource.plural))
    if special is not None:
        return await special(call)  # type: ignore[no-any-return]
    return await writes.create(call)


async def _finalize(call: Call) -> Response:
    """PUT of a namespace's spec.finalizers; one that is being deleted goes with the last."""
    if call.info.verb != "update":
        raise generic(405, "", "", "", "")
    return await writes.update(call)


def not_allowed(call: Call) -> StatusError:
    """405: custom resources name the verb and the kind, for other paths nothing but the method is known."""
    resource, verb = call.resource, call.info.verb
    if not resource.custom:
        return generic(405, "", "", "", "")
    text = f'{verb if verb in _VERBS else ""} is not supported on resources of kind "{resource.plural}.{resource.group}"'
    return failure(405, "MethodNotAllowed", text, {"group": resource.group, "kind": resource.plural})


_VERBS = frozenset({"get", "list", "watch", "create", "update", "patch", "delete", "deletecollection"})


async def _object_like(call: Call) -> Response:
    verb = call.info.verb
    if verb == "get":
        return await reads.get(call)
    if verb == "update":
        return await writes.update(call)
    if verb == "patch":
        return await patching.patch(call)
    raise not_allowed(call)


def pod_grace_period(pod: Json, options: Json) -> int:
    """Seconds that a deleted Pod stays: none if it was never scheduled or has ended."""
    asked = options.get("gracePeriodSeconds")
    spec, status = pod.get("spec") or {}, pod.get("status") or {}
    period = asked if asked is not None else spec.get("terminationGracePeriodSeconds", 30)
    if not spec.get("nodeName") or status.get("phase") in {"Succeeded", "Failed"}:
        period = 0
    if period < 0:
        period = 1
    return int(period)
