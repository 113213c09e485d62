"""One object in an informer: its bytes as received, and a small head.

Bytes are immutable and cost the garbage collector nothing. This module reads the fields that are needed without a model.
"""

from __future__ import annotations

from typing import Any

import msgspec

from clusterwright.api.meta import ObjectKey
from clusterwright.api.wire import UNREADABLE


class _Owner(msgspec.Struct, gc=False):
    uid: str = ""


class _Meta(msgspec.Struct, gc=False, rename="camel"):
    name: str = ""
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""
    labels: dict[str, str] | None = None
    owner_references: tuple[_Owner, ...] | None = None
    managed_fields: msgspec.Raw = msgspec.Raw()


class _Head(msgspec.Struct, gc=False):
    metadata: _Meta


_HEAD = msgspec.json.Decoder(_Head)
_TOP = msgspec.json.Decoder(dict[str, msgspec.Raw])
_NO_LABELS: dict[str, str] = {}
_SHARED = 4096


class Entry(msgspec.Struct, frozen=True, gc=False):
    """One object: its bytes and the fields for indexes. It has no references to containers, so the collector skips it."""

    raw: bytes
    key: ObjectKey
    uid: str
    resource_version: str
    labels: dict[str, str]
    owners: tuple[str, ...]


class EntryReader:
    """Reads entries; short strings that repeat across objects are stored once."""

    def __init__(self) -> None:
        self._strings: dict[str, str] = {}

    def read(self, raw: bytes) -> Entry:
        """Return the entry of an object's JSON; raises msgspec.DecodeError."""
        meta = _HEAD.decode(raw).metadata
        if len(meta.managed_fields):
            raw = without_managed_fields(raw, bytes(meta.managed_fields))
        if len(self._strings) > _SHARED:
            self._strings.clear()
        share = self._strings.setdefault
        return Entry(
            raw,
            ObjectKey(share(meta.namespace, meta.namespace), meta.name),
            meta.uid,
            meta.resource_version,
            {key: share(value, value) if len(value) < 64 else value for key, value in meta.labels.items()} if meta.labels else _NO_LABELS,
            tuple(reference.uid for reference in meta.owner_references or ()),
        )


_MANAGED = b'"managedFields":'


def without_managed_fields(raw: bytes, managed: bytes) -> bytes:
    """Return the object without metadata.managedFields, whose value is `managed`: no model has it, and it is half of many objects."""
    start = raw.find(_MANAGED)
    end = start + len(_MANAGED) + len(managed)
    if start > 0 and raw[start + len(_MANAGED) : end] == managed and raw.find(_MANAGED, end) < 0:
        # it is there once, as the API server writes it: cut it out, with one of the commas around it
        if raw[end : end + 1] == b",":
            return raw[:start] + raw[end + 1 :]
        if raw[start - 1 : start] == b",":
            return raw[: start - 1] + raw[end:]
    top = _TOP.decode(raw)
    metadata = _TOP.decode(top["metadata"])
    metadata.pop("managedFields", None)
    top["metadata"] = msgspec.Raw(msgspec.json.encode(metadata))
    return msgspec.json.encode(top)


def is_newer(a: str, b: str) -> bool:
    """Return whether resourceVersion `a` is later than `b`; False if they cannot be compared, so that only equality counts."""
    return a.isdecimal() and b.isdecimal() and int(a) > int(b)


def is_covered(a: str, b: str) -> bool:
    """Return whether state `b` certainly includes `a`."""
    return a == b or is_newer(b, a)


def values_at(raw: bytes, path: tuple[str, ...]) -> tuple[str, ...]:
    """Return the scalar at a path in the form for field selectors: at most one value; an absent one counts as empty."""
    value: Any = msgspec.Raw(raw)
    for step in path:
        try:
            value = _TOP.decode(value).get(step)
        except UNREADABLE:
            return ()
        if value is None:
            return ("",)
    scalar = msgspec.json.decode(value)
    if scalar is None:
        return ("",)
    if isinstance(scalar, bool):
        return ("true" if scalar else "false",)
    return (str(scalar),) if isinstance(scalar, str | int | float) else ()


class _Life(msgspec.Struct):
    class Meta(msgspec.Struct, rename="camel"):
        finalizers: tuple[str, ...] | None = None
        deletion_timestamp: str | None = None
        deletion_grace_period_seconds: int | None = None

    metadata: Meta = msgspec.field(default_factory=Meta)


class _Status(msgspec.Struct):
    class Details(msgspec.Struct):
        name: str = ""
        uid: str = ""

    details: Details = msgspec.field(default_factory=Details)


_LIFE = msgspec.json.Decoder(_Life)
_STATUS = msgspec.json.Decoder(_Status)


def lives_on(body: bytes) -> bool:
    """Return whether a deleted object still exists: because of finalizers, or a Pod's grace period."""
    meta = _LIFE.decode(body).metadata
    return bool(meta.finalizers) or bool(meta.deletion_timestamp and meta.deletion_grace_period_seconds)


def is_released(body: bytes) -> bool:
    """Return whether the deletion of the object was requested."""
    return _LIFE.decode(body).metadata.deletion_timestamp is not None


def made_of_status(body: bytes) -> tuple[str, str]:
    """Return the name and UID that a Status is about, each empty if absent."""
    details = _STATUS.decode(body).details
    return details.name, details.uid
