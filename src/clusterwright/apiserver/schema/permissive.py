"""A handler for kinds without a schema: everything is kept, only metadata must be well formed.

Used for kinds of offline worlds that come without a CRD.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from clusterwright.api.meta import GroupVersionKind, Json
from clusterwright.apiserver.interfaces import Checks, Column, KindHandler, NameRule, Resource, Scale
from clusterwright.apiserver.schema.kindschema import KindSchema
from clusterwright.apiserver.schema.structural import Node
from clusterwright.apiserver.status import FieldError

_SELECTABLE: Mapping[tuple[str, str], Mapping[str, tuple[str, ...]]] = {
    ("", "Pod"): {"spec.nodeName": ("spec", "nodeName"), "status.phase": ("status", "phase")},
    ("", "Node"): {"spec.unschedulable": ("spec", "unschedulable")},
    ("", "Secret"): {"type": ("type",)},
}


_OPEN: Mapping[str, Any] = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}


class PermissiveHandler:
    """A handler that keeps unknown fields and validates nothing."""

    name_rule: NameRule = "subdomain"
    columns: Sequence[Column] = (Column("Age", "date", json_path=".metadata.creationTimestamp"),)
    schema: KindSchema = KindSchema(node=Node({**_OPEN, "properties": {"spec": _OPEN, "status": _OPEN}}))
    """The merge type: maps are merged by key, lists as a whole; metadata as usual."""

    def __init__(self, gvk: GroupVersionKind, *, status: bool = True, schema: KindSchema | None = None) -> None:
        self.gvk = gvk
        if schema is not None:
            self.schema = schema
        if gvk.group == "rbac.authorization.k8s.io":
            self.name_rule = "path"  # kubeadm's own roles have colons in their names
        self.selectable_fields: Mapping[str, tuple[str, ...]] = _SELECTABLE.get((gvk.group, gvk.kind), {})
        self.status = status

    def decode(self, obj: Json, *, subresource: str = "") -> list[str]:
        """Return no unknown fields."""
        return []

    def default(self, obj: Json) -> None:
        """Set nothing."""

    def prepare_for_create(self, obj: Json) -> None:
        """Drop the status."""
        if self.status:
            obj.pop("status", None)

    def prepare_for_update(self, obj: Json, old: Json, *, subresource: str = "") -> None:
        """Keep the status in writes to the main resource, and everything else in writes to the status."""
        if not self.status:
            return
        if subresource == "status":
            status, meta = obj.get("status"), obj["metadata"]
            managed = meta.get("managedFields")
            obj.clear()
            obj.update({k: v for k, v in old.items() if k != "status"})
            obj["metadata"] = {**old["metadata"], "managedFields": managed} if managed is not None else dict(old["metadata"])
            if meta.get("resourceVersion"):
                obj["metadata"]["resourceVersion"] = meta["resourceVersion"]
            if status is not None:
                obj["status"] = status
        else:
            obj.pop("status", None)
            if "status" in old:
                obj["status"] = old["status"]

    def validate_create(self, obj: Json) -> Sequence[FieldError]:
        """Return no errors."""
        return ()

    def validate_update(self, obj: Json, old: Json, *, subresource: str = "") -> Sequence[FieldError]:
        """Return no errors."""
        return ()

    def warnings(self, obj: Json, old: Json | None) -> Sequence[str]:
        """Return no warnings."""
        return ()

    def convert(self, obj: Json, api_version: str) -> Json:
        """Return the object with another version."""
        obj["apiVersion"] = api_version
        return obj

    def reset_fields(self, subresource: str = "") -> Sequence[tuple[str, ...]]:
        """Return the fields of the other subresource."""
        if not self.status:
            return ()
        return (("spec",),) if subresource == "status" else (("status",),)


_check: type[KindHandler] = PermissiveHandler


def plural_of(kind: str) -> str:
    """Return the plural that Kubernetes' tools guess for a kind."""
    word = kind.lower()
    if word.endswith(("s", "x", "z", "ch", "sh")):
        return word + "es"
    if word.endswith("y") and word[-2:-1] not in {"a", "e", "i", "o", "u"}:
        return word[:-1] + "ies"
    return word + "s"


def permissive_resource(
    gvk: GroupVersionKind,
    *,
    plural: str = "",
    namespaced: bool = True,
    storage: str = "",
    status: bool = True,
    schema: KindSchema | None = None,
) -> Resource:
    """Return a served resource for a kind of which only its name, or its merge type, is known."""
    return Resource(
        trusts_stored=True,
        group=gvk.group,
        version=gvk.version,
        kind=gvk.kind,
        plural=plural or plural_of(gvk.kind),
        singular=gvk.kind.lower(),
        namespaced=namespaced,
        list_kind=gvk.kind + "List",
        status=status,
        scale=Scale(".spec.replicas", ".status.replicas", ".status.selector"),
        storage=storage,
        custom=True,
        checks=Checks(finalizers=0),
        unconditional_update=False,
        handler=PermissiveHandler(gvk, status=status, schema=schema),
    )
