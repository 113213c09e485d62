"""Sample clusters whose machines are containers: the usual samples with another backend and a Pod network. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from clusterwright.api.meta import Json

PODS = "10.244.0.0/16"
"""The Pod network. It does not overlap the ranges that engines give to their networks."""
BROUGHT = "/kind/manifests/default-cni.yaml"
"""The path of the CNI manifest in node images that contain a CNI."""
LABEL = "cni"
_CONFIGURATIONS = "/run/kubeadm/kubeadm.yaml /tmp/kubeadm.yml"  # paths in the node
"""The paths of kubeadm's configuration after its run on the first machine: by cloud-config, and by Ignition."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """The options of clusters whose machines are containers."""

    node_image: str = ""
    """The node image; empty: the plane's default for the Kubernetes version."""
    load_balancer_image: str = ""
    cni: str = ""
    """The manifests of a CNI; empty with `has_cni`: those in the node image."""
    has_cni: bool = True


def as_containers(objects: Sequence[Json], choice: Choice) -> list[Json]:
    """Return the objects of a sample made of containers instead of simulated machines."""
    changed = [_changed(obj, choice) for obj in objects]
    cluster = next(obj for obj in changed if obj["kind"] == "Cluster")
    return [*changed, *_applied(cluster, choice.cni)] if choice.cni else changed


def _changed(obj: Json, choice: Choice) -> Json:
    kind, spec = obj["kind"], obj["spec"]
    if kind == "Cluster":
        network = {**spec["clusterNetwork"], "pods": {"cidrBlocks": [PODS]}}
        metadata = obj["metadata"]
        if choice.cni:
            metadata = {**metadata, "labels": {**metadata.get("labels", {}), LABEL: metadata["name"]}}
        return {**obj, "metadata": metadata, "spec": {**spec, "clusterNetwork": network}}
    if kind in {"DevCluster", "DevClusterTemplate"}:
        return _with_backend(obj, {"loadBalancer": _image(choice.load_balancer_image)} if choice.load_balancer_image else {})
    if kind in {"DevMachine", "DevMachineTemplate", "DevMachinePool", "DevMachinePoolTemplate"}:
        return _with_backend(obj, {"customImage": choice.node_image} if choice.node_image else {})
    if kind in {"KubeadmControlPlane", "KubeadmControlPlaneTemplate"} and choice.has_cni and not choice.cni:
        return _with(obj, lambda content: {**content, "kubeadmConfigSpec": _with_brought_cni(content["kubeadmConfigSpec"])})
    return obj


def _with_backend(obj: Json, backend: Json) -> Json:
    return _with(obj, lambda content: {**content, "backend": {"docker": backend}})


def _with(obj: Json, change: Any) -> Json:
    """Return an object, or a template, with changed content."""
    spec = obj["spec"]
    if not obj["kind"].endswith("Template"):
        return {**obj, "spec": change(spec)}
    return {**obj, "spec": {**spec, "template": {**spec["template"], "spec": change(spec["template"]["spec"])}}}


def _image(reference: str) -> Json:
    """Return the fields of a load balancer's image."""
    head, colon, tag = reference.rpartition(":")
    return {"imageRepository": head, "imageTag": tag} if colon and "/" not in tag else {"imageRepository": reference}


def _with_brought_cni(spec: Json) -> Json:
    """Return the kubeadm configuration with a command that applies the node image's own CNI, on the first machine only."""
    kubectl = "kubectl --kubeconfig /etc/kubernetes/admin.conf apply -f -"
    # two braces side by side would be a template of cloud-init's
    missing = f"the node image brings no CNI in {BROUGHT}: create the cluster with --cni FILE or --cni none"
    command = (
        f"if grep -qs 'kind: InitConfiguration' {_CONFIGURATIONS}; then if [ -f {BROUGHT} ]; then "
        f"sed 's#[{{][{{][^}}]*PodSubnet[^}}]*[}}][}}]#{PODS}#' {BROUGHT} | {kubectl}; else echo 'error: {missing}' >&2; exit 1; fi; fi"
    )
    return {**spec, "postKubeadmCommands": [*spec.get("postKubeadmCommands", ()), command]}


def _applied(cluster: Json, manifests: str) -> list[Json]:
    """Return the objects that apply manifests to the cluster as soon as it answers."""
    name = f"{cluster['metadata']['name']}-cni"
    metadata = {"name": name, "namespace": cluster["metadata"]["namespace"]}
    selector = {"matchLabels": {LABEL: cluster["metadata"]["name"]}}
    resources = {"clusterSelector": selector, "resources": [{"kind": "ConfigMap", "name": name}]}
    return [
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"cni.yaml": manifests}},
        {"apiVersion": "addons.cluster.x-k8s.io/v1beta2", "kind": "ClusterResourceSet", "metadata": metadata, "spec": resources},
    ]
