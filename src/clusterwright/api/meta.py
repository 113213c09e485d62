"""The parts that all objects share: identity, metadata, conditions; and the rules that all models follow.

The raw JSON bytes are authoritative; a model has only the known fields. Presence follows upstream's
serialisation classes (the `ser` column of the API reference):

    P  three states      `T | None = None`      None is absent; 0, "", () and {} are written
    V  zero is absent    `str = ""`, `int = 0`, `tuple[T, ...] = ()`, `Mapping[str, T] = {}`
    Z  omit-zero object  `T | None = None`      dropped on write when it dumps to {}; `T = T()` where the schema requires it
    A  always written    as V, marked by `ALWAYS` in its `Annotated` metadata

An object of class P, whose {} means something else than absence, is marked by `KEEP_EMPTY`. `spec` and `status` of a
kind are never None.

Lists are tuples and maps are `Mapping`, so that an object that was read cannot be changed; a changed copy is made by
`copying.replace`. Times are aware datetimes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, Any, ClassVar, NamedTuple, TypeVar, dataclass_transform

import msgspec

from clusterwright.api.constraints import (
    ATOMIC,
    ATOMIC_MAP,
    COND_REASON,
    COND_TYPE,
    REQUIRED,
    SET,
    Doc,
    Int64,
    Items,
    Len,
    ListMap,
    OneOf,
    Range,
)

Json = dict[str, Any]
"""A JSON object as the standard library would decode it."""


class Always:
    """Marks a field that is written even when it is zero (`ser` A)."""


ALWAYS = Always()


class KeepEmpty:
    """Marks an object field whose {} is written (`ser` P of an object)."""


KEEP_EMPTY = KeepEmpty()


@dataclass_transform(frozen_default=True, kw_only_default=True, field_specifiers=(msgspec.field,))
class _StructMeta(msgspec.StructMeta):
    """Declares to type checkers that every model is frozen and keyword-only, so that no class has to repeat it."""


class Struct(msgspec.Struct, metaclass=_StructMeta, frozen=True, kw_only=True, omit_defaults=True, rename="camel"):
    """The base of every model: frozen, keyword-only, camelCase on the wire, zero values omitted."""

    constraints: ClassVar[tuple[object, ...]] = ()
    """The API server's constraints on objects of this type."""
    omit_zero: ClassVar[bool] = True
    """Whether nested objects that dump to {} are dropped unless marked `KEEP_EMPTY` (built-in kinds keep them all)."""


class SensitiveStruct(Struct):
    """A model that may hold credentials: its repr never shows its content."""

    def __repr__(self) -> str:
        return f"{type(self).__name__}(...)"


WRITTEN: Any = msgspec.field(default_factory=str)
"""The default "" of a string that msgspec always writes: faster than `ALWAYS`, which the codec handles, for models in every object."""


class ObjectKey(NamedTuple):
    """Namespace (empty for cluster-scoped kinds) and name."""

    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}" if self.namespace else self.name


@dataclass(frozen=True, slots=True)
class GroupVersionKind:
    """A kind as in objects; `group` is empty for the core group."""

    group: str
    version: str
    kind: str

    @property
    def api_version(self) -> str:
        """The apiVersion: `group/version`, or `version` for the core group."""
        return f"{self.group}/{self.version}" if self.group else self.version

    @staticmethod
    def of(api_version: str, kind: str) -> GroupVersionKind:
        """Return the kind from `apiVersion` and `kind` of an object."""
        group, _, version = api_version.rpartition("/")
        return GroupVersionKind(group, version, kind)


class OwnerReference(Struct):
    """A reference to the owner of an object."""

    constraints: ClassVar[tuple[object, ...]] = (ATOMIC_MAP,)

    api_version: Annotated[str, ALWAYS, REQUIRED] = WRITTEN
    kind: Annotated[str, ALWAYS, REQUIRED] = WRITTEN
    name: Annotated[str, ALWAYS, REQUIRED] = WRITTEN
    uid: Annotated[str, ALWAYS, REQUIRED] = WRITTEN
    controller: bool | None = None
    block_owner_deletion: bool | None = None


class ObjectMeta(Struct):
    """metav1.ObjectMeta without managedFields, which no controller reads."""

    name: str = ""
    generate_name: str = ""
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""
    generation: Int64 = 0
    creation_timestamp: datetime | None = None
    deletion_timestamp: datetime | None = None
    deletion_grace_period_seconds: Int64 | None = None
    labels: Mapping[str, str] = {}
    annotations: Mapping[str, str] = {}
    owner_references: Annotated[tuple[OwnerReference, ...], ListMap("uid")] = ()
    finalizers: Annotated[tuple[str, ...], SET] = ()

    @property
    def key(self) -> ObjectKey:
        """Namespace and name."""
        return ObjectKey(self.namespace, self.name)

    @property
    def controller(self) -> OwnerReference | None:
        """The owner reference of the controller, or None."""
        return next((reference for reference in self.owner_references if reference.controller), None)


class Condition(Struct):
    """metav1.Condition."""

    type: Annotated[str, ALWAYS, REQUIRED, Len(None, 316), COND_TYPE, Doc("The type of the condition.")] = WRITTEN
    status: Annotated[
        str, ALWAYS, REQUIRED, OneOf("True", "False", "Unknown"), Doc("Whether the condition holds: True, False or Unknown.")
    ] = WRITTEN
    observed_generation: Annotated[Int64, Range(0), Doc("The generation of the object from which the condition was computed.")] = 0
    last_transition_time: Annotated[datetime | None, REQUIRED, Doc("The time at which the status last changed.")] = None
    reason: Annotated[str, ALWAYS, REQUIRED, Len(1, 1024), COND_REASON, Doc("The reason as one word for programs.")] = WRITTEN
    message: Annotated[str, ALWAYS, REQUIRED, Len(None, 32768), Doc("The reason as text for people. It may be empty.")] = WRITTEN


class V1Beta1Condition(Struct):
    """The deprecated condition form under `status.deprecated.v1beta1.conditions`."""

    type: Annotated[str, ALWAYS, REQUIRED, Len(1, 256), Doc("The type of the condition.")] = WRITTEN
    status: Annotated[str, ALWAYS, REQUIRED, Doc("Whether the condition holds: True, False or Unknown.")] = WRITTEN
    severity: Annotated[str, Len(None, 32), Doc("The severity: Error, Warning, Info or empty. It is set only if the status is False.")] = ""
    last_transition_time: Annotated[datetime | None, REQUIRED, Doc("The time at which the status last changed.")] = None
    reason: Annotated[str, Len(1, 256), Doc("The reason as one word for programs.")] = ""
    message: Annotated[str, Len(1, 10240), Doc("The reason as text for people.")] = ""


Conditions = Annotated[tuple[Condition, ...], Items(None, 32), ListMap("type"), Doc("The conditions of the object, by type.")]
V1Beta1Conditions = Annotated[tuple[V1Beta1Condition, ...], Doc("The conditions in the form of v1beta1.")]
ObservedGeneration = Annotated[Int64, Range(1), Doc("The generation of the object that was last processed completely.")]


class LabelSelectorRequirement(Struct):
    """One term of a selector."""

    key: Annotated[str, ALWAYS, REQUIRED, Doc("The key of the label.")] = ""
    operator: Annotated[str, ALWAYS, REQUIRED, Doc("The operator: In, NotIn, Exists or DoesNotExist.")] = ""
    values: Annotated[tuple[str, ...], ATOMIC, Doc("The values for In and NotIn.")] = ()


class LabelSelector(Struct):
    """metav1.LabelSelector: all terms must hold; an empty selector matches everything."""

    constraints: ClassVar[tuple[object, ...]] = (ATOMIC_MAP,)

    match_expressions: Annotated[
        tuple[LabelSelectorRequirement, ...], ATOMIC, Doc("The terms of the selector. All of them must hold.")
    ] = ()
    match_labels: Annotated[Mapping[str, str], Doc("The labels with their values. All of them must be equal.")] = {}


class Object(Struct):
    """The base of every kind. `api_version` and `kind` of a class are its defaults and are always written."""

    api_version: str = ""
    kind: str = ""
    metadata: ObjectMeta = ObjectMeta()

    @property
    def key(self) -> ObjectKey:
        """Namespace and name."""
        return self.metadata.key


class Unstructured:
    """An object of a kind that we have no model for: its JSON, which must not be changed, with the common reads.

    The JSON may have any form: `at` returns None if there is no value at a path.
    """

    __slots__ = ("json",)

    def __init__(self, json: Mapping[str, Any]) -> None:
        self.json = json

    @property
    def gvk(self) -> GroupVersionKind:
        """The kind in the object."""
        return GroupVersionKind.of(str(self.json.get("apiVersion", "")), str(self.json.get("kind", "")))

    @property
    def kind(self) -> str:
        """The kind without group and version."""
        return str(self.json.get("kind", ""))

    @property
    def metadata(self) -> ObjectMeta:
        """The typed metadata; values of wrong types are treated as absent."""
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
        """Return the value at `path`, or None."""
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
