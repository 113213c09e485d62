"""What the server must know about a kind: how it is served (`Resource`), and what is special about its objects (`KindHandler`).

Requests, store and watches treat objects as JSON dicts and know only metadata. Everything that depends on a kind is behind
`KindHandler`, one for each served group, version and resource. Handlers are shared by all servers of the process and keep no
objects between calls. `verbs.writes` runs a write in this order:

    decode -> default -> managedfields -> [admission: mutate] -> prepare_for_create/update -> validate_* -> [admission: validate] -> store

managedfields sees the object as sent and defaulted. So nobody owns what `prepare_*` fills in, and `reset_fields` keeps out
what it will reset.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

from clusterwright.api.meta import GroupVersionKind, Json
from clusterwright.apiserver.status import FieldError

NameRule = Literal["subdomain", "label", "label1035", "path", "none"]
"""How metadata.name is validated: DNS-1123 subdomain (most kinds), DNS-1123 label (Namespace), DNS-1035 label (Service),
path segment (RBAC), or not here."""


class DecodeError(Exception):
    """A body that does not fit the kind's types: 400. The text is what follows `in version "v1" cannot be handled as a X: `.

    `converting` is what is said of the same value where no body is decoded, but data are made into an object.
    """

    def __init__(self, text: str, converting: str = "") -> None:
        super().__init__(text)
        self.converting = converting or text


@dataclass(frozen=True, slots=True)
class Column:
    """A column of the Table rendering. `value` reads a cell from an object (JSON value, not text)."""

    name: str
    type: str
    format: str = ""
    description: str = ""
    priority: int = 0
    json_path: str = ""


@dataclass(frozen=True, slots=True)
class Scale:
    """Where the scale subresource finds its numbers, as JSON paths (`.spec.replicas`)."""

    spec_replicas_path: str
    status_replicas_path: str
    label_selector_path: str = ""


@dataclass(frozen=True, slots=True)
class Checks:
    """How often upstream says what is wrong with metadata that changed: for most kinds it validates more than once."""

    changes: int = 2
    """What must not change."""
    content: int = 3
    """Labels, annotations and owners."""
    finalizers: int = 1
    """Finalizers without a domain; 0: they are allowed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Resource:
    """One served resource in one version, as discovery describes it."""

    group: str
    version: str
    kind: str
    plural: str
    singular: str
    namespaced: bool
    list_kind: str = ""
    short_names: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    verbs: tuple[str, ...] = ("create", "delete", "deletecollection", "get", "list", "patch", "update", "watch")
    status: bool = False
    """Has a status subresource."""
    scale: Scale | None = None
    subresources: tuple[str, ...] = ()
    """Further subresources the core knows how to serve: `eviction`, `binding`, `token`, `finalize`, `approval`."""
    storage: str = ""
    """`group/version` objects are stored in; empty: this version. Resources of one store share `storage_key`."""
    storage_key: str = ""
    """Which objects it serves; empty: `plural.group`. core events and events.k8s.io events share one."""
    generation: bool = True
    """metadata.generation is kept (false for ConfigMap, Secret, Event, ...)."""
    generation_fields: tuple[str, ...] = ()
    """Of the metadata, what makes a new generation when it changes."""
    unconditional_update: bool = True
    """PUT without resourceVersion is allowed (false for custom resources and a few built-ins)."""
    trusts_stored: bool = False
    """What is wrong with stored metadata is no reason to refuse an update that leaves it alone: for worlds taken as they are."""
    create_on_update: bool = False
    """PUT to a name that does not exist creates (Lease, Event, ...)."""
    returns_deleted: bool = False
    """DELETE answers with the object instead of a Status (Pod, Service, ServiceAccount, PVC, ...)."""
    orphans: bool = False
    """Deleted without a word about it, it leaves its dependents behind (Job, ReplicationController)."""
    grace: bool = False
    """Deleted gracefully (Pod): the object stays until its grace period is over or is set to zero."""
    deprecation: str = ""
    """The text of the Warning header that every answer of a deprecated version carries."""
    checks: Checks = Checks()
    custom: bool = False
    """Defined by a CRD: strategic merge is refused, strictness warnings are on by default for unknown fields."""
    handler: KindHandler = field(repr=False, compare=False)
    converter: Any = field(default=None, repr=False, compare=False)
    """How objects get to other versions (`conversion.Converter`); None: the handlers know."""

    @property
    def gvk(self) -> GroupVersionKind:
        """The kind as objects name it."""
        return GroupVersionKind(self.group, self.version, self.kind)

    api_version: str = field(init=False, default="")
    """`group/version`."""

    def __post_init__(self) -> None:
        """What every request asks for is made once."""
        object.__setattr__(self, "api_version", f"{self.group}/{self.version}" if self.group else self.version)
        if not self.storage_key:
            object.__setattr__(self, "storage_key", f"{self.plural}.{self.group}" if self.group else self.plural)
        if not self.storage:
            object.__setattr__(self, "storage", self.api_version)


class KindHandler(Protocol):
    """What the core must know about one kind in one version. Objects are whole JSON objects with apiVersion and kind."""

    @property
    def gvk(self) -> GroupVersionKind:
        """The kind."""

    @property
    def schema(self) -> Any:
        """The compiled schema, as managedfields, strategic and openapi understand it; opaque to the core."""

    @property
    def name_rule(self) -> NameRule:
        """How metadata.name is validated."""

    @property
    def selectable_fields(self) -> Mapping[str, tuple[str, ...]]:
        """Field selector labels beyond metadata.name/namespace: label -> path of keys in the object."""

    @property
    def columns(self) -> Sequence[Column]:
        """Columns of tables, after Name."""

    def decode(self, obj: Json, *, subresource: str = "") -> list[str]:
        """Fit a decoded body to the kind, in place: drop unknown fields, coerce what Go's decoder coerces.

        Returns the paths of dropped fields (`spec.nope`, `spec.list[0].nope`), in document order. `metadata` is included
        (unknown metadata fields are dropped and reported). Raises DecodeError when a value cannot be decoded at all
        (built-ins: any wrong type; custom resources: metadata only).
        """

    def default(self, obj: Json) -> None:
        """Fill in defaults, in place."""

    def prepare_for_create(self, obj: Json) -> None:
        """What the kind's strategy resets or fills on create (e.g. drops status when there is a status subresource)."""

    def prepare_for_update(self, obj: Json, old: Json, *, subresource: str = "") -> None:
        """What the strategy resets on update: the main resource keeps old status; `status` keeps all but status.

        metadata.generation is kept by the core.
        """

    def validate_create(self, obj: Json) -> Sequence[FieldError]:
        """All that is wrong, metadata excepted (the core validates ObjectMeta; the handler validates what is special)."""

    def validate_update(self, obj: Json, old: Json, *, subresource: str = "") -> Sequence[FieldError]:
        """As validate_create, plus immutability and transition rules (ratcheting included)."""

    def warnings(self, obj: Json, old: Json | None) -> Sequence[str]:
        """Texts of Warning headers for an accepted object."""

    def convert(self, obj: Json, api_version: str) -> Json:
        """The stored object in another version of its kind (may return `obj` itself, changed in place)."""

    def reset_fields(self, subresource: str = "") -> Sequence[tuple[str, ...]]:
        """Paths that writes through this (sub)resource never own: managedfields strips them."""
