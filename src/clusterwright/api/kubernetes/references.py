"""References and selectors that several kinds share."""

from __future__ import annotations

from typing import Annotated, ClassVar

from clusterwright.api.constraints import ATOMIC, ATOMIC_MAP, REQUIRED, Default, Int32, Int64, Quantity
from clusterwright.api.kubernetes.base import Builtin
from clusterwright.api.meta import ALWAYS


class KeyToPath(Builtin):
    key: Annotated[str, ALWAYS, REQUIRED] = ""
    path: Annotated[str, ALWAYS, REQUIRED] = ""
    mode: Int32 | None = None
    user: Int64 | None = None


class LocalObjectReference(Builtin):
    constraints: ClassVar[tuple[object, ...]] = (ATOMIC_MAP,)

    name: Annotated[str, Default("")] = ""


class ObjectFieldSelector(Builtin):
    constraints: ClassVar[tuple[object, ...]] = (ATOMIC_MAP,)

    api_version: str = ""
    field_path: Annotated[str, ALWAYS, REQUIRED] = ""


class ResourceFieldSelector(Builtin):
    constraints: ClassVar[tuple[object, ...]] = (ATOMIC_MAP,)

    container_name: str = ""
    resource: Annotated[str, ALWAYS, REQUIRED] = ""
    divisor: Annotated[Quantity, ALWAYS] = "0"


class TypedLocalObjectReference(Builtin):
    constraints: ClassVar[tuple[object, ...]] = (ATOMIC_MAP,)

    api_group: str | None = None
    kind: Annotated[str, ALWAYS, REQUIRED] = ""
    name: Annotated[str, ALWAYS, REQUIRED] = ""


class TypedObjectReference(Builtin):
    api_group: str | None = None
    kind: Annotated[str, ALWAYS, REQUIRED] = ""
    name: Annotated[str, ALWAYS, REQUIRED] = ""
    namespace: str | None = None


class ConfigMapKeySelector(Builtin):
    constraints: ClassVar[tuple[object, ...]] = (ATOMIC_MAP,)

    name: Annotated[str, Default("")] = ""
    key: Annotated[str, ALWAYS, REQUIRED] = ""
    optional: bool | None = None


class SecretKeySelector(Builtin):
    constraints: ClassVar[tuple[object, ...]] = (ATOMIC_MAP,)

    name: Annotated[str, Default("")] = ""
    key: Annotated[str, ALWAYS, REQUIRED] = ""
    optional: bool | None = None


class FileKeySelector(Builtin):
    constraints: ClassVar[tuple[object, ...]] = (ATOMIC_MAP,)

    volume_name: Annotated[str, ALWAYS, REQUIRED] = ""
    path: Annotated[str, ALWAYS, REQUIRED] = ""
    key: Annotated[str, ALWAYS, REQUIRED] = ""
    optional: Annotated[bool | None, Default(False)] = None


class NodeSelectorRequirement(Builtin):
    key: Annotated[str, ALWAYS, REQUIRED] = ""
    operator: Annotated[str, ALWAYS, REQUIRED] = ""
    values: Annotated[tuple[str, ...], ATOMIC] = ()


class NodeSelectorTerm(Builtin):
    constraints: ClassVar[tuple[object, ...]] = (ATOMIC_MAP,)

    match_expressions: Annotated[tuple[NodeSelectorRequirement, ...], ATOMIC] = ()
    match_fields: Annotated[tuple[NodeSelectorRequirement, ...], ATOMIC] = ()


class NodeSelector(Builtin):
    constraints: ClassVar[tuple[object, ...]] = (ATOMIC_MAP,)

    node_selector_terms: Annotated[tuple[NodeSelectorTerm, ...], REQUIRED, ATOMIC] = ()


class ObjectReference(Builtin):
    constraints: ClassVar[tuple[object, ...]] = (ATOMIC_MAP,)

    kind: str = ""
    namespace: str = ""
    name: str = ""
    uid: str = ""
    api_version: str = ""
    resource_version: str = ""
    field_path: str = ""


class SecretReference(Builtin):
    constraints: ClassVar[tuple[object, ...]] = (ATOMIC_MAP,)

    name: str = ""
    namespace: str = ""
