"""References and selectors that several kinds share."""

from __future__ import annotations

from typing import Annotated, ClassVar

from clusterwright.api.constraints import ATOMIC, ATOMIC_MAP, REQUIRED, Default, Doc, Int32, Int64, Quantity
from clusterwright.api.kubernetes.base import Builtin
from clusterwright.api.meta import ALWAYS


class KeyToPath(Builtin):
    key: Annotated[str, ALWAYS, REQUIRED] = ""
    path: Annotated[str, ALWAYS, REQUIRED] = ""
    mode: Int32 | None = None
    user: Int64 | None = None


class LocalObjectReference(Builtin):
    constraints: ClassVar[tuple[object, ...]] = (ATOMIC_MAP,)

    name: Annotated[str, Default(""), Doc("name of the object")] = ""


class ObjectFieldSelector(Builtin):
    constraints: ClassVar[tuple[object, ...]] = (ATOMIC_MAP,)

    api_version: Annotated[str, Doc("version that fieldPath is written in")] = ""
    field_path: Annotated[str, ALWAYS, REQUIRED, Doc("path of the field")] = ""


class ResourceFieldSelector(Builtin):
    constraints: ClassVar[tuple[object, ...]] = (ATOMIC_MAP,)

    container_name: Annotated[str, Doc("name of the container")] = ""
    resource: Annotated[str, ALWAYS, REQUIRED, Doc("name of the resource")] = ""
    divisor: Annotated[Quantity, ALWAYS, Doc("unit that the value is given in")] = "0"


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

    name: Annotated[str, Default(""), Doc("name of the ConfigMap")] = ""
    key: Annotated[str, ALWAYS, REQUIRED, Doc("key in the ConfigMap")] = ""
    optional: Annotated[bool | None, Doc("whether it may be missing")] = None


class SecretKeySelector(Builtin):
    constraints: ClassVar[tuple[object, ...]] = (ATOMIC_MAP,)

    name: Annotated[str, Default(""), Doc("name of the Secret")] = ""
    key: Annotated[str, ALWAYS, REQUIRED, Doc("key in the Secret")] = ""
    optional: Annotated[bool | None, Doc("whether it may be missing")] = None


class FileKeySelector(Builtin):
    constraints: ClassVar[tuple[object, ...]] = (ATOMIC_MAP,)

    volume_name: Annotated[str, ALWAYS, REQUIRED, Doc("name of the volume")] = ""
    path: Annotated[str, ALWAYS, REQUIRED, Doc("path of the file in the volume")] = ""
    key: Annotated[str, ALWAYS, REQUIRED, Doc("key in the file")] = ""
    optional: Annotated[bool | None, Default(False), Doc("whether it may be missing")] = None


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

    kind: Annotated[str, Doc("kind of the object")] = ""
    namespace: Annotated[str, Doc("its namespace")] = ""
    name: Annotated[str, Doc("its name")] = ""
    uid: Annotated[str, Doc("its uid")] = ""
    api_version: Annotated[str, Doc("its group and version")] = ""
    resource_version: Annotated[str, Doc("its resourceVersion")] = ""
    field_path: Annotated[str, Doc("the part of it that is meant")] = ""


class SecretReference(Builtin):
    constraints: ClassVar[tuple[object, ...]] = (ATOMIC_MAP,)

    name: str = ""
    namespace: str = ""
