"""ClusterResourceSet and its binding."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, ClassVar

from clusterwright.api.constraints import ATOMIC, REQUIRED, Doc, Items, Len, OneOf, Props
from clusterwright.api.meta import KEEP_EMPTY, Conditions, LabelSelector, Object, ObservedGeneration, Struct, V1Beta1Conditions


class ResourceRef(Struct):
    kind: Annotated[str, REQUIRED, OneOf("Secret", "ConfigMap"), Doc("The kind: Secret or ConfigMap.")] = ""
    name: Annotated[str, REQUIRED, Len(1, 253), Doc("The name of the Secret or ConfigMap.")] = ""


class ClusterResourceSetSpec(Struct):
    cluster_selector: Annotated[
        LabelSelector, REQUIRED, Doc("The labels of the Clusters that get the resources. It cannot be empty or changed.")
    ] = LabelSelector()
    resources: Annotated[
        tuple[ResourceRef, ...],
        REQUIRED,
        Items(1, 100),
        ATOMIC,
        Doc("The Secrets and ConfigMaps whose contents are applied. They are in the namespace of the ClusterResourceSet."),
    ] = ()
    strategy: Annotated[
        str,
        OneOf("ApplyOnce", "Reconcile"),
        Doc(
            "ApplyOnce applies the resources once; Reconcile applies them again when their contents change. "
            "The default is ApplyOnce. It cannot be changed."
        ),
    ] = ""


class ClusterResourceSetV1Beta1DeprecatedStatus(Struct):
    conditions: V1Beta1Conditions = ()


class ClusterResourceSetDeprecatedStatus(Struct):
    v1beta1: Annotated[ClusterResourceSetV1Beta1DeprecatedStatus | None, KEEP_EMPTY, Doc("The status of v1beta1.")] = None


class ClusterResourceSetStatus(Struct):
    constraints: ClassVar[tuple[object, ...]] = (Props(1),)

    conditions: Conditions = ()
    deprecated: Annotated[
        ClusterResourceSetDeprecatedStatus | None, KEEP_EMPTY, Doc("Status of older API versions, which is kept for conversion.")
    ] = None
    observed_generation: ObservedGeneration = 0


class ClusterResourceSet(Object):
    """Resources that are applied to every Cluster that a selector matches."""

    api_version: str = "addons.cluster.x-k8s.io/v1beta2"
    kind: str = "ClusterResourceSet"
    spec: Annotated[ClusterResourceSetSpec, REQUIRED, Doc("The desired state, which users set.")] = ClusterResourceSetSpec()
    status: Annotated[ClusterResourceSetStatus, Doc("The observed state, which controllers write.")] = ClusterResourceSetStatus()


class ResourceBinding(Struct):
    applied: Annotated[bool | None, REQUIRED, Doc("Whether the resource was applied.")] = None
    hash: Annotated[str, Len(1, 256), Doc("The hash of the contents that were applied.")] = ""
    kind: Annotated[str, REQUIRED, OneOf("Secret", "ConfigMap"), Doc("The kind: Secret or ConfigMap.")] = ""
    last_applied_time: Annotated[datetime | None, Doc("The time at which the resource was last applied.")] = None
    name: Annotated[str, REQUIRED, Len(1, 253), Doc("The name of the resource.")] = ""


class ResourceSetBinding(Struct):
    cluster_resource_set_name: Annotated[str, REQUIRED, Len(1, 253), Doc("The name of the ClusterResourceSet.")] = ""
    resources: Annotated[tuple[ResourceBinding, ...], Items(None, 100), ATOMIC, Doc("The state of each resource.")] = ()


class ClusterResourceSetBindingSpec(Struct):
    bindings: Annotated[
        tuple[ResourceSetBinding, ...],
        Items(None, 100),
        ATOMIC,
        Doc("The resources that were applied, one entry for each ClusterResourceSet."),
    ] = ()
    cluster_name: Annotated[
        str,
        REQUIRED,
        Len(1, 63),
        Doc("The name of the Cluster, which is also the name of this object. It cannot be changed once it is set."),
    ] = ""


class ClusterResourceSetBinding(Object):
    """The resources applied to one Cluster."""

    api_version: str = "addons.cluster.x-k8s.io/v1beta2"
    kind: str = "ClusterResourceSetBinding"
    spec: Annotated[ClusterResourceSetBindingSpec, REQUIRED, Doc("The desired state, which users set.")] = ClusterResourceSetBindingSpec()
