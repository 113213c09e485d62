"""The objects that a run creates."""

from __future__ import annotations

from copy import deepcopy
from typing import Any, Final

from clusterwright.api.meta import Json
from clusterwright.api.scheme import Resource
from clusterwright.api.wellknown import CLUSTER_NAME_LABEL
from clusterwright.conformance.evidence import KEPT_LABEL

_CORE: Final = "cluster.x-k8s.io/v1beta2"
KUBERNETES: Final = "v1.34.1"
POLICY_GROUP: Final = "admissionregistration.k8s.io"
_DELETION: Final[Json] = {"nodeDrainTimeoutSeconds": 1, "nodeDeletionTimeoutSeconds": 1, "nodeVolumeDetachTimeoutSeconds": 1}
_BOOTSTRAP_DATA: Final = "#cloud-config\n# {secret}\nruncmd:\n- echo {secret}\n"


def reference(resource: Resource, name: str) -> Json:
    """Return a reference of core objects to an object of the provider."""
    return {"apiGroup": resource.group, "kind": resource.kind, "name": name}


def subject(resource: Resource, namespace: str, name: str, template: Json, cluster: str, annotations: dict[str, str]) -> Json:
    """Return an object of the provider, from its template (or a plain object of the kind) as core controllers clone it."""
    body: Any = template["spec"].get("template", template) if template["kind"].endswith("Template") else template
    given = body.get("metadata") or {}
    labels = {**(given.get("labels") or {}), CLUSTER_NAME_LABEL: cluster, KEPT_LABEL: "yes"}
    noted = {**(given.get("annotations") or {}), KEPT_LABEL: "yes", **annotations}
    return {
        "apiVersion": template["apiVersion"],
        "kind": resource.kind,
        "metadata": {"name": name, "namespace": namespace, "labels": labels, "annotations": noted},
        "spec": deepcopy(body.get("spec") or {}),
    }


def cluster(
    namespace: str, name: str, infrastructure: Json, control_plane: Json | None = None, annotations: dict[str, str] | None = None
) -> Json:
    """Return a Cluster."""
    network = {"pods": {"cidrBlocks": ["192.168.0.0/16"]}, "services": {"cidrBlocks": ["10.128.0.0/12"]}}
    return {
        "apiVersion": _CORE,
        "kind": "Cluster",
        "metadata": {"name": name, "namespace": namespace, **({"annotations": annotations} if annotations else {})},
        "spec": {
            "clusterNetwork": network,
            "infrastructureRef": infrastructure,
            **({"controlPlaneRef": control_plane} if control_plane else {}),
        },
    }


def config_reference(name: str) -> Json:
    """Return a reference to a bootstrap config that does not exist: its Machine waits for bootstrap data."""
    return {"apiGroup": "bootstrap.cluster.x-k8s.io", "kind": "KubeadmConfig", "name": name}


def machine_reference(name: str) -> Json:
    """Return a reference to infrastructure that does not exist: its Machine waits for infrastructure."""
    return {"apiGroup": "infrastructure.cluster.x-k8s.io", "kind": "DevMachine", "name": name}


def machine(
    namespace: str, name: str, cluster: str, infrastructure: Json, config: Json, *, data: str = "", failure_domain: str = ""
) -> Json:
    """Return a Machine. `data`: the name of a Secret with bootstrap data; without it, they come from `config`."""
    spec: Json = {
        "clusterName": cluster,
        "version": KUBERNETES,
        "infrastructureRef": infrastructure,
        "bootstrap": {"dataSecretName": data} if data else {"configRef": config},
        "deletion": _DELETION,
    }
    if failure_domain:
        spec["failureDomain"] = failure_domain
    labels = {CLUSTER_NAME_LABEL: cluster}
    return {"apiVersion": _CORE, "kind": "Machine", "metadata": {"name": name, "namespace": namespace, "labels": labels}, "spec": spec}


def machine_pool(namespace: str, name: str, cluster: str, infrastructure: Json, config: Json, *, data: str = "") -> Json:
    """Return a MachinePool of one machine. `data`: the name of a Secret with bootstrap data; without it, they come from `config`."""
    spec: Json = {
        "clusterName": cluster,
        "version": KUBERNETES,
        "infrastructureRef": infrastructure,
        "bootstrap": {"dataSecretName": data} if data else {"configRef": config},
        "deletion": _DELETION,
    }
    labels = {CLUSTER_NAME_LABEL: cluster}
    return {
        "apiVersion": _CORE,
        "kind": "MachinePool",
        "metadata": {"name": name, "namespace": namespace, "labels": labels},
        "spec": {"clusterName": cluster, "replicas": 1, "template": {"spec": spec}},
    }


def bootstrap_data(namespace: str, name: str, cluster: str, secret: str, data: str) -> Json:
    """Return the Secret with bootstrap data, which holds the text `secret`."""
    text = data or _BOOTSTRAP_DATA.format(secret=secret)
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "type": "cluster.x-k8s.io/secret",
        "metadata": {"name": name, "namespace": namespace, "labels": {CLUSTER_NAME_LABEL: cluster}},
        "stringData": {"value": text, "format": "cloud-config"},
    }


def dev_cluster(namespace: str, name: str) -> Json:
    """Return infrastructure of a cluster in the in-memory cloud."""
    return {
        "apiVersion": "infrastructure.cluster.x-k8s.io/v1beta2",
        "kind": "DevCluster",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"backend": {"inMemory": {}}},
    }


def control_plane(namespace: str, name: str) -> tuple[Json, Json, Json]:
    """Return a control plane of one machine in the in-memory cloud: its template, the object, and the reference to it."""
    template = {
        "apiVersion": "infrastructure.cluster.x-k8s.io/v1beta2",
        "kind": "DevMachineTemplate",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"template": {"spec": {"backend": {"inMemory": {}}}}},
    }
    reference = {"apiGroup": "infrastructure.cluster.x-k8s.io", "kind": "DevMachineTemplate", "name": name}
    made = {
        "apiVersion": "controlplane.cluster.x-k8s.io/v1beta2",
        "kind": "KubeadmControlPlane",
        "metadata": {"name": name, "namespace": namespace, "labels": {CLUSTER_NAME_LABEL: name}},
        "spec": {
            "replicas": 1,
            "version": KUBERNETES,
            "machineTemplate": {"spec": {"infrastructureRef": reference, "deletion": _DELETION}},
            "kubeadmConfigSpec": {"format": "cloud-config"},
        },
    }
    return template, made, {"apiGroup": "controlplane.cluster.x-k8s.io", "kind": "KubeadmControlPlane", "name": name}


def refusal(resource: Resource, name: str, subject: str) -> tuple[Json, Json]:
    """Return a policy that refuses writes of one object's status, and its binding."""
    rule = {"apiGroups": [resource.group], "apiVersions": ["*"], "operations": ["UPDATE"], "resources": [f"{resource.plural}/status"]}
    policy = {
        "apiVersion": f"{POLICY_GROUP}/v1",
        "kind": "ValidatingAdmissionPolicy",
        "metadata": {"name": name},
        "spec": {
            "matchConstraints": {"resourceRules": [rule]},
            "matchConditions": [{"name": "one-object", "expression": f"object.metadata.name == '{subject}'"}],
            "validations": [{"expression": "false", "message": "the conformance run refuses writes of this status for a while"}],
        },
    }
    binding = {
        "apiVersion": f"{POLICY_GROUP}/v1",
        "kind": "ValidatingAdmissionPolicyBinding",
        "metadata": {"name": name},
        "spec": {"policyName": name, "validationActions": ["Deny"]},
    }
    return policy, binding


def changed_template(template: Json, schema: Json) -> Json:
    """Return the template with a change that a dry run of a topology would try: a label, and a text of its spec if the schema has one."""
    changed = deepcopy(template)
    changed["metadata"] = {
        "name": template["metadata"]["name"],
        "namespace": template["metadata"]["namespace"],
        "annotations": {"topology.cluster.x-k8s.io/dry-run": ""},
    }
    body = changed["spec"]["template"]
    body.setdefault("metadata", {}).setdefault("labels", {})["conformance.clusterwright.example.com/changed"] = "yes"
    fields = schema.get("properties", {}) if schema else {}
    plain = [
        n for n, s in fields.items() if s.get("type") == "string" and not {"enum", "pattern", "format", "x-kubernetes-validations"} & set(s)
    ]
    if plain:
        body.setdefault("spec", {})[plain[0]] = "changed"
    return changed
