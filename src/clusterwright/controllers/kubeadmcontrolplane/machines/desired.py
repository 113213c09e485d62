"""The desired objects of a control plane: Machines, their KubeadmConfigs and InfraMachines, as server-side apply intents. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from copy import deepcopy
from dataclasses import dataclass
from typing import Any

from clusterwright.api.meta import Json, OwnerReference, Unstructured
from clusterwright.api.wellknown import (
    CLONED_FROM_GROUP_KIND_ANNOTATION,
    CLONED_FROM_NAME_ANNOTATION,
    CLUSTER_NAME_LABEL,
    CONTROL_PLANE_LABEL,
    CONTROL_PLANE_NAME_LABEL,
    KCP_PRE_TERMINATE_HOOK,
    REMEDIATION_FOR_ANNOTATION,
)
from clusterwright.controllers.kubeadmcontrolplane import names
from clusterwright.kubeadm.naming import label_value
from clusterwright.kubeadm.versions import parse_version

LOCAL_MODE_GATE = "ControlPlaneKubeletLocalMode"
_LOCAL_MODE_FROM, _LOCAL_MODE_UNTIL = (1, 31, 0), (1, 36, 0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Owner:
    """The control plane as the owner of its objects. `spec` is its spec as JSON."""

    name: str
    namespace: str
    uid: str
    cluster: str
    api_version: str
    managed_etcd: bool
    spec: Mapping[str, Any]
    remediation_in_progress: str | None = None

    @property
    def version(self) -> str:
        """The wanted Kubernetes version."""
        return str(self.spec.get("version", ""))

    @property
    def config_spec(self) -> Mapping[str, Any]:
        """`spec.kubeadmConfigSpec`."""
        return self.spec.get("kubeadmConfigSpec") or {}

    @property
    def machine_template(self) -> Mapping[str, Any]:
        """`spec.machineTemplate`."""
        return self.spec.get("machineTemplate") or {}

    @property
    def machine_spec(self) -> Mapping[str, Any]:
        """`spec.machineTemplate.spec`."""
        return self.machine_template.get("spec") or {}

    @property
    def infrastructure_ref(self) -> Mapping[str, Any]:
        """The reference to the infrastructure template."""
        return self.machine_spec.get("infrastructureRef") or {}

    def reference(self, *, controller: bool) -> Json:
        """Return an ownerReference to the control plane."""
        reference: Json = {"apiVersion": self.api_version, "kind": "KubeadmControlPlane", "name": self.name, "uid": self.uid}
        return {**reference, "controller": True, "blockOwnerDeletion": True} if controller else reference

    @property
    def controller_reference(self) -> OwnerReference:
        """Return the typed form of the same ownerReference."""
        return OwnerReference(
            api_version=self.api_version,
            kind="KubeadmControlPlane",
            name=self.name,
            uid=self.uid,
            controller=True,
            block_owner_deletion=True,
        )


def labels(owner: Owner) -> dict[str, str]:
    """Return the labels of a Machine and its dependent objects; users cannot override ours."""
    metadata = owner.machine_template.get("metadata") or {}
    return {
        **(metadata.get("labels") or {}),
        CLUSTER_NAME_LABEL: owner.cluster,
        CONTROL_PLANE_LABEL: "",
        CONTROL_PLANE_NAME_LABEL: label_value(owner.name),
    }


def template_annotations(owner: Owner) -> dict[str, str]:
    """Return the annotations of the template."""
    metadata = owner.machine_template.get("metadata") or {}
    return dict(metadata.get("annotations") or {})


def deletion_timeouts(owner: Owner) -> Json:
    """Return the timeouts that the template sets."""
    return {k: v for k, v in (owner.machine_spec.get("deletion") or {}).items() if v is not None}


def readiness_gates(owner: Owner) -> list[Json]:
    """Return our readiness gates, then those of the user, each type once."""
    ours = (names.NODE_LABELS_AND_TAINTS, *names.pod_conditions(managed_etcd=owner.managed_etcd))
    if owner.managed_etcd:
        ours = (*ours, names.ETCD_MEMBER)
    gates: list[Json] = [{"conditionType": t} for t in ours]
    gates += [dict(g) for g in owner.machine_spec.get("readinessGates") or () if g.get("conditionType") not in ours]
    return gates


def new_machine(owner: Owner, *, name: str, failure_domain: str, infrastructure_ref: Json, config_ref: Json) -> Json:
    """Return a Machine that does not exist yet."""
    annotation = {REMEDIATION_FOR_ANNOTATION: owner.remediation_in_progress} if owner.remediation_in_progress is not None else {}
    return _machine(
        owner,
        name=name,
        version=owner.version,
        failure_domain=failure_domain,
        infrastructure_ref=infrastructure_ref,
        bootstrap={"configRef": config_ref},
        annotation=annotation,
    )


def updated_machine(owner: Owner, stored: Unstructured, *, version: str | None = None) -> Json:
    """Return an existing Machine in its desired state: its identity stays, metadata and timeouts follow the template."""
    kept = stored.metadata.annotations.get(REMEDIATION_FOR_ANNOTATION)
    spec: Mapping[str, Any] = stored.json.get("spec") or {}
    config_ref = (spec.get("bootstrap") or {}).get("configRef")
    intent = _machine(
        owner,
        name=stored.metadata.name,
        version=str(spec.get("version") or "") if version is None else version,
        failure_domain=str(spec.get("failureDomain") or ""),
        infrastructure_ref=dict(spec.get("infrastructureRef") or {}),
        bootstrap={"configRef": dict(config_ref)} if config_ref else {},
        annotation={REMEDIATION_FOR_ANNOTATION: kept} if kept is not None else {},
    )
    intent["metadata"]["uid"] = stored.metadata.uid
    return intent


def _machine(
    owner: Owner, *, name: str, version: str, failure_domain: str, infrastructure_ref: Json, bootstrap: Json, annotation: Mapping[str, str]
) -> Json:
    spec: Json = {
        "clusterName": owner.cluster,
        "bootstrap": bootstrap,
        "infrastructureRef": infrastructure_ref,
        "readinessGates": readiness_gates(owner),
    }
    optional: tuple[tuple[str, Any], ...] = (
        ("version", version),
        ("failureDomain", failure_domain),
        ("deletion", deletion_timeouts(owner)),
        ("taints", [dict(t) for t in owner.machine_spec.get("taints") or ()]),
    )
    spec |= {key: value for key, value in optional if value}
    return {
        "apiVersion": "cluster.x-k8s.io/v1beta2",
        "kind": "Machine",
        "metadata": {
            "name": name,
            "namespace": owner.namespace,
            "labels": labels(owner),
            "annotations": {**template_annotations(owner), KCP_PRE_TERMINATE_HOOK: "", **annotation},
            "ownerReferences": [owner.reference(controller=True)],
        },
        "spec": spec,
    }


def defaulted_config_spec(owner: Owner) -> Json:
    """Return `kubeadmConfigSpec` with the feature gate for Kubernetes 1.31 to 1.35; an explicit value is kept. Raises ValueError."""
    spec: Json = deepcopy(dict(owner.config_spec))
    if not _LOCAL_MODE_FROM <= parse_version(owner.version).release < _LOCAL_MODE_UNTIL:
        return spec
    cluster = dict(spec.get("clusterConfiguration") or {})
    cluster["featureGates"] = {LOCAL_MODE_GATE: True, **(cluster.get("featureGates") or {})}
    spec["clusterConfiguration"] = cluster
    return spec


def config_spec(owner: Owner, *, join: bool) -> Json:
    """Return the spec of a KubeadmConfig for a Machine that joins, or for the first one."""
    spec = defaulted_config_spec(owner)
    if join:
        spec.pop("initConfiguration", None)
        spec["joinConfiguration"] = {**(spec.get("joinConfiguration") or {})}
        if spec["joinConfiguration"].get("controlPlane") is None:
            spec["joinConfiguration"]["controlPlane"] = {}
    else:
        spec.pop("joinConfiguration", None)
    return spec


def new_config(owner: Owner, *, name: str, join: bool) -> Json:
    """Return a KubeadmConfig that does not exist yet."""
    spec = config_spec(owner, join=join)
    config: Json = {
        "apiVersion": "bootstrap.cluster.x-k8s.io/v1beta2",
        "kind": "KubeadmConfig",
        "metadata": {
            "name": name,
            "namespace": owner.namespace,
            "labels": labels(owner),
            **({"annotations": wanted} if (wanted := template_annotations(owner)) else {}),
            "ownerReferences": [owner.reference(controller=False)],
        },
    }
    if spec:
        config["spec"] = spec
    return config


def cloned_from(owner: Owner) -> dict[str, str]:
    """Return annotations that name the template of an InfraMachine."""
    ref = owner.infrastructure_ref
    return {
        CLONED_FROM_NAME_ANNOTATION: str(ref.get("name", "")),
        CLONED_FROM_GROUP_KIND_ANNOTATION: f"{ref.get('kind', '')}.{ref.get('apiGroup', '')}",
    }


def new_infrastructure(owner: Owner, template: Unstructured, *, name: str) -> Json:
    """Return an InfraMachine cloned from its template."""
    content = template.at("spec", "template")
    clone: Json = deepcopy(dict(content)) if isinstance(content, Mapping) else {}
    metadata = clone.pop("metadata", None) or {}
    return {
        **clone,
        "apiVersion": str(template.json.get("apiVersion", "")),
        "kind": template.kind.removesuffix("Template"),
        "metadata": {
            "name": name,
            "namespace": owner.namespace,
            "labels": {**(metadata.get("labels") or {}), **labels(owner)},
            "annotations": {**(metadata.get("annotations") or {}), **template_annotations(owner), **cloned_from(owner)},
            "ownerReferences": [owner.reference(controller=False)],
        },
    }


def metadata_intent(owner: Owner, obj: Unstructured) -> Json:
    """Return only labels and annotations of an existing InfraMachine or KubeadmConfig, for the metadata manager."""
    metadata = obj.metadata
    intent: Json = {"name": metadata.name, "namespace": metadata.namespace, "uid": metadata.uid, "labels": labels(owner)}
    # always there, though it may be empty: left out, the map would go with all annotations if this manager ever owned it
    intent["annotations"] = template_annotations(owner)
    return {"apiVersion": str(obj.json.get("apiVersion", "")), "kind": obj.kind, "metadata": intent}
