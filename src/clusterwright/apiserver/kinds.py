"""The parts that know kinds, as the request core calls them.

A part that is not there (yet) has a permissive stand-in: nothing owned, nothing validated.
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping, Sequence
from functools import cache, lru_cache
from types import ModuleType
from typing import Any

import msgspec

from clusterwright.api.meta import GroupVersionKind, Json
from clusterwright.apiserver.interfaces import DecodeError, KindHandler, Resource
from clusterwright.apiserver.permissive import PermissiveHandler, permissive_resource
from clusterwright.apiserver.status import failure


@cache
def _part(name: str) -> ModuleType | None:
    full = f"clusterwright.apiserver.{name}"
    try:
        return importlib.import_module(full)
    except ModuleNotFoundError as e:
        if e.name != full:
            raise
        return None


def update_managed_fields(
    old: Json | None, new: Json, *, manager: str, subresource: str, time: str, handlers: Mapping[str, KindHandler]
) -> None:
    """Set managedFields after a write that is not an apply."""
    part = _part("managedfields")
    if part is not None and hasattr(part, "update") and handlers[new["apiVersion"]].schema is not None:
        part.update(old, new, manager=manager, subresource=subresource, time=time, handlers=handlers)
        return
    kept = old["metadata"].get("managedFields") if old else None
    if kept:
        new["metadata"]["managedFields"] = kept
    else:
        new["metadata"].pop("managedFields", None)


def apply(
    live: Json | None, applied: Json, *, manager: str, force: bool, subresource: str, time: str, handlers: Mapping[str, KindHandler]
) -> Json:
    """The object that server-side apply makes."""
    part = _part("managedfields")
    if part is not None and hasattr(part, "apply") and handlers[applied["apiVersion"]].schema is not None:
        result: Json = part.apply(live, applied, manager=manager, force=force, subresource=subresource, time=time, handlers=handlers)
        return result
    from clusterwright.apiserver.patches import merge

    merged: Json = merge(live or {}, applied)
    return merged


def strategic_merge(original: Json, patch: Json, schema: Any) -> Json:
    """Strategic merge patch of a built-in."""
    part = _part("strategic")
    if part is None:
        raise failure(415, "UnsupportedMediaType", "strategic merge patch is not supported")
    result: Json = part.merge(original, patch, schema)
    return result


def decode_protobuf(body: bytes) -> Json:
    """The object of a protobuf body; raises DecodeError."""
    part = _part("protobuf")
    if part is None:
        raise DecodeError("protobuf is not supported")
    result: Json = part.decode(body)
    return result


def encode_protobuf(obj: Json) -> bytes | None:
    """The object as protobuf, if its kind has a table."""
    part = _part("protobuf")
    encode = getattr(part, "encode", None)
    return encode(obj) if encode is not None else None


def table(handler: KindHandler, items: Sequence[Json], *, now: Any, include: str, list_metadata: Json, columns: bool = True) -> Json:
    """A meta.k8s.io/v1 Table."""
    part = _part("printing")
    if part is None:
        raise failure(406, "NotAcceptable", "tables are not supported")
    result: Json = part.table(handler, items, now=now, include=include, list_metadata=list_metadata, columns=columns)
    return result


def partial(obj: Json) -> Json:
    """meta.k8s.io/v1 PartialObjectMetadata."""
    return {"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": obj.get("metadata") or {}}


def openapi_document(group: str, version: str, resources: Sequence[Resource]) -> Json | None:
    """The OpenAPI v3 document of a group version."""
    part = _part("openapi")
    if part is None:
        return None
    result: Json = part.document(group, version, resources)
    return result


def evaluate(expression: str, variables: Json) -> bool:
    """A CEL expression over plain data; raises ValueError."""
    part = _part("cel")
    run = getattr(part, "evaluate", None)
    if run is None:
        raise ValueError("CEL is not available")
    return bool(run(expression, variables))


_STANDIN: tuple[tuple[str, str, str, bool], ...] = (
    ("", "v1", "Namespace", False), ("", "v1", "Secret", True), ("", "v1", "ConfigMap", True), ("", "v1", "Event", True),
    ("", "v1", "Node", False), ("", "v1", "Pod", True), ("", "v1", "ServiceAccount", True), ("", "v1", "Service", True),
    ("", "v1", "PersistentVolumeClaim", True), ("", "v1", "PersistentVolume", False), ("", "v1", "Endpoints", True),
    ("apps", "v1", "Deployment", True), ("apps", "v1", "DaemonSet", True), ("apps", "v1", "ReplicaSet", True),
    ("apps", "v1", "StatefulSet", True), ("coordination.k8s.io", "v1", "Lease", True),
    ("policy", "v1", "PodDisruptionBudget", True), ("storage.k8s.io", "v1", "VolumeAttachment", False),
    ("rbac.authorization.k8s.io", "v1", "Role", True), ("rbac.authorization.k8s.io", "v1", "RoleBinding", True),
    ("rbac.authorization.k8s.io", "v1", "ClusterRole", False), ("rbac.authorization.k8s.io", "v1", "ClusterRoleBinding", False),
    ("apiextensions.k8s.io", "v1", "CustomResourceDefinition", False),
    ("admissionregistration.k8s.io", "v1", "MutatingWebhookConfiguration", False),
    ("admissionregistration.k8s.io", "v1", "ValidatingWebhookConfiguration", False),
)  # fmt: skip
_WITHOUT_GENERATION = frozenset({"Namespace", "Secret", "ConfigMap", "Event", "Node", "ServiceAccount", "Lease"})
_WITH_STATUS = frozenset({"Namespace", "Node", "Pod", "Service", "Deployment", "DaemonSet", "ReplicaSet", "StatefulSet",
                          "PodDisruptionBudget", "VolumeAttachment", "CustomResourceDefinition", "PersistentVolumeClaim",
                          "PersistentVolume"})  # fmt: skip


@cache
def builtin_resources() -> tuple[Resource, ...]:
    """Every built-in that is served."""
    part = _part("builtins")
    if part is not None and hasattr(part, "resources"):
        return tuple(part.resources())
    found = []
    for group, version, kind, namespaced in _STANDIN:
        made = permissive_resource(
            GroupVersionKind(group, version, kind),
            plural="endpoints" if kind == "Endpoints" else "",
            namespaced=namespaced,
            status=kind in _WITH_STATUS,
        )
        found.append(_replace(made, custom=False, unconditional_update=True, generation=kind not in _WITHOUT_GENERATION, scale=None))
    return tuple(found)


def _replace(resource: Resource, **changes: Any) -> Resource:
    import dataclasses

    return dataclasses.replace(resource, **changes)


@lru_cache(maxsize=512)
def _compiled(crd: bytes, version: str) -> KindHandler:
    part = _part("schema")
    decoded = msgspec.json.decode(crd)
    if part is not None and hasattr(part, "compile_crd"):
        handler: KindHandler = part.compile_crd(decoded, version)
        return handler
    spec = decoded["spec"]
    chosen = next(v for v in spec["versions"] if v["name"] == version)
    gvk = GroupVersionKind(spec["group"], version, spec["names"]["kind"])
    return PermissiveHandler(gvk, status="status" in (chosen.get("subresources") or {}))


def compile_crd(crd: Json, version: str) -> KindHandler:
    """The handler of one version of a CRD, shared by all servers that have the same CRD."""
    return _compiled(msgspec.json.encode({"spec": crd["spec"]}, order="sorted"), version)
