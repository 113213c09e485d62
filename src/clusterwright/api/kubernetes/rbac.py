"""rbac.authorization.k8s.io/v1."""

from __future__ import annotations

from typing import Annotated, ClassVar

import msgspec

from clusterwright.api.constraints import ATOMIC, ATOMIC_MAP, REQUIRED
from clusterwright.api.kubernetes.base import Builtin
from clusterwright.api.meta import ALWAYS, LabelSelector, Object


class PolicyRule(Builtin):
    verbs: Annotated[tuple[str, ...], REQUIRED, ATOMIC] = ()
    api_groups: Annotated[tuple[str, ...], ATOMIC] = ()
    resources: Annotated[tuple[str, ...], ATOMIC] = ()
    resource_names: Annotated[tuple[str, ...], ATOMIC] = ()
    non_resource_urls: Annotated[tuple[str, ...], ATOMIC] = msgspec.field(name="nonResourceURLs", default=())


class Role(Object):
    """rbac.authorization.k8s.io/v1 Role."""

    omit_zero: ClassVar[bool] = False

    api_version: str = "rbac.authorization.k8s.io/v1"
    kind: str = "Role"
    rules: Annotated[tuple[PolicyRule, ...], ATOMIC] = ()


class AggregationRule(Builtin):
    cluster_role_selectors: Annotated[tuple[LabelSelector, ...], ATOMIC] = ()


class ClusterRole(Object):
    """rbac.authorization.k8s.io/v1 ClusterRole."""

    omit_zero: ClassVar[bool] = False

    api_version: str = "rbac.authorization.k8s.io/v1"
    kind: str = "ClusterRole"
    rules: Annotated[tuple[PolicyRule, ...], ATOMIC] = ()
    aggregation_rule: AggregationRule | None = None


class Subject(Builtin):
    constraints: ClassVar[tuple[object, ...]] = (ATOMIC_MAP,)

    kind: Annotated[str, ALWAYS, REQUIRED] = ""
    api_group: str = ""
    name: Annotated[str, ALWAYS, REQUIRED] = ""
    namespace: str = ""


class RoleRef(Builtin):
    constraints: ClassVar[tuple[object, ...]] = (ATOMIC_MAP,)

    api_group: Annotated[str, ALWAYS] = ""
    kind: Annotated[str, ALWAYS, REQUIRED] = ""
    name: Annotated[str, ALWAYS, REQUIRED] = ""


class RoleBinding(Object):
    """rbac.authorization.k8s.io/v1 RoleBinding."""

    omit_zero: ClassVar[bool] = False

    api_version: str = "rbac.authorization.k8s.io/v1"
    kind: str = "RoleBinding"
    subjects: Annotated[tuple[Subject, ...], ATOMIC] = ()
    role_ref: Annotated[RoleRef, ALWAYS, REQUIRED] = RoleRef()


class ClusterRoleBinding(Object):
    """rbac.authorization.k8s.io/v1 ClusterRoleBinding."""

    omit_zero: ClassVar[bool] = False

    api_version: str = "rbac.authorization.k8s.io/v1"
    kind: str = "ClusterRoleBinding"
    subjects: Annotated[tuple[Subject, ...], ATOMIC] = ()
    role_ref: Annotated[RoleRef, ALWAYS, REQUIRED] = RoleRef()
