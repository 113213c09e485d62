"""The parts that know kinds, as the request core calls them. A kind without a schema has no owned fields."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from functools import cache, lru_cache
from typing import Any

import msgspec

from clusterwright.api.meta import Json
from clusterwright.apiserver import builtins, managedfields, schema
from clusterwright.apiserver.encoding import printing, protobuf
from clusterwright.apiserver.interfaces import KindHandler, Resource
from clusterwright.apiserver.patchtypes import strategic
from clusterwright.apiserver.patchtypes.jsonpatch import merge
from clusterwright.apiserver.serving import openapi
from clusterwright.cel.program import CompileError, Program, compile_expression
from clusterwright.cel.types import DYN
from clusterwright.cel.values import CelError

__all__ = [
    "apply",
    "builtin_resources",
    "compile_crd",
    "decode_protobuf",
    "encode_protobuf",
    "evaluate",
    "openapi_document",
    "partial",
    "strategic_merge",
    "table",
    "update_managed_fields",
]

strategic_merge = strategic.merge
decode_protobuf = protobuf.decode
encode_protobuf = protobuf.encode
partial = printing.partial


def update_managed_fields(
    old: Json | None, new: Json, *, manager: str, subresource: str, time: str, handlers: Mapping[str, KindHandler]
) -> None:
    """Set managedFields after a write that is not an apply."""
    if handlers[new["apiVersion"]].schema is not None:
        managedfields.update(old, new, manager=manager, subresource=subresource, time=time, handlers=handlers)
        return
    kept = old["metadata"].get("managedFields") if old else None
    if kept:
        new["metadata"]["managedFields"] = kept
    else:
        new["metadata"].pop("managedFields", None)


def apply(
    live: Json | None, applied: Json, *, manager: str, force: bool, subresource: str, time: str, handlers: Mapping[str, KindHandler]
) -> Json:
    """The object that server-side apply makes; without a schema it is a merge, in which the lists of metadata are shared."""
    if handlers[applied["apiVersion"]].schema is None:
        merged: Json = merge(live or {}, applied)
        _share_metadata_lists((live or {}).get("metadata") or {}, merged.get("metadata") or {})
        return merged
    return managedfields.apply(live, applied, manager=manager, force=force, subresource=subresource, time=time, handlers=handlers)


def _share_metadata_lists(live: Json, merged: Json) -> None:
    """Keep what others wrote: owners are told apart by their uid, finalizers by their text."""
    for name in ("ownerReferences", "finalizers"):
        wanted = {_identity(item): item for item in merged.get(name) or ()}
        kept = [wanted.pop(_identity(item), item) for item in live.get(name) or ()]
        if kept or wanted:
            merged[name] = [*kept, *wanted.values()]


def _identity(item: Any) -> Any:
    return item.get("uid") if isinstance(item, dict) else item


def table(handler: KindHandler, items: Sequence[Json], *, now: datetime, include: str, list_metadata: Json, columns: bool = True) -> Json:
    """A meta.k8s.io/v1 Table."""
    return printing.table(handler, items, now=now, include=include, list_metadata=list_metadata, columns=columns)


def openapi_document(group: str, version: str, resources: Sequence[Resource]) -> Json:
    """The OpenAPI v3 document of a group version."""
    return openapi.document(group, version, resources)


@lru_cache(maxsize=512)
def _program(expression: str, variables: tuple[str, ...]) -> Program:
    return compile_expression(expression, dict.fromkeys(variables, DYN))


def evaluate(expression: str, variables: Mapping[str, Any]) -> bool:
    """A CEL condition over plain data; raises ValueError when it does not compile, fails, or is no condition."""
    try:
        result = _program(expression, tuple(variables)).evaluate(*variables.values())
    except (CompileError, CelError) as e:
        raise ValueError(str(e)) from None
    if not isinstance(result, bool):
        raise ValueError("the expression is no condition")
    return result


@cache
def builtin_resources() -> tuple[Resource, ...]:
    """Every built-in that is served."""
    return tuple(builtins.resources())


@lru_cache(maxsize=512)
def _compiled(crd: bytes, version: str) -> KindHandler:
    return schema.compile_crd(msgspec.json.decode(crd), version)


def compile_crd(crd: Json, version: str) -> KindHandler:
    """The handler of one version of a CRD, shared by all servers that have the same CRD."""
    return _compiled(msgspec.json.encode({"spec": crd["spec"]}, order="sorted"), version)
