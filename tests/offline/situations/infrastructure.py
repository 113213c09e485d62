"""Situations of infrastructure providers of others."""

from __future__ import annotations

from clusterwright.api.meta import GroupVersionKind, Json
from clusterwright.simulation.plane import Plane
from offline.live import NAMESPACE, key
from offline.situations.making import INFRASTRUCTURE, condition, provider_says, warn, with_provider
from offline.situations.truth import BROKEN, Make, Situation

_ACME = GroupVersionKind(INFRASTRUCTURE, "v1beta2", "AcmeMachine")
_OTHER = "infrastructure.acme.io"


async def duplicates(p: Plane) -> None:
    """Two machines of a provider report one providerID, which a Node has."""
    names = await with_provider(p, replicas=2)
    client = p.workload("c").client
    node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "acme-1"}, "spec": {"providerID": "acme://1"}}
    await client.create({**node, "status": {"conditions": [{"type": t, "status": s} for t, s in _HEALTHY]}})
    for name in names:
        await p.client.patch(_ACME, key(name), {"spec": {"providerID": "acme://1"}})
        await p.client.patch(_ACME, key(name), {"status": {"initialization": {"provisioned": True}}}, subresource="status")


_HEALTHY = (("Ready", "True"), ("MemoryPressure", "False"), ("DiskPressure", "False"), ("PIDPressure", "False"))


async def other_node(p: Plane) -> None:
    """The Node of a machine has another providerID than the machine."""
    (name,) = await with_provider(p)
    client = p.workload("c").client
    node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}, "spec": {"providerID": "acme:///zone-a/i-1"}}
    await client.create({**node, "status": {"conditions": [{"type": t, "status": s} for t, s in _HEALTHY]}})
    await p.client.patch(_ACME, key(name), {"spec": {"providerID": "acme:///i-1"}})
    await p.client.patch(_ACME, key(name), {"status": {"initialization": {"provisioned": True}}}, subresource="status")


async def only_events(p: Plane) -> None:
    """A machine of a group outside *.cluster.x-k8s.io tells its trouble by Events alone."""
    (name,) = await with_provider(p, "BareMachine", group=_OTHER)
    for n in range(20):
        about = {"apiVersion": f"{_OTHER}/v1beta2", "kind": "BareMachine", "namespace": NAMESPACE, "name": name}
        if n == 19:
            await warn(p, about, "AuthFailure", "credentials acme-login were refused: 401 Unauthorized")
        await p.clock.sleep(30)


async def scaled_to_zero(p: Plane) -> None:
    """The provider's Deployment has no replicas."""
    labels = {"cluster.x-k8s.io/provider": "infrastructure-acme"}
    metadata = {"name": "capacme-controller-manager", "namespace": "capacme-system", "labels": labels}
    await p.client.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "capacme-system"}})
    container = {"name": "manager", "image": "acme:1"}
    template = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [container]}}
    spec = {"replicas": 0, "selector": {"matchLabels": {"a": "b"}}, "template": template}
    await p.client.create({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata, "spec": spec})
    await with_provider(p, labels={"cluster.x-k8s.io/v1beta2": "v1beta2", "cluster.x-k8s.io/provider": "infrastructure-acme"})


async def stale(p: Plane) -> None:
    """A provider stopped before the last change of a machine."""
    (name,) = await with_provider(p)
    waiting = condition("Ready", "Unknown", "Pending", "instance i-0123 is pending", observedGeneration=1)
    await p.client.patch(_ACME, key(name), {"status": {"observedGeneration": 1, "conditions": [waiting]}}, subresource="status")
    await p.client.patch(_ACME, key(name), {"spec": {"flavor": "large"}})


async def untaught(p: Plane) -> None:
    """A kind whose CRD has no contract label."""
    await with_provider(p, labels={})


def says_ready_false(reason: str, message: str) -> Make:
    return provider_says({"conditions": [condition("Ready", "False", reason, message)]})


def old(status: Json) -> Make:
    return provider_says(status, kind="OldMachine", labels={"cluster.x-k8s.io/v1beta1": "v1beta2"})


_NAME = "AcmeMachine/acme-*"
SITUATIONS = [
    Situation(name="two machines with one providerID", make=duplicates, object=_NAME, field="spec.providerID", who="provider", what="acme://1", states=BROKEN),
    Situation(name="Node with another providerID", make=other_node, object=f"{_NAME}|Machine/acme-*", field="spec.providerID", who="provider",
              what="acme:///zone-a/i-1", next="providerID"),
    Situation(name="credentials refused, told by Events alone", make=only_events, object="BareMachine/acme-*", what="credentials acme-login were refused",
              never="nothing has reconciled", states=BROKEN, after=5),
    Situation(name="Deployment of the provider without replicas", make=scaled_to_zero, object=_NAME, who="capacme-controller-manager|runs the management cluster",
              what="capacme-controller-manager", next="scale|replicas", states=BROKEN),
    Situation(name="status of an older generation", make=stale, object=_NAME, field="status.observedGeneration", what="observedGeneration|generation", who="provider",
              states=BROKEN),
    Situation(name="failureMessage beside failureReason",
              make=old({"failureReason": "CreateError", "failureMessage": "InsufficientInstanceCapacity: no capacity in zone a"}),
              object="OldMachine/acme-*", field="status.failureMessage", what="InsufficientInstanceCapacity", states=BROKEN),
    Situation(name="addresses of another shape",
              make=provider_says({"initialization": {"provisioned": True}, "addresses": ["10.0.0.1"]}, {"providerID": "acme://2"}),
              object=_NAME, field="status.addresses", who="authors of", states=BROKEN),
    Situation(name="provisioned without providerID", make=provider_says({"initialization": {"provisioned": True}}), object=_NAME,
              field="spec.providerID", who="authors of", states=BROKEN),
    Situation(name="provisioned is a string", make=provider_says({"initialization": {"provisioned": "true"}}), object=_NAME,
              field="status.initialization.provisioned", who="authors of", states=BROKEN),
    Situation(name="only the field of the old contract", make=provider_says({"ready": True}), object=_NAME,
              field="status.initialization.provisioned", who="authors of", states=BROKEN),
    Situation(name="kind without a contract", make=untaught, object="CustomResourceDefinition/acmemachines*|CustomResourceDefinition/acmemachinetemplates*",
              next="label", states=BROKEN),
    Situation(name="image not found", make=says_ready_false("ImageNotFound", "image capi-ubuntu-2404 was not found in project infra"),
              object=_NAME, what="capi-ubuntu-2404", states=BROKEN),
    Situation(name="quota of the cloud", make=says_ready_false("CreateFailed", "VcpuLimitExceeded: you have requested more vCPU than your limit of 32"),
              object=_NAME, what="VcpuLimitExceeded", who="infrastructure provider|quota", states=BROKEN),
    Situation(name="provider that never answers", make=provider_says({}), object=_NAME, who="runs the management cluster", what="nothing has reconciled it",
              states=BROKEN),
    Situation(name="instance pending for long", make=provider_says({"conditions": [condition("Ready", "False", "Pending", "waiting for the instance to boot")]}),
              object=_NAME, who="infrastructure provider"),
]  # fmt: skip
