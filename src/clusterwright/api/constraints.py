"""Constraints that the API server enforces on a field, as `Annotated` metadata next to the field.

Schemas of CRDs are generated from these; the codec reads only `ALWAYS`. Constraints of a whole object type are in its class variable
`constraints`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any


class Marker:
    """A constraint without parameters."""

    __slots__ = ("name",)

    def __init__(self, name: str) -> None:
        self.name = name

    def __repr__(self) -> str:
        return self.name


REQUIRED = Marker("REQUIRED")
"""The field is in the parent's `required`."""
ATOMIC = Marker("ATOMIC")
"""Server-side apply owns the list as a whole."""
SET = Marker("SET")
"""The list has distinct scalars, merged by value."""
ATOMIC_MAP = Marker("ATOMIC_MAP")
"""Server-side apply owns the map or object as a whole."""
PRESERVE = Marker("PRESERVE")
"""Unknown fields below are kept; a field of type Any accepts any JSON."""
EMBEDDED = Marker("EMBEDDED")
"""The field is a whole object with apiVersion, kind and metadata."""
OPEN = Marker("OPEN")
"""On a class: the model has only a part of the kind; its schema keeps unknown fields."""
METADATA_REQUIRED = Marker("METADATA_REQUIRED")
"""On a kind: `metadata` is in `required`."""
SENSITIVE = Marker("SENSITIVE")
"""The value is never shown: not in logs, not in repr, not in diffs."""


@dataclass(frozen=True, slots=True)
class Len:
    """The length of a string, in characters."""

    min: int | None = None
    max: int | None = None


@dataclass(frozen=True, slots=True)
class Items:
    """The number of list items."""

    min: int | None = None
    max: int | None = None


@dataclass(frozen=True, slots=True)
class Props:
    """The number of keys of an object or map."""

    min: int | None = None
    max: int | None = None


@dataclass(frozen=True, slots=True)
class Range:
    """The inclusive bounds of a number."""

    min: int | None = None
    max: int | None = None


@dataclass(frozen=True, slots=True)
class Pattern:
    """A regular expression; the value must contain a match."""

    regex: str


class OneOf:
    """The allowed values."""

    __slots__ = ("values",)

    def __init__(self, *values: str) -> None:
        self.values = values


class ListMap:
    """The list is merged item by item; `keys` identify the items."""

    __slots__ = ("keys",)

    def __init__(self, *keys: str) -> None:
        self.keys = keys


@dataclass(frozen=True, slots=True)
class Default:
    """The API server sets this value if the field is absent."""

    value: Any


@dataclass(frozen=True, slots=True)
class Cel:
    """A rule in the Common Expression Language; `message` is the API server's error when it is violated."""

    rule: str
    message: str
    reason: str = ""


class Each:
    """Constraints on every item of a list (or every value of a map)."""

    __slots__ = ("constraints",)

    def __init__(self, *constraints: Any) -> None:
        self.constraints = constraints


@dataclass(frozen=True, slots=True)
class Format:
    """The schema's `format`."""

    name: str


@dataclass(frozen=True, slots=True)
class Doc:
    """The description of the field, for `kubectl explain`."""

    text: str


Int32 = Annotated[int, Format("int32")]
Int64 = Annotated[int, Format("int64")]
IntOrString = int | str
Quantity = str | int | float

DNS_SUBDOMAIN = Pattern(r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$")
DNS_LABEL = Pattern(r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$")
KIND = Pattern(r"^[a-zA-Z]([-a-zA-Z0-9]*[a-zA-Z0-9])?$")
GROUP_VERSION = Pattern(r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*\/[a-z]([-a-z0-9]*[a-z0-9])?$")
COND_TYPE = Pattern(r"^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])$")
COND_REASON = Pattern(r"^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$")
TAINT_KEY = Pattern(r"^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*\/)?([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]$")
LABEL_VALUE = Pattern(r"^(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?$")
RANGE = Pattern(r"^\[[0-9]+-[0-9]+\]$")
QUANTITY = Pattern(r"^(\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))(([KMGTPE]i)|[numkMGTPE]|([eE](\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))))?$")
