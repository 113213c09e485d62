"""Situations of references, the API server, rights and classes."""

from __future__ import annotations

import asyncio

from clusterwright.api.meta import Json
from clusterwright.simulation import samples
from clusterwright.simulation.plane import Plane
from offline.faults_of_neighbours import HOLD, config, extended, held_topology
from offline.live import CLUSTER, DEPLOYMENT, NAMESPACE, admitting, key
from offline.situations.making import INFRASTRUCTURE, definition, of_samples, the
from offline.situations.truth import BROKEN, WAITING, Situation


def config_in_other_group(objects: list[Json]) -> None:
    the(objects, "MachineDeployment")["spec"]["template"]["spec"]["bootstrap"]["configRef"]["apiGroup"] = INFRASTRUCTURE


def kind_with_a_typo(objects: list[Json]) -> None:
    the(objects, "Cluster")["spec"]["controlPlaneRef"]["kind"] = "KubeadmControlplane"


def provider_not_installed(objects: list[Json]) -> None:
    the(objects, "MachineDeployment")["spec"]["template"]["spec"]["infrastructureRef"]["kind"] = "AWSMachineTemplate"


async def conversion_down(p: Plane) -> None:
    """Objects of a kind are kept in a version that only a webhook, which is down, can convert."""
    crd = definition("ConvMachineTemplate", versions=("v1alpha1", "v1beta2"), labels={"cluster.x-k8s.io/v1beta2": "v1alpha1"})
    client = {"url": "https://127.0.0.1:9/convert"}
    crd["spec"]["conversion"] = {"strategy": "Webhook", "webhook": {"conversionReviewVersions": ["v1"], "clientConfig": client}}
    await p.client.create(crd)
    template = {
        "apiVersion": f"{INFRASTRUCTURE}/v1beta2",
        "kind": "ConvMachineTemplate",
        "metadata": {"name": "conv", "namespace": NAMESPACE},
    }
    await p.client.create({**template, "spec": {"template": {"spec": {}}}})
    reference = {"apiGroup": INFRASTRUCTURE, "kind": "ConvMachineTemplate", "name": "conv"}
    await p.client.patch(DEPLOYMENT, key("md"), {"spec": {"template": {"spec": {"infrastructureRef": reference}}}})


async def other_cluster(p: Plane) -> None:
    """A MachineDeployment of a Cluster that does not exist."""
    *templates, deployment = samples.workers("nowhere", "lost", replicas=1)
    await p.apply([*templates, deployment])


async def refused_by_schema(p: Plane) -> None:
    """A patch of the class gives the control plane what admission refuses."""
    patch = {"op": "add", "path": "/spec/template/spec/kubeadmConfigSpec/format", "value": "talos"}
    selector = {
        "apiVersion": "controlplane.cluster.x-k8s.io/v1beta2",
        "kind": "KubeadmControlPlaneTemplate",
        "matchResources": {"controlPlane": True},
    }
    patches = [{"name": "containerd-format", "definitions": [{"selector": selector, "jsonPatches": [patch]}]}]
    await p.apply([*samples.cluster_class(patches=patches), samples.topology("c")])


async def held_deletion(p: Plane) -> None:
    """Two extensions handle the hook; one holds the deletion."""
    await p.client.create(config())
    await asyncio.sleep(5)
    await p.apply([*samples.cluster_class(), held_topology()])
    await p.until_available("c", workers=1, within=600)
    other = config("other")
    other["spec"]["namespaceSelector"] = {"matchLabels": {"kubernetes.io/metadata.name": "elsewhere"}}
    await p.client.create(other)
    await asyncio.sleep(30)
    await p.client.patch(CLUSTER, key("c"), {"metadata": {"annotations": {HOLD: "BeforeClusterDelete"}}})
    await p.client.delete(CLUSTER, key("c"))


async def deferred(p: Plane) -> None:
    """An annotation holds the upgrade of workers."""
    made = samples.topology("c", version="v1.34.1")
    made["spec"]["topology"]["workers"]["machineDeployments"][0]["metadata"] = {
        "annotations": {"topology.cluster.x-k8s.io/defer-upgrade": ""}
    }
    await p.apply([*samples.cluster_class(), made])
    await p.until_available("c", workers=1, within=600)
    await asyncio.sleep(30)
    await p.client.patch(CLUSTER, key("c"), {"spec": {"topology": {"version": "v1.35.0"}}})


SITUATIONS = [
    Situation(
        name="bootstrap reference of another group", make=of_samples(config_in_other_group), object="MachineDeployment/md",
        field="spec.template.spec.bootstrap.configRef.apiGroup", who="MachineDeployment",
        next="bootstrap.cluster.x-k8s.io", needs_cluster=False,
    ),
    Situation(
        name="reference to a misspelt kind", make=of_samples(kind_with_a_typo), object="KubeadmControlplane/c",
        field="spec.controlPlaneRef", who="author of Cluster", needs_cluster=False,
    ),
    Situation(
        name="template of no provider", make=of_samples(provider_not_installed), object="AWSMachineTemplate/md",
        field="spec.template.spec.infrastructureRef", what="not installed", needs_cluster=False,
    ),
    Situation(
        name="conversion webhook down", make=conversion_down, object="CustomResourceDefinition/convmachinetemplates*",
        field="spec.conversion*", who="conversion webhook", next="conversion|bring it back", states=BROKEN,
    ),
    Situation(
        name="deployment of no Cluster", is_lost=True, make=other_cluster, object="Cluster/nowhere", field="spec.clusterName",
        who="author of MachineDeployment lost", subject="MachineDeployment/default/lost", states=BROKEN,
    ),
    Situation(
        name="patch of the class is refused", make=refused_by_schema, object="ClusterClass/in-memory", field="spec.patches*",
        who="author of ClusterClass in-memory|owner of ClusterClass in-memory", next="patch", needs_cluster=False, stage=admitting,
    ),
    Situation(
        name="one of two extensions holds the deletion", make=held_deletion, object="ExtensionConfig/ext", who="extension ext",
        what="BeforeClusterDelete", never="its log", states=WAITING, needs_cluster=False, stage=extended,
    ),
    Situation(
        name="upgrade of workers is deferred", make=deferred, object="Cluster/c", field="spec.topology.workers*",
        who="defer-upgrade", states=WAITING, needs_cluster=False, stage=admitting,
    ),
]  # fmt: skip
