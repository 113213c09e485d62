"""Find the function that answers a request: a verb, or a row of the tables of subresources and special kinds."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Final

from clusterwright.api.wire import Request, Response
from clusterwright.apiserver.calls import Call
from clusterwright.apiserver.encoding.negotiation import patch_media
from clusterwright.apiserver.interfaces import Resource
from clusterwright.apiserver.requestinfo import RequestInfo
from clusterwright.apiserver.status import StatusError, bad_request, failure, generic, not_acceptable, not_found
from clusterwright.apiserver.storage.streams import Stream
from clusterwright.apiserver.verbs import (
    containers,
    deletes,
    evictions,
    patching,
    reads,
    reviews,
    scale,
    signing,
    tokenrequests,
    watching,
    writes,
)

Verb = Callable[[Call], Awaitable[Response | Stream]]
_MAXIMUM_BODY: Final = 3 * 1024 * 1024
_SMALL_BODY: Final = 16 * 1024
"""The most bytes of a body that is not stored (options, a scale, a review): every user may send some of these."""
_READS: Final = frozenset({"get", "list", "watch"})

VERBS: Final[Mapping[str, Verb]] = {
    "get": reads.get,
    "list": reads.list_objects,
    "watch": watching.watch,
    "create": writes.create,
    "update": writes.update,
    "patch": patching.patch,
    "delete": deletes.delete,
    "deletecollection": deletes.delete_collection,
}
_OBJECT_LIKE: Final = ("get", "update", "patch")
"""Verbs of subresources that have the shape of the object."""
_APPROVAL: Final = ("certificates.k8s.io", "certificatesigningrequests", "approval")


async def finalize(call: Call) -> Response:
    """Answer PUT of a namespace's spec.finalizers; one that is being deleted is removed with the last of them."""
    if call.info.verb != "update":
        raise generic(405, "", "", "", "")
    return await writes.update(call)


CREATES: Final[Mapping[tuple[str, str], Callable[[Call], Awaitable[Response]]]] = {
    **reviews.ROUTES,
    ("", "bindings"): evictions.bind_named,
    ("certificates.k8s.io", "certificatesigningrequests"): signing.create,
}
"""Kinds whose creation has special code, by group and plural."""

SUBRESOURCES: Final[Mapping[tuple[str, str, str], Verb]] = {
    ("", "namespaces", "finalize"): finalize,
    ("", "pods", "binding"): evictions.bind,
    ("", "pods", "eviction"): evictions.evict,
    **{("", "pods", name): containers.refuse for name in containers.SUBRESOURCES},
    ("", "serviceaccounts", "token"): tokenrequests.token_request,
    _APPROVAL: signing.approve,
}
"""Subresources of single kinds, by group, plural and name."""


def check_route(request: Request, info: RequestInfo, resource: Resource) -> str:
    """Check that the path has this method; return the media type of a patch, else nothing. Raises StatusError.

    A request for a missing route is refused before the form of the answer is negotiated.
    """
    verb = info.verb
    if info.subresource:
        return _patch_media(request, resource) if verb == "patch" and _has_object_like(resource, info.subresource) else ""
    if not resource.custom and (request.method == "HEAD" or (resource.namespaced and not info.namespace and verb not in _READS)):
        raise generic(405, "", "", "", "")  # built-ins have no such route
    if (verb != "get" and verb not in resource.verbs) or verb not in VERBS:
        raise _not_allowed(info, resource)
    if not resource.custom and verb == "create" and info.name and info.path.rstrip("/").endswith("/" + info.name):
        raise generic(405, "", "", "", "")
    nameless = verb in {"update", "patch"} and not info.name
    if nameless and not resource.custom:
        raise generic(405, "", "", "", "")
    media = _patch_media(request, resource) if verb == "patch" else ""
    if nameless:
        raise bad_request("name must be provided")
    return media


def _patch_media(request: Request, resource: Resource) -> str:
    return patch_media(request.headers.get("content-type", ""), custom=resource.custom)


def _has_object_like(resource: Resource, subresource: str) -> bool:
    """Return whether a resource has a subresource that can be patched."""
    special = (resource.group, resource.plural, subresource) == _APPROVAL
    return special or (subresource == "status" and resource.status) or (subresource == "scale" and resource.scale is not None)


async def dispatch(call: Call) -> Response | Stream:
    """Answer a request to a resource; raises StatusError."""
    info, resource, verb = call.info, call.resource, call.info.verb
    if len(call.request.body) > _SMALL_BODY and len(call.request.body) > (limit := _limit(call)):
        raise failure(413, "RequestEntityTooLarge", f"Request entity too large: limit is {limit}", {})
    if info.subresource:
        return await _subresource(call)
    if verb == "create":
        special = CREATES.get((resource.group, resource.plural))
        if special is not None and call.form.render == "Table" and "get" not in resource.verbs:
            accepted = "application/json, application/yaml, application/vnd.kubernetes.protobuf"
            raise not_acceptable(f"only the following media types are accepted: {accepted}")
        return await (special or writes.create)(call)
    return await VERBS[verb](call)


def _limit(call: Call) -> int:
    info = call.info
    if info.verb in {"delete", "deletecollection"} or (info.subresource and info.subresource not in {"status", "finalize"}):
        return _SMALL_BODY
    return _SMALL_BODY if (call.resource.group, call.resource.plural) in reviews.ROUTES else _MAXIMUM_BODY


async def _subresource(call: Call) -> Response | Stream:
    resource, info = call.resource, call.info
    if info.subresource == "status" and resource.status:
        if info.verb not in _OBJECT_LIKE:
            raise _not_allowed(info, resource)
        return await VERBS[info.verb](call)
    if info.subresource == "scale" and resource.scale is not None:
        if info.verb not in _OBJECT_LIKE:
            raise _not_allowed(info, resource)
        return await scale.answer(call)
    special = SUBRESOURCES.get((resource.group, resource.plural, info.subresource))
    if special is not None:
        return await special(call)
    raise not_found(resource.group, resource.plural, info.name) if resource.custom else generic(404, "", "", "", "")


def _not_allowed(info: RequestInfo, resource: Resource) -> StatusError:
    """Return the error (405): for custom resources it names verb and kind, for built-ins it does not."""
    verb = info.verb
    if not resource.custom:
        return generic(405, "", "", "", "")
    text = f'{verb if verb in VERBS else ""} is not supported on resources of kind "{resource.plural}.{resource.group}"'
    return failure(405, "MethodNotAllowed", text, {"group": resource.group, "kind": resource.plural})
