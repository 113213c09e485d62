"""A user's file, written for v1beta1 years ago: a class with variables and patches, its templates, a Cluster of it."""

from __future__ import annotations

from random import Random
from typing import Any

import yaml

from clusterwright.admission import chain
from clusterwright.api.crds import crds
from clusterwright.api.meta import GroupVersionKind, ObjectKey
from clusterwright.apiserver.server import ApiServer
from clusterwright.apiserver.serving.inprocess import InProcessTransport
from clusterwright.runtime.clock import SystemClock
from clusterwright.runtime.rest import RestClient
from clusterwright.webhooks import embedded

FILE = """
apiVersion: cluster.x-k8s.io/v1beta1
kind: ClusterClass
metadata: {name: small, namespace: default}
spec:
  controlPlane:
    ref: {apiVersion: controlplane.cluster.x-k8s.io/v1beta1, kind: KubeadmControlPlaneTemplate, name: small-cp}
    machineInfrastructure:
      ref: {apiVersion: infrastructure.cluster.x-k8s.io/v1beta1, kind: DockerMachineTemplate, name: small-cp}
    machineHealthCheck:
      maxUnhealthy: 33%
      nodeStartupTimeout: 15m
      unhealthyConditions: [{type: Ready, status: Unknown, timeout: 300s}]
  infrastructure:
    ref: {apiVersion: infrastructure.cluster.x-k8s.io/v1beta1, kind: DockerClusterTemplate, name: small}
  workers:
    machineDeployments:
    - class: worker
      nodeDrainTimeout: 1m30s
      strategy: {type: RollingUpdate, rollingUpdate: {maxSurge: 2, deletePolicy: Oldest}}
      template:
        bootstrap: {ref: {apiVersion: bootstrap.cluster.x-k8s.io/v1beta1, kind: KubeadmConfigTemplate, name: small-worker}}
        infrastructure: {ref: {apiVersion: infrastructure.cluster.x-k8s.io/v1beta1, kind: DockerMachineTemplate, name: small-worker}}
  variables:
  - name: registry
    required: true
    schema: {openAPIV3Schema: {type: string, default: "", example: registry.example}}
  patches:
  - name: registry
    enabledIf: '{{ ne .registry "" }}'
    definitions:
    - selector:
        apiVersion: controlplane.cluster.x-k8s.io/v1beta1
        kind: KubeadmControlPlaneTemplate
        matchResources: {controlPlane: true}
      jsonPatches:
      - op: add
        path: /spec/template/spec/kubeadmConfigSpec/clusterConfiguration/imageRepository
        valueFrom: {variable: registry}
---
apiVersion: infrastructure.cluster.x-k8s.io/v1beta1
kind: DockerClusterTemplate
metadata: {name: small, namespace: default}
spec: {template: {spec: {failureDomains: {fd2: {controlPlane: true}, fd1: {controlPlane: false}}}}}
---
apiVersion: controlplane.cluster.x-k8s.io/v1beta1
kind: KubeadmControlPlaneTemplate
metadata: {name: small-cp, namespace: default}
spec:
  template:
    spec:
      kubeadmConfigSpec:
        clusterConfiguration:
          apiServer: {timeoutForControlPlane: 5m0s, extraArgs: {v: "2", audit-log-maxage: "30"}}
        initConfiguration: {nodeRegistration: {taints: []}}
        joinConfiguration: {nodeRegistration: {kubeletExtraArgs: {eviction-hard: nodefs.available<0%}}}
---
apiVersion: infrastructure.cluster.x-k8s.io/v1beta1
kind: DockerMachineTemplate
metadata: {name: small-cp, namespace: default}
spec: {template: {spec: {extraMounts: [{containerPath: /a, hostPath: /b}]}}}
---
apiVersion: infrastructure.cluster.x-k8s.io/v1beta1
kind: DockerMachineTemplate
metadata: {name: small-worker, namespace: default}
spec: {template: {spec: {}}}
---
apiVersion: bootstrap.cluster.x-k8s.io/v1beta1
kind: KubeadmConfigTemplate
metadata: {name: small-worker, namespace: default}
spec: {template: {spec: {joinConfiguration: {nodeRegistration: {criSocket: unix:///run/containerd.sock}}, useExperimentalRetryJoin: true}}}
---
apiVersion: cluster.x-k8s.io/v1beta1
kind: Cluster
metadata: {name: mine, namespace: default}
spec:
  clusterNetwork: {pods: {cidrBlocks: [192.168.0.0/16]}, serviceDomain: cluster.local}
  topology:
    class: small
    version: v1.34.0
    controlPlane: {metadata: {}, replicas: 3}
    variables: [{name: registry, value: ""}]
    workers: {machineDeployments: [{class: worker, name: md-0, replicas: 2}]}
"""


async def test_every_object_of_an_old_file_is_taken_and_means_what_it_meant() -> None:
    server = ApiServer(now=SystemClock().now, random=Random(1), admission=chain({"ClusterTopology": True}), converters=embedded.converters)
    server.ensure(crds())
    client = RestClient(InProcessTransport(server))
    documents: list[dict[str, Any]] = list(yaml.safe_load_all(FILE))
    for document in documents:
        await client.apply(document, field_manager="kubectl")

    async def stored(kind: str, name: str) -> Any:
        group = next(d["apiVersion"].partition("/")[0] for d in documents if d["kind"] == kind)
        return (await client.get(GroupVersionKind(group, "v1beta2", kind), ObjectKey("default", name))).json["spec"]

    for document in documents:  # again: nothing of what is stored is new
        kind, name = document["kind"], document["metadata"]["name"]
        before = await stored(kind, name)
        await client.apply(document, field_manager="kubectl")
        assert await stored(kind, name) == before

    klass = await stored("ClusterClass", "small")
    assert klass["controlPlane"]["healthCheck"]["checks"] == {
        "nodeStartupTimeoutSeconds": 900,
        "unhealthyNodeConditions": [{"type": "Ready", "status": "Unknown", "timeoutSeconds": 300}],
    }
    worker = klass["workers"]["machineDeployments"][0]
    assert worker["deletion"] == {"nodeDrainTimeoutSeconds": 90, "order": "Oldest"}
    assert worker["rollout"]["strategy"] == {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 2}}
    plane = (await stored("KubeadmControlPlaneTemplate", "small-cp"))["template"]["spec"]["kubeadmConfigSpec"]
    assert plane["clusterConfiguration"]["apiServer"]["extraArgs"] == [
        {"name": "audit-log-maxage", "value": "30"},
        {"name": "v", "value": "2"},
    ]
    assert plane["initConfiguration"]["nodeRegistration"] == {"taints": []}
    assert plane["joinConfiguration"]["timeouts"] == {"controlPlaneComponentHealthCheckSeconds": 300}
    domains = (await stored("DockerClusterTemplate", "small"))["template"]["spec"]["failureDomains"]
    assert [(domain["name"], domain["controlPlane"]) for domain in domains] == [("fd1", False), ("fd2", True)]
    topology = (await stored("Cluster", "mine"))["topology"]
    assert topology["classRef"] == {"name": "small"}
    assert topology["variables"] == [{"name": "registry", "value": ""}]
