r"""Kubernetes' protobuf encoding of built-in kinds, by the field numbers of `schema/types.json`.

A message is `k8s\\0` and a runtime.Unknown {1: TypeMeta {1: apiVersion, 2: kind}, 2: raw}. Maps are repeated entries
{1: key, 2: value}; times {1: seconds, 2: nanos}; quantities {1: text}; int-or-string {1: type, 2: int, 3: text}.
"""

from __future__ import annotations

import base64
import struct as binary
from datetime import UTC, datetime, timedelta
from functools import cache
from typing import Any, Final

import msgspec

from clusterwright.api.meta import Json
from clusterwright.apiserver.interfaces import DecodeError
from clusterwright.apiserver.schema.gotypes import table
from clusterwright.golang.times import parse_duration
from clusterwright.streams.protobuf import Malformed, fields, tagged, tagged_number, written_varint

PREFIX: Final = b"k8s\0"
_MAXIMUM_DEPTH: Final = 100
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_SCHEMA: Final = "apiextensions.v1.JSONSchemaProps"
_SCHEMAS: Final = frozenset({"schema", "schemas", "schemaorbool", "schemaorstrings"})


_OLDER: Final = {"policy.v1beta1.Eviction": "policy.v1.Eviction"}
"""Versions that are no longer served but still accepted, with a type that has the same fields."""


def is_protobuf(body: bytes) -> bool:
    """Return whether a body starts with the protobuf prefix."""
    return body.startswith(PREFIX)


def go_type(api_version: str, kind: str) -> str | None:
    """Return the type of a kind, if its fields are known."""
    group, _, version = api_version.rpartition("/")
    name = f"{group.split('.')[0] or 'core'}.{version}.{kind}"
    name = _OLDER.get(name, name)
    if name in table():
        return name
    # options are sent in the group version of what they are for
    return f"meta.v1.{kind}" if f"meta.v1.{kind}" in table() else None


# ---------------------------------------------------------------- reading


def decode(body: bytes) -> Json:
    """Return the object of a protobuf body as JSON; raises DecodeError."""
    try:
        return _decode(body)
    except Malformed as error:
        raise DecodeError(str(error)) from None


def _decode(body: bytes) -> Json:
    if not body.startswith(PREFIX):
        raise DecodeError("provided data does not appear to be a protobuf message, expected prefix [107 56 115 0]")
    api_version = kind = ""
    raw = b""
    encoding = content_type = ""
    for number, value in fields(body[len(PREFIX) :]):
        if not isinstance(value, bytes):
            continue
        if number == 1:
            for inner, text in fields(value):
                if isinstance(text, bytes):
                    if inner == 1:
                        api_version = _text(text)
                    elif inner == 2:
                        kind = _text(text)
        elif number == 2:
            raw = value
        elif number == 3:
            encoding = _text(value)
        elif number == 4:
            content_type = _text(value)
    if encoding or content_type not in ("", "application/vnd.kubernetes.protobuf"):
        raise DecodeError(f"unsupported content {content_type or encoding} inside a protobuf message")
    name = go_type(api_version, kind)
    if name is None:
        raise DecodeError(f'no kind "{kind}" is registered for version "{api_version}"')
    return {"kind": kind, "apiVersion": api_version, **_read_struct(raw, name, 0)}


def _text(value: bytes) -> str:
    try:
        return value.decode()
    except UnicodeDecodeError:
        raise DecodeError("proto: invalid UTF-8") from None


@cache
def _numbers(name: str) -> dict[int, tuple[str, str, str]]:
    """Return field numbers with JSON name, type and encoding: `inline`, `message` (a list within its own message), or plain."""
    known = table()[name]["f"].items()
    return {f["n"]: (key, f["t"].lstrip("*"), next((h for h in ("inline", "message") if f.get(h)), "")) for key, f in known if "n" in f}


def _read_struct(data: bytes, name: str, depth: int) -> Json:
    if depth > _MAXIMUM_DEPTH:
        raise DecodeError("exceeded max depth")
    out: Json = {}
    numbers = _numbers(name)
    for number, value in fields(data):
        found = numbers.get(number)
        if found is None:
            continue
        key, kind, how = found
        if how == "inline":
            if isinstance(value, bytes):
                out.update(_read_struct(value, kind, depth + 1))
        elif how == "message":
            out[key] = _read_items(value, kind, depth)
        elif kind.startswith("[]"):
            out.setdefault(key, []).append(_read(value, kind[2:].lstrip("*"), depth))
        elif kind.startswith("{}"):
            entry = _read_entry(value, kind[2:].lstrip("*"), depth)
            out.setdefault(key, {})[entry[0]] = entry[1]
        else:
            out[key] = _read(value, kind, depth)
    return out


def _read_entry(value: int | bytes, kind: str, depth: int) -> tuple[str, Any]:
    if not isinstance(value, bytes):
        raise DecodeError("proto: wrong wireType for a map")
    key, item = "", _empty(kind)
    for number, inner in fields(value):
        if number == 1 and isinstance(inner, bytes):
            key = _text(inner)
        elif number == 2:
            item = _read_items(inner, kind, depth) if kind.startswith("[]") else _read(inner, kind, depth)
    return key, item


def _read_items(value: int | bytes, kind: str, depth: int) -> list[Any]:
    """Return a list that is encoded as a message {1: items}: values of maps (ExtraValue), and Verbs."""
    items = [v for n, v in fields(value) if n == 1] if isinstance(value, bytes) else []
    return [_read(v, kind[2:], depth) for v in items]


def _empty(kind: str) -> Any:
    if kind.startswith("[]"):
        return []
    return {"string": "", "bytes": "", "bool": False}.get(kind, {} if kind in table() else "0" if kind == "quantity" else 0)


def _read(value: int | bytes, kind: str, depth: int) -> Any:
    if isinstance(value, int):
        if kind == "bool":
            return bool(value)
        if kind in ("int32", "int64", "byte"):
            return value - 2**64 if value >= 2**63 else value
        raise DecodeError(f"proto: wrong wireType = 0 for a field of type {kind}")
    if kind == "string":
        return _text(value)
    if kind == "bytes":
        return base64.b64encode(value).decode()
    if kind == "float64":
        return binary.unpack("<d", value)[0] if len(value) == 8 else 0.0
    if kind in ("time", "microtime"):
        return _read_time(value, micro=kind == "microtime")
    if kind == "quantity":
        return next((_text(v) for n, v in fields(value) if n == 1 and isinstance(v, bytes)), "0")
    if kind == "intstr":
        return _read_int_or_string(value)
    if kind == "duration":
        return _read_duration(value)
    if kind in ("raw", "any"):
        return _read_raw(value)
    if kind in _SCHEMAS:
        return _read_schema(value, kind, depth)
    if kind in table():
        return _read_struct(value, kind, depth + 1)
    raise DecodeError(f"proto: wrong wireType = 2 for a field of type {kind}")


def _signed(value: Any) -> int:
    number = value if isinstance(value, int) else 0
    return number - 2**64 if number >= 2**63 else number


def _read_time(data: bytes, *, micro: bool) -> str | None:
    parts = dict(fields(data))
    seconds, nanos = _signed(parts.get(1, 0)), _signed(parts.get(2, 0))
    if not parts:
        return None
    try:
        made = _EPOCH + timedelta(seconds=seconds)
    except OverflowError:
        raise DecodeError("proto: time out of range") from None
    text = made.replace(tzinfo=None, microsecond=0).isoformat()
    return f"{text}.{nanos // 1000:06d}Z" if micro else f"{text}Z"


def _read_int_or_string(data: bytes) -> int | str:
    parts = dict(fields(data))
    if _signed(parts.get(1, 0)) == 1:
        text = parts.get(3, b"")
        return _text(text) if isinstance(text, bytes) else ""
    return _signed(parts.get(2, 0))


def _read_duration(data: bytes) -> str:
    nanos = _signed(dict(fields(data)).get(1, 0))
    return f"{nanos / 1e9:g}s"


def _read_schema(data: bytes, kind: str, depth: int) -> Any:
    """Return a JSONSchemaProps, or its alternatives: a list of them, a boolean, a list of texts."""
    if kind == "schema":
        return _read_struct(data, _SCHEMA, depth + 1)
    schema: Any = None
    others: list[Any] = []
    allows = False
    for number, value in fields(data):
        if isinstance(value, int):
            allows = bool(value)
        elif number == (2 if kind == "schemaorbool" else 1):
            schema = _read_struct(value, _SCHEMA, depth + 1)
        else:
            others.append(_text(value) if kind == "schemaorstrings" else _read_struct(value, _SCHEMA, depth + 1))
    return schema if schema is not None else allows if kind == "schemaorbool" else others


def _read_raw(data: bytes) -> Any:
    raw = next((v for n, v in fields(data) if n == 1 and isinstance(v, bytes)), b"")
    try:
        return msgspec.json.decode(raw) if raw else {}
    except msgspec.DecodeError:
        raise DecodeError("proto: raw JSON is malformed") from None


# ---------------------------------------------------------------- writing


def encode(obj: Json) -> bytes | None:
    """Return an object (or list) as protobuf; None if its fields are not known."""
    api_version, kind = str(obj.get("apiVersion") or ""), str(obj.get("kind") or "")
    name = go_type(api_version, kind)
    if name is not None:
        raw = _write_struct(obj, name)
    elif kind.endswith("List") and (item := go_type(api_version, kind.removesuffix("List"))) is not None:
        raw = tagged(1, _write_list_meta(obj.get("metadata") or {}))
        raw += b"".join(tagged(2, _write_struct(i, item)) for i in obj.get("items") or ())
    else:
        return None
    meta = tagged(1, api_version.encode()) + tagged(2, kind.encode())
    return PREFIX + tagged(1, meta) + tagged(2, raw) + tagged(3, b"") + tagged(4, b"")


def _write_list_meta(meta: Json) -> bytes:
    out = tagged(1, b"") + tagged(2, str(meta.get("resourceVersion") or "").encode()) + tagged(3, str(meta.get("continue") or "").encode())
    if meta.get("remainingItemCount") is not None:
        out += tagged_number(4, meta["remainingItemCount"])
    return out


def _write_struct(obj: Json, name: str) -> bytes:
    out = b""
    for number, (key, kind, how) in sorted(_numbers(name).items()):
        if how == "inline":
            out += tagged(number, _write_struct(obj, kind))
            continue
        value = obj.get(key)
        if value is None:
            continue
        if kind.startswith("[]") and how != "message":
            out += b"".join(_write(number, v, kind[2:].lstrip("*")) for v in value)
        elif kind.startswith("{}"):
            for item_key in sorted(value):
                entry = tagged(1, item_key.encode()) + _write(2, value[item_key], kind[2:].lstrip("*"))
                out += tagged(number, entry)
        else:
            out += _write(number, value, kind)
    return out


def _write(number: int, value: Any, kind: str) -> bytes:
    if kind == "string":
        return tagged(number, str(value).encode())
    if kind == "bytes":
        return tagged(number, base64.b64decode(value))
    if kind == "bool":
        return tagged_number(number, 1 if value else 0)
    if kind in ("int32", "int64", "byte"):
        return tagged_number(number, int(value))
    if kind == "float64":
        return written_varint(number << 3 | 1) + binary.pack("<d", value)
    if kind in ("time", "microtime"):
        moment = datetime.fromisoformat(value)
        seconds = (moment.replace(microsecond=0) - _EPOCH) // timedelta(seconds=1)
        return tagged(number, tagged_number(1, seconds) + tagged_number(2, moment.microsecond * 1000))
    if kind == "quantity":
        return tagged(number, tagged(1, str(value).encode()))
    if kind == "intstr":
        if isinstance(value, str):
            return tagged(number, tagged_number(1, 1) + tagged_number(2, 0) + tagged(3, value.encode()))
        return tagged(number, tagged_number(1, 0) + tagged_number(2, value) + tagged(3, b""))
    if kind.startswith("[]"):
        return tagged(number, b"".join(_write(1, v, kind[2:]) for v in value))
    if kind in ("raw", "any"):
        return tagged(number, tagged(1, msgspec.json.encode(value)))
    if kind in _SCHEMAS:
        return tagged(number, _write_schema(value, kind))
    if kind == "duration":
        return tagged(number, tagged_number(1, parse_duration(value) or 0))
    return tagged(number, _write_struct(value, kind))


def _write_schema(value: Any, kind: str) -> bytes:
    if kind == "schema":
        return _write_struct(value, _SCHEMA)
    if kind == "schemaorbool":
        if isinstance(value, bool):
            return tagged_number(1, 1 if value else 0)
        return tagged_number(1, 1) + tagged(2, _write_struct(value, _SCHEMA))
    if isinstance(value, dict):
        return tagged(1, _write_struct(value, _SCHEMA))
    return b"".join(tagged(2, v.encode() if isinstance(v, str) else _write_struct(v, _SCHEMA)) for v in value)


def watch_event(kind: str, enveloped: bytes) -> bytes:
    """Return one watch event on the wire: its length, then a WatchEvent whose object has its own envelope."""
    event = tagged(1, kind.encode()) + tagged(2, tagged(1, enveloped))
    return binary.pack(">I", len(event)) + event
