"""Which resources there are: model, group, version, kind, plural, scope, subresources, short names, categories."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from clusterwright.api import addons, bootstrap, controlplane, core, infrastructure, ipam, runtime
from clusterwright.api import kubernetes as k8s
from clusterwright.api.meta import GroupVersionKind, Object


@dataclass(frozen=True, slots=True)
class Scale:
    """Where the scale subresource finds replicas and selector."""

    spec_replicas: str = ".spec.replicas"
    status_replicas: str = ".status.replicas"
    selector: str = ".status.selector"


@dataclass(frozen=True)
class Resource:
    """One kind as the API server serves it."""

    model: type[Object]
    plural: str
    namespaced: bool = True
    short_names: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    status: bool = False
    scale: Scale | None = None
    verbs: tuple[str, ...] = ("create", "delete", "deletecollection", "get", "list", "patch", "update", "watch")
    custom: bool = False
    """Served because a CustomResourceDefinition says so."""
    subresources: tuple[str, ...] = ()
    """Further subresources of built-ins, e.g. `eviction`."""

    @cached_property
    def gvk(self) -> GroupVersionKind:
        """Group, version and kind, as the model's defaults state them."""
        defaults = dict(
            zip(self.model.__struct_fields__[-len(self.model.__struct_defaults__) :], self.model.__struct_defaults__, strict=True)
        )
        return GroupVersionKind.of(defaults["api_version"], defaults["kind"])

    @property
    def group(self) -> str:
        """API group, empty for the core group."""
        return self.gvk.group

    @property
    def version(self) -> str:
        """API version."""
        return self.gvk.version

    @property
    def kind(self) -> str:
        """Kind."""
        return self.gvk.kind

    @property
    def singular(self) -> str:
        """Singular name."""
        return self.kind.lower()

    @property
    def list_kind(self) -> str:
        """Kind of a list of these."""
        return f"{self.kind}List"

    @property
    def collection_path(self) -> str:
        """Path of the collection over all namespaces."""
        prefix = f"/apis/{self.group}/{self.version}" if self.group else f"/api/{self.version}"
        return f"{prefix}/{self.plural}"

    def path(self, namespace: str = "", name: str = "", subresource: str = "") -> str:
        """Path of the collection, object or subresource; the namespace of a cluster-scoped kind is ignored."""
        return resource_path(self.group, self.version, self.plural, namespace if self.namespaced else "", name, subresource)


def resource_path(group: str, version: str, plural: str, namespace: str = "", name: str = "", subresource: str = "") -> str:
    """Path of a collection (no name), object or subresource."""
    parts = [f"/apis/{group}/{version}" if group else f"/api/{version}"]
    if namespace:
        parts.append(f"namespaces/{namespace}")
    parts.append(plural)
    if name:
        parts.append(name)
        if subresource:
            parts.append(subresource)
    return "/".join(parts)


class Scheme:
    """Looks resources up by model, by kind, and by plural."""

    def __init__(self, resources: Iterable[Resource]) -> None:
        self.resources: tuple[Resource, ...] = tuple(resources)
        self._by_model: Mapping[type[Any], Resource] = {resource.model: resource for resource in self.resources}
        self._by_gvk = {resource.gvk: resource for resource in self.resources}
        self._by_plural = {(resource.group, resource.plural): resource for resource in self.resources}

    def of(self, model: type[Object]) -> Resource:
        """The resource of a model; KeyError when it has none."""
        return self._by_model[model]

    def gvk(self, model: type[Object]) -> GroupVersionKind:
        """The kind of a model."""
        return self._by_model[model].gvk

    def by_gvk(self, gvk: GroupVersionKind) -> Resource | None:
        """The resource of a kind."""
        return self._by_gvk.get(gvk)

    def by_plural(self, group: str, plural: str) -> Resource | None:
        """The resource of a group and plural."""
        return self._by_plural.get((group, plural))

    def model(self, gvk: GroupVersionKind) -> type[Object] | None:
        """The model of a kind."""
        resource = self._by_gvk.get(gvk)
        return resource.model if resource else None


_CAPI = ("cluster-api",)
_REVIEW = ("create",)


def _custom(
    model: type[Object], plural: str, *short: str, status: bool = False, scale: Scale | None = None, namespaced: bool = True
) -> Resource:
    return Resource(model, plural, namespaced, short, _CAPI, status, scale, custom=True)


CUSTOM: tuple[Resource, ...] = (
    _custom(core.Cluster, "clusters", "cl", status=True),
    _custom(core.ClusterClass, "clusterclasses", "cc", status=True),
    _custom(core.Machine, "machines", "ma", status=True),
    _custom(core.MachineSet, "machinesets", "ms", status=True, scale=Scale()),
    _custom(core.MachineDeployment, "machinedeployments", "md", status=True, scale=Scale()),
    _custom(core.MachinePool, "machinepools", "mp", status=True, scale=Scale(selector="")),
    _custom(core.MachineHealthCheck, "machinehealthchecks", "mhc", "mhcs", status=True),
    _custom(core.MachineDrainRule, "machinedrainrules"),
    _custom(addons.ClusterResourceSet, "clusterresourcesets", status=True),
    _custom(addons.ClusterResourceSetBinding, "clusterresourcesetbindings"),
    _custom(runtime.ExtensionConfig, "extensionconfigs", "ext", status=True, namespaced=False),
    _custom(ipam.IPAddress, "ipaddresses"),
    _custom(ipam.IPAddressClaim, "ipaddressclaims", status=True),
    _custom(bootstrap.KubeadmConfig, "kubeadmconfigs", status=True),
    _custom(bootstrap.KubeadmConfigTemplate, "kubeadmconfigtemplates"),
    _custom(controlplane.KubeadmControlPlane, "kubeadmcontrolplanes", "kcp", status=True, scale=Scale()),
    _custom(controlplane.KubeadmControlPlaneTemplate, "kubeadmcontrolplanetemplates"),
    _custom(infrastructure.DevCluster, "devclusters", status=True),
    _custom(infrastructure.DevClusterTemplate, "devclustertemplates"),
    _custom(infrastructure.DevMachine, "devmachines", status=True),
    _custom(infrastructure.DevMachineTemplate, "devmachinetemplates", status=True),
    _custom(infrastructure.DevMachinePool, "devmachinepools", status=True),
    _custom(infrastructure.DevMachinePoolTemplate, "devmachinepooltemplates"),
)

BUILT_IN: tuple[Resource, ...] = (
    Resource(k8s.Namespace, "namespaces", False, ("ns",), status=True, subresources=("finalize",)),
    Resource(k8s.Secret, "secrets"),
    Resource(k8s.ConfigMap, "configmaps", short_names=("cm",)),
    Resource(k8s.Event, "events", short_names=("ev",)),
    Resource(k8s.ServiceAccount, "serviceaccounts", short_names=("sa",), subresources=("token",)),
    Resource(k8s.Service, "services", short_names=("svc",), categories=("all",), status=True),
    Resource(k8s.Endpoints, "endpoints", short_names=("ep",)),
    Resource(k8s.Node, "nodes", False, ("no",), status=True),
    Resource(
        k8s.Pod, "pods", short_names=("po",), categories=("all",), status=True, subresources=("eviction", "binding", "portforward", "log")
    ),
    Resource(k8s.PersistentVolume, "persistentvolumes", False, ("pv",), status=True),
    Resource(k8s.PersistentVolumeClaim, "persistentvolumeclaims", short_names=("pvc",), status=True),
    Resource(k8s.Deployment, "deployments", short_names=("deploy",), categories=("all",), status=True, scale=Scale(selector="")),
    Resource(k8s.DaemonSet, "daemonsets", short_names=("ds",), categories=("all",), status=True),
    Resource(k8s.ReplicaSet, "replicasets", short_names=("rs",), categories=("all",), status=True, scale=Scale(selector="")),
    Resource(k8s.StatefulSet, "statefulsets", short_names=("sts",), categories=("all",), status=True, scale=Scale(selector="")),
    Resource(k8s.ControllerRevision, "controllerrevisions"),
    Resource(k8s.Role, "roles"),
    Resource(k8s.RoleBinding, "rolebindings"),
    Resource(k8s.ClusterRole, "clusterroles", False),
    Resource(k8s.ClusterRoleBinding, "clusterrolebindings", False),
    Resource(k8s.PodDisruptionBudget, "poddisruptionbudgets", short_names=("pdb",), status=True),
    Resource(k8s.Lease, "leases"),
    Resource(k8s.EventsEvent, "events", short_names=("ev",)),
    Resource(k8s.StorageClass, "storageclasses", False, ("sc",)),
    Resource(k8s.VolumeAttachment, "volumeattachments", False, status=True),
    Resource(k8s.CSIDriver, "csidrivers", False),
    Resource(k8s.CSINode, "csinodes", False),
    Resource(
        k8s.CustomResourceDefinition,
        "customresourcedefinitions",
        False,
        ("crd", "crds"),
        ("api-extensions",),
        status=True,
    ),
    Resource(k8s.MutatingWebhookConfiguration, "mutatingwebhookconfigurations", False, categories=("api-extensions",)),
    Resource(k8s.ValidatingWebhookConfiguration, "validatingwebhookconfigurations", False, categories=("api-extensions",)),
    Resource(k8s.TokenReview, "tokenreviews", False, verbs=_REVIEW),
    Resource(k8s.SelfSubjectReview, "selfsubjectreviews", False, verbs=_REVIEW),
    Resource(k8s.SubjectAccessReview, "subjectaccessreviews", False, verbs=_REVIEW),
    Resource(k8s.SelfSubjectAccessReview, "selfsubjectaccessreviews", False, verbs=_REVIEW),
    Resource(k8s.SelfSubjectRulesReview, "selfsubjectrulesreviews", False, verbs=_REVIEW),
    Resource(k8s.LocalSubjectAccessReview, "localsubjectaccessreviews", verbs=_REVIEW),
)

SCHEME = Scheme(BUILT_IN + CUSTOM)
"""Every resource that has a model. Eviction, TokenRequest and Scale are bodies of subresources, not resources."""
