"""Files that were written for containers: the Docker kinds and the docker backend of the Dev kinds, on simulated machines."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from random import Random
from typing import Any

import pytest
import yaml

from clusterwright.api.core import Cluster
from clusterwright.api.docker import DockerCluster, DockerMachine, DockerMachinePool
from clusterwright.api.infrastructure import DevCluster, DevMachine, DevMachinePool
from clusterwright.api.meta import GroupVersionKind, Json, ObjectKey
from clusterwright.controllers.kit.features import EMBEDDED_FEATURES
from clusterwright.runtime.clock import LoopClock
from clusterwright.simulation import samples
from clusterwright.simulation.loop import run_virtual
from clusterwright.simulation.plane import Plane, management_server, plane
from clusterwright.simulation.world import START

# As class files of either version are written, with what only a container engine understands; those of v1beta1 have patches that leave nulls.
CLASS = """
apiVersion: cluster.x-k8s.io/{v}
kind: ClusterClass
metadata: {{name: small, namespace: default}}
spec:
  controlPlane:
    {ref}: {{apiVersion: controlplane.cluster.x-k8s.io/{v}, kind: KubeadmControlPlaneTemplate, name: small}}
    machineInfrastructure: {{{ref}: {{apiVersion: infrastructure.cluster.x-k8s.io/{v}, kind: {kind}MachineTemplate, name: small}}}}
  infrastructure: {{{ref}: {{apiVersion: infrastructure.cluster.x-k8s.io/{v}, kind: {kind}ClusterTemplate, name: small}}}}
  workers:
    machineDeployments: [{{class: worker, {deployment}}}]
    machinePools: [{{class: worker, {pool}}}]
  variables:
  - name: dnsTag
    required: true
    schema: {{openAPIV3Schema: {{type: string, default: ""}}}}
  patches:
  - name: dnsTag
    enabledIf: {enabled}
    definitions:
    - selector:
        apiVersion: controlplane.cluster.x-k8s.io/{v}
        kind: KubeadmControlPlaneTemplate
        matchResources: {{controlPlane: true}}
      jsonPatches:
      - op: add
        path: /spec/template/spec/kubeadmConfigSpec/clusterConfiguration/dns
        valueFrom: {{template: "imageTag: {{{{ .dnsTag }}}}"}}
  - name: image
    definitions:
    - selector:
        apiVersion: infrastructure.cluster.x-k8s.io/{v}
        kind: {kind}MachineTemplate
        matchResources: {{machineDeploymentClass: {{names: [worker]}}}}
      jsonPatches:
      - op: add
        path: {image}
        valueFrom: {{template: "example/node:{{{{ .builtin.machineDeployment.version }}}}"}}
---
apiVersion: controlplane.cluster.x-k8s.io/{v}
kind: KubeadmControlPlaneTemplate
metadata: {{name: small, namespace: default}}
spec: {{template: {{spec: {{kubeadmConfigSpec: {{clusterConfiguration: {{apiServer: {{certSANs: [localhost, 0.0.0.0]}}}}}}}}}}}}
---
apiVersion: bootstrap.cluster.x-k8s.io/{v}
kind: KubeadmConfigTemplate
metadata: {{name: small, namespace: default}}
spec: {{template: {{spec: {{joinConfiguration: {{nodeRegistration: {{ignorePreflightErrors: [Swap]}}}}}}}}}}
---
apiVersion: infrastructure.cluster.x-k8s.io/{v}
kind: {kind}ClusterTemplate
metadata: {{name: small, namespace: default}}
spec: {{template: {{spec: {cluster}}}}}
---
apiVersion: infrastructure.cluster.x-k8s.io/{v}
kind: {kind}MachineTemplate
metadata: {{name: small, namespace: default}}
spec: {{template: {{spec: {machine}}}}}
---
apiVersion: infrastructure.cluster.x-k8s.io/{v}
kind: {kind}MachinePoolTemplate
metadata: {{name: small, namespace: default}}
spec: {{template: {{spec: {machines}}}}}
"""
MOUNTS = "{extraMounts: [{containerPath: /a, hostPath: /b}]}"
DOMAINS = {
    "v1beta1": "failureDomains: {a: {controlPlane: true}, b: {controlPlane: false}}",
    "v1beta2": "failureDomains: [{name: a, controlPlane: true}, {name: b, controlPlane: false}]",
}
BALANCER = "loadBalancer: {imageRepository: example/proxy, imageTag: v1}"
DOCKER = (DockerCluster, DockerMachine, DockerMachinePool)
DEV = (DevCluster, DevMachine, DevMachinePool)


def class_file(kind: str, v: str) -> list[Json]:
    bootstrap = f"apiVersion: bootstrap.cluster.x-k8s.io/{v}, kind: KubeadmConfigTemplate, name: small"
    infra = f"apiVersion: infrastructure.cluster.x-k8s.io/{v}, kind: {kind}Machine%sTemplate, name: small"
    if v == "v1beta1":
        ref, parts = "ref", f"template: {{bootstrap: {{ref: {{{bootstrap}}}}}, infrastructure: {{ref: {{{infra}}}}}}}"
    else:
        ref, parts = "templateRef", f"bootstrap: {{templateRef: {{{bootstrap}}}}}, infrastructure: {{templateRef: {{{infra}}}}}"
    cluster, machine, machines = f"{{{DOMAINS[v]}, {BALANCER}}}", MOUNTS, f"{{template: {MOUNTS}}}"
    image = "/spec/template/spec/customImage"
    if kind == "Dev":
        cluster, machine, machines = (f"{{backend: {{docker: {one}}}}}" for one in (cluster, MOUNTS, MOUNTS))
        image = "/spec/template/spec/backend/docker/customImage"
    enabled = '"true"' if v == "v1beta1" else "'{{ ne .dnsTag \"\" }}'"
    text = CLASS.format(
        enabled=enabled,
        v=v,
        kind=kind,
        ref=ref,
        deployment=parts % "",
        pool=parts % "Pool",
        image=image,
        cluster=cluster,
        machine=machine,
        machines=machines,
    )
    return sorted(yaml.safe_load_all(text), key=lambda o: o["kind"] == "ClusterClass")


def cluster_file(name: str, v: str) -> Json:
    workers = {
        "machineDeployments": [{"class": "worker", "name": "md", "replicas": 1}],
        "machinePools": [{"class": "worker", "name": "mp", "replicas": 1}],
    }
    named = {"class": "small"} if v == "v1beta1" else {"classRef": {"name": "small"}}
    topology = {**named, "version": "v1.34.1", "controlPlane": {"replicas": 1}, "workers": workers}
    metadata = {"name": name, "namespace": "default"}
    return {"apiVersion": f"cluster.x-k8s.io/{v}", "kind": "Cluster", "metadata": metadata, "spec": {"topology": topology}}


def in_plane(body: Callable[[Plane], Awaitable[None]], *, docker: bool = True) -> None:
    async def main() -> None:
        clock = LoopClock(START)
        server = management_server(clock, Random(1), EMBEDDED_FEATURES)
        async with plane(clock, server=server, docker=docker) as p:
            await body(p)
        server.close()

    run_virtual(main())


@pytest.mark.parametrize(("kind", "v"), [("Docker", "v1beta1"), ("Docker", "v1beta2"), ("Dev", "v1beta2")])
def test_a_class_of_containers_becomes_simulated_machines(kind: str, v: str) -> None:
    cluster_kind, machine_kind, pool_kind = DOCKER if kind == "Docker" else DEV

    async def body(p: Plane) -> None:
        await p.apply([*class_file(kind, v), cluster_file("one", v), cluster_file("two", v)])
        for name in ("one", "two"):
            await p.until_available(name, workers=2, within=300)
        one, two = await p.cluster("one"), await p.cluster("two")
        assert [(d.name, d.control_plane) for d in one.status.failure_domains] == [("a", True), ("b", False)]
        # the template says the port, by its default: every cluster has it, at an address of its own
        ends: Any = [c.spec.control_plane_endpoint for c in (one, two)]
        assert [e.port for e in ends] == [6443, 6443]
        assert ends[0].host != ends[1].host
        gvk = GroupVersionKind("infrastructure.cluster.x-k8s.io", "v1beta2", machine_kind.__name__)
        raw = [m.json["spec"] for m in await p.client.list(gvk, namespace="default")]
        specs = raw if kind == "Docker" else [spec["backend"]["docker"] for spec in raw]
        assert len(specs) == 6
        assert all(spec["extraMounts"] == [{"containerPath": "/a", "hostPath": "/b"}] for spec in specs)
        assert sorted(spec.get("customImage", "") for spec in specs) == ["", "", "", "", "example/node:v1.34.1", "example/node:v1.34.1"]
        pools = await p.client.list(pool_kind, namespace="default")
        assert [pool.status.infrastructure_machine_kind for pool in pools] == [machine_kind.__name__] * 2
        for name in ("one", "two"):
            await p.client.delete(Cluster, ObjectKey("default", name))
            await p.until_gone(Cluster, name, within=300)
        for gone in (cluster_kind, machine_kind, pool_kind):
            assert list(await p.client.list(gone)) == []

    in_plane(body)


def docker_sample(name: str) -> list[Json]:
    """A Cluster whose infrastructure is a DockerCluster."""
    cluster, infra, *rest = samples.cluster(name)
    cluster["spec"]["infrastructureRef"]["kind"] = "DockerCluster"
    return [cluster, {**infra, "kind": "DockerCluster", "spec": {}}, *rest]


def test_containers_are_left_alone_if_another_provider_may_run() -> None:
    async def body(p: Plane) -> None:
        await p.apply(docker_sample("a"))
        cluster, infra, *_ = samples.cluster("b")
        await p.apply([cluster, {**infra, "spec": {"backend": {"docker": {}}}}])
        await p.apply(samples.cluster("c")[:2])
        key = ObjectKey("default", "c")
        await p.until(lambda: _provisioned(p, key), "the one in memory is provisioned")
        await p.clock.sleep(60)
        for kind, name in ((DockerCluster, "a"), (DevCluster, "b")):
            left: Any = await p.client.get(kind, ObjectKey("default", name))
            assert left.status.initialization is None
            assert left.metadata.finalizers == ()

    in_plane(body, docker=False)


async def _provisioned(p: Plane, key: ObjectKey) -> bool:
    found = await p.client.get(DevCluster, key)
    return found.status.initialization is not None and found.status.initialization.provisioned is True
