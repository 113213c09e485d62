"""Worlds for the Machine controller: builders whose defaults are a healthy, running Machine, on the embedded API server."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

import pytest

from clusterwright.api.copying import replace
from clusterwright.api.core import Machine
from clusterwright.api.kubernetes import Node, Pod
from clusterwright.api.meta import Object, ObjectKey
from clusterwright.controllers.machine.build import CONTROLLER
from clusterwright.offline.bundle import assemble
from clusterwright.offline.world import World
from clusterwright.runtime.keys import sample_keys
from clusterwright.runtime.reconcile import Result
from support.clocks import MovableClock
from support.passes import Answer, crd

Json = dict[str, Any]
NOW = datetime.fromisoformat("2026-05-01T12:00:00Z")
KEY = ObjectKey("ns1", "m1")
CLUSTER = "ns1/c1"


def merged(base: Json, changes: Json) -> Json:
    """`base` with `changes` laid over it; None removes."""
    result = dict(base)
    for name, value in changes.items():
        if value is None:
            result.pop(name, None)
        elif isinstance(value, dict) and isinstance(result.get(name), dict):
            result[name] = merged(result[name], value)
        else:
            result[name] = value
    return result


def ago(**spans: float) -> str:
    """The time so long before now."""
    return f"{NOW - timedelta(**spans):%Y-%m-%dT%H:%M:%SZ}"


def condition(type: str, status: str = "True", reason: str = "", message: str = "", since: str = "") -> Json:
    return {"type": type, "status": status, "reason": reason or type, "message": message, "lastTransitionTime": since or ago(minutes=50)}


def owner(kind: str, name: str, uid: str, group: str = "cluster.x-k8s.io", *, controller: bool = True) -> Json:
    return {"apiVersion": f"{group}/v1beta2", "kind": kind, "name": name, "uid": uid, **({"controller": True} if controller else {})}


def cluster(**changes: Any) -> Json:
    base = {
        "apiVersion": "cluster.x-k8s.io/v1beta2",
        "kind": "Cluster",
        "metadata": {"name": "c1", "namespace": "ns1", "uid": "uid-c1", "generation": 1, "finalizers": ["cluster.cluster.x-k8s.io"]},
        "spec": {"controlPlaneEndpoint": {"host": "10.0.0.1", "port": 6443}},
        "status": {
            "initialization": {"infrastructureProvisioned": True, "controlPlaneInitialized": True},
            "conditions": [condition("ControlPlaneInitialized", reason="Initialized", since=ago(days=1))],
        },
    }
    return merged(base, changes)


def machine(**changes: Any) -> Json:
    base = {
        "apiVersion": "cluster.x-k8s.io/v1beta2",
        "kind": "Machine",
        "metadata": {
            "name": "m1",
            "namespace": "ns1",
            "uid": "uid-m1",
            "generation": 1,
            "labels": {"cluster.x-k8s.io/cluster-name": "c1"},
            "finalizers": ["machine.cluster.x-k8s.io"],
            "ownerReferences": [owner("Cluster", "c1", "uid-c1", controller=False)],
        },
        "spec": {
            "clusterName": "c1",
            "bootstrap": {
                "configRef": {"apiGroup": "bootstrap.cluster.x-k8s.io", "kind": "GenericBootstrapConfig", "name": "m1"},
                "dataSecretName": "m1-data",
            },
            "infrastructureRef": {
                "apiGroup": "infrastructure.cluster.x-k8s.io",
                "kind": "GenericInfrastructureMachine",
                "name": "m1",
            },
            "providerID": "generic:///m1",
        },
        "status": {
            "phase": "Running",
            "observedGeneration": 1,
            "initialization": {"bootstrapDataSecretCreated": True, "infrastructureProvisioned": True},
            "nodeRef": {"name": "node-1"},
            "conditions": [
                condition("Available"),
                condition("Ready"),
                condition("BootstrapConfigReady", reason="Ready"),
                condition("InfrastructureReady", reason="Ready"),
                condition("NodeHealthy"),
                condition("NodeReady"),
                condition("Updating", "False", "NotUpdating"),
                condition("Deleting", "False", "NotDeleting"),
                condition("Paused", "False", "NotPaused"),
            ],
        },
    }
    return merged(base, changes)


def fresh(**changes: Any) -> Json:
    """A Machine of which nothing is known yet."""
    base = machine(spec={"providerID": None})
    del base["spec"]["bootstrap"]["dataSecretName"]
    base["status"] = {"conditions": [condition("Paused", "False", "NotPaused")]}
    return merged(base, changes)


def deleted(at: str = "", **changes: Any) -> Json:
    """A running Machine that is deleted."""
    return merged(machine(), merged({"metadata": {"deletionTimestamp": at or ago(seconds=50), "deletionGracePeriodSeconds": 0}}, changes))


def bootstrap(**changes: Any) -> Json:
    base = {
        "apiVersion": "bootstrap.cluster.x-k8s.io/v1beta2",
        "kind": "GenericBootstrapConfig",
        "metadata": {
            "name": "m1",
            "namespace": "ns1",
            "uid": "uid-b1",
            "labels": {"cluster.x-k8s.io/cluster-name": "c1"},
            "finalizers": ["generic/bootstrap"],
            "ownerReferences": [owner("Machine", "m1", "uid-m1")],
        },
        "spec": {},
        "status": {"dataSecretName": "m1-data", "initialization": {"dataSecretCreated": True}},
    }
    return merged(base, changes)


def infra(**changes: Any) -> Json:
    base = {
        "apiVersion": "infrastructure.cluster.x-k8s.io/v1beta2",
        "kind": "GenericInfrastructureMachine",
        "metadata": {
            "name": "m1",
            "namespace": "ns1",
            "uid": "uid-i1",
            "labels": {"cluster.x-k8s.io/cluster-name": "c1"},
            "finalizers": ["generic/infrastructure"],
            "ownerReferences": [owner("Machine", "m1", "uid-m1")],
        },
        "spec": {"providerID": "generic:///m1"},
        "status": {"initialization": {"provisioned": True}},
    }
    return merged(base, changes)


def other_control_plane(**changes: Any) -> Json:
    """A control-plane Machine that stays."""
    base = machine(
        metadata={
            "name": "cp1",
            "uid": "uid-cp1",
            "labels": {"cluster.x-k8s.io/cluster-name": "c1", "cluster.x-k8s.io/control-plane": ""},
        }
    )
    return merged(base, changes)


SYNCED = {
    "cluster.x-k8s.io/cluster-name": "c1",
    "cluster.x-k8s.io/cluster-namespace": "ns1",
    "cluster.x-k8s.io/machine": "m1",
    "cluster.x-k8s.io/labels-from-machine": "",
    "cluster.x-k8s.io/annotations-from-machine": "",
}


def node(ready: str = "True", **changes: Any) -> Json:
    pressures = [condition(f"{what}Pressure", "False", "Fine") for what in ("Memory", "Disk", "PID")]
    base = {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": "node-1", "uid": "uid-n1", "annotations": dict(SYNCED)},
        "spec": {"providerID": "generic:///m1"},
        "status": {"conditions": [*pressures, condition("Ready", ready, "Kubelet")], "nodeInfo": {"kubeletVersion": "v1.33.1"}},
    }
    return merged(base, changes)


def pod(name: str, namespace: str = "default", **changes: Any) -> Json:
    base = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": name,
            "namespace": namespace,
            "uid": f"uid-{namespace}-{name}",
            "ownerReferences": [owner("ReplicaSet", "rs1", "uid-rs1", "apps")],
        },
        "spec": {"nodeName": "node-1", "containers": [{"name": "c", "image": "app:1"}]},
        "status": {"phase": "Running"},
    }
    return merged(base, changes)


def namespace(name: str, **labels: str) -> Json:
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": {"kubernetes.io/metadata.name": name, **labels}}}


@dataclass
class Build:
    """A world in the making; every part may be replaced or left out (None)."""

    machine: Json = field(default_factory=machine)
    cluster: Json | None = field(default_factory=cluster)
    bootstrap: Json | None = field(default_factory=bootstrap)
    infra: Json | None = field(default_factory=infra)
    node: Json | None = field(default_factory=node)
    more: list[Json] = field(default_factory=list)
    remote: list[Json] = field(default_factory=list)
    crds: list[Json] = field(
        default_factory=lambda: [
            crd("GenericBootstrapConfig", "bootstrap.cluster.x-k8s.io"),
            crd("GenericInfrastructureMachine", "infrastructure.cluster.x-k8s.io"),
        ]
    )
    observation: Json = field(default_factory=dict)
    workload: Json = field(default_factory=dict)

    def objects(self) -> list[Json]:
        here = [o for o in (self.cluster, self.machine, self.bootstrap, self.infra) if o is not None]
        there = [o for o in (self.node,) if o is not None]
        namespaces = [namespace("default"), namespace("kube-system", tier="sys"), namespace("web")]
        base = {
            "apiVersion": "clusterwright.dev/v1alpha1",
            "kind": "Observation",
            "now": ago(),
            "workloadClusters": {
                CLUSTER: merged(
                    {"connected": True, "lastProbeSuccess": ago(seconds=10), "objects": [*there, *namespaces, *self.remote]}, self.workload
                )
            },
        }
        return copy.deepcopy([*self.crds, *here, *self.more, merged(base, self.observation)])

    def decide(self) -> Answer:
        """One pass."""
        import clusterwright

        return Answer(dict(clusterwright.decide(self.objects(), "Machine/ns1/m1")))

    def start(self) -> Running:
        """A reconciler in this world, for several passes."""
        return Running(self)


class Running:
    """Passes, one after another, over one world; `woken` are the keys that changes in the workload cluster would wake."""

    def __init__(self, build: Build) -> None:
        self.world = World(assemble(build.objects()), NOW, sample_keys())
        self.clock = MovableClock(NOW)
        self.woken: list[tuple[ObjectKey, str]] = []
        self.notify: dict[str, Callable[[Object], None]] = {}
        deps = self.world.dependencies()
        self.deps = replace(deps, clock=self.clock, enqueue=lambda key, reason: self.woken.append((key, reason)))
        self.world.workload.watch = self._watch  # type: ignore[method-assign,assignment]
        self.world.workload.unwatch = lambda _cluster, watcher, _kind: self.notify.pop(watcher, None)  # type: ignore[method-assign,assignment]
        self.reconciler = CONTROLLER.make(self.deps)

    async def _watch(self, cluster: ObjectKey, watcher: str, kind: type[Object], notify: Callable[[Object], None]) -> None:
        self.world.workload._connected(cluster)
        self.notify.setdefault(watcher, notify)

    async def run(self, **later: float) -> Result:
        """A pass, so much later than the last."""
        self.clock.time += timedelta(**later)
        self.world.now = self.clock.time
        self.world.journal.actions.clear()
        return await self.world.reports.complete(self.reconciler, KEY)

    async def machine(self) -> Machine:
        return await self.world.client.get(Machine, KEY)

    async def remote(self) -> Any:
        return await self.world.workload.client(ObjectKey("ns1", "c1"))

    async def remote_node(self) -> Node:
        found: Node = await (await self.remote()).get(Node, ObjectKey("", "node-1"))
        return found

    async def remote_pod(self, name: str, namespace: str = "default") -> Pod | None:
        found: Pod | None = await (await self.remote()).find(Pod, ObjectKey(namespace, name))
        return found

    @property
    def actions(self) -> list[tuple[str, str, str]]:
        """Writes of the last pass to anything but the Machine itself."""
        found = [(a.verb, a.kind, a.name) for a in self.world.journal.actions]
        return [action for action in found if action[1:] != ("Machine", KEY.name)]


class Kit:
    """The builders, for tests."""

    NOW = NOW
    Build = Build
    ago = staticmethod(ago)
    condition = staticmethod(condition)
    crd = staticmethod(crd)
    owner = staticmethod(owner)
    merged = staticmethod(merged)
    cluster = staticmethod(cluster)
    machine = staticmethod(machine)
    fresh = staticmethod(fresh)
    deleted = staticmethod(deleted)
    bootstrap = staticmethod(bootstrap)
    infra = staticmethod(infra)
    other_control_plane = staticmethod(other_control_plane)
    node = staticmethod(node)
    pod = staticmethod(pod)
    namespace = staticmethod(namespace)
    SYNCED = SYNCED


@pytest.fixture(scope="session")
def a() -> type[Kit]:
    return Kit
