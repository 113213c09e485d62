"""Convert between bytes and models: the only place in this package that uses the scheme and the codec of `api`."""

from __future__ import annotations

from functools import cache
from typing import Any, Final, TypeVar, get_type_hints

import msgspec

from clusterwright.api import codec, overlay
from clusterwright.api.copying import replace
from clusterwright.api.meta import Condition, GroupVersionKind, Json, Object, Unstructured
from clusterwright.api.scheme import SCHEME, Resource
from clusterwright.api.wire import UNREADABLE
from clusterwright.runtime.errors import ConnectionFailed

T = TypeVar("T", bound=Object)

_READ_AS_JSON: Final = {
    resource.gvk: resource
    for resource in (
        Resource(GroupVersionKind("", "v1", "Event"), "events"),
        Resource(GroupVersionKind("", "v1", "PersistentVolumeClaim"), "persistentvolumeclaims"),
        Resource(GroupVersionKind("apps", "v1", "Deployment"), "deployments"),
        Resource(GroupVersionKind("rbac.authorization.k8s.io", "v1", "ClusterRoleBinding"), "clusterrolebindings", False),
    )
}
"""Built-in kinds that are read and written without a model."""


def known_resource(gvk: GroupVersionKind) -> Resource | None:
    """Return the resource of a kind without a request to an API server."""
    return SCHEME.by_gvk(gvk) or _READ_AS_JSON.get(gvk)


def decode(kind: Any, raw: bytes | msgspec.Raw) -> Any:
    """Return the decoded `raw`: of a typed class (raises codec.DecodeError), or Unstructured for a GroupVersionKind."""
    if isinstance(kind, GroupVersionKind):
        try:
            json = msgspec.json.decode(raw, type=dict[str, Any])
        except UNREADABLE as error:
            raise ConnectionFailed(f"the answer is not a {kind.kind}: the peer may not be an API server") from error
        # items of a list of built-in kinds do not repeat their kind
        json.setdefault("apiVersion", kind.api_version)
        json.setdefault("kind", kind.kind)
        return Unstructured(json)
    return codec.decode(kind, raw)


def to_json(obj: Object | Json) -> Json:
    """Return the JSON to send for an object; always with apiVersion and kind."""
    if isinstance(obj, dict):
        return obj
    return codec.to_json(obj)


def merge_patch(raw: Json, before: Object, after: Object) -> Json:
    """Return the merge patch that turns `before`, the model of `raw`, into `after`, and touches nothing else."""
    return overlay.merge_patch(raw, codec.to_json(before), codec.to_json(after))


@cache
def status_type(cls: type[Object]) -> Any:
    """Return the model of a kind's status."""
    return codec.without_metadata(get_type_hints(cls, include_extras=True)["status"])


def conditions_of(obj: Object) -> tuple[Condition, ...]:
    """Return `status.conditions` of a typed object."""
    return tuple(getattr(getattr(obj, "status", None), "conditions", ()) or ())


def with_conditions(obj: T, conditions: tuple[Condition, ...]) -> T:
    """Return the object with these `status.conditions`; one without a status gets one."""
    status = getattr(obj, "status", None) or status_type(type(obj))()
    changes: dict[str, Any] = {"status": replace(status, conditions=conditions)}
    return replace(obj, **changes)
