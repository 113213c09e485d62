"""Describe a kind to the server: how it is served (`Resource`), and how its objects behave (`KindHandler`).

Requests, store and watches treat objects as JSON dicts and know only metadata. Everything that depends on a kind is behind
`KindHandler`, one for each served group, version and resource. Handlers are shared by all servers of the process and keep no
objects between calls. `verbs.writes` runs a write in this order:

    decode -> default -> managedfields -> [admission: mutate] -> prepare_for_create/update -> validate_* -> [admission: validate] -> store

managedfields sees the object as sent and defaulted. So fields set by `prepare_*` have no owner, and `reset_fields` removes
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
path segment (RBAC), or no validation here."""


class DecodeError(Exception):
    """A body that does not fit the kind's types: 400. The text is what follows `in version "v1" cannot be handled as a X: `.

    `converting` is the text for data that are converted to an object, without decoding a body.
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
    """The JSON paths of the numbers of the scale subresource (`.spec.replicas`)."""

    spec_replicas_path: str
    status_replicas_path: str
    label_selector_path: str = ""


@dataclass(frozen=True, slots=True)
class Checks:
    """How often kube-apiserver repeats an error of changed metadata: for most kinds it validates more than once."""

    changes: int = 2
    """How often errors of immutable fields appear."""
    content: int = 3
    """How often errors of labels, annotations and owners appear."""
    finalizers: int = 1
    """How often errors of finalizers without a domain appear; 0: these are allowed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Resource:
    """One served resource in one version, as in discovery."""

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
    """Whether it has a status subresource."""
    scale: Scale | None = None
    subresources: tuple[str, ...] = ()
    """Further subresources that the core can serve: `eviction`, `binding`, `token`, `finalize`, `approval`."""
    storage: str = ""
    """The `group/version` in which objects are stored; empty: this version. Resources of one store share `storage_key`."""
    storage_key: str = ""
    """The name of its store; empty: `plural.group`. core events and events.k8s.io events share one."""
    generation: bool = True
    """Whether metadata.generation is maintained (false for ConfigMap, Secret, Event, ...)."""
    generation_fields: tuple[str, ...] = ()
    """Metadata fields that increase the generation when they change."""
    unconditional_update: bool = True
    """Whether PUT without resourceVersion is allowed (false for custom resources and a few built-ins)."""
    trusts_stored: bool = False
    """Whether errors of stored metadata are ignored in updates that do not change them: for objects that were loaded as they are."""
    create_on_update: bool = False
    """Whether PUT to a missing name creates the object (Lease, Event, ...)."""
    returns_deleted: bool = False
    """Whether DELETE answers with the object instead of a Status (Pod, Service, ServiceAccount, PVC, ...)."""
    orphans: bool = False
    """Whether a deletion without propagationPolicy orphans its dependents (Job, ReplicationController)."""
    grace: bool = False
    """Whether deletion is graceful (Pod): the object stays until its grace period is over or set to zero."""
    deprecation: str = ""
    """The text of the Warning header of a deprecated version."""
    checks: Checks = Checks()
    custom: bool = False
    """Whether a CRD defines it: strategic merge is refused, and unknown fields cause warnings by default."""
    handler: KindHandler = field(repr=False, compare=False)
    converter: Any = field(default=None, repr=False, compare=False)
    """The `conversion.Converter` of the kind; None: the handlers convert."""

    @property
    def gvk(self) -> GroupVersionKind:
        """Return group, version and kind."""
        return GroupVersionKind(self.group, self.version, self.kind)

    api_version: str = field(init=False, default="")
    """The apiVersion `group/version`."""

    def __post_init__(self) -> None:
        """Compute the values that every request needs."""
        object.__setattr__(self, "api_version", f"{self.group}/{self.version}" if self.group else self.version)
        if not self.storage_key:
            object.__setattr__(self, "storage_key", f"{self.plural}.{self.group}" if self.group else self.plural)
        if not self.storage:
            object.__setattr__(self, "storage", self.api_version)


class Allocator(Protocol):
    """Sets the fields of valid objects that only the server can choose."""

    def fill(self, obj: Json, old: Json | None, *, dry_run: bool) -> Sequence[FieldError]:
        """Fill in missing fields, in place. Return the errors in requested values. `old` is None for a new object."""


class KindHandler(Protocol):
    """The behaviour of one kind in one version. Objects are whole JSON objects with apiVersion and kind."""

    @property
    def gvk(self) -> GroupVersionKind:
        """Group, version and kind."""

    @property
    def schema(self) -> Any:
        """The compiled schema for managedfields, strategic merge and OpenAPI; opaque to the core."""

    @property
    def name_rule(self) -> NameRule:
        """The rule for metadata.name."""

    @property
    def selectable_fields(self) -> Mapping[str, tuple[str, ...]]:
        """The field selector labels beyond metadata.name/namespace: label -> path of keys in the object."""

    @property
    def columns(self) -> Sequence[Column]:
        """The columns of tables, after Name."""

    def decode(self, obj: Json, *, subresource: str = "") -> list[str]:
        """Adapt a decoded body to the kind, in place: drop unknown fields, coerce values as Go's decoder does.

        Returns the paths of dropped fields (`spec.nope`, `spec.list[0].nope`), in document order. `metadata` is included
        (unknown metadata fields are dropped and reported). Raises DecodeError when a value cannot be decoded at all
        (built-ins: any wrong type; custom resources: metadata only).
        """

    def default(self, obj: Json) -> None:
        """Fill in defaults, in place."""

    def prepare_for_create(self, obj: Json) -> None:
        """Reset or fill in fields on create (for example, drop status if there is a status subresource)."""

    def prepare_for_update(self, obj: Json, old: Json, *, subresource: str = "") -> None:
        """Reset fields on update: writes to the main resource keep the old status; writes to `status` keep all else.

        The core maintains metadata.generation.
        """

    def validate_create(self, obj: Json) -> Sequence[FieldError]:
        """Return all errors, except those of metadata, which all kinds have in common."""

    def validate_update(self, obj: Json, old: Json, *, subresource: str = "") -> Sequence[FieldError]:
        """Return all errors as `validate_create` does, with immutability and transition rules (ratcheting included)."""

    def warnings(self, obj: Json, old: Json | None) -> Sequence[str]:
        """Return the texts of Warning headers for an accepted object."""

    def convert(self, obj: Json, api_version: str) -> Json:
        """Return the stored object in another version of its kind (possibly `obj` itself, changed in place)."""

    def reset_fields(self, subresource: str = "") -> Sequence[tuple[str, ...]]:
        """Return paths that writes through this (sub)resource never own: managedfields removes them."""
