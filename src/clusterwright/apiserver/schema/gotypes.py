"""The built-in types of Kubernetes as data (`types.json`), and what Go's decoder and encoder make of JSON for them.

A type is `{"f": {field: {...}}, "atomic": 1?}`; a field has

    t   type: string bool int32 int64 float64 bytes time microtime duration quantity intstr raw any schema, a type's name,
        and the prefixes * (pointer), [] (list), {} (map with string keys)
    n   number in protobuf               a   written even when empty          r   required by the API's documentation
    l k list type and keys of map lists  d   default                          ps pk   strategy and key of strategic merge
    atomic   one owner for the whole     inline   its fields stand in the JSON of the type that has it
"""

from __future__ import annotations

import base64
import binascii
import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from functools import cache
from importlib import resources
from typing import Any, Final

from clusterwright.apiserver.interfaces import DecodeError
from clusterwright.apiserver.schema.times import micro_time, second_time
from clusterwright.cel.formats import is_duration
from clusterwright.cel.values import CelError, parse_quantity

Json = dict[str, Any]


@cache
def table() -> dict[str, Json]:
    """All types by name, as they are in the data file."""
    data: dict[str, Json] = json.loads(resources.files(__package__).joinpath("types.json").read_text())
    return data


@dataclass(frozen=True, slots=True)
class GoField:
    """A field of a struct, with what its decoder needs."""

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
        """The value as Go would write it after reading it. Paths of unknown fields are appended to `unknown`."""
        if value is None:
            value = {}
        if type(value) is not dict:
            raise _mismatch(value, path, self.name)
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
            except _Mismatch as e:
                where = re.sub(r"\[\d+\]", "", here)
                raise DecodeError(f"{e} into Go struct field {self.name.rsplit('.', 1)[-1]}.{where} of type {e.wanted}") from None
            if not decoded and not field.pointer and not field.always:
                continue
            out[key] = decoded
        for field in self.always:
            if field.name not in out:
                out[field.name] = field.zero()
        return out

    def zero(self) -> Json:
        """The value of a struct in which nothing is set."""
        return {f.name: f.zero() for f in self.always}


@cache
def struct(name: str) -> GoStruct:
    """A type by name."""
    fields = json_fields(name)
    made = {k: _field(k, f) for k, f in fields.items()}
    return GoStruct(name, made, tuple(f for f in made.values() if f.always))


@cache
def json_fields(name: str) -> dict[str, Json]:
    """The fields of a type as its JSON has them: inlined types are spread out."""
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


def _json_type(value: Any) -> str:
    return {dict: "object", list: "array", str: "string", bool: "bool", int: "number", float: "number"}.get(type(value), "value")


class _Mismatch(DecodeError):
    """A value of another type than the field's; the struct that has the field says where."""

    def __init__(self, found: str, wanted: str) -> None:
        super().__init__(f"json: cannot unmarshal {found}")
        self.wanted = wanted


def _mismatch(value: Any, path: str, wanted: str) -> DecodeError:
    del path
    return _Mismatch(_json_type(value), re.sub(r"\w+\.(v\d\w*\.)", r"\1", wanted))


def _decoder(kind: str) -> Callable[[Any, str, list[str]], Any]:
    if kind.startswith("[]"):
        return _list_decoder(kind[2:])
    if kind.startswith("{}"):
        return _map_decoder(kind[2:])
    if kind in table():
        return lambda v, p, u: struct(kind).decode(v, p, u)
    return _SCALARS[kind]


def _list_decoder(kind: str) -> Callable[[Any, str, list[str]], Any]:
    item = _decoder(kind.lstrip("*"))
    pointer = kind.startswith("*")

    def decode(value: Any, path: str, unknown: list[str]) -> Any:
        if value is None:
            return None
        if type(value) is not list:
            raise _mismatch(value, path, f"[]{kind}")
        return [None if v is None and pointer else item(v, f"{path}[{i}]", unknown) for i, v in enumerate(value)]

    return decode


def _map_decoder(kind: str) -> Callable[[Any, str, list[str]], Any]:
    item = _decoder(kind.lstrip("*"))

    def decode(value: Any, path: str, unknown: list[str]) -> Any:
        if value is None:
            return None
        if type(value) is not dict:
            raise _mismatch(value, path, f"map[string]{kind}")
        return {k: item(v, f"{path}.{k}", unknown) for k, v in value.items()}

    return decode


def _string(value: Any, path: str, unknown: list[str]) -> str:
    if value is None:
        return ""
    if type(value) is not str:
        raise _mismatch(value, path, "string")
    return value


def _bool(value: Any, path: str, unknown: list[str]) -> bool | None:
    if value is None or type(value) is bool:
        return value
    raise _mismatch(value, path, "bool")


def _integer(bits: int) -> Callable[[Any, str, list[str]], int | None]:
    low, high = -(2 ** (bits - 1)), 2 ** (bits - 1) - 1

    def decode(value: Any, path: str, unknown: list[str]) -> int | None:
        if value is None:
            return None
        if type(value) is float and value.is_integer():
            value = int(value)
        if type(value) is not int or not low <= value <= high:
            raise _mismatch(value, path, f"int{bits}")
        return value

    return decode


def _float(value: Any, path: str, unknown: list[str]) -> float | None:
    if value is None or type(value) is float or type(value) is int:
        return value
    raise _mismatch(value, path, "float64")


def _bytes(value: Any, path: str, unknown: list[str]) -> str:
    if value is None:
        return ""
    if type(value) is not str:
        raise _mismatch(value, path, "[]uint8")
    try:
        data = base64.b64decode(value.replace("\n", "").replace("\r", ""), validate=True)
    except (binascii.Error, ValueError):
        raise DecodeError(f"illegal base64 data at input byte {_first_bad(value)}") from None
    return base64.b64encode(data).decode()


def _first_bad(text: str) -> int:
    found = re.search(r"[^A-Za-z0-9+/\r\n]", text)
    return found.start() if found else len(text) - len(text) % 4


def _time(value: Any, path: str, unknown: list[str]) -> str | None:
    if value is None or value == "":
        return None
    made = second_time(value) if type(value) is str else None
    if made is None:
        raise DecodeError(f'parsing time "{value}" as "2006-01-02T15:04:05Z07:00": cannot parse "{value}" as "2006"')
    return made


def _micro(value: Any, path: str, unknown: list[str]) -> str | None:
    if value is None or value == "":
        return None
    made = micro_time(value) if type(value) is str else None
    if made is None:
        raise DecodeError(f'parsing time "{value}" as "2006-01-02T15:04:05.000000Z07:00": cannot parse "{value}" as ".000000"')
    return made


def _duration(value: Any, path: str, unknown: list[str]) -> str | None:
    if value is None:
        return None
    if type(value) is not str or not is_duration(value):
        raise DecodeError(f'time: invalid duration "{value}"')
    return value


_DECIMAL_SUFFIXES: Final = (("E", 18), ("P", 15), ("T", 12), ("G", 9), ("M", 6), ("k", 3), ("", 0), ("m", -3), ("u", -6), ("n", -9))
_BINARY_SUFFIXES: Final = (("Ei", 60), ("Pi", 50), ("Ti", 40), ("Gi", 30), ("Mi", 20), ("Ki", 10))


def canonical_quantity(text: str) -> str:
    """A quantity in its canonical form (`1000m` is `1`); raises CelError."""
    amount = parse_quantity(text).amount
    if amount == 0:
        return "0"
    if text.endswith("i"):
        if amount == amount.to_integral_value():
            whole = int(amount)
            for suffix, bits in _BINARY_SUFFIXES:
                if abs(whole) >= 1 << bits and whole % (1 << bits) == 0:
                    return f"{whole >> bits}{suffix}"
            return str(whole)
    elif re.search(r"[eE][+-]?[0-9]+$", text):
        exponent = 0
        while amount == amount.to_integral_value() and int(amount) % 1000 == 0:
            amount /= 1000
            exponent += 3
        return f"{int(amount)}e{exponent}" if exponent and amount == amount.to_integral_value() else _plain(amount)
    for suffix, power in _DECIMAL_SUFFIXES:
        scaled = amount.scaleb(-power)
        if scaled == scaled.to_integral_value():
            return f"{int(scaled)}{suffix}"
    return f"{int(amount.scaleb(9).to_integral_value(rounding='ROUND_CEILING'))}n"


def _plain(amount: Decimal) -> str:
    return format(amount.normalize(), "f")


def _quantity(value: Any, path: str, unknown: list[str]) -> str:
    if value is None:
        return "0"
    if type(value) is bool or not isinstance(value, (str, int, float)):
        raise _mismatch(value, path, "resource.Quantity")
    try:
        return canonical_quantity(value if isinstance(value, str) else _plain(Decimal(str(value))))
    except CelError as e:
        raise DecodeError(str(e)) from None


def _int_or_string(value: Any, path: str, unknown: list[str]) -> Any:
    if value is None:
        return None
    if type(value) is str or type(value) is int:
        return value
    raise _mismatch(value, path, "int32")


def _any(value: Any, path: str, unknown: list[str]) -> Any:
    return value


_RULE_TEXTS: Final = ("rule", "message", "messageExpression", "fieldPath")
_SCHEMA_TEXTS: Final = frozenset({"id", "$schema", "description", "type", "format", "title", "pattern"})
_SCHEMA_FLAGS: Final = frozenset(
    {"exclusiveMaximum", "exclusiveMinimum", "uniqueItems", "nullable", "x-kubernetes-embedded-resource", "x-kubernetes-int-or-string"}
)
_SCHEMA_POINTERS: Final[dict[str, str]] = {
    "$ref": "string",
    "maximum": "float64",
    "minimum": "float64",
    "multipleOf": "float64",
    "maxLength": "int64",
    "minLength": "int64",
    "maxItems": "int64",
    "minItems": "int64",
    "maxProperties": "int64",
    "minProperties": "int64",
    "x-kubernetes-preserve-unknown-fields": "bool",
    "x-kubernetes-list-type": "string",
    "x-kubernetes-map-type": "string",
    "default": "any",
    "example": "any",
}


def _json_schema(value: Any, path: str, unknown: list[str]) -> Any:
    """apiextensions.v1.JSONSchemaProps."""
    if value is None:
        return None
    if type(value) is not dict:
        raise _mismatch(value, path, "v1.JSONSchemaProps")
    out: Json = {}
    for key, item in value.items():
        here = f"{path}.{key}"
        if key in _SCHEMA_TEXTS or key in _SCHEMA_FLAGS:
            made: Any = _string(item, here, unknown) if key in _SCHEMA_TEXTS else _bool(item, here, unknown)
            made = made or None
        elif key in _SCHEMA_POINTERS:
            made = None if item is None else _SCALARS[_SCHEMA_POINTERS[key]](item, here, unknown)
        elif key in ("properties", "patternProperties", "definitions"):
            made = _map_of_schemas(item, here, unknown)
        elif key in ("allOf", "oneOf", "anyOf"):
            made = _list_of_schemas(item, here, unknown)
        elif key == "not":
            made = _json_schema(item, here, unknown)
        elif key == "items":
            made = _list_of_schemas(item, here, unknown) if type(item) is list else _json_schema(item, here, unknown)
        elif key in ("additionalProperties", "additionalItems"):
            made = item if type(item) is bool else _json_schema(item, here, unknown)
        elif key in ("required", "x-kubernetes-list-map-keys"):
            made = _list_decoder("string")(item, here, unknown) or None
        elif key == "enum":
            if item is not None and type(item) is not list:
                raise _mismatch(item, here, "[]v1.JSON")
            made = item or None
        elif key == "x-kubernetes-validations":
            made = _rules(item, here, unknown)
        elif key in ("dependencies", "externalDocs"):
            made = item or None
        else:
            unknown.append(here)
            continue
        if made is not None:
            out[key] = made
    return out


def _map_of_schemas(value: Any, path: str, unknown: list[str]) -> Any:
    if value is not None and type(value) is not dict:
        raise _mismatch(value, path, "map[string]v1.JSONSchemaProps")
    return {k: _json_schema(v, f"{path}.{k}", unknown) or {} for k, v in (value or {}).items()} or None


def _list_of_schemas(value: Any, path: str, unknown: list[str]) -> Any:
    if value is not None and type(value) is not list:
        raise _mismatch(value, path, "[]v1.JSONSchemaProps")
    return [_json_schema(v, f"{path}[{i}]", unknown) or {} for i, v in enumerate(value or ())] or None


def _rules(value: Any, path: str, unknown: list[str]) -> Any:
    if value is not None and type(value) is not list:
        raise _mismatch(value, path, "v1.ValidationRules")
    out = []
    for i, rule in enumerate(value or ()):
        if type(rule) is not dict:
            raise _mismatch(rule, f"{path}[{i}]", "v1.ValidationRule")
        made: Json = {"rule": ""}
        for key, item in rule.items():
            here = f"{path}[{i}].{key}"
            if key in _RULE_TEXTS:
                text = _string(item, here, unknown)
                if text or key == "rule":
                    made[key] = text
            elif key in ("reason", "optionalOldSelf"):
                if item is not None:
                    made[key] = (_string if key == "reason" else _bool)(item, here, unknown)
            else:
                unknown.append(here)
        out.append(made)
    return out or None


_SCALARS: Final[dict[str, Callable[[Any, str, list[str]], Any]]] = {
    "string": _string,
    "bool": _bool,
    "byte": _integer(32),
    "int32": _integer(32),
    "int64": _integer(64),
    "float64": _float,
    "bytes": _bytes,
    "time": _time,
    "microtime": _micro,
    "duration": _duration,
    "quantity": _quantity,
    "intstr": _int_or_string,
    "raw": _any,
    "any": _any,
    "schema": _json_schema,
}


def decode_metadata(obj: Json, path: str = "metadata") -> list[str]:
    """Fit `obj.metadata` to ObjectMeta, in place; returns the paths of unknown fields. Raises DecodeError."""
    meta = obj.get("metadata")
    if meta is None:
        if "metadata" in obj:
            obj["metadata"] = {}
        return []
    if type(meta) is not dict:
        raise DecodeError(f"json: cannot unmarshal {_json_type(meta)} into Go value of type v1.ObjectMeta")
    unknown: list[str] = []
    sent = meta.get("managedFields")
    if _is_plain(meta):
        return unknown
    made = struct("meta.v1.ObjectMeta").decode(meta, path, unknown)
    if sent == []:
        made["managedFields"] = []  # an empty list resets managedFields; absence keeps them
    obj["metadata"] = made
    return unknown


_TEXT_FIELDS: Final = frozenset({"name", "namespace", "uid", "resourceVersion", "generateName"})


def _is_plain(meta: Json) -> bool:
    """Whether metadata is surely as Go would write it, so that decoding it would change nothing: the common case, made fast."""
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
