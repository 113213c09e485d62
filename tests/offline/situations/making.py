"""What situations are made of: changed samples, kinds of another provider, Pods of the workload cluster."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

from clusterwright.api.contract import pluralize
from clusterwright.api.meta import GroupVersionKind, Json, ObjectKey
from clusterwright.inmemory.faults import FAULT
from clusterwright.simulation.plane import Plane
from offline.live import DEPLOYMENT, DEV_MACHINE, MACHINE, NAMESPACE, key, machines, whole
from offline.situations.truth import Make

INFRASTRUCTURE = "infrastructure.cluster.x-k8s.io"
NODE = GroupVersionKind("", "v1", "Node")
POD = GroupVersionKind("", "v1", "Pod")
LATER = "2026-01-01T00:00:00Z"


def of_samples(change: Callable[[list[Json]], None]) -> Make:
    """A cluster that is made from changed samples."""

    async def make(p: Plane) -> None:
        objects = copy.deepcopy(whole())
        change(objects)
        await p.apply(objects)

    return make


def the(objects: list[Json], kind: str, name: str = "") -> Json:
    """Return one of the objects."""
    return next(o for o in objects if o["kind"] == kind and name in {"", o["metadata"]["name"]})


def patched(*patches: tuple[GroupVersionKind, str, Json]) -> Make:
    """Objects that are changed, one after the other."""

    async def make(p: Plane) -> None:
        for kind, name, patch in patches:
            await p.client.patch(kind, key(await named(p, name)), patch)

    return make


async def named(p: Plane, name: str) -> str:
    """Return the name; `worker` and `leader` stand for the first Machines."""
    return (await machines(p, control_plane=name == "leader"))[0] if name in {"worker", "leader"} else name


async def scale(p: Plane, replicas: int) -> None:
    """Ask for so many workers."""
    await p.client.patch(DEPLOYMENT, key("md"), {"spec": {"replicas": replicas}})


async def fault(p: Plane, name: str, what: str) -> None:
    """Inject a fault into a machine."""
    await p.annotate(DEV_MACHINE, await named(p, name), {FAULT: what})


# ------------------------------------------------------------------------------------------- another provider


def definition(kind: str, *, group: str = INFRASTRUCTURE, labels: Json | None = None, versions: tuple[str, ...] = ("v1beta2",)) -> Json:
    """Return the CRD of a kind that keeps whatever it is given."""
    plural = pluralize(kind.lower())
    schema = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
    made = [{"name": v, "served": True, "storage": v == versions[-1], "schema": schema, "subresources": {"status": {}}} for v in versions]
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{group}", "labels": labels if labels is not None else {"cluster.x-k8s.io/v1beta2": versions[-1]}},
        "spec": {
            "group": group,
            "names": {"kind": kind, "plural": plural, "singular": kind.lower(), "listKind": f"{kind}List"},
            "scope": "Namespaced",
            "versions": made,
        },
    }


async def with_provider(
    p: Plane,
    kind: str = "AcmeMachine",
    *,
    group: str = INFRASTRUCTURE,
    labels: Json | None = None,
    replicas: int = 1,
    spec: Json | None = None,
) -> list[str]:
    """Have a MachineDeployment `acme` of another provider's machines, and return their names."""
    for one in (kind, f"{kind}Template"):
        await p.client.create(definition(one, group=group, labels=labels))
    template = {"apiVersion": f"{group}/v1beta2", "kind": f"{kind}Template", "metadata": {"name": "acme", "namespace": NAMESPACE}}
    await p.client.create({**template, "spec": {"template": {"spec": spec or {}}}})
    deployment = copy.deepcopy(the(whole(), "MachineDeployment"))
    deployment["metadata"]["name"] = "acme"
    labelled = {"cluster.x-k8s.io/cluster-name": "c", "pool": "acme"}
    deployment["spec"] |= {"replicas": replicas, "selector": {"matchLabels": labelled}}
    deployment["spec"]["template"]["metadata"]["labels"] = labelled
    deployment["spec"]["template"]["spec"]["infrastructureRef"] = {"apiGroup": group, "kind": f"{kind}Template", "name": "acme"}
    await p.client.create(deployment)
    await p.clock.sleep(20)
    return sorted(o.metadata.name for o in await p.client.list(GroupVersionKind(group, "v1beta2", kind), namespace=NAMESPACE))


def provider_says(
    status: Json, spec: Json | None = None, *, kind: str = "AcmeMachine", group: str = INFRASTRUCTURE, **options: Any
) -> Make:
    """Another provider's machines that all report the same."""

    async def make(p: Plane) -> None:
        gvk = GroupVersionKind(group, "v1beta2", kind)
        for name in await with_provider(p, kind, group=group, **options):
            if spec:
                await p.client.patch(gvk, key(name), {"spec": spec})
            if status:
                await p.client.patch(gvk, key(name), {"status": status}, subresource="status")

    return make


def condition(type: str, status: str, reason: str, message: str = "", **more: Any) -> Json:
    """Return a condition that has been so for long."""
    return {"type": type, "status": status, "reason": reason, "message": message, "lastTransitionTime": LATER, **more}


async def warn(p: Plane, involved: Json, reason: str, message: str) -> None:
    """Write a Warning Event about an object."""
    now = f"{p.clock.now():%Y-%m-%dT%H:%M:%SZ}"
    metadata = {"name": f"{involved['name']}.{reason.lower()}", "namespace": NAMESPACE}
    told = {"type": "Warning", "reason": reason, "message": message, "firstTimestamp": now, "lastTimestamp": now, "count": 1}
    await p.client.create({"apiVersion": "v1", "kind": "Event", "metadata": metadata, "involvedObject": involved, **told})


# ----------------------------------------------------------------------------------------- the workload cluster


async def pod(p: Plane, name: str, namespace: str = NAMESPACE, labels: Json | None = None, **spec: Any) -> None:
    """Have a Pod run on the worker's Node, in a Namespace that is there."""
    client = p.workload("c").client
    if await client.find(GroupVersionKind("", "v1", "Namespace"), ObjectKey("", namespace)) is None:
        await client.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}})
    node = await named(p, "worker")
    metadata: Json = {"name": name, "namespace": namespace, "labels": labels or {"app": name}}
    metadata |= {"finalizers": spec.pop("finalizers")} if "finalizers" in spec else {}
    content = {"nodeName": node, "containers": [{"name": "c", "image": "db:1"}], **spec}
    await client.create({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": content})
    running = {"status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}}
    await client.patch(POD, ObjectKey(namespace, name), running, subresource="status")


async def budget(p: Plane, name: str, namespace: str = NAMESPACE) -> None:
    """Let no Pod of an app go."""
    spec = {"minAvailable": 1, "selector": {"matchLabels": {"app": name}}}
    metadata = {"name": f"{name}-pdb", "namespace": namespace}
    made = {"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": metadata, "spec": spec}
    await p.workload("c").client.create(made)


async def drained(p: Plane) -> None:
    """Delete the worker."""
    await p.client.delete(MACHINE, key(await named(p, "worker")))
