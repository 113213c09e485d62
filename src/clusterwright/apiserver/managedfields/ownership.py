"""Owned fields after any write. A kind without a schema has none: its objects are merged, nobody owns anything."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from clusterwright.api.meta import Json
from clusterwright.apiserver.interfaces import KindHandler
from clusterwright.apiserver.managedfields import applying, updating
from clusterwright.apiserver.patchtypes.mergepatch import merge


def update(old: Json | None, new: Json, *, manager: str, subresource: str, time: str, handlers: Mapping[str, KindHandler]) -> None:
    """Set managedFields after a write that is not an apply."""
    if handlers[new["apiVersion"]].schema is not None:
        updating.update(old, new, manager=manager, subresource=subresource, time=time, handlers=handlers)
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
    return applying.apply(live, applied, manager=manager, force=force, subresource=subresource, time=time, handlers=handlers)


def _share_metadata_lists(live: Json, merged: Json) -> None:
    """Keep what others wrote: owners are told apart by their uid, finalizers by their text."""
    for name in ("ownerReferences", "finalizers"):
        wanted = {_identity(item): item for item in merged.get(name) or ()}
        kept = [wanted.pop(_identity(item), item) for item in live.get(name) or ()]
        if kept or wanted:
            merged[name] = [*kept, *wanted.values()]


def _identity(item: Any) -> Any:
    return item.get("uid") if isinstance(item, dict) else item
