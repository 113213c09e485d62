"""Patches in which a runtime extension lists what it can update in place; only one part of an object is used. Pure."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from clusterwright.api.meta import Json
from clusterwright.golang import jsonpatch
from clusterwright.golang.jsonpatch import PatchFailed

_KINDS: Final[Mapping[str, tuple[str, Callable[[Any, Any], Any]]]] = {
    "JSONPatch": ("json patch (RFC6902)", jsonpatch.apply),
    "JSONMergePatch": ("json merge patch (RFC7386)", jsonpatch.merge),
}


def reduced(obj: Mapping[str, Any]) -> Json:
    """Return an object in the form for extensions: its identity, labels, annotations and spec."""
    metadata = obj.get("metadata") or {}
    kept = {field: metadata[field] for field in ("name", "namespace", "labels", "annotations") if metadata.get(field)}
    spec = {"spec": obj["spec"]} if obj.get("spec") is not None else {}
    return {"apiVersion": obj.get("apiVersion", ""), "kind": obj.get("kind", ""), "metadata": kept, **spec}


def patched(document: Json, patch: Mapping[str, Any] | None, allowed: Sequence[str]) -> Json:
    """Return the document with only the part below `allowed` patched; the rest of the patch is ignored. Raises PatchFailed."""
    if not patch:
        return document
    kind = patch.get("patchType") or ""
    if not kind:
        raise PatchFailed("failed to apply patch: patchType is not set")
    if kind not in _KINDS:
        raise PatchFailed(f"failed to apply patch: unknown patchType {kind}")
    name, applied = _KINDS[kind]
    text = _text(patch, name)
    if not text and kind == "JSONMergePatch":
        return document
    try:
        content = jsonpatch.decoded(text)
    except PatchFailed as error:
        raise PatchFailed(f"failed to apply patch: error decoding {name}: {error}") from None
    if content is None and kind == "JSONPatch":
        return document
    try:
        after = applied(document, content)
    except PatchFailed as error:
        raise PatchFailed(f"failed to apply patch: error applying {name}: {error}") from None
    if not isinstance(after, Mapping) or not after.get("kind"):
        raise PatchFailed("failed to apply patch: what it makes of the object has no kind")
    try:
        found = at(after, allowed)
    except PatchFailed:
        found = None  # what leads there is not ours to change
    return document if found is None else _with(document, allowed, found)


def at(document: Any, path: Sequence[str]) -> Any:
    """Return the value at a path; None if there is none. Raises PatchFailed if a value on the way is not an object."""
    for done, step in enumerate(path):
        if document is None:
            return None
        if not isinstance(document, Mapping):
            raise PatchFailed(f"{'.'.join(path[:done])} is not an object")
        document = document.get(step)
    return document


def _text(patch: Mapping[str, Any], name: str) -> str:
    try:
        return base64.b64decode(patch.get("patch") or "", validate=True).decode()
    except (binascii.Error, UnicodeDecodeError) as error:
        raise PatchFailed(f"failed to apply patch: error decoding {name}: {error}") from None


def _with(document: Any, path: Sequence[str], value: Any) -> Any:
    if not path:
        return value
    base = dict(document) if isinstance(document, Mapping) else {}
    return {**base, path[0]: _with(base.get(path[0]), path[1:], value)}
