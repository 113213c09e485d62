"""The list of resources: model, group, version, kind, plural, scope, subresources, short names, categories."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from clusterwright.api import addons, bootstrap, controlplane, core, infrastructure, ipam, ippools, providers, runtime
from clusterwright.api import kubernetes as k8s
from clusterwright.api.meta import GroupVersionKind, Object


@dataclass(frozen=True, slots=True)
class Scale:
    """The paths of replicas and selector for the scale subresource."""

    spec_replicas: str = ".spec.replicas"
    status_replicas: str = ".status.replicas"
    selector: str = ".status.selector"


@dataclass(frozen=True)
class Resource:
    """A served kind."""

    gvk: GroupVersionKind
    plural: str
    namespaced: bool = True

    @property
    def group(self) -> str:
        """The API group, empty for the core group."""
        return self.gvk.group

    @property
    def version(self) -> str:
        """The API version."""
        return self.gvk.version

    @property
    def kind(self) -> str:
        """The kind."""
        return self.gvk.kind

    @property
    def singular(self) -> str:
        """The singular name."""
        return self.kind.lower()

    def path(self, namespace: str = "", name: str = "", subresource: str = "") -> str:
        """Return the path of the collection, of one object, or of its subresource. A namespace of a cluster-scoped kind is ignored."""
        gvk = self.gvk
        path = f"/apis/{gvk.group}/{gvk.version}" if gvk.group else f"/api/{gvk.version}"
        if self.namespaced and namespace:
            path += f"/namespaces/{namespace}"
        path += f"/{self.plural}"
        if name:
            path += f"/{name}"
        if subresource:
            path += f"/{subresource}"
        return path


@dataclass(frozen=True, kw_only=True)
class ModelledResource(Resource):
    """A kind with a model."""

    model: type[Object]
    short_names: tuple[str, ...] = ()
    status: bool = False
    scale: Scale | None = None


@lru_cache(maxsize=1024)
def gvk_of(kind: type[Object] | GroupVersionKind) -> GroupVersionKind:
    """Return the GroupVersionKind of a typed class (from its field defaults) or the argument itself; raises TypeError for other classes."""
    if isinstance(kind, GroupVersionKind):
        return kind
    defaults = dict(zip(reversed(kind.__struct_fields__), reversed(kind.__struct_defaults__), strict=False))
    api_version, name = defaults.get("api_version"), defaults.get("kind")
    if not isinstance(api_version, str) or not isinstance(name, str) or not name:
        raise TypeError(f"{kind.__name__} names no apiVersion and kind")
    return GroupVersionKind.of(api_version, name)


class Scheme:
    """Finds resources by model, by kind, and by plural."""

    def __init__(self, resources: Iterable[ModelledResource]) -> None:
        self.resources: tuple[ModelledResource, ...] = tuple(resources)
        self._by_model: Mapping[type[Any], ModelledResource] = {resource.model: resource for resource in self.resources}
        self._by_gvk = {resource.gvk: resource for resource in self.resources}
        self._by_plural = {(resource.group, resource.plural): resource for resource in self.resources}

    def of(self, model: type[Object]) -> ModelledResource:
        """Return the resource of a model; raises KeyError if it has none."""
        return self._by_model[model]

    def gvk(self, model: type[Object]) -> GroupVersionKind:
        """Return the kind of a model."""
        return self._by_model[model].gvk

    def by_gvk(self, gvk: GroupVersionKind) -> ModelledResource | None:
        """Return the resource of a kind."""
        return self._by_gvk.get(gvk)

    def by_plural(self, group: str, plural: str) -> ModelledResource | None:
        """Return the resource of a group and plural."""
        return self._by_plural.get((group, plural))

    def model(self, gvk: GroupVersionKind) -> type[Object] | None:
        """Return the model of a kind."""
        resource = self._by_gvk.get(gvk)
        return resource.model if resource else None


def _custom(
    model: type[Object], plural: str, *short: str, status: bool = False, scale: Scale | None = None, namespaced: bool = True
) -> ModelledResource:
    return ModelledResource(gvk_of(model), plural, namespaced, model=model, short_names=short, status=status, scale=scale)


CUSTOM: tuple[ModelledResource, ...] = (
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

BUILT_IN: tuple[ModelledResource, ...] = tuple(
    ModelledResource(gvk_of(model), plural, namespaced, model=model)
    for model, plural, namespaced in (
        (k8s.Namespace, "namespaces", False),
        (k8s.Secret, "secrets", True),
        (k8s.ConfigMap, "configmaps", True),
        (k8s.Node, "nodes", False),
        (k8s.Pod, "pods", True),
        (k8s.PersistentVolume, "persistentvolumes", False),
        (k8s.DaemonSet, "daemonsets", True),
        (k8s.Lease, "leases", True),
        (k8s.VolumeAttachment, "volumeattachments", False),
        (k8s.CustomResourceDefinition, "customresourcedefinitions", False),
        (k8s.MutatingWebhookConfiguration, "mutatingwebhookconfigurations", False),
        (k8s.ValidatingWebhookConfiguration, "validatingwebhookconfigurations", False),
    )
)
"""Built-in kinds with a model; `apiserver.builtins` defines how they are served."""

EMBEDDED: tuple[ModelledResource, ...] = (
    _custom(ippools.InClusterIPPool, "inclusterippools", status=True),
    _custom(ippools.GlobalInClusterIPPool, "globalinclusterippools", status=True, namespaced=False),
    _custom(providers.Provider, "providers", status=True),
)
"""Kinds that only the embedded plane serves. Elsewhere another provider brings their definitions and acts on them."""

SCHEME = Scheme(BUILT_IN + CUSTOM + EMBEDDED)
"""Every resource with a model."""
