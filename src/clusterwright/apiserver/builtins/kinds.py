"""The table of built-in kinds."""

from __future__ import annotations

from functools import partial
from typing import Final

from clusterwright.apiserver.builtins import (
    columns,
    containers,
    customresourcedefinitions,
    defaults,
    events,
    services,
    strategies,
    validation,
    workloads,
)
from clusterwright.apiserver.builtins.further import FURTHER
from clusterwright.apiserver.builtins.handler import namespace_finalizers
from clusterwright.apiserver.builtins.rows import GENERATION, RETURNED, STRICT, UPSERT, builtin, fields
from clusterwright.apiserver.interfaces import Resource, Scale

_REVIEWS: Final = ("create",)
_NAMESPACE_VERBS: Final = ("create", "delete", "get", "list", "patch", "update", "watch")
_SCALE: Final = Scale(".spec.replicas", ".status.replicas", ".spec.selector")


_RBAC: Final = "rbac.authorization.k8s.io"

RESOURCES: Final[tuple[Resource, ...]] = (
    builtin(
        "", "Namespace", "core.v1.Namespace", namespaced=False, short=("ns",), status=True, table=columns.NAMESPACE, name_rule="label",
        defaults=defaults.namespace, on_create=strategies.new_namespace, on_update=strategies.kept_namespace, validate=namespace_finalizers,
        validate_status=validation.namespace_status,
        selectable=fields("status.phase"), resource={"verbs": _NAMESPACE_VERBS, "subresources": ("finalize",)},
    ),
    builtin(
        "", "Secret", "core.v1.Secret", table=columns.SECRET, fit=strategies.fit_secret, defaults=defaults.secret,
        validate=validation.secret,
        validate_update=validation.secret_update, warn=validation.secret_warnings, selectable=fields("type"),
    ),
    builtin(
        "", "ConfigMap", "core.v1.ConfigMap", short=("cm",), table=columns.CONFIG_MAP, validate=validation.config_map,
        validate_update=validation.config_map_update,
    ),
    builtin(
        "", "Event", "core.v1.Event", short=("ev",), table=columns.EVENT, handler=events.EventHandler, name_rule="none",
        selectable={
            **fields(*(f"involvedObject.{f}" for f in ("kind", "namespace", "name", "uid", "apiVersion", "resourceVersion", "fieldPath"))),
            **fields("reason", "reportingComponent", "type"), "source": ("source", "component"),
        },
        resource={**UPSERT, "storage_key": "events"},
    ),
    builtin(
        "events.k8s.io", "Event", "events.v1.Event", short=("ev",), table=columns.EVENT, handler=events.EventHandler, name_rule="none",
        selectable={
            **fields(*(f"regarding.{f}" for f in ("kind", "namespace", "name", "uid", "apiVersion", "resourceVersion", "fieldPath"))),
            **fields("reason", "reportingController", "type"),
        },
        resource={**UPSERT, "storage_key": "events", "storage": "v1"},
    ),
    builtin(
        "", "Node", "core.v1.Node", namespaced=False, short=("no",), status=True, keeps_status=True, table=columns.NODE,
        on_create=strategies.new_node, on_status=strategies.node_status,
        validate=workloads.node, validate_update=workloads.node_update, selectable=fields("spec.unschedulable"),
        resource={"subresources": ("proxy",)},
    ),
    builtin(
        "", "Pod", "core.v1.Pod", short=("po",), all_category=True, status=True, status_keeps=("ownerReferences",), table=columns.POD,
        fit=strategies.fit_pod,
        defaults=defaults.pod,
        on_create=strategies.new_pod, on_update=strategies.changed_pod, validate=workloads.pod, validate_update=workloads.pod_update,
        warn=containers.pod_warnings,
        selectable=fields(
            "spec.nodeName", "spec.restartPolicy", "spec.schedulerName", "spec.serviceAccountName", "spec.hostNetwork", "status.phase",
            "status.podIP", "status.podIPs", "status.nominatedNodeName",
        ),
        resource={**GENERATION, **RETURNED, "grace": True, "subresources": ("binding", "eviction", "portforward")},
    ),
    builtin(
        "", "ServiceAccount", "core.v1.ServiceAccount", short=("sa",), table=columns.PLAIN,
        resource={**RETURNED, "subresources": ("token",)},
    ),
    builtin(
        "", "Service", "core.v1.Service", short=("svc",), all_category=True, status=True, table=columns.SERVICE, name_rule="label",
        defaults=defaults.service, on_create=services.on_create, on_update=services.on_update, validate=services.validate,
        validate_update=services.validate_update, warn=services.warnings, selectable=fields("spec.clusterIP", "spec.type"),
        resource={**RETURNED, **UPSERT},
    ),
    builtin(
        "", "Endpoints", "core.v1.Endpoints", plural="endpoints", short=("ep",),
        resource={**UPSERT, "deprecation": "v1 Endpoints is deprecated in v1.33+; use discovery.k8s.io/v1 EndpointSlice"},
    ),
    builtin(
        "", "PersistentVolumeClaim", "core.v1.PersistentVolumeClaim", short=("pvc",), status=True, table=columns.CLAIM,
        defaults=defaults.persistent_volume_claim, on_create=strategies.new_claim, validate=workloads.persistent_volume_claim,
        validate_update=workloads.persistent_volume_claim_update, resource=RETURNED,
    ),
    builtin(
        "", "PersistentVolume", "core.v1.PersistentVolume", namespaced=False, short=("pv",), status=True,
        defaults=defaults.persistent_volume, on_create=strategies.new_pv, resource=RETURNED,
    ),
    builtin("", "ResourceQuota", "core.v1.ResourceQuota", short=("quota",), status=True, resource=RETURNED),
    builtin("", "LimitRange", "core.v1.LimitRange", short=("limits",), resource=UPSERT),
    builtin(
        "apps", "Deployment", "apps.v1.Deployment", short=("deploy",), all_category=True, status=True, status_keeps=("labels",),
        table=columns.DEPLOYMENT,
        defaults=defaults.deployment, validate=workloads.deployment, validate_update=workloads.workload_update,
        validate_status=workloads.deployment_status,
        warn=containers.workload_warnings,
        resource={**GENERATION, "generation_fields": ("annotations",), "scale": _SCALE},
    ),
    builtin(
        "apps", "DaemonSet", "apps.v1.DaemonSet", short=("ds",), all_category=True, status=True, table=columns.DAEMON_SET,
        defaults=defaults.daemon_set, validate=workloads.workload, validate_update=workloads.workload_update,
        warn=containers.workload_warnings, resource=GENERATION,
    ),
    builtin(
        "apps", "ReplicaSet", "apps.v1.ReplicaSet", short=("rs",), all_category=True, status=True, table=columns.REPLICA_SET,
        defaults=defaults.replica_set, validate=workloads.workload, validate_update=workloads.workload_update,
        warn=containers.workload_warnings,
        resource={**GENERATION, "scale": _SCALE},
    ),
    builtin(
        "apps", "StatefulSet", "apps.v1.StatefulSet", short=("sts",), all_category=True, status=True, table=columns.STATEFUL_SET,
        defaults=defaults.stateful_set, validate=workloads.stateful_set, validate_update=workloads.stateful_set_update,
        warn=containers.workload_warnings,
        resource={**GENERATION, "scale": _SCALE},
    ),
    builtin("apps", "ControllerRevision", "apps.v1.ControllerRevision"),
    builtin(
        "coordination.k8s.io", "Lease", "coordination.v1.Lease", table=columns.LEASE,
        on_create=strategies.lease, on_update=strategies.lease, validate=validation.lease, resource={**STRICT, **UPSERT},
    ),
    builtin(
        "policy", "PodDisruptionBudget", "policy.v1.PodDisruptionBudget", short=("pdb",), status=True, table=columns.PDB,
        validate=workloads.pod_disruption_budget, resource={**GENERATION, **STRICT},
    ),
    builtin(
        "discovery.k8s.io", "EndpointSlice", "discovery.v1.EndpointSlice", resource={**GENERATION, "generation_fields": ("labels",)},
    ),
    builtin(
        "storage.k8s.io", "VolumeAttachment", "storage.v1.VolumeAttachment", namespaced=False, status=True, status_keeps=None,
        table=columns.VOLUME_ATTACHMENT,
        validate=validation.volume_attachment, validate_update=validation.volume_attachment_update, resource={**RETURNED, **STRICT},
    ),
    builtin(
        "storage.k8s.io", "StorageClass", "storage.v1.StorageClass", plural="storageclasses", namespaced=False, short=("sc",),
        table=columns.STORAGE_CLASS, defaults=defaults.storage_class, resource=RETURNED,
    ),
    builtin("storage.k8s.io", "CSINode", "storage.v1.CSINode", namespaced=False, resource={**RETURNED, **STRICT}),
    builtin(
        "storage.k8s.io", "CSIDriver", "storage.v1.CSIDriver", namespaced=False, defaults=defaults.csi_driver,
        resource={**RETURNED, **STRICT},
    ),
    builtin(
        _RBAC, "Role", "rbac.v1.Role", table=columns.CREATED, name_rule="path",
        on_create=strategies.role, on_update=strategies.role, validate=validation.role, resource=UPSERT,
    ),
    builtin(
        _RBAC, "RoleBinding", "rbac.v1.RoleBinding", table=columns.ROLE_BINDING, name_rule="path", defaults=defaults.role_binding,
        validate=validation.role_binding, validate_update=validation.role_binding_update, resource=UPSERT,
    ),
    builtin(
        _RBAC, "ClusterRole", "rbac.v1.ClusterRole", namespaced=False, table=columns.CREATED, name_rule="path",
        on_create=strategies.role, on_update=strategies.role, validate=partial(validation.role, cluster=True), resource=UPSERT,
    ),
    builtin(
        _RBAC, "ClusterRoleBinding", "rbac.v1.ClusterRoleBinding", namespaced=False, table=columns.ROLE_BINDING, name_rule="path",
        defaults=defaults.role_binding, validate=partial(validation.role_binding, cluster=True),
        validate_update=validation.role_binding_update, resource=UPSERT,
    ),
    builtin(
        "admissionregistration.k8s.io", "MutatingWebhookConfiguration", "admissionregistration.v1.MutatingWebhookConfiguration",
        namespaced=False, table=columns.WEBHOOKS, defaults=partial(defaults.webhook_configuration, mutating=True),
        validate=validation.webhook_configuration, resource={**GENERATION, **STRICT},
    ),
    builtin(
        "admissionregistration.k8s.io", "ValidatingWebhookConfiguration", "admissionregistration.v1.ValidatingWebhookConfiguration",
        namespaced=False, table=columns.WEBHOOKS, defaults=partial(defaults.webhook_configuration, mutating=False),
        validate=validation.webhook_configuration, resource={**GENERATION, **STRICT},
    ),
    builtin(
        "apiextensions.k8s.io", "CustomResourceDefinition", "apiextensions.v1.CustomResourceDefinition", namespaced=False,
        short=("crd", "crds"), status=True, status_keeps=None, table=columns.CREATED, defaults=defaults.custom_resource_definition,
        on_create=strategies.new_crd,
        on_update=strategies.changed_crd, validate=customresourcedefinitions.validate,
        validate_update=customresourcedefinitions.validate_update,
        validate_status=customresourcedefinitions.validate_status, warn=customresourcedefinitions.warnings,
        resource={**GENERATION, **STRICT},
    ),
    *(
        builtin(
            "authorization.k8s.io", kind, f"authorization.v1.{kind}", namespaced=kind.startswith("Local"), name_rule="none",
            resource={"verbs": _REVIEWS},
        )
        for kind in ("SubjectAccessReview", "SelfSubjectAccessReview", "LocalSubjectAccessReview", "SelfSubjectRulesReview")
    ),
    *(
        builtin("authentication.k8s.io", kind, f"authentication.v1.{kind}", namespaced=False, name_rule="none",
        resource={"verbs": _REVIEWS})
        for kind in ("TokenReview", "SelfSubjectReview")
    ),
    *FURTHER,
)  # fmt: skip
