"""Protocol buffers: the wire format, and messages by tables of their fields, with their JSON form. Pure."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterator, Mapping
from typing import Any, Final

Table = Mapping[str, Mapping[str, tuple[int, str]]]
"""The fields of messages by name, each with its number and type.

A type is `string`, `bytes`, `bool`, `int64`, `uint64`, the names of an enum with spaces between, or a message; `[]` before it: repeated.
"""
_MASK: Final = 0xFFFFFFFFFFFFFFFF
_DEPTH: Final = 16


class Malformed(ValueError):
    """Bytes are not a protobuf message, or JSON does not fit the message."""


def varint(data: bytes, at: int) -> tuple[int, int]:
    """Return a number, and the position after it."""
    value = shift = 0
    while True:
        if at >= len(data):
            raise Malformed("unexpected EOF")
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if not byte & 0x80:
            return value & _MASK, at
        shift += 7
        if shift > 63:
            raise Malformed("proto: integer overflow")


def fields(data: bytes) -> Iterator[tuple[int, int | bytes]]:
    """Yield numbers and values of a message's fields; raises Malformed."""
    at = 0
    while at < len(data):
        tag, at = varint(data, at)
        number, wire = tag >> 3, tag & 7
        if number == 0:
            raise Malformed("proto: illegal tag 0")
        if wire == 0:
            value, at = varint(data, at)
            yield number, value
        elif wire == 2:
            length, at = varint(data, at)
            if at + length > len(data):
                raise Malformed("unexpected EOF")
            yield number, data[at : at + length]
            at += length
        elif wire in (1, 5):
            size = 8 if wire == 1 else 4
            if at + size > len(data):
                raise Malformed("unexpected EOF")
            yield number, data[at : at + size]
            at += size
        else:
            raise Malformed(f"proto: illegal wireType {wire}")


def written_varint(value: int) -> bytes:
    """Return a number as bytes; a negative one as its two's complement."""
    value &= _MASK
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def tagged(number: int, data: bytes) -> bytes:
    """Return an encoded field of bytes, text or a message."""
    return written_varint(number << 3 | 2) + written_varint(len(data)) + data


def tagged_number(number: int, value: int) -> bytes:
    """Return an encoded field of a whole number or a boolean."""
    return written_varint(number << 3) + written_varint(value)


def encode(table: Table, name: str, value: Mapping[str, Any]) -> bytes:
    """Return a message encoded from its JSON: 64-bit numbers are decimal text there, bytes base64, enums names. Raises Malformed."""
    out = b""
    for key, item in value.items():
        if (found := table[name].get(key)) is None:
            raise Malformed(f"unknown field {key!r} in {name}")
        number, kind = found
        for one in item if kind.startswith("[]") and isinstance(item, list | tuple) else [item]:
            try:
                out += _write(table, number, kind.removeprefix("[]"), one)
            except (ValueError, TypeError, AttributeError) as error:
                raise Malformed(f"invalid value for field {key!r} in {name}") from error
    return out


def _write(table: Table, number: int, kind: str, value: Any) -> bytes:
    if kind == "string":
        return tagged(number, value.encode())
    if kind == "bytes":
        return tagged(number, base64.b64decode(value, validate=True))
    if kind in ("bool", "int64", "uint64"):
        return tagged_number(number, int(value))
    if kind in table:
        return tagged(number, encode(table, kind, value))
    names = kind.split()
    return tagged_number(number, names.index(value) if value in names else int(value))


def decode(table: Table, name: str, data: bytes, depth: int = 0) -> dict[str, Any]:
    """Return the JSON of a message; zero values and unknown fields are left out. Raises Malformed."""
    if depth > _DEPTH:
        raise Malformed("exceeded max depth")
    known = {number: (key, kind) for key, (number, kind) in table[name].items()}
    out: dict[str, Any] = {}
    for number, value in fields(data):
        if number not in known:
            continue
        key, kind = known[number]
        read = _read(table, kind.removeprefix("[]"), value, depth)
        if kind.startswith("[]"):
            out.setdefault(key, []).append(read)
        elif read not in ("", "0", False):
            out[key] = read
    return out


def _read(table: Table, kind: str, value: int | bytes, depth: int) -> Any:
    if isinstance(value, int):
        if kind == "bool":
            return bool(value)
        if kind == "uint64":
            return str(value)
        if kind == "int64":
            return str(value - (1 << 64) if value >> 63 else value)
        if " " in kind:
            names = kind.split()
            return names[value] if value < len(names) else str(value)
    elif kind == "string":
        try:
            return value.decode()
        except UnicodeDecodeError:
            raise Malformed("proto: invalid UTF-8") from None
    elif kind == "bytes":
        return binascii.b2a_base64(value, newline=False).decode()
    elif kind in table:
        return decode(table, kind, value, depth + 1)
    raise Malformed(f"proto: wrong wireType for a field of type {kind}")
