"""The order in which upstream writes the fields of an object."""

from __future__ import annotations

from typing import Final

from clusterwright.api.meta import Json

_META_ORDER: Final = (
    "name", "generateName", "namespace", "selfLink", "uid", "resourceVersion", "generation", "creationTimestamp",
    "deletionTimestamp", "deletionGracePeriodSeconds", "labels", "annotations", "ownerReferences", "finalizers", "managedFields",
)  # fmt: skip
_HEAD: Final = frozenset({"kind", "apiVersion", "metadata"})


def ordered_metadata(meta: Json) -> Json:
    """Return metadata in the order in which Go declares its fields."""
    return {**{k: meta[k] for k in _META_ORDER if k in meta}, **meta}


def ordered(obj: Json, *, custom: bool = True) -> Json:
    """Return the object with its fields in upstream's order: by name in custom resources, as declared in built-ins.

    In lists of built-ins, kind and apiVersion were removed and added again, so they come first.
    """
    meta = obj["metadata"]
    if custom:
        head = {"apiVersion": obj["apiVersion"], "kind": obj["kind"], "metadata": {k: meta[k] for k in sorted(meta)}}
    else:
        head = {"kind": obj["kind"], "apiVersion": obj["apiVersion"], "metadata": ordered_metadata(meta)}
    return {**head, **{k: v for k, v in obj.items() if k not in _HEAD}}
