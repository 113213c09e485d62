"""The built-in types of Kubernetes as data (`types.json`), with Go's decoding and encoding of JSON.

The data are derived from Go sources by `tools/types_from_go.py`. A type is `{"f": {field: {...}}, "atomic": 1?}`; a field has

    t   type: string bool int32 int64 float64 bytes time microtime duration quantity intstr raw any schema (and what stands in
        schemas), a type's name, and the prefixes * (pointer), [] (list), {} (map with string keys)
    n   number in protobuf               a   written even when empty          r   required by the API's documentation
    l k list type and keys of map lists  d   default                          ps pk   strategy and key of strategic merge
    atomic   one owner for the whole     inline   its fields stand in the JSON of the type that has it
    message  in protobuf, a list within a message {1: items}
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Any, Final

from clusterwright.apiserver.interfaces import DecodeError
from clusterwright.apiserver.schema.goscalars import SCALARS, Decoder, Mismatch, json_type, mismatch
from clusterwright.apiserver.schema.goschemas import decode_schema

Json = dict[str, Any]


@cache
def table() -> dict[str, Json]:
    """Return all types by name, as in the data file."""
    data: dict[str, Json] = json.loads(resources.files(__package__).joinpath("types.json").read_text())
    return data


@dataclass(frozen=True, slots=True)
class GoField:
    """A field of a struct, with the data for decoding."""

    name: str
    type: str
    always: bool
    pointer: bool
    decode: Callable[[Any, str, list[str]], Any]
    zero: Callable[[], Any]
    source: Json


@dataclass(frozen=True, slots=True)
class GoStruct:
    """A struct: its fields as JSON has them (inlined ones included)."""

    name: str
    fields: dict[str, GoField]
    always: tuple[GoField, ...]

    def decode(self, value: Any, path: str, unknown: list[str]) -> Json:
        """Return the value as Go would write it after decoding. Paths of unknown fields are appended to `unknown`."""
        if value is None:
            value = {}
        if type(value) is not dict:
            raise mismatch(value, path, self.name)
        out: Json = {}
        fields = self.fields
        for key, item in value.items():
            field = fields.get(key)
            here = f"{path}.{key}" if path else key
            if field is None:
                unknown.append(here)
                continue
            if item is None and field.pointer:
                continue
            try:
                decoded = field.decode(item, here, unknown)
            except Mismatch as e:
                where = re.sub(r"\[\d+\]", "", here)
                text = f"{e} into Go struct field {self.name.rsplit('.', 1)[-1]}.{where} of type {e.wanted}"
                raise DecodeError(text, e.converting) from None
            if not decoded and not field.pointer and not field.always:
                continue
            out[key] = decoded
        for field in self.always:
            if field.name not in out:
                out[field.name] = field.zero()
        return out

    def zero(self) -> Json:
        """Return the value of an empty struct."""
        return {f.name: f.zero() for f in self.always}


@cache
def struct(name: str) -> GoStruct:
    """Return a type by name."""
    fields = json_fields(name)
    made = {k: _field(k, f) for k, f in fields.items()}
    return GoStruct(name, made, tuple(f for f in made.values() if f.always))


@cache
def json_fields(name: str) -> dict[str, Json]:
    """Return the fields of a type in JSON, with those of inlined types."""
    out: dict[str, Json] = {}
    for key, field in table()[name]["f"].items():
        if field.get("inline"):
            out.update(json_fields(field["t"].lstrip("*")))
        else:
            out[key] = field
    return out


def _field(name: str, source: Json) -> GoField:
    kind = source["t"]
    pointer = kind.startswith("*")
    bare = kind.lstrip("*")
    return GoField(name, bare, bool(source.get("a")), pointer, _decoder(bare), (lambda: None) if pointer else _zero(bare), source)


def _zero(kind: str) -> Callable[[], Any]:
    if kind in table():
        return lambda: struct(kind).zero()
    values: dict[str, Any] = {"string": "", "bool": False, "int32": 0, "int64": 0, "float64": 0, "quantity": "0", "duration": "0s"}
    value = values.get(kind)
    return lambda: value


def _decoder(kind: str) -> Callable[[Any, str, list[str]], Any]:
    if kind.startswith("[]"):
        return _list_decoder(kind[2:])
    if kind.startswith("{}"):
        return _map_decoder(kind[2:])
    if kind in table():
        return lambda v, p, u: struct(kind).decode(v, p, u)
    return _DECODERS[kind]


def _list_decoder(kind: str) -> Callable[[Any, str, list[str]], Any]:
    item = _decoder(kind.lstrip("*"))
    pointer = kind.startswith("*")

    def decode(value: Any, path: str, unknown: list[str]) -> Any:
        if value is None:
            return None
        if type(value) is not list:
            raise mismatch(value, path, f"[]{kind}")
        return [None if v is None and pointer else item(v, f"{path}[{i}]", unknown) for i, v in enumerate(value)]

    return decode


def _map_decoder(kind: str) -> Callable[[Any, str, list[str]], Any]:
    item = _decoder(kind.lstrip("*"))

    def decode(value: Any, path: str, unknown: list[str]) -> Any:
        if value is None:
            return None
        if type(value) is not dict:
            raise mismatch(value, path, f"map[string]{kind}")
        return {k: item(v, f"{path}.{k}", unknown) for k, v in value.items()}

    return decode


_DECODERS: Final[dict[str, Decoder]] = {
    **SCALARS,
    "schema": decode_schema,
    "schemas": SCALARS["any"],
    "schemaorbool": SCALARS["any"],
    "schemaorstrings": SCALARS["any"],
}


def decode_metadata(obj: Json, path: str = "metadata") -> list[str]:
    """Decode `obj.metadata` as ObjectMeta, in place; return the paths of unknown fields. Raises DecodeError."""
    meta = obj.get("metadata")
    if meta is None:
        if "metadata" in obj:
            obj["metadata"] = {}
        return []
    if type(meta) is not dict:
        raise DecodeError(f"json: cannot unmarshal {json_type(meta)} into Go value of type v1.ObjectMeta")
    unknown: list[str] = []
    sent = meta.get("managedFields")
    if _is_plain(meta):
        return unknown
    made = struct("meta.v1.ObjectMeta").decode(meta, "", unknown)
    unknown = [f"{path}.{field}" for field in unknown]
    if sent == []:
        made["managedFields"] = []  # an empty list resets managedFields; absence keeps them
    obj["metadata"] = made
    return unknown


_TEXT_FIELDS: Final = frozenset({"name", "namespace", "uid", "resourceVersion", "generateName"})


def _is_plain(meta: Json) -> bool:
    """Return whether decoding cannot change the metadata, because it is already in Go's form: a fast path."""
    for key, value in meta.items():
        if key in _TEXT_FIELDS:
            if type(value) is not str or not value:
                return False
        elif key in ("labels", "annotations"):
            if type(value) is not dict or not value:
                return False
            for item in value.values():
                if type(item) is not str:
                    return False
        elif key == "generation":
            if type(value) is not int or not value:
                return False
        elif key == "creationTimestamp":
            if type(value) is not str or len(value) != 20 or not _CANONICAL(value):
                return False
        elif key == "finalizers":
            if type(value) is not list or not value:
                return False
            for item in value:
                if type(item) is not str:
                    return False
        elif key == "managedFields":
            if type(value) is not list or not value:
                return False
            for entry in value:
                if type(entry) is not dict or not entry.keys() <= _MANAGED_FIELDS:
                    return False
        elif key == "ownerReferences":
            if type(value) is not list or not value:
                return False
            for reference in value:
                if type(reference) is not dict or not reference.keys() <= _REFERENCE or len(reference.keys() & _REFERENCE_TEXTS) != 4:
                    return False
                for name, item in reference.items():
                    if type(item) is not (str if name in _REFERENCE_TEXTS else bool):
                        return False
        else:
            return False
    return True


_CANONICAL: Final = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ").fullmatch
_MANAGED_FIELDS: Final = frozenset({"manager", "operation", "apiVersion", "time", "fieldsType", "fieldsV1", "subresource"})
_REFERENCE_TEXTS: Final = frozenset({"apiVersion", "kind", "name", "uid"})
_REFERENCE: Final = _REFERENCE_TEXTS | {"controller", "blockOwnerDeletion"}
