"""The table of built-in kinds."""

from __future__ import annotations

import base64
from functools import partial
from typing import Any, Final

from clusterwright.api.meta import GroupVersionKind, Json
from clusterwright.apiserver.builtins import (
    columns,
    containers,
    customresourcedefinitions,
    defaults,
    events,
    services,
    validation,
    workloads,
)
from clusterwright.apiserver.builtins.handler import Builtin, namespace_finalizers
from clusterwright.apiserver.interfaces import Resource, Scale

_REVIEWS: Final = ("create",)
_NAMESPACE_VERBS: Final = ("create", "delete", "get", "list", "patch", "update", "watch")
_SCALE: Final = Scale(".spec.replicas", ".status.replicas", ".spec.selector")


def _fields(*names: str) -> dict[str, tuple[str, ...]]:
    return {n: tuple(n.split(".")) for n in names}


# ---------------------------------------------------------------- strategies


def _fit_secret(obj: Json) -> None:
    """StringData is a way to write data, and is not kept."""
    texts = obj.pop("stringData", None)
    if texts:
        data = dict(obj.get("data") or {})
        data.update({k: base64.b64encode(v.encode()).decode() for k, v in texts.items()})
        obj["data"] = data


def _new_namespace(obj: Json) -> None:
    defaults.namespace(obj)  # a generated name is known by now
    obj["status"] = {"phase": "Active"}
    spec = obj.setdefault("spec", {})
    finalizers = spec.get("finalizers") or []
    if "kubernetes" not in finalizers:
        spec["finalizers"] = [*finalizers, "kubernetes"]


def _kept_namespace(obj: Json, old: Json) -> None:
    """spec.finalizers are written through the finalize subresource only."""
    obj["spec"] = old.get("spec") or {}


def _new_node(obj: Json) -> None:
    """A new node is tainted until it is ready."""
    spec = obj.setdefault("spec", {})
    taint = {"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"}
    taints = spec.get("taints") or []
    if not any(t.get("key") == taint["key"] and t.get("effect") == taint["effect"] for t in taints):
        spec["taints"] = [*taints, taint]
    _node_status(obj)


def _node_status(obj: Json) -> None:
    """All of a node can be allocated unless something else is said."""
    status = obj.get("status") or {}
    if status.get("capacity") and not status.get("allocatable"):
        status["allocatable"] = dict(status["capacity"])


def _fit_pod(obj: Json) -> None:
    """PodIP is the first of podIPs, and decides where they differ."""
    status = obj.get("status") or {}
    address, addresses = status.get("podIP"), status.get("podIPs")
    if address and (not addresses or addresses[0].get("ip") != address):
        status["podIPs"] = [{"ip": address}]
    elif addresses and addresses[0].get("ip"):
        status["podIP"] = addresses[0]["ip"]


_TOLERATIONS: Final = ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")


def _new_pod(obj: Json) -> None:
    """Pending; with the priority and tolerations that every Pod gets."""
    spec = obj.setdefault("spec", {})
    spec.setdefault("priority", 0)
    spec.setdefault("preemptionPolicy", "PreemptLowerPriority")
    _tolerate(spec)
    obj["status"] = {"phase": "Pending", "qosClass": qos_class(spec)}


def _tolerate(spec: Json) -> None:
    """A Pod stays five minutes on a node that is not ready or cannot be reached."""
    present = spec.get("tolerations") or []
    covered = {t.get("key") for t in present if t.get("effect") in (None, "", "NoExecute")}
    if None not in covered and "" not in covered:
        added = [
            {"key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300}
            for key in _TOLERATIONS
            if key not in covered
        ]
        if added:
            spec["tolerations"] = [*present, *added]


def _changed_pod(obj: Json, old: Json) -> None:
    if old.get("spec") != obj.get("spec"):
        _tolerate(obj["spec"])


def qos_class(spec: Json) -> str:
    """Guaranteed, Burstable or BestEffort, by the resources of all containers."""
    containers = [*(spec.get("containers") or ()), *(spec.get("initContainers") or ())]
    requests = [c.get("resources", {}).get("requests") or {} for c in containers]
    limits = [c.get("resources", {}).get("limits") or {} for c in containers]
    if not any(requests) and not any(limits):
        return "BestEffort"
    for request, limit in zip(requests, limits, strict=True):
        for name in ("cpu", "memory"):
            if name not in limit or request.get(name, limit[name]) != limit[name]:
                return "Burstable"
    return "Guaranteed"


def _new_claim(obj: Json) -> None:
    obj["status"] = {"phase": "Pending"}


def _new_pv(obj: Json) -> None:
    obj["status"] = {"phase": "Pending"}


def _new_crd(obj: Json) -> None:
    obj["status"] = {"conditions": None, "acceptedNames": {"plural": "", "kind": ""}, "storedVersions": None}
    customresourcedefinitions.record_storage_version(obj)


def _changed_crd(obj: Json, old: Json) -> None:
    obj["status"] = {**(old.get("status") or {})}
    customresourcedefinitions.record_storage_version(obj)


# ---------------------------------------------------------------- the table


def _kind(
    group: str,
    kind: str,
    go_type: str,
    *,
    plural: str = "",
    namespaced: bool = True,
    short: tuple[str, ...] = (),
    all_category: bool = False,
    status: bool = False,
    table: columns.Table | None = None,
    resource: dict[str, Any] | None = None,
    handler: type[Builtin] = Builtin,
    **rules: Any,
) -> Resource:
    gvk = GroupVersionKind(group, "v1", kind)
    if table is not None:
        rules["columns"], rules["cells"] = table
    made = handler(gvk, go_type, status=status, **rules)
    lower = kind.lower()
    return Resource(
        group=group,
        version="v1",
        kind=kind,
        plural=plural or (lower[:-1] + "ies" if lower.endswith("y") else lower + ("es" if lower.endswith("s") else "s")),
        singular=lower,
        namespaced=namespaced,
        list_kind=f"{kind}List",
        short_names=short,
        categories=("all",) if all_category else (),
        status=status,
        handler=made,
        **{"generation": False, **(resource or {})},
    )


_GENERATION: Final = {"generation": True}
_STRICT: Final = {"unconditional_update": False}
_UPSERT: Final = {"create_on_update": True}
_RETURNED: Final = {"returns_deleted": True}
_RBAC: Final = "rbac.authorization.k8s.io"

RESOURCES: Final[tuple[Resource, ...]] = (
    _kind(
        "", "Namespace", "core.v1.Namespace", namespaced=False, short=("ns",), status=True, table=columns.NAMESPACE, name_rule="label",
        defaults=defaults.namespace, on_create=_new_namespace, on_update=_kept_namespace, validate=namespace_finalizers,
        validate_status=validation.namespace_status,
        selectable=_fields("status.phase"), resource={"verbs": _NAMESPACE_VERBS, "subresources": ("finalize",)},
    ),
    _kind(
        "", "Secret", "core.v1.Secret", table=columns.SECRET, fit=_fit_secret, defaults=defaults.secret, validate=validation.secret,
        validate_update=validation.secret_update, warn=validation.secret_warnings, selectable=_fields("type"),
    ),
    _kind(
        "", "ConfigMap", "core.v1.ConfigMap", short=("cm",), table=columns.CONFIG_MAP, validate=validation.config_map,
        validate_update=validation.config_map_update,
    ),
    _kind(
        "", "Event", "core.v1.Event", short=("ev",), table=columns.EVENT, handler=events.EventHandler, name_rule="none",
        selectable={
            **_fields(*(f"involvedObject.{f}" for f in ("kind", "namespace", "name", "uid", "apiVersion", "resourceVersion", "fieldPath"))),
            **_fields("reason", "reportingComponent", "type"), "source": ("source", "component"),
        },
        resource={**_UPSERT, "storage_key": "events"},
    ),
    _kind(
        "events.k8s.io", "Event", "events.v1.Event", short=("ev",), table=columns.EVENT, handler=events.EventHandler, name_rule="none",
        selectable={
            **_fields(*(f"regarding.{f}" for f in ("kind", "namespace", "name", "uid", "apiVersion", "resourceVersion", "fieldPath"))),
            **_fields("reason", "reportingController", "type"),
        },
        resource={**_UPSERT, "storage_key": "events", "storage": "v1"},
    ),
    _kind(
        "", "Node", "core.v1.Node", namespaced=False, short=("no",), status=True, keeps_status=True, table=columns.NODE,
        on_create=_new_node, on_status=_node_status,
        validate=workloads.node, validate_update=workloads.node_update, selectable=_fields("spec.unschedulable"),
        resource={"subresources": ("proxy",)},
    ),
    _kind(
        "", "Pod", "core.v1.Pod", short=("po",), all_category=True, status=True, table=columns.POD, fit=_fit_pod, defaults=defaults.pod,
        on_create=_new_pod, on_update=_changed_pod, validate=workloads.pod, validate_update=workloads.pod_update,
        warn=containers.pod_warnings,
        selectable=_fields(
            "spec.nodeName", "spec.restartPolicy", "spec.schedulerName", "spec.serviceAccountName", "spec.hostNetwork", "status.phase",
            "status.podIP", "status.podIPs", "status.nominatedNodeName",
        ),
        resource={**_GENERATION, **_RETURNED, "grace": True, "subresources": ("binding", "eviction", "portforward")},
    ),
    _kind(
        "", "ServiceAccount", "core.v1.ServiceAccount", short=("sa",), table=columns.PLAIN,
        resource={**_RETURNED, "subresources": ("token",)},
    ),
    _kind(
        "", "Service", "core.v1.Service", short=("svc",), all_category=True, status=True, table=columns.SERVICE, name_rule="label",
        defaults=defaults.service, on_create=services.on_create, on_update=services.on_update, validate=workloads.service,
        validate_update=services.validate_update, selectable=_fields("spec.clusterIP", "spec.type"),
        resource={**_RETURNED, **_UPSERT},
    ),
    _kind("", "Endpoints", "core.v1.Endpoints", plural="endpoints", short=("ep",), resource=_UPSERT),
    _kind(
        "", "PersistentVolumeClaim", "core.v1.PersistentVolumeClaim", short=("pvc",), status=True, table=columns.CLAIM,
        defaults=defaults.persistent_volume_claim, on_create=_new_claim, resource=_RETURNED,
    ),
    _kind(
        "", "PersistentVolume", "core.v1.PersistentVolume", namespaced=False, short=("pv",), status=True,
        defaults=defaults.persistent_volume, on_create=_new_pv, resource=_RETURNED,
    ),
    _kind("", "ResourceQuota", "core.v1.ResourceQuota", short=("quota",), status=True, resource=_RETURNED),
    _kind("", "LimitRange", "core.v1.LimitRange", short=("limits",), resource=_UPSERT),
    _kind(
        "apps", "Deployment", "apps.v1.Deployment", short=("deploy",), all_category=True, status=True, table=columns.DEPLOYMENT,
        defaults=defaults.deployment, validate=workloads.workload, validate_update=workloads.workload_update,
        validate_status=workloads.deployment_status,
        warn=containers.workload_warnings,
        resource={**_GENERATION, "scale": _SCALE},
    ),
    _kind(
        "apps", "DaemonSet", "apps.v1.DaemonSet", short=("ds",), all_category=True, status=True, table=columns.DAEMON_SET,
        defaults=defaults.daemon_set, validate=workloads.workload, validate_update=workloads.workload_update,
        warn=containers.workload_warnings, resource=_GENERATION,
    ),
    _kind(
        "apps", "ReplicaSet", "apps.v1.ReplicaSet", short=("rs",), all_category=True, status=True, table=columns.REPLICA_SET,
        defaults=defaults.replica_set, validate=workloads.workload, validate_update=workloads.workload_update,
        warn=containers.workload_warnings,
        resource={**_GENERATION, "scale": _SCALE},
    ),
    _kind(
        "apps", "StatefulSet", "apps.v1.StatefulSet", short=("sts",), all_category=True, status=True, table=columns.STATEFUL_SET,
        defaults=defaults.stateful_set, validate=workloads.workload, validate_update=workloads.stateful_set_update,
        warn=containers.workload_warnings,
        resource={**_GENERATION, "scale": _SCALE},
    ),
    _kind("apps", "ControllerRevision", "apps.v1.ControllerRevision"),
    _kind("coordination.k8s.io", "Lease", "coordination.v1.Lease", table=columns.LEASE, validate=validation.lease, resource={**_UPSERT}),
    _kind(
        "policy", "PodDisruptionBudget", "policy.v1.PodDisruptionBudget", short=("pdb",), status=True, table=columns.PDB,
        validate=workloads.pod_disruption_budget, resource={**_GENERATION, **_STRICT},
    ),
    _kind("discovery.k8s.io", "EndpointSlice", "discovery.v1.EndpointSlice", resource=_GENERATION),
    _kind(
        "storage.k8s.io", "VolumeAttachment", "storage.v1.VolumeAttachment", namespaced=False, status=True, table=columns.VOLUME_ATTACHMENT,
        validate=validation.volume_attachment, validate_update=validation.volume_attachment_update, resource={**_RETURNED, **_STRICT},
    ),
    _kind(
        "storage.k8s.io", "StorageClass", "storage.v1.StorageClass", plural="storageclasses", namespaced=False, short=("sc",),
        table=columns.STORAGE_CLASS, defaults=defaults.storage_class, resource=_RETURNED,
    ),
    _kind("storage.k8s.io", "CSINode", "storage.v1.CSINode", namespaced=False, resource={**_RETURNED, **_STRICT}),
    _kind(
        "storage.k8s.io", "CSIDriver", "storage.v1.CSIDriver", namespaced=False, defaults=defaults.csi_driver,
        resource={**_RETURNED, **_STRICT},
    ),
    _kind(_RBAC, "Role", "rbac.v1.Role", table=columns.CREATED, name_rule="path", validate=validation.role, resource=_UPSERT),
    _kind(
        _RBAC, "RoleBinding", "rbac.v1.RoleBinding", table=columns.ROLE_BINDING, name_rule="path", defaults=defaults.role_binding,
        validate=validation.role_binding, validate_update=validation.role_binding_update, resource=_UPSERT,
    ),
    _kind(
        _RBAC, "ClusterRole", "rbac.v1.ClusterRole", namespaced=False, table=columns.CREATED, name_rule="path",
        validate=partial(validation.role, cluster=True), resource=_UPSERT,
    ),
    _kind(
        _RBAC, "ClusterRoleBinding", "rbac.v1.ClusterRoleBinding", namespaced=False, table=columns.ROLE_BINDING, name_rule="path",
        defaults=defaults.role_binding, validate=partial(validation.role_binding, cluster=True),
        validate_update=validation.role_binding_update, resource=_UPSERT,
    ),
    _kind(
        "admissionregistration.k8s.io", "MutatingWebhookConfiguration", "admissionregistration.v1.MutatingWebhookConfiguration",
        namespaced=False, table=columns.WEBHOOKS, defaults=partial(defaults.webhook_configuration, mutating=True),
        validate=validation.webhook_configuration, resource={**_GENERATION, **_STRICT},
    ),
    _kind(
        "admissionregistration.k8s.io", "ValidatingWebhookConfiguration", "admissionregistration.v1.ValidatingWebhookConfiguration",
        namespaced=False, table=columns.WEBHOOKS, defaults=partial(defaults.webhook_configuration, mutating=False),
        validate=validation.webhook_configuration, resource={**_GENERATION, **_STRICT},
    ),
    _kind(
        "apiextensions.k8s.io", "CustomResourceDefinition", "apiextensions.v1.CustomResourceDefinition", namespaced=False,
        short=("crd", "crds"), status=True, table=columns.CREATED, defaults=defaults.custom_resource_definition, on_create=_new_crd,
        on_update=_changed_crd, validate=customresourcedefinitions.validate, validate_update=customresourcedefinitions.validate_update,
        validate_status=customresourcedefinitions.validate_status, warn=customresourcedefinitions.warnings,
        resource={**_GENERATION, **_STRICT},
    ),
    *(
        _kind(
            "authorization.k8s.io", kind, f"authorization.v1.{kind}", namespaced=kind.startswith("Local"), name_rule="none",
            resource={"verbs": _REVIEWS},
        )
        for kind in ("SubjectAccessReview", "SelfSubjectAccessReview", "LocalSubjectAccessReview", "SelfSubjectRulesReview")
    ),
    *(
        _kind("authentication.k8s.io", kind, f"authentication.v1.{kind}", namespaced=False, name_rule="none", resource={"verbs": _REVIEWS})
        for kind in ("TokenReview", "SelfSubjectReview")
    ),
)  # fmt: skip
