"""ClusterResourceSet and its binding."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, ClassVar

from clusterwright.api.constraints import ATOMIC, REQUIRED, Doc, Items, Len, OneOf, Props
from clusterwright.api.meta import KEEP_EMPTY, Conditions, LabelSelector, Object, ObservedGeneration, Struct, V1Beta1Conditions


class ResourceRef(Struct):
    kind: Annotated[str, REQUIRED, OneOf("Secret", "ConfigMap"), Doc("Secret or ConfigMap")] = ""
    name: Annotated[str, REQUIRED, Len(1, 253), Doc("object name")] = ""


class ClusterResourceSetSpec(Struct):
    cluster_selector: Annotated[LabelSelector, REQUIRED, Doc("immutable, non-empty")] = LabelSelector()
    resources: Annotated[tuple[ResourceRef, ...], REQUIRED, Items(1, 100), ATOMIC, Doc("payload objects in the CRS namespace")] = ()
    strategy: Annotated[
        str, OneOf("ApplyOnce", "Reconcile"), Doc("immutable; defaulted to ApplyOnce; Reconcile re-applies on hash change")
    ] = ""


class ClusterResourceSetV1Beta1DeprecatedStatus(Struct):
    conditions: V1Beta1Conditions = ()


class ClusterResourceSetDeprecatedStatus(Struct):
    v1beta1: Annotated[ClusterResourceSetV1Beta1DeprecatedStatus | None, KEEP_EMPTY, Doc("legacy v1beta1 status block")] = None


class ClusterResourceSetStatus(Struct):
    constraints: ClassVar[tuple[object, ...]] = (Props(1),)

    conditions: Conditions = ()
    deprecated: Annotated[
        ClusterResourceSetDeprecatedStatus | None, KEEP_EMPTY, Doc("container for legacy-only status; kept for v1beta1 round trips")
    ] = None
    observed_generation: ObservedGeneration = 0


class ClusterResourceSet(Object):
    """Resources that are applied to every Cluster that a selector matches."""

    api_version: str = "addons.cluster.x-k8s.io/v1beta2"
    kind: str = "ClusterResourceSet"
    spec: Annotated[ClusterResourceSetSpec, REQUIRED, Doc("desired state")] = ClusterResourceSetSpec()
    status: Annotated[ClusterResourceSetStatus, Doc("observed state")] = ClusterResourceSetStatus()


class ResourceBinding(Struct):
    applied: Annotated[bool | None, REQUIRED, Doc("whether it has been applied")] = None
    hash: Annotated[str, Len(1, 256), Doc("hash of the applied payload")] = ""
    kind: Annotated[str, REQUIRED, OneOf("Secret", "ConfigMap"), Doc("Secret or ConfigMap")] = ""
    last_applied_time: Annotated[datetime | None, Doc("when it was applied last")] = None
    name: Annotated[str, REQUIRED, Len(1, 253), Doc("name of the resource")] = ""


class ResourceSetBinding(Struct):
    cluster_resource_set_name: Annotated[str, REQUIRED, Len(1, 253), Doc("CRS name")] = ""
    resources: Annotated[tuple[ResourceBinding, ...], Items(None, 100), ATOMIC, Doc("per-resource record")] = ()


class ClusterResourceSetBindingSpec(Struct):
    bindings: Annotated[tuple[ResourceSetBinding, ...], Items(None, 100), ATOMIC, Doc("one entry per CRS")] = ()
    cluster_name: Annotated[str, REQUIRED, Len(1, 63), Doc("immutable once set; object name equals the Cluster name")] = ""


class ClusterResourceSetBinding(Object):
    """The resources applied to one Cluster."""

    api_version: str = "addons.cluster.x-k8s.io/v1beta2"
    kind: str = "ClusterResourceSetBinding"
    spec: Annotated[ClusterResourceSetBindingSpec, REQUIRED, Doc("desired state")] = ClusterResourceSetBindingSpec()
