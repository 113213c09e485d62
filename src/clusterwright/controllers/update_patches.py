"""What a runtime extension says that it can update in place: patches, of which only one part of an object is taken over. Pure."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping, Sequence
from typing import Any

from clusterwright.api.meta import Json
from clusterwright.topology.patches import jsonpatch
from clusterwright.topology.patches.jsonpatch import PatchFailed


def reduced(obj: Mapping[str, Any]) -> Json:
    """An object as extensions get it: who it is, its labels and annotations, and its spec."""
    metadata = obj.get("metadata") or {}
    kept = {field: metadata[field] for field in ("name", "namespace", "labels", "annotations") if metadata.get(field)}
    spec = {"spec": obj["spec"]} if obj.get("spec") is not None else {}
    return {"apiVersion": obj.get("apiVersion", ""), "kind": obj.get("kind", ""), "metadata": kept, **spec}


def patched(document: Json, patch: Mapping[str, Any] | None, allowed: Sequence[str]) -> Json:
    """The document with the part below `allowed` as the patch makes it; all else of the patch is ignored. Raises PatchFailed."""
    if not patch:
        return document
    kind = patch.get("patchType") or ""
    if not kind:
        raise PatchFailed("failed to apply patch: patchType is not set")
    if kind not in {"JSONPatch", "JSONMergePatch"}:
        raise PatchFailed(f"failed to apply patch: unknown patchType {kind}")
    name = "json patch (RFC6902)" if kind == "JSONPatch" else "json merge patch (RFC7386)"
    content = _content(patch, name)
    if not content:
        return document
    try:
        after = jsonpatch.apply(document, content) if kind == "JSONPatch" else jsonpatch.merge(document, content)
    except PatchFailed as error:
        raise PatchFailed(f"failed to apply patch: error applying {name}: {error}") from None
    found = _at(after, allowed)
    return document if found is None else _with(document, allowed, found)


def _content(patch: Mapping[str, Any], name: str) -> Any:
    try:
        text = base64.b64decode(patch.get("patch") or "", validate=True).decode()
        return jsonpatch.decoded(text) if text else None
    except (binascii.Error, UnicodeDecodeError, PatchFailed) as error:
        raise PatchFailed(f"failed to apply patch: error decoding {name}: {error}") from None


def _at(document: Any, path: Sequence[str]) -> Any:
    for step in path:
        document = document.get(step) if isinstance(document, Mapping) else None
    return document


def _with(document: Any, path: Sequence[str], value: Any) -> Any:
    if not path:
        return value
    base = dict(document) if isinstance(document, Mapping) else {}
    return {**base, path[0]: _with(base.get(path[0]), path[1:], value)}
