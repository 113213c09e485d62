"""What every object has: identity, metadata, conditions; and the rules all models follow.

Raw JSON bytes are the truth; a model is a projection of the fields that we know. Presence follows upstream's
serialisation classes (the `ser` column of the API reference):

    P  three states      `T | None = None`      None is absent; 0, "", () and {} are written
    V  zero is absent    `str = ""`, `int = 0`, `tuple[T, ...] = ()`, `Mapping[str, T] = {}`
    Z  omit-zero object  `T | None = None`      dropped on write when it dumps to {}
    A  always written    as V, marked by `ALWAYS` in its `Annotated` metadata

Lists are tuples and maps are `Mapping`, so that an object that was read cannot be changed; a changed copy is made by
`msgspec.structs.replace`. Times are aware datetimes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, Any, NamedTuple, TypeVar, dataclass_transform

import msgspec

Json = dict[str, Any]
"""A JSON object as the standard library would decode it."""


class Always:
    """Marks a field that is written even when it is zero (`ser` A)."""


ALWAYS = Always()


@dataclass_transform(frozen_default=True, kw_only_default=True, field_specifiers=(msgspec.field,))
class _StructMeta(msgspec.StructMeta):
    """Tells type checkers that every model is frozen and keyword-only, so that no class has to repeat it."""


class Struct(msgspec.Struct, metaclass=_StructMeta, frozen=True, kw_only=True, omit_defaults=True, rename="camel"):
    """Base of every model: frozen, keyword-only, camelCase on the wire, zero values left out."""


class ObjectKey(NamedTuple):
    """Namespace (empty for cluster-scoped kinds) and name."""

    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}" if self.namespace else self.name


@dataclass(frozen=True, slots=True)
class GroupVersionKind:
    """A kind as objects name it; `group` is empty for the core group."""

    group: str
    version: str
    kind: str

    @property
    def api_version(self) -> str:
        """`group/version`, or `version` for the core group."""
        return f"{self.group}/{self.version}" if self.group else self.version

    @staticmethod
    def of(api_version: str, kind: str) -> GroupVersionKind:
        """The kind that `apiVersion` and `kind` of an object name."""
        group, _, version = api_version.rpartition("/")
        return GroupVersionKind(group, version, kind)


class OwnerReference(Struct):
    """Whom an object belongs to."""

    api_version: Annotated[str, ALWAYS] = ""
    kind: Annotated[str, ALWAYS] = ""
    name: Annotated[str, ALWAYS] = ""
    uid: Annotated[str, ALWAYS] = ""
    controller: bool | None = None
    block_owner_deletion: bool | None = None


class ObjectMeta(Struct):
    """metav1.ObjectMeta without managedFields, which no controller reads."""

    name: str = ""
    generate_name: str = ""
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""
    generation: int = 0
    creation_timestamp: datetime | None = None
    deletion_timestamp: datetime | None = None
    deletion_grace_period_seconds: int | None = None
    labels: Mapping[str, str] = {}
    annotations: Mapping[str, str] = {}
    owner_references: tuple[OwnerReference, ...] = ()
    finalizers: tuple[str, ...] = ()

    @property
    def key(self) -> ObjectKey:
        """Namespace and name."""
        return ObjectKey(self.namespace, self.name)


class Condition(Struct):
    """metav1.Condition."""

    type: Annotated[str, ALWAYS] = ""
    status: Annotated[str, ALWAYS] = ""
    observed_generation: int = 0
    last_transition_time: datetime | None = None
    reason: Annotated[str, ALWAYS] = ""
    message: Annotated[str, ALWAYS] = ""


class V1Beta1Condition(Struct):
    """The deprecated condition form under `status.deprecated.v1beta1.conditions`."""

    type: Annotated[str, ALWAYS] = ""
    status: Annotated[str, ALWAYS] = ""
    severity: str = ""
    last_transition_time: datetime | None = None
    reason: str = ""
    message: str = ""


class Object(Struct):
    """Base of every kind. `api_version` and `kind` of a class are its defaults and are always written."""

    api_version: str = ""
    kind: str = ""
    metadata: ObjectMeta = ObjectMeta()

    @property
    def key(self) -> ObjectKey:
        """Namespace and name."""
        return self.metadata.key


class Unstructured:
    """An object of a kind that we have no model for: its JSON, which must not be changed, with the common reads.

    Nothing about the JSON may be assumed: `at` answers None where a path does not lead to a value.
    """

    __slots__ = ("json",)

    def __init__(self, json: Mapping[str, Any]) -> None:
        self.json = json

    @property
    def gvk(self) -> GroupVersionKind:
        """The kind that the object says it is."""
        return GroupVersionKind.of(str(self.json.get("apiVersion", "")), str(self.json.get("kind", "")))

    @property
    def kind(self) -> str:
        """The bare kind."""
        return str(self.json.get("kind", ""))

    @property
    def metadata(self) -> ObjectMeta:
        """Typed metadata; what does not fit the types is treated as absent."""
        try:
            return msgspec.convert(self.json.get("metadata") or {}, ObjectMeta)
        except msgspec.ValidationError:
            name, namespace = self.at("metadata", "name"), self.at("metadata", "namespace")
            return ObjectMeta(name=name if isinstance(name, str) else "", namespace=namespace if isinstance(namespace, str) else "")

    @property
    def key(self) -> ObjectKey:
        """Namespace and name."""
        return self.metadata.key

    def at(self, *path: str) -> Any:
        """The value at `path`, or None."""
        value: Any = self.json
        for step in path:
            if not isinstance(value, Mapping):
                return None
            value = value.get(step)
        return value

    def __repr__(self) -> str:
        # never the content: it may be a Secret
        return f"Unstructured({self.kind} {self.key})"


T = TypeVar("T", bound=Object)
