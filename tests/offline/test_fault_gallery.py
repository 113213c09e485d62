"""A gallery of faults in a live plane, in virtual time: what was done is written down first, then the verdict is asked for.

Each fault says what it breaks and who must act. The verdict is asked for after 5 s, 60 s and 10 min: it never claims an absence that
is none; at 60 s it names the true object. A fixed third is played by `make test`, all by `make soak`.
"""

from __future__ import annotations

import asyncio
import fnmatch
from collections.abc import Callable

import pytest

from clusterwright.api.meta import GroupVersionKind, Json, ObjectKey
from clusterwright.inmemory.faults import FAULT
from clusterwright.offline.verdict import Verdict
from clusterwright.runtime.clock import LoopClock
from clusterwright.simulation import samples
from clusterwright.simulation.loop import run_virtual
from clusterwright.simulation.plane import Plane, plane
from clusterwright.simulation.world import START
from offline import faults_of_kinds, faults_of_neighbours
from offline.faulty import BAD, PAUSED, SLOW, Fault, Make, in_cluster
from offline.live import (
    CLUSTER,
    CONFIG_TEMPLATE,
    CONTROL_PLANE,
    CRD,
    DEPLOYMENT,
    DEV_CLUSTER,
    DEV_MACHINE,
    DEV_TEMPLATE,
    MACHINE,
    NAMESPACE,
    SECRET,
    admitting,
    key,
    lived,
    look,
    machines,
    whole,
)
from support.moments import Moment

HOOK = "pre-drain.delete.hook.machine.cluster.x-k8s.io/backup"


def annotated(fault: str, *, control_plane: bool) -> Make:
    @in_cluster
    async def make(p: Plane) -> None:
        name = (await machines(p, control_plane=control_plane))[0]
        await p.annotate(DEV_MACHINE, name, {FAULT: fault})

    return make


def unmade(kind: GroupVersionKind, name: str, *, then: Json | None = None) -> Make:
    """An object that is deleted in a cluster that is up; `then` the spec of the MachineDeployment is changed."""

    @in_cluster
    async def make(p: Plane) -> None:
        await p.client.delete(kind, key(name))
        if then is not None:
            await p.client.patch(DEPLOYMENT, key("md"), {"spec": then})

    return make


def changed(kind: GroupVersionKind, name: str, patch: Json) -> Make:
    @in_cluster
    async def make(p: Plane) -> None:
        await p.client.patch(kind, key(name), patch)

    return make


def without(kind: str, name: str) -> Make:
    """A cluster of which one object was never made."""

    async def make(p: Plane) -> None:
        await p.apply([o for o in whole() if (o["kind"], o["metadata"]["name"]) != (kind, name)])

    return make


def held(kind: GroupVersionKind, which: str, *, whole_cluster: bool = False) -> Make:
    """An object whose deletion a finalizer of somebody else holds up; `which` may be `worker`, for its Machine's name."""

    @in_cluster
    async def make(p: Plane) -> None:
        name = (await machines(p, control_plane=False))[0] if which == "worker" else which
        found = await p.client.get(kind, key(name))
        await p.client.patch(kind, key(name), {"metadata": {"finalizers": [*found.metadata.finalizers, "example.com/keep"]}})
        if whole_cluster:
            await p.client.delete(CLUSTER, key("c"))
        else:
            await p.client.delete(MACHINE, key(name))

    return make


def slow(stage: str, template: str) -> Make:
    """Machines from a template of which one stage never ends."""

    async def make(p: Plane) -> None:
        objects = whole()
        for obj in objects:
            if (obj["kind"], obj["metadata"]["name"]) == ("DevMachineTemplate", template):
                spec = obj["spec"]["template"]["spec"]["backend"]["inMemory"]
                spec[stage] = {"provisioning": {"startupDuration": "100000s"}}
        await p.apply(objects)

    return make


def topology(change: Callable[[list[Json]], list[Json]]) -> Make:
    async def make(p: Plane) -> None:
        await p.apply(change([*samples.cluster_class(), samples.topology("c")]))

    return make


def without_template(objects: list[Json]) -> list[Json]:
    return [o for o in objects if o["kind"] != "DevClusterTemplate"]


@in_cluster
async def hooked(p: Plane) -> None:
    name = (await machines(p, control_plane=False))[0]
    await p.annotate(MACHINE, name, {HOOK: "backup-operator"})
    await p.client.delete(MACHINE, key(name))


@in_cluster
async def unreachable(p: Plane) -> None:
    await p.annotate(DEV_CLUSTER, "c", {FAULT: "api-server-unreachable"})


async def unlabelled(p: Plane) -> None:
    name = "devclusters.infrastructure.cluster.x-k8s.io"
    found = await p.client.get(CRD, ObjectKey("", name))
    labels: Json = {label: None for label in found.metadata.labels if label.startswith("cluster.x-k8s.io/")}
    await p.client.patch(CRD, ObjectKey("", name), {"metadata": {"labels": labels}})
    await p.apply(whole())


@in_cluster
async def paused_worker(p: Plane) -> None:
    name = (await machines(p, control_plane=False))[0]
    await p.annotate(MACHINE, name, {PAUSED: ""})
    await p.client.delete(MACHINE, key(name))


@in_cluster
async def vanished(p: Plane) -> None:
    await p.client.delete(DEV_MACHINE, key((await machines(p, control_plane=False))[0]))


@in_cluster
async def scaled_without_template(p: Plane) -> None:
    await p.client.delete(DEV_TEMPLATE, key("c-control-plane"))
    await p.client.patch(CONTROL_PLANE, key("c"), {"spec": {"replicas": 3}})


async def file_from_nowhere(p: Plane) -> None:
    objects = whole()
    config = next(o for o in objects if o["kind"] == "KubeadmConfigTemplate")
    source = {"path": "/x", "contentFrom": {"secret": {"name": "nowhere", "key": "k"}}}
    config["spec"]["template"]["spec"]["files"] = [source]
    await p.apply(objects)


async def wrong_key(p: Plane) -> None:
    await p.client.create(
        {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "there", "namespace": NAMESPACE}, "data": {"a": "YQ=="}}
    )
    objects = whole()
    config = next(o for o in objects if o["kind"] == "KubeadmConfigTemplate")
    source = {"path": "/x", "contentFrom": {"secret": {"name": "there", "key": "b"}}}
    config["spec"]["template"]["spec"]["files"] = [source]
    await p.apply(objects)


GARBAGE = {"data": {"value": "Z2FyYmFnZQ=="}}
FAULTS = [
    Fault("machine never boots", slow("vm", "c-control-plane"), "DevMachine/c-*", "infrastructure provider", SLOW),
    Fault("api server never starts", slow("apiServer", "c-control-plane"), "DevMachine/c-*", "infrastructure provider", SLOW),
    Fault("etcd never starts", slow("etcd", "c-control-plane"), "DevMachine/c-*", "infrastructure provider", SLOW),
    Fault("worker never boots", slow("vm", "md"), "DevMachine/md-*", "infrastructure provider", SLOW),
    Fault("worker never joins", slow("node", "md"), "DevMachine/md-*", "infrastructure provider", SLOW),
    Fault("worker kubelet stops", annotated("kubelet-stops", control_plane=False), "Machine/md-*", "whoever runs the machine"),
    Fault("worker node dies", annotated("node-dies", control_plane=False), "Machine/md-*", "whoever runs the machine"),
    Fault("leader kubelet stops", annotated("kubelet-stops", control_plane=True), "Machine/c-*", "whoever runs the machine"),
    Fault("leader node dies", annotated("node-dies", control_plane=True), "KubeadmControlPlane/c", "machines of the control plane"),
    Fault("leader api server stops", annotated("api-server-stops", control_plane=True), "DevMachine/c-*", "infrastructure provider"),
    Fault("etcd corrupt", annotated("etcd-corrupt", control_plane=True), "Machine/c-*|KubeadmControlPlane/c", "etcd"),
    Fault("etcd without space", annotated("etcd-no-space", control_plane=True), "Machine/c-*|KubeadmControlPlane/c", "etcd"),
    Fault("etcd stops", annotated("etcd-stops", control_plane=True), "KubeadmControlPlane/c", "machines of the control plane"),
    Fault("endpoint unreachable", unreachable, "Cluster/c", "network"),
    Fault("infrastructure missing", without("DevCluster", "c"), "DevCluster/c", "author of Cluster"),
    Fault("control plane missing", without("KubeadmControlPlane", "c"), "KubeadmControlPlane/c", "author of Cluster"),
    Fault("machine template missing", without("DevMachineTemplate", "c-control-plane"), "DevMachineTemplate/c-control-plane", "author of"),
    Fault("worker template missing", without("DevMachineTemplate", "md"), "DevMachineTemplate/md", "author of"),
    Fault("bootstrap template missing", without("KubeadmConfigTemplate", "md"), "KubeadmConfigTemplate/md", "author of"),
    Fault("template deleted, scaled", unmade(DEV_TEMPLATE, "md", then={"replicas": 2}), "DevMachineTemplate/md", "author of"),
    Fault("config template deleted, scaled", unmade(CONFIG_TEMPLATE, "md", then={"replicas": 2}), "KubeadmConfigTemplate/md", "author of"),
    Fault("control plane scaled without template", scaled_without_template, "DevMachineTemplate/c-control-plane", "author of"),
    Fault("ca deleted", unmade(SECRET, "c-ca"), "Secret/c-ca", "backups"),
    Fault("etcd ca deleted", unmade(SECRET, "c-etcd"), "Secret/c-etcd", "backups"),
    Fault("service account key deleted", unmade(SECRET, "c-sa"), "Secret/c-sa", "backups"),
    Fault("front proxy ca deleted", unmade(SECRET, "c-proxy"), "Secret/c-proxy", "backups"),
    Fault("kubeconfig garbled", changed(SECRET, "c-kubeconfig", GARBAGE), "Secret/c-kubeconfig", "whoever changed"),
    Fault("cluster paused", changed(CLUSTER, "c", {"spec": {"paused": True}}), "Cluster/c", "whoever paused"),
    Fault(
        "cluster paused by annotation", changed(CLUSTER, "c", {"metadata": {"annotations": {PAUSED: ""}}}), "Cluster/c", "whoever paused"
    ),
    Fault(
        "control plane paused", changed(CONTROL_PLANE, "c", {"metadata": {"annotations": {PAUSED: ""}}}), "KubeadmControlPlane/c", "paused"
    ),
    Fault("deployment paused", changed(DEPLOYMENT, "md", {"metadata": {"annotations": {PAUSED: ""}}}), "MachineDeployment/md", "paused"),
    Fault(
        "infrastructure paused", changed(DEV_CLUSTER, "c", {"metadata": {"annotations": {PAUSED: ""}}}), "DevCluster/c", "whoever paused"
    ),
    Fault("worker paused in deletion", paused_worker, "Machine/md-*", "whoever paused"),
    Fault("worker held", held(DEV_MACHINE, "worker"), "DevMachine/md-*", "example.com/keep"),
    Fault("worker machine held", held(MACHINE, "worker"), "Machine/md-*", "example.com/keep"),
    Fault("deletion held by infrastructure", held(DEV_CLUSTER, "c", whole_cluster=True), "DevCluster/c", "example.com/keep"),
    Fault("deletion held by control plane", held(CONTROL_PLANE, "c", whole_cluster=True), "KubeadmControlPlane/c", "example.com/keep"),
    Fault("deletion held by deployment", held(DEPLOYMENT, "md", whole_cluster=True), "MachineDeployment/md", "example.com/keep"),
    Fault("deletion hook", hooked, "Machine/md-*", "backup-operator"),
    Fault("worker infrastructure deleted", vanished, "DevMachine/md-*", "owner of Machine"),
    Fault("no contract label", unlabelled, "CustomResourceDefinition/devclusters.*", "whoever installed"),
    Fault("file from no secret", file_from_nowhere, "Secret/nowhere", "author of"),
    Fault("class missing", topology(lambda objects: objects[-1:]), "ClusterClass/in-memory", "author of Cluster", stage=admitting),
    Fault("template of class missing", topology(without_template), "DevClusterTemplate/*", "author of", stage=admitting),
    Fault("file from no key", wrong_key, "Secret/there", "author of"),
    Fault("infrastructure deleted", unmade(DEV_CLUSTER, "c"), "DevCluster/c", "author of Cluster"),
    Fault("control plane deleted alone", unmade(CONTROL_PLANE, "c"), "KubeadmControlPlane/c", "whoever deleted KubeadmControlPlane"),
    *faults_of_kinds.FAULTS,
    *faults_of_neighbours.FAULTS,
]


def is_named(verdict: Verdict, truth: str) -> bool:
    kind, _, rest = verdict.object.partition("/")
    return any(fnmatch.fnmatchcase(f"{kind}/{rest.rpartition('/')[2]}", one) for one in truth.split("|"))


def test_the_gallery_is_large_enough() -> None:
    assert len({f.name for f in FAULTS}) == len(FAULTS) >= 40


@pytest.mark.parametrize(
    "fault", [f if n % 3 == 0 else pytest.param(f, marks=pytest.mark.soak) for n, f in enumerate(FAULTS)], ids=lambda f: f.name
)
def test_the_verdict_names_what_was_done(fault: Fault, settled: Moment[Plane]) -> None:
    async def play(p: Plane) -> list[Verdict]:
        await fault.make(p)
        found = []
        for pause in (5, 55, 540):
            await asyncio.sleep(pause)
            found.append((await look(p)).verdict)
        return found

    async def all_of_it() -> list[Verdict]:
        async with lived(fault.stage(LoopClock(START))) if fault.is_in_cluster else fault.stage(LoopClock(START)) as p:
            return await play(p)

    early, minute, late = settled.then(play) if fault.is_in_cluster and fault.stage is plane else run_virtual(all_of_it())
    told = "\n".join(v.headline for v in (early, minute, late))
    for verdict in (early, minute, late):
        assert "does not exist" not in verdict.what or is_named(verdict, fault.truth), told
    assert is_named(minute, fault.truth), told
    assert minute.state in fault.states, told
    assert fault.who in minute.who, minute.who
    assert minute.next
    assert is_named(late, fault.truth), told
    assert late.state in BAD, told
