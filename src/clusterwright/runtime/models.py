"""Between bytes and models: the one place where this package meets the scheme and the codec of `api`."""

from __future__ import annotations

from typing import Any

import msgspec

from clusterwright.api.meta import GroupVersionKind, Json, Object, Unstructured
from clusterwright.runtime.resources import Resource


def known_resource(gvk: GroupVersionKind) -> Resource | None:
    """The resource of a kind that we have a model for."""
    return None


def decode(kind: Any, raw: bytes | msgspec.Raw) -> Any:
    """The projection of `raw`: of a typed class, or Unstructured for a GroupVersionKind."""
    if isinstance(kind, GroupVersionKind):
        json = msgspec.json.decode(raw)
        # items of a list of built-in kinds do not repeat their kind
        json.setdefault("apiVersion", kind.api_version)
        json.setdefault("kind", kind.kind)
        return Unstructured(json)
    return msgspec.json.decode(raw, type=kind)


def to_json(obj: Object | Json) -> Json:
    """The JSON to be sent for an object; always with apiVersion and kind."""
    if isinstance(obj, dict):
        return obj
    json: Json = msgspec.to_builtins(obj)
    json["apiVersion"], json["kind"] = obj.api_version, obj.kind
    return json
