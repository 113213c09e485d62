"""The Dev kinds, which the API reference only sketches: every field of their schemas, written down."""

from __future__ import annotations

import json
from collections.abc import Iterator
from textwrap import dedent
from typing import Any

import pytest

from clusterwright.api.crds import crds

SCHEMAS = {crd["spec"]["names"]["kind"]: crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"] for crd in crds()}
KEYWORDS = (
    "minLength", "maxLength", "minimum", "maximum", "minItems", "maxItems", "minProperties", "default", "enum",
    "x-kubernetes-list-type", "x-kubernetes-list-map-keys", "x-kubernetes-map-type",
)  # fmt: skip

FIELDS = {
    "DevCluster": """
        spec: object
        spec.backend: required object
        spec.backend.docker: object
        spec.backend.docker.failureDomains: array minItems=1 maxItems=100 list-type="map" list-map-keys=["name"]
        spec.backend.docker.failureDomains[]: object
        spec.backend.docker.failureDomains[].attributes: object
        spec.backend.docker.failureDomains[].attributes{}: string
        spec.backend.docker.failureDomains[].controlPlane: boolean
        spec.backend.docker.failureDomains[].name: required string minLength=1 maxLength=256
        spec.backend.docker.loadBalancer: object
        spec.backend.docker.loadBalancer.customHAProxyConfigTemplateRef: object map-type="atomic"
        spec.backend.docker.loadBalancer.customHAProxyConfigTemplateRef.name: string default=""
        spec.backend.docker.loadBalancer.imageRepository: string
        spec.backend.docker.loadBalancer.imageTag: string
        spec.backend.inMemory: object
        spec.controlPlaneEndpoint: object minProperties=1
        spec.controlPlaneEndpoint.host: string minLength=1 maxLength=512
        spec.controlPlaneEndpoint.port: integer:int32 minimum=1 maximum=65535
        status: object
        status.conditions: array maxItems=32 list-type="map" list-map-keys=["type"]
        status.conditions[]: object
        status.conditions[].lastTransitionTime: required string:date-time
        status.conditions[].message: required string maxLength=32768
        status.conditions[].observedGeneration: integer:int64 minimum=0
        status.conditions[].reason: required string minLength=1 maxLength=1024
        status.conditions[].status: required string enum=["True","False","Unknown"]
        status.conditions[].type: required string maxLength=316
        status.deprecated: object
        status.deprecated.v1beta1: object
        status.deprecated.v1beta1.conditions: array
        status.deprecated.v1beta1.conditions[]: object
        status.deprecated.v1beta1.conditions[].lastTransitionTime: required string:date-time
        status.deprecated.v1beta1.conditions[].message: string minLength=1 maxLength=10240
        status.deprecated.v1beta1.conditions[].reason: string minLength=1 maxLength=256
        status.deprecated.v1beta1.conditions[].severity: string maxLength=32
        status.deprecated.v1beta1.conditions[].status: required string
        status.deprecated.v1beta1.conditions[].type: required string minLength=1 maxLength=256
        status.failureDomains: array minItems=1 maxItems=100 list-type="map" list-map-keys=["name"]
        status.failureDomains[]: object
        status.failureDomains[].attributes: object
        status.failureDomains[].attributes{}: string
        status.failureDomains[].controlPlane: boolean
        status.failureDomains[].name: required string minLength=1 maxLength=256
        status.initialization: object minProperties=1
        status.initialization.provisioned: boolean
    """,
    "DevClusterTemplate": """
        spec: object
        spec.template: required object
        spec.template.metadata: object minProperties=1
        spec.template.metadata.annotations: object
        spec.template.metadata.annotations{}: string
        spec.template.metadata.labels: object
        spec.template.metadata.labels{}: string
        spec.template.spec: required object
    """,
    "DevMachine": """
        spec: object
        spec.backend: required object
        spec.backend.docker: object
        spec.backend.docker.bootstrapTimeout: string
        spec.backend.docker.customImage: string
        spec.backend.docker.extraMounts: array
        spec.backend.docker.extraMounts[]: object
        spec.backend.docker.extraMounts[].containerPath: string
        spec.backend.docker.extraMounts[].hostPath: string
        spec.backend.docker.extraMounts[].readOnly: boolean
        spec.backend.docker.preLoadImages: array
        spec.backend.docker.preLoadImages[]: string
        spec.backend.inMemory: object
        spec.backend.inMemory.apiServer: object
        spec.backend.inMemory.apiServer.provisioning: object
        spec.backend.inMemory.apiServer.provisioning.startupDuration: required string
        spec.backend.inMemory.apiServer.provisioning.startupJitter: string
        spec.backend.inMemory.etcd: object
        spec.backend.inMemory.etcd.provisioning: object
        spec.backend.inMemory.etcd.provisioning.startupDuration: required string
        spec.backend.inMemory.etcd.provisioning.startupJitter: string
        spec.backend.inMemory.node: object
        spec.backend.inMemory.node.provisioning: object
        spec.backend.inMemory.node.provisioning.startupDuration: required string
        spec.backend.inMemory.node.provisioning.startupJitter: string
        spec.backend.inMemory.vm: object
        spec.backend.inMemory.vm.provisioning: object
        spec.backend.inMemory.vm.provisioning.startupDuration: required string
        spec.backend.inMemory.vm.provisioning.startupJitter: string
        spec.providerID: string minLength=1 maxLength=512
        status: object
        status.addresses: array
        status.addresses[]: object
        status.addresses[].address: required string minLength=1 maxLength=256
        status.addresses[].type: required string enum=["Hostname","ExternalIP","InternalIP","ExternalDNS","InternalDNS"]
        status.conditions: array maxItems=32 list-type="map" list-map-keys=["type"]
        status.conditions[]: object
        status.conditions[].lastTransitionTime: required string:date-time
        status.conditions[].message: required string maxLength=32768
        status.conditions[].observedGeneration: integer:int64 minimum=0
        status.conditions[].reason: required string minLength=1 maxLength=1024
        status.conditions[].status: required string enum=["True","False","Unknown"]
        status.conditions[].type: required string maxLength=316
        status.deprecated: object
        status.deprecated.v1beta1: object
        status.deprecated.v1beta1.conditions: array
        status.deprecated.v1beta1.conditions[]: object
        status.deprecated.v1beta1.conditions[].lastTransitionTime: required string:date-time
        status.deprecated.v1beta1.conditions[].message: string minLength=1 maxLength=10240
        status.deprecated.v1beta1.conditions[].reason: string minLength=1 maxLength=256
        status.deprecated.v1beta1.conditions[].severity: string maxLength=32
        status.deprecated.v1beta1.conditions[].status: required string
        status.deprecated.v1beta1.conditions[].type: required string minLength=1 maxLength=256
        status.failureDomain: string minLength=1 maxLength=256
        status.initialization: object minProperties=1
        status.initialization.provisioned: boolean
    """,
    "DevMachineTemplate": """
        spec: object
        spec.template: required object
        spec.template.metadata: object minProperties=1
        spec.template.metadata.annotations: object
        spec.template.metadata.annotations{}: string
        spec.template.metadata.labels: object
        spec.template.metadata.labels{}: string
        spec.template.spec: required object
        status: object
        status.capacity: object
        status.capacity{}: int-or-string
    """,
    "DevMachinePool": """
        spec: object
        spec.backend: object
        spec.backend.docker: object
        spec.backend.docker.customImage: string
        spec.backend.docker.extraMounts: array
        spec.backend.docker.extraMounts[]: object
        spec.backend.docker.extraMounts[].containerPath: string
        spec.backend.docker.extraMounts[].hostPath: string
        spec.backend.docker.extraMounts[].readOnly: boolean
        spec.backend.docker.preLoadImages: array
        spec.backend.docker.preLoadImages[]: string
        spec.backend.inMemory: object
        spec.backend.inMemory.apiServer: object
        spec.backend.inMemory.apiServer.provisioning: object
        spec.backend.inMemory.apiServer.provisioning.startupDuration: required string
        spec.backend.inMemory.apiServer.provisioning.startupJitter: string
        spec.backend.inMemory.etcd: object
        spec.backend.inMemory.etcd.provisioning: object
        spec.backend.inMemory.etcd.provisioning.startupDuration: required string
        spec.backend.inMemory.etcd.provisioning.startupJitter: string
        spec.backend.inMemory.node: object
        spec.backend.inMemory.node.provisioning: object
        spec.backend.inMemory.node.provisioning.startupDuration: required string
        spec.backend.inMemory.node.provisioning.startupJitter: string
        spec.backend.inMemory.vm: object
        spec.backend.inMemory.vm.provisioning: object
        spec.backend.inMemory.vm.provisioning.startupDuration: required string
        spec.backend.inMemory.vm.provisioning.startupJitter: string
        spec.providerID: string
        spec.providerIDList: array
        spec.providerIDList[]: string
        status: object
        status.conditions: array maxItems=32 list-type="map" list-map-keys=["type"]
        status.conditions[]: object
        status.conditions[].lastTransitionTime: required string:date-time
        status.conditions[].message: required string maxLength=32768
        status.conditions[].observedGeneration: integer:int64 minimum=0
        status.conditions[].reason: required string minLength=1 maxLength=1024
        status.conditions[].status: required string enum=["True","False","Unknown"]
        status.conditions[].type: required string maxLength=316
        status.infrastructureMachineKind: string
        status.instances: array
        status.instances[]: object
        status.instances[].addresses: array
        status.instances[].addresses[]: object
        status.instances[].addresses[].address: required string minLength=1 maxLength=256
        status.instances[].addresses[].type: required string enum=["Hostname","ExternalIP","InternalIP","ExternalDNS","InternalDNS"]
        status.instances[].instanceName: string
        status.instances[].providerID: string
        status.instances[].ready: boolean
        status.instances[].version: string
        status.observedGeneration: integer:int64
        status.ready: boolean
        status.replicas: integer:int32
    """,
    "DevMachinePoolTemplate": """
        spec: object
        spec.template: required object
        spec.template.metadata: object minProperties=1
        spec.template.metadata.annotations: object
        spec.template.metadata.annotations{}: string
        spec.template.metadata.labels: object
        spec.template.metadata.labels{}: string
        spec.template.spec: required object
    """,
}


def describe(node: dict[str, Any]) -> str:
    words = [node.get("type", "int-or-string" if node.get("x-kubernetes-int-or-string") else "any")]
    if "format" in node:
        words[0] += f":{node['format']}"
    words += [f"{key.removeprefix('x-kubernetes-')}={json.dumps(node[key], separators=(',', ':'))}" for key in KEYWORDS if key in node]
    return " ".join(words)


def fields(schema: dict[str, Any], path: str = "") -> Iterator[str]:
    for name, node in sorted(schema.get("properties", {}).items()):
        if not path and name in ("apiVersion", "kind", "metadata"):
            continue
        required = "required " if name in schema.get("required", ()) else ""
        yield f"{path}{name}: {required}{describe(node)}"
        yield from fields(node, f"{path}{name}.")
        if "items" in node:
            yield f"{path}{name}[]: {describe(node['items'])}"
            yield from fields(node["items"], f"{path}{name}[].")
        if "additionalProperties" in node:
            yield f"{path}{name}{{}}: {describe(node['additionalProperties'])}"


@pytest.mark.parametrize("kind", FIELDS)
def test_every_field_of_a_dev_kind(kind: str) -> None:
    written = dedent(FIELDS[kind]).strip().splitlines()
    assert [line for line in fields(SCHEMAS[kind]) if not line.startswith("spec.template.spec.")] == written


@pytest.mark.parametrize("kind", ["DevCluster", "DevMachine", "DevMachinePool"])
def test_the_body_of_a_template_is_the_spec_of_its_kind(kind: str) -> None:
    def bare(node: Any) -> Any:
        return {key: bare(value) for key, value in node.items() if key != "description"} if isinstance(node, dict) else node

    template = SCHEMAS[f"{kind}Template"]["properties"]["spec"]["properties"]["template"]
    assert template["required"] == ["spec"]
    assert bare(template["properties"]["spec"]) == bare(SCHEMAS[kind]["properties"]["spec"])
