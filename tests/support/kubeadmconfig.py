"""A management cluster and a workload cluster, both our own API server, with one KubeadmConfig reconciler between them.

Nothing is mocked: faults are refusals by the transport, and time is a value that the test moves.
"""

from __future__ import annotations

import re
from base64 import b64decode, b64encode
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import cache
from random import Random
from typing import Any

import msgspec
import yaml

from clusterwright.api.bootstrap import KubeadmConfig
from clusterwright.api.core import Cluster, Machine, MachinePool
from clusterwright.api.crds import crds
from clusterwright.api.kubernetes import ConfigMap, Secret
from clusterwright.api.meta import Json, ObjectKey
from clusterwright.api.wire import Duplex, Request, Response
from clusterwright.apiserver.registry import index
from clusterwright.apiserver.server import ApiServer
from clusterwright.apiserver.serving.inprocess import InProcessTransport
from clusterwright.controllers.kubeadmconfig.build import CONTROLLER
from clusterwright.controllers.wiring import Dependencies
from clusterwright.kubeadm import certificates as pki
from clusterwright.runtime.controller import Controller
from clusterwright.runtime.errors import ConnectionFailed
from clusterwright.runtime.keys import sample_keys, sample_rsa_key
from clusterwright.runtime.manager import Manager
from clusterwright.runtime.reconcile import Reconciler, Watch
from clusterwright.runtime.reports import Reports
from clusterwright.runtime.rest import RestClient
from clusterwright.workload.access import Health, NotConnected

START = datetime(2030, 5, 6, 7, 8, 9, tzinfo=UTC)
NS = "default"
KINDS = ("Cluster", "Machine", "MachinePool", "KubeadmConfig")
NOT_PAUSED = {"type": "Paused", "status": "False", "reason": "NotPaused", "message": "", "lastTransitionTime": "2030-01-01T00:00:00Z"}


_SERVED: dict[Any, Any] = {}


async def _served() -> dict[Any, Any]:
    """What a server with our definitions serves; they are applied once, and every world begins with the result."""
    if not _SERVED:
        server = ApiServer(now=lambda: START, random=Random(0))
        client = RestClient(InProcessTransport(server), clock=StepClock())
        for crd in crds():
            if crd["spec"]["names"]["kind"] in KINDS:
                await client.create(crd)
        _SERVED.update(index(server.registry))
    return _SERVED


class StepClock:
    """A clock that stands until the test moves it."""

    def __init__(self) -> None:
        self.time = START

    def now(self) -> datetime:
        return self.time

    def monotonic(self) -> float:
        return (self.time - START).total_seconds()

    async def sleep(self, seconds: float) -> None:
        self.time += timedelta(seconds=seconds)


@dataclass
class Refusal:
    """Requests that match are answered with this code, or (0) get no answer; `after`: they take effect all the same."""

    method: str
    path: str
    code: int
    reason: str = "InternalError"
    times: int = 1_000_000
    after: bool = False


class RefusingTransport:
    """The way to a server, on which some requests fail."""

    def __init__(self, inner: InProcessTransport) -> None:
        self.inner = inner
        self.refusals: list[Refusal] = []
        self.writes: list[tuple[str, str]] = []

    async def send(self, request: Request) -> Response:
        for refusal in self.refusals:
            if refusal.times and refusal.method == request.method and re.search(refusal.path, request.path):
                refusal.times -= 1
                if refusal.after:
                    await self.inner.send(request)
                if not refusal.code:
                    raise ConnectionFailed("no answer")
                status = {"kind": "Status", "apiVersion": "v1", "status": "Failure", "message": "refused", "code": refusal.code}
                details = {"name": request.path.rpartition("/")[2]}
                return Response(status=refusal.code, body=msgspec.json.encode(status | {"reason": refusal.reason, "details": details}))
        response = await self.inner.send(request)
        if request.method != "GET" and response.status < 300:
            self.writes.append((request.method, request.path.rpartition("/namespaces/")[2] or request.path))
        return response

    async def stream(self, request: Request) -> tuple[Response, AsyncIterator[bytes]]:
        return await self.inner.stream(request)

    async def forward(self, request: Request, port: int) -> Duplex:
        return await self.inner.forward(request, port)

    async def close(self) -> None:
        await self.inner.close()


@dataclass
class Events:
    """Records what would become Kubernetes Events."""

    seen: list[tuple[str, str, str]] = field(default_factory=list)

    def record(self, obj: Any, type: str, reason: str, message: str) -> None:
        self.seen.append((type, reason, message))


class Workload:
    """The workload cluster of every Cluster of the test."""

    def __init__(self, client: RestClient) -> None:
        self.remote = client
        self.connected = True

    async def client(self, cluster: ObjectKey) -> RestClient:
        if not self.connected:
            raise NotConnected
        return self.remote

    def health(self, cluster: ObjectKey) -> Health:
        return Health(connected=self.connected)


class NoWatches:
    async def ensure(self, kind: Any, also: Any = None, *, lasting: bool = False) -> None:
        """Nothing is watched in a single pass."""


def add_controller(
    manager: Manager,
    random: Random,
    workload: Any,
    *,
    watches: tuple[Watch, ...] = CONTROLLER.watches,
    options: Mapping[str, Any] | None = None,
) -> None:
    """Let a manager run the controller of KubeadmConfigs with this way into workload clusters."""

    def make(controller: Controller) -> Reconciler:
        return CONTROLLER.make(
            Dependencies(
                client=manager.client,
                clock=manager.clock,
                random=random,
                keys=sample_keys(),
                events=manager.events,
                workload=workload,
                dynamic=NoWatches(),
                features={},
                enqueue=lambda key, reason: None,
                trace=lambda key, rows: None,
                options=options or {},
                reports=controller.reports,
            )
        )

    manager.add_controller(CONTROLLER.name, CONTROLLER.kind, make, watches=watches)


@cache
def certificate_pair(purpose: pki.Purpose) -> pki.KeyPair:
    """A fixed pair: seeded runs must be the same in every process."""
    return pki.new_pair(purpose, sample_rsa_key(2048, 0), now=START, serial=4711)


def b64(text: str | bytes) -> str:
    return b64encode(text.encode() if isinstance(text, str) else text).decode()


class World:
    """The test's world."""

    def __init__(self, *, features: Mapping[str, bool] | None = None, options: Mapping[str, Any] | None = None, seed: int = 1) -> None:
        self.clock = StepClock()
        self.server = ApiServer(now=self.clock.now, random=Random(seed), resources=_SERVED or None)
        self.transport = RefusingTransport(InProcessTransport(self.server))
        self.client = RestClient(self.transport, clock=self.clock)
        self.judge = RestClient(InProcessTransport(self.server), clock=self.clock)
        self.workload_server = ApiServer(now=self.clock.now, random=Random(seed + 1))
        self.remote_transport = RefusingTransport(InProcessTransport(self.workload_server))
        self.remote = RestClient(InProcessTransport(self.workload_server), clock=self.clock)
        self.workload = Workload(RestClient(self.remote_transport, clock=self.clock))
        self.events = Events()
        self.reports = Reports()
        self.rows: dict[str, str] = {}
        self.dependencies = Dependencies(
            client=self.client,
            clock=self.clock,
            random=Random(seed + 2),
            keys=sample_keys(),
            events=self.events,
            workload=self.workload,  # type: ignore[arg-type]
            dynamic=NoWatches(),
            features=features or {},
            enqueue=lambda key, reason: None,
            trace=lambda key, rows: self.rows.update(rows),
            reports=self.reports,
            options=options or {},
        )
        self.reconciler = CONTROLLER.make(self.dependencies)

    # -------------------------------------------------------------------------------------------- arranging

    async def put(self, obj: Json) -> Json:
        """Create an object with its status."""
        status = obj.pop("status", None)
        made = await self.judge.create(obj)
        if status is not None:
            made = await self.judge.patch(made.gvk, made.key, {"status": status}, subresource="status")
        return dict(made.json)

    async def cluster(
        self,
        name: str = "c1",
        *,
        infrastructure: bool | None = True,
        initialized: bool | str = False,
        endpoint: tuple[str, int] | None = ("10.0.0.1", 6443),
        control_plane_ref: bool = True,
        network: Json | None = None,
        paused: bool = False,
    ) -> Json:
        spec: Json = {"clusterNetwork": network} if network else {}
        if endpoint is not None:
            spec["controlPlaneEndpoint"] = {"host": endpoint[0], "port": endpoint[1]}
        if control_plane_ref:
            spec["controlPlaneRef"] = {"apiGroup": "controlplane.cluster.x-k8s.io", "kind": "KubeadmControlPlane", "name": "cp"}
        spec["infrastructureRef"] = {"apiGroup": "infrastructure.cluster.x-k8s.io", "kind": "DevCluster", "name": name}
        if paused:
            spec["paused"] = True
        status: Json = {} if infrastructure is None else {"initialization": {"infrastructureProvisioned": infrastructure}}
        if initialized is not None:
            word = initialized if isinstance(initialized, str) else "True" if initialized else "False"
            condition = {"type": "ControlPlaneInitialized", "status": word, "reason": "X", "message": ""}
            status["conditions"] = [condition | {"lastTransitionTime": "2030-01-01T00:00:00Z"}]
        return await self.put(
            {
                "apiVersion": "cluster.x-k8s.io/v1beta2",
                "kind": "Cluster",
                "metadata": {"namespace": NS, "name": name},
                "spec": spec,
                "status": status,
            }
        )

    async def set_initialized(self, name: str = "c1") -> None:
        condition = {"type": "ControlPlaneInitialized", "status": "True", "reason": "Initialized", "message": ""}
        change = {"status": {"conditions": [condition | {"lastTransitionTime": "2030-01-01T00:00:00Z"}]}}
        await self.judge.patch(Cluster, ObjectKey(NS, name), change, subresource="status")

    async def machine(
        self,
        name: str = "m1",
        *,
        cluster: str = "c1",
        control_plane: bool = False,
        version: str = "v1.33.2",
        data_secret: str = "",
        node: str = "",
        provider_id: str = "",
    ) -> Json:
        labels = {"cluster.x-k8s.io/cluster-name": cluster}
        if control_plane:
            labels["cluster.x-k8s.io/control-plane"] = ""
        bootstrap: Json = {"configRef": {"apiGroup": "bootstrap.cluster.x-k8s.io", "kind": "KubeadmConfig", "name": name}}
        if data_secret:
            bootstrap["dataSecretName"] = data_secret
        spec: Json = {
            "clusterName": cluster,
            "bootstrap": bootstrap,
            "infrastructureRef": {"apiGroup": "infrastructure.cluster.x-k8s.io", "kind": "DevMachine", "name": name},
        }
        if version:
            spec["version"] = version
        if provider_id:
            spec["providerID"] = provider_id
        status: Json | None = {"nodeRef": {"name": node}} if node else None
        obj: Json = {
            "apiVersion": "cluster.x-k8s.io/v1beta2",
            "kind": "Machine",
            "metadata": {"namespace": NS, "name": name, "labels": labels},
            "spec": spec,
        }
        return await self.put(obj | ({"status": status} if status else {}))

    async def pool(
        self, name: str = "mp1", *, replicas: int | None = None, nodes: int = 0, version: str = "v1.33.2", cluster: str = "c1"
    ) -> Json:
        spec: Json = {
            "clusterName": cluster,
            "template": {
                "spec": {
                    "clusterName": cluster,
                    "version": version,
                    "bootstrap": {"configRef": {"apiGroup": "bootstrap.cluster.x-k8s.io", "kind": "KubeadmConfig", "name": name}},
                    "infrastructureRef": {"apiGroup": "infrastructure.cluster.x-k8s.io", "kind": "DevMachinePool", "name": name},
                }
            },
        }
        if replicas is not None:
            spec["replicas"] = replicas
        return await self.put(
            {
                "apiVersion": "cluster.x-k8s.io/v1beta2",
                "kind": "MachinePool",
                "metadata": {"namespace": NS, "name": name, "labels": {"cluster.x-k8s.io/cluster-name": cluster}},
                "spec": spec,
                "status": {"nodeRefs": [{"name": f"n{i}"} for i in range(nodes)]},
            }
        )

    async def config(
        self,
        name: str = "m1",
        spec: Json | None = None,
        *,
        owner: Json | None = None,
        status: Json | None = None,
        paused_reported: bool = True,
        annotations: Mapping[str, str] | None = None,
        finalizers: Sequence[str] = (),
    ) -> Json:
        metadata: Json = {"namespace": NS, "name": name, "labels": {"cluster.x-k8s.io/cluster-name": "c1"}}
        if owner is not None:
            reference = {"apiVersion": owner["apiVersion"], "kind": owner["kind"]}
            metadata["ownerReferences"] = [
                reference | {"name": owner["metadata"]["name"], "uid": owner["metadata"]["uid"], "controller": True}
            ]
        if annotations:
            metadata["annotations"] = dict(annotations)
        if finalizers:
            metadata["finalizers"] = list(finalizers)
        given = dict(status or {})
        if paused_reported:
            given["conditions"] = [*given.get("conditions", ()), NOT_PAUSED | {"observedGeneration": 1}]
        obj: Json = {"apiVersion": "bootstrap.cluster.x-k8s.io/v1beta2", "kind": "KubeadmConfig", "metadata": metadata}
        if spec:
            obj["spec"] = spec
        return await self.put(obj | ({"status": given} if given else {}))

    async def control_plane_machine(self, name: str = "m1", spec: Json | None = None, **machine: Any) -> Json:
        owner = await self.machine(name, control_plane=True, **machine)
        return await self.config(name, spec, owner=owner)

    async def worker(self, name: str = "m1", spec: Json | None = None, **machine: Any) -> Json:
        owner = await self.machine(name, **machine)
        return await self.config(name, spec, owner=owner)

    async def pool_config(self, name: str = "mp1", spec: Json | None = None, **pool: Any) -> Json:
        owner = await self.pool(name, **pool)
        return await self.config(name, spec, owner=owner)

    async def secret(self, name: str, data: Mapping[str, str | bytes] | None, *, type: str = "Opaque", **metadata: Any) -> Json:
        obj: Json = {"apiVersion": "v1", "kind": "Secret", "metadata": {"namespace": NS, "name": name} | metadata, "type": type}
        if data is not None:
            obj["data"] = {key: b64(value) for key, value in data.items()}
        return await self.put(obj)

    async def certificates(self, *purposes: str, cluster: str = "c1") -> None:
        for purpose in purposes or ("ca", "etcd", "proxy", "sa"):
            pair = certificate_pair(pki.Purpose(purpose))
            await self.put(pki.pair_secret(namespace=NS, cluster=cluster, purpose=pki.Purpose(purpose), pair=pair))

    def refuse(self, method: str, path: str, code: int = 500, reason: str = "InternalError", **how: Any) -> None:
        self.transport.refusals.append(Refusal(method, path, code, reason, **how))

    def refuse_remote(self, method: str, path: str, code: int = 500, reason: str = "InternalError", **how: Any) -> None:
        self.remote_transport.refusals.append(Refusal(method, path, code, reason, **how))

    # ---------------------------------------------------------------------------------------------- acting

    async def reconcile(self, name: str = "m1") -> float | None:
        """One pass; the seconds after which it wants another."""
        result = await self.reports.complete(self.reconciler, ObjectKey(NS, name))
        return None if result.requeue_after is None else result.requeue_after.total_seconds()

    async def failing(self, name: str = "m1") -> str:
        """One pass that must fail; the text of its error."""
        try:
            await self.reconcile(name)
        except Exception as error:
            return str(error)
        raise AssertionError("the pass did not fail")

    def restart(self, seed: int = 99) -> None:
        """A new process: nothing is remembered."""
        self.reconciler = CONTROLLER.make(self.dependencies)

    # --------------------------------------------------------------------------------------------- looking

    async def read(self, name: str = "m1") -> KubeadmConfig:
        return await self.judge.get(KubeadmConfig, ObjectKey(NS, name))

    async def conditions(self, name: str = "m1") -> dict[str, tuple[str, str, str]]:
        return {c.type: (c.status, c.reason, c.message) for c in (await self.read(name)).status.conditions}

    async def v1beta1(self, name: str = "m1") -> dict[str, tuple[str, str, str, str]]:
        deprecated = (await self.read(name)).status.deprecated
        found = deprecated.v1beta1.conditions if deprecated and deprecated.v1beta1 else ()
        return {c.type: (c.status, c.severity, c.reason, c.message) for c in found}

    async def data(self, name: str = "m1") -> str:
        secret = await self.judge.get(Secret, ObjectKey(NS, name))
        return secret.data["value"].decode()

    async def has_data(self, name: str = "m1") -> bool:
        return await self.judge.find(Secret, ObjectKey(NS, name)) is not None

    async def cloud_config(self, name: str = "m1") -> Json:
        text = await self.data(name)
        assert text.startswith("## template: jinja\n#cloud-config\n")
        return dict(yaml.safe_load(text))

    async def documents(self, name: str = "m1") -> list[Json]:
        """kubeadm's documents in a cloud-config."""
        files = {f["path"]: f["content"] for f in (await self.cloud_config(name))["write_files"]}
        text = files.get("/run/kubeadm/kubeadm.yaml") or files["/run/kubeadm/kubeadm-join-config.yaml"]
        return list(yaml.safe_load_all(text))

    async def files(self, name: str = "m1") -> dict[str, Json]:
        return {f["path"]: f for f in (await self.cloud_config(name))["write_files"]}

    async def lock(self, cluster: str = "c1") -> ConfigMap | None:
        return await self.judge.find(ConfigMap, ObjectKey(NS, f"{cluster}-lock"))

    async def holder(self, cluster: str = "c1") -> str:
        lock = await self.lock(cluster)
        return "" if lock is None else str(msgspec.json.decode(lock.data["lock-information"])["machineName"])

    async def tokens(self) -> list[Secret]:
        return [s for s in await self.remote.list(Secret, namespace="kube-system") if s.type == "bootstrap.kubernetes.io/token"]

    async def token(self, name: str = "m1") -> str:
        join = (await self.read(name)).spec.join_configuration
        section = join.discovery.bootstrap_token if join and join.discovery else None
        return section.token if section else ""

    async def expiration(self, token: str) -> datetime:
        secret = await self.remote.get(Secret, ObjectKey("kube-system", f"bootstrap-token-{token[:6]}"))
        return datetime.fromisoformat(secret.data["expiration"].decode())

    async def set_expiration(self, token: str, text: str | None) -> None:
        key = ObjectKey("kube-system", f"bootstrap-token-{token[:6]}")
        await self.remote.patch(Secret, key, {"data": {"expiration": None if text is None else b64(text)}})

    async def delete(self, kind: Any, name: str) -> None:
        await self.judge.delete(kind, ObjectKey(NS, name))

    def later(self, **duration: float) -> None:
        self.clock.time += timedelta(**duration)


def decoded(value: str) -> str:
    return b64decode(value).decode()


async def a_world(**how: Any) -> World:
    await _served()
    return World(**how)


__all__ = ["NS", "START", "Cluster", "Machine", "MachinePool", "World", "a_world", "b64", "certificate_pair", "decoded"]
