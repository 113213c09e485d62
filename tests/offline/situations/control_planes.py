"""Situations of control planes, their etcd and what kubeadm keeps."""

from __future__ import annotations

import asyncio

from clusterwright.api.meta import GroupVersionKind, Json, ObjectKey
from clusterwright.simulation import samples
from clusterwright.simulation.plane import Plane
from offline.live import CONTROL_PLANE, DEPLOYMENT, DEV_CLUSTER, DEV_TEMPLATE, NAMESPACE, key, machines, whole
from offline.situations.making import NODE, definition, fault, the
from offline.situations.truth import BROKEN, Situation

_CONFIG_MAP = GroupVersionKind("", "v1", "ConfigMap")
_DEPLOYMENT = GroupVersionKind("apps", "v1", "Deployment")


async def upgrade(p: Plane) -> None:
    await p.client.patch(CONTROL_PLANE, key("c"), {"spec": {"version": "v1.35.0"}})


async def learner(p: Plane) -> None:
    """A new member is never promoted."""
    await p.client.patch(CONTROL_PLANE, key("c"), {"spec": {"replicas": 3}})
    before = set(await machines(p, control_plane=True))
    for _ in range(60):
        await asyncio.sleep(1)
        if new := set(await machines(p, control_plane=True)) - before:
            break
    for _ in range(60):
        try:
            await fault(p, next(iter(new)), "etcd-learner")
            return
        except Exception:
            await asyncio.sleep(0.2)


async def checked_alone(p: Plane) -> None:
    """A health check over a control plane of one whose kubelet stops."""
    check = samples.machine_health_check("c", "leaders", labels={})
    check["spec"]["selector"] = {"matchLabels": {"cluster.x-k8s.io/control-plane": ""}}
    check["spec"]["checks"]["unhealthyNodeConditions"] = [{"type": "Ready", "status": "Unknown", "timeoutSeconds": 5}]
    check["spec"]["remediation"] = {"triggerIf": {"unhealthyLessThanOrEqualTo": "100%"}}
    await p.apply([check])
    await asyncio.sleep(30)
    await fault(p, "leader", "kubelet-stops")


async def own_dns(p: Plane) -> None:
    """The image of CoreDNS has a tag that is no version, when the control plane is upgraded."""
    client = p.workload("c").client
    found = await client.find(_DEPLOYMENT, ObjectKey("kube-system", "coredns"))
    containers = [{"name": "coredns", "image": "registry.example.com/coredns:corp-patched"}]
    if found is None:
        template = {"metadata": {"labels": {"k8s-app": "kube-dns"}}, "spec": {"containers": containers}}
        spec = {"replicas": 2, "selector": {"matchLabels": {"k8s-app": "kube-dns"}}, "template": template}
        await client.create(
            {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "coredns", "namespace": "kube-system"}, "spec": spec}
        )
    else:
        await client.patch(_DEPLOYMENT, found.key, {"spec": {"template": {"spec": {"containers": containers}}}})
    if await client.find(_CONFIG_MAP, ObjectKey("kube-system", "coredns")) is None:
        await client.create(
            {
                "apiVersion": "v1",
                "kind": "ConfigMap",
                "metadata": {"name": "coredns", "namespace": "kube-system"},
                "data": {"Corefile": ".:53 {\n}\n"},
            }
        )
    await upgrade(p)


async def without_kubeadm_config(p: Plane) -> None:
    await p.workload("c").client.delete(_CONFIG_MAP, ObjectKey("kube-system", "kubeadm-config"))
    await upgrade(p)


async def node_deleted(p: Plane) -> None:
    """The kubelet of a worker stops, and somebody deletes its Node."""
    await fault(p, "worker", "kubelet-stops")
    await asyncio.sleep(10)
    await p.workload("c").client.delete(NODE, ObjectKey("", (await machines(p, control_plane=False))[0]))


async def unreachable_and_without_template(p: Plane) -> None:
    """Nobody reaches the API server; and a worker is wanted whose template is gone."""
    await p.client.delete(DEV_TEMPLATE, key("md"))
    await p.client.patch(DEPLOYMENT, key("md"), {"spec": {"replicas": 2}})
    await asyncio.sleep(30)
    await p.annotate(DEV_CLUSTER, "c", {"inmemory.clusterwright.dev/fault": "api-server-unreachable"})


async def external_without_secrets(p: Plane) -> None:
    """A cluster whose control plane somebody else runs, and whose Secrets nobody brought."""
    objects = whole()
    cluster: Json = the(objects, "Cluster")
    cluster["spec"].pop("controlPlaneRef")
    cluster["spec"]["controlPlaneEndpoint"] = {"host": "10.0.0.9", "port": 6443}
    kept = [o for o in objects if o["kind"] != "KubeadmControlPlane" and o["metadata"]["name"] != "c-control-plane"]
    await p.client.create(definition("HostedControlPlane", group="controlplane.cluster.x-k8s.io"))
    cluster["spec"]["controlPlaneRef"] = {"apiGroup": "controlplane.cluster.x-k8s.io", "kind": "HostedControlPlane", "name": "c"}
    hosted = {"apiVersion": "controlplane.cluster.x-k8s.io/v1beta2", "kind": "HostedControlPlane"}
    await p.apply([{**hosted, "metadata": {"name": "c", "namespace": NAMESPACE}, "spec": {"version": "v1.34.1"}}, *kept])
    ready = {"initialization": {"controlPlaneInitialized": True}, "version": "v1.34.1", "externalManagedControlPlane": True}
    await p.client.patch(
        GroupVersionKind("controlplane.cluster.x-k8s.io", "v1beta2", "HostedControlPlane"),
        key("c"),
        {"status": ready},
        subresource="status",
    )


SITUATIONS = [
    Situation(name="member stays a learner", make=learner, object="Machine/c-*|DevMachine/c-*", what="learner", who="etcd", next="promote|replace"),
    Situation(name="health check of a single leader", make=checked_alone, object="Machine/c-*", what="", next="scale up|repair",
              never="have it replaced", states=BROKEN),
    Situation(name="tag of CoreDNS is no version", make=own_dns, object="Deployment/coredns", field="spec.template.spec.containers*", what="corp-patched",
              who="Deployment kube-system/coredns", next="tag|image", states=BROKEN),
    Situation(name="kubeadm-config gone", make=without_kubeadm_config, object="ConfigMap/kubeadm-config", what="workload cluster",
              who="workload cluster", never="author of KubeadmControlPlane", states=BROKEN),
    Situation(name="Node deleted by hand", make=node_deleted, object="Machine/md-*", what="Node", next="delete the Machine|delete Machine",
              never="correct the spec", states=BROKEN),
    Situation(name="API server out of reach and a template missing", make=unreachable_and_without_template, object="Cluster/c", who="network|API server",
              states=BROKEN),
    Situation(name="control plane of others without Secrets", make=external_without_secrets, object="Secret/c-ca|Secret/c-kubeconfig", who="control plane",
              next="Secret", never="controller logs", needs_cluster=False, states=BROKEN),
]  # fmt: skip
