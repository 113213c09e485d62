"""The handler of a built-in kind: Go's decoder as data, defaults and rules as functions."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any

from clusterwright.api.meta import GroupVersionKind, Json
from clusterwright.apiserver.interfaces import Column, DecodeError, KindHandler, NameRule
from clusterwright.apiserver.metadata import finalizer_problems
from clusterwright.apiserver.schema.customresource import AGE, keep_all_but_status
from clusterwright.apiserver.schema.gotypes import struct
from clusterwright.apiserver.schema.kindschema import KindSchema
from clusterwright.apiserver.status import FieldError, invalid

Rule = Callable[[Json], list[FieldError]]
UpdateRule = Callable[[Json, Json], list[FieldError]]
Change = Callable[[Json], None]
Cells = Callable[[Json, datetime], list[Any]]


class Builtin:
    """A `KindHandler` of a built-in kind."""

    def __init__(
        self,
        gvk: GroupVersionKind,
        go_type: str,
        *,
        status: bool = False,
        name_rule: NameRule = "subdomain",
        fit: Change | None = None,
        defaults: Change | None = None,
        on_create: Change | None = None,
        on_update: Callable[[Json, Json], None] | None = None,
        on_status: Change | None = None,
        validate: Rule | None = None,
        validate_update: UpdateRule | None = None,
        validate_status: UpdateRule | None = None,
        warn: Callable[[Json, Json | None], list[str]] | None = None,
        selectable: Mapping[str, tuple[str, ...]] | None = None,
        columns: Sequence[Column] = (),
        cells: Cells | None = None,
        reset: Sequence[tuple[str, ...]] = (),
        keeps_status: bool = False,
        status_keeps: Sequence[str] | None = (),
    ) -> None:
        """Create a handler. `status_keeps`: the metadata that a write to the status leaves unchanged; None: all of it."""
        self.gvk = gvk
        self.go_type = go_type
        self.schema = KindSchema(go_type=go_type)
        self.has_status = status
        self.name_rule: NameRule = name_rule
        self.selectable_fields: Mapping[str, tuple[str, ...]] = selectable or {}
        self.columns: Sequence[Column] = (*columns, AGE) if cells is None else columns
        self.cells = cells
        self._fit = fit
        self._defaults = defaults
        self._on_create = on_create
        self._on_update = on_update
        self._on_status = on_status
        self._validate = validate
        self._validate_update = validate_update
        self._validate_status = validate_status
        self._warn = warn
        self._reset = tuple(reset)
        self._keeps_status = keeps_status
        self._status_keeps = status_keeps

    def decode(self, obj: Json, *, subresource: str = "") -> list[str]:
        """Return the object as Go would write it after reading it, in place. Raises DecodeError."""
        unknown: list[str] = []
        kind, api_version = obj.pop("kind", None), obj.pop("apiVersion", None)
        for name, value in (("kind", kind), ("apiVersion", api_version)):
            if value is not None and not isinstance(value, str):
                raise DecodeError(f"json: cannot unmarshal value into Go struct field {self.gvk.kind}.{name} of type string")
        sent = (obj.get("metadata") or {}).get("managedFields") if isinstance(obj.get("metadata"), dict) else None
        made = struct(self.go_type).decode(obj, "", unknown)
        if sent == []:
            made["metadata"]["managedFields"] = []
        obj.clear()
        if kind is not None:
            obj["kind"] = kind
        if api_version is not None:
            obj["apiVersion"] = api_version
        obj.update(made)
        if self._fit is not None:
            self._fit(obj)
        return unknown

    def default(self, obj: Json) -> None:
        """Fill in defaults, in place."""
        if self._defaults is not None:
            self._defaults(obj)

    def prepare_for_create(self, obj: Json) -> None:
        """Reset the status, except for Nodes, which register themselves with it; then run the kind's strategy."""
        if self.has_status and not self._keeps_status:
            zero = struct(self.go_type).zero().get("status")
            if zero is None:
                obj.pop("status", None)
            else:
                obj["status"] = zero
        if self._on_create is not None:
            self._on_create(obj)

    def prepare_for_update(self, obj: Json, old: Json, *, subresource: str = "") -> None:
        """Keep the status in writes to the main resource, and everything else in writes to the status."""
        if subresource in ("status", "approval"):
            self._keep_for_status(obj, old)
            if self._on_status is not None:
                self._on_status(obj)
            return
        if self.has_status:
            if "status" in old:
                obj["status"] = old["status"]
            else:
                obj.pop("status", None)
        if self._on_update is not None and subresource != "finalize":  # which writes what updates keep
            self._on_update(obj, old)

    def _keep_for_status(self, obj: Json, old: Json) -> None:
        meta = obj["metadata"]
        keep_all_but_status(obj, old)
        if self._status_keeps is not None:
            kept = {name: old["metadata"].get(name) for name in self._status_keeps}
            obj["metadata"] = {k: v for k, v in {**meta, **kept}.items() if v is not None}

    def validate_create(self, obj: Json) -> Sequence[FieldError]:
        """Return the errors."""
        return self._validate(obj) if self._validate is not None else ()

    def validate_update(self, obj: Json, old: Json, *, subresource: str = "") -> Sequence[FieldError]:
        """Return the errors, with forbidden changes."""
        if subresource in ("status", "approval"):
            return self._validate_status(obj, old) if self._validate_status is not None else ()
        if subresource == "finalize":
            return namespace_finalizers(obj, indexed=True)
        errors: list[FieldError] = []
        if self._validate_update is not None:
            errors.extend(self._validate_update(obj, old))
        if self._validate is not None:
            errors.extend(self._validate(obj))
        return errors

    def warnings(self, obj: Json, old: Json | None) -> Sequence[str]:
        """Return the texts of Warning headers."""
        return self._warn(obj, old) if self._warn is not None else ()

    def convert(self, obj: Json, api_version: str) -> Json:
        """Return the object unchanged: built-ins have one version."""
        obj["apiVersion"] = api_version
        return obj

    def reset_fields(self, subresource: str = "") -> Sequence[tuple[str, ...]]:
        """Return the fields that writes through this (sub)resource never own."""
        if not self.has_status:
            return self._reset
        if subresource not in ("status", "approval"):
            return (("status",), *self._reset)
        kept = [("metadata",)] if self._status_keeps is None else [("metadata", name) for name in self._status_keeps]
        return (*kept, ("spec",))


def namespace_finalizers(obj: Json, *, indexed: bool = False) -> list[FieldError]:
    """Return the errors in a namespace's spec.finalizers."""
    return [
        invalid(f"spec.finalizers[{index}]" if indexed else "spec.finalizers", finalizer, problem)
        for index, finalizer in enumerate((obj.get("spec") or {}).get("finalizers") or ())
        for problem in finalizer_problems(finalizer)
    ]


_check: type[KindHandler] = Builtin
