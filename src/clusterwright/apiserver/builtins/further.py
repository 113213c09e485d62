"""The built-in kinds without a controller here: they are stored, defaulted, shown, and validated where clients rely on it.

There is one row per kind; defaults and columns are data. The functions above the table do what data cannot express.
"""

from __future__ import annotations

import json
from datetime import datetime
from typing import Any, Final

from clusterwright.api.meta import Json
from clusterwright.apiserver.builtins import columns, flowcontrol, jobs, policies
from clusterwright.apiserver.builtins.handler import Builtin
from clusterwright.apiserver.builtins.rows import GENERATION, RETURNED, STRICT, UPSERT, builtin, fields, filled, shown
from clusterwright.apiserver.builtins.validation import immutable
from clusterwright.apiserver.interfaces import Resource, Scale
from clusterwright.apiserver.status import FieldError, forbidden, required

_AGE: Final = ("Age", "")
_ADMISSION: Final = "admissionregistration.k8s.io"
_FLOW: Final = "flowcontrol.apiserver.k8s.io"
_READ_ONLY: Final = {"verbs": ("get", "list")}


# ---------------------------------------------------------------- others that compute


def _default_replication_controller(obj: Json) -> None:
    spec = obj.setdefault("spec", {})
    labels = ((spec.get("template") or {}).get("metadata") or {}).get("labels")
    if labels:
        if not spec.get("selector"):
            spec["selector"] = dict(labels)
        if not obj.setdefault("metadata", {}).get("labels"):
            obj["metadata"]["labels"] = dict(labels)
    if spec.get("replicas") is None:
        spec["replicas"] = 1
    jobs.default_template(spec)


def _default_network_policy(obj: Json) -> None:
    spec = obj.setdefault("spec", {})
    if not spec.get("policyTypes"):
        spec["policyTypes"] = ["Ingress", "Egress"] if spec.get("egress") else ["Ingress"]
    _NETWORK_POLICY_DEFAULTS(obj)


_NETWORK_POLICY_DEFAULTS: Final = filled(
    {"spec.podSelector": {}, "spec.ingress[].ports[].protocol": "TCP", "spec.egress[].ports[].protocol": "TCP"}
)


def _validate_priority_class(obj: Json) -> list[FieldError]:
    name = obj["metadata"].get("name") or ""
    if name in ("system-cluster-critical", "system-node-critical"):
        return []
    if name.startswith("system-"):
        return [forbidden("metadata.name", "priority class names with 'system-' prefix are reserved for system use only")]
    if (obj.get("value") or 0) > 1_000_000_000:
        return [forbidden("value", "maximum allowed value of a user defined priority is 1000000000")]
    return []


def _keeps(*names: str, path: str = "") -> Any:
    def validate(obj: Json, old: Json) -> list[FieldError]:
        new, before = (obj.get(path) or {}, old.get(path) or {}) if path else (obj, old)
        return [e for name in names for e in immutable(new, before, name, path)]

    return validate


def _validate_signing_request(obj: Json) -> list[FieldError]:
    spec = obj.get("spec") or {}
    return [required(f"spec.{name}") for name in ("request", "signerName", "usages") if not spec.get(name)]


def _signing_state(obj: Json) -> str:
    status = obj.get("status") or {}
    kinds = {c.get("type") for c in status.get("conditions") or ()}
    state = "Denied" if "Denied" in kinds else "Approved" if "Approved" in kinds else "Pending"
    return state + (",Failed" if "Failed" in kinds else "") + (",Issued" if status.get("certificate") else "")


def _signing_cells(obj: Json, now: datetime) -> list[Any]:
    spec = obj.get("spec") or {}
    seconds = spec.get("expirationSeconds")
    return [
        obj["metadata"].get("name", ""), columns.cell_age(obj, now), spec.get("signerName") or "<none>", spec.get("username") or "",
        f"{seconds}s" if seconds else "<none>", _signing_state(obj),
    ]  # fmt: skip


_SIGNING: Final[columns.Table] = (
    (columns.AGE, *(columns.column(n) for n in ("SignerName", "Requestor", "RequestedDuration", "Condition"))),
    _signing_cells,
)


def _ingress_cells(obj: Json, now: datetime) -> list[Any]:
    spec = obj.get("spec") or {}
    hosts = [r["host"] for r in spec.get("rules") or () if r.get("host")]
    addresses = [a.get("ip") or a.get("hostname") or "" for a in ((obj.get("status") or {}).get("loadBalancer") or {}).get("ingress") or ()]
    shown_hosts = ",".join(hosts[:3]) + (f" + {len(hosts) - 3} more..." if len(hosts) > 3 else "")
    return [
        obj["metadata"].get("name", ""), spec.get("ingressClassName") or "<none>", shown_hosts or "*", ",".join(addresses),
        "80, 443" if spec.get("tls") else "80", columns.cell_age(obj, now),
    ]  # fmt: skip


_INGRESS: Final[columns.Table] = (
    (*(columns.column(n) for n in ("Class", "Hosts", "Address", "Ports")), columns.AGE),
    _ingress_cells,
)


# ---------------------------------------------------------------- autoscalers, in two versions

_ANNOTATION: Final = "autoscaling.alpha.kubernetes.io/"
_KEPT: Final = (("spec", "metrics", "metrics"), ("spec", "behavior", "behavior"), ("status", "currentMetrics", "current-metrics"),
                ("status", "conditions", "conditions"))  # fmt: skip
"""The annotations that hold values for which v1 has no fields."""


class AutoscalerHandler(Builtin):
    """The handler of HorizontalPodAutoscalers: v1 has one metric, the use of CPU."""

    def convert(self, obj: Json, api_version: str) -> Json:
        """Convert from v1 to v2 or back."""
        old = obj.get("apiVersion")
        obj["apiVersion"] = api_version
        if api_version == "autoscaling/v1" and old != api_version:
            _to_v1(obj)
        elif api_version == "autoscaling/v2" and old != api_version:
            _to_v2(obj)
        return obj


def _cpu(target: int) -> Json:
    return {"type": "Resource", "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": target}}}


def _is_cpu(metric: Json, field: str) -> bool:
    resource = metric.get("resource") or {}
    return metric.get("type") == "Resource" and resource.get("name") == "cpu" and "averageUtilization" in (resource.get(field) or {})


def _to_v1(obj: Json) -> None:
    meta, spec, status = obj["metadata"], obj.setdefault("spec", {}), obj.setdefault("status", {})
    metrics, current = list(spec.pop("metrics", None) or ()), list(status.pop("currentMetrics", None) or ())
    for metric in [m for m in metrics if _is_cpu(m, "target")][:1]:
        spec["targetCPUUtilizationPercentage"] = metric["resource"]["target"]["averageUtilization"]
        metrics.remove(metric)
    for metric in [m for m in current if _is_cpu(m, "current")][:1]:
        status["currentCPUUtilizationPercentage"] = metric["resource"]["current"]["averageUtilization"]
        current.remove(metric)
    kept = {
        "metrics": metrics,
        "behavior": spec.pop("behavior", None),
        "current-metrics": current,
        "conditions": status.pop("conditions", None),
    }
    annotations = dict(meta.get("annotations") or {})
    annotations.update({_ANNOTATION + name: json.dumps(value) for name, value in kept.items() if value})
    if annotations:
        meta["annotations"] = annotations


def _to_v2(obj: Json) -> None:
    meta, spec, status = obj["metadata"], obj.setdefault("spec", {}), obj.setdefault("status", {})
    annotations = dict(meta.get("annotations") or {})
    for part, field, name in _KEPT:
        text = annotations.pop(_ANNOTATION + name, None)
        if text is not None:
            try:
                obj[part][field] = json.loads(text)
            except ValueError:
                continue
    if annotations or meta.get("annotations"):
        meta["annotations"] = annotations
    if not annotations:
        meta.pop("annotations", None)
    target, current = spec.pop("targetCPUUtilizationPercentage", None), status.pop("currentCPUUtilizationPercentage", None)
    if target is not None:
        spec["metrics"] = [_cpu(target), *(spec.get("metrics") or ())]
    if current is not None:
        shown_now = {"type": "Resource", "resource": {"name": "cpu", "current": {"averageUtilization": current}}}
        status["currentMetrics"] = [shown_now, *(status.get("currentMetrics") or ())]


def _default_autoscaler(obj: Json) -> None:
    spec = obj.setdefault("spec", {})
    if spec.get("minReplicas") is None:
        spec["minReplicas"] = 1
    if obj.get("apiVersion") == "autoscaling/v2" and not spec.get("metrics"):
        spec["metrics"] = [_cpu(80)]


def _autoscaler_cells(obj: Json, now: datetime) -> list[Any]:
    spec, status = obj.get("spec") or {}, obj.get("status") or {}
    reference = spec.get("scaleTargetRef") or {}
    targets = "<unknown>" if spec.get("metrics") or spec.get("targetCPUUtilizationPercentage") else "<none>"
    return [
        obj["metadata"].get("name", ""), f"{reference.get('kind') or ''}/{reference.get('name') or ''}", targets,
        str(spec["minReplicas"]) if spec.get("minReplicas") is not None else "<unset>", spec.get("maxReplicas") or 0,
        status.get("currentReplicas") or 0, columns.cell_age(obj, now),
    ]  # fmt: skip


_AUTOSCALERS: Final[columns.Table] = (
    (
        *(columns.column(n) for n in ("Reference", "Targets", "MinPods")),
        *(columns.column(n, kind="integer") for n in ("MaxPods", "Replicas")),
        columns.AGE,
    ),
    _autoscaler_cells,
)

# ---------------------------------------------------------------- the table

_MATCHED: Final = {"matchPolicy": "Equivalent", "namespaceSelector": {}, "objectSelector": {}}


def _policy_defaults(*paths: str, **extra: Any) -> Any:
    matched = {f"spec.{path}.{key}": value for path in paths for key, value in _MATCHED.items()}
    scopes = {f"spec.{path}.{rules}[].scope": "*" for path in paths for rules in ("resourceRules", "excludeResourceRules")}
    return filled({**{f"spec.{k}": v for k, v in extra.items()}, **matched, **scopes})


FURTHER: Final[tuple[Resource, ...]] = (
    builtin("", "Binding", "core.v1.Binding", name_rule="none", resource={"verbs": ("create",)}),
    builtin(
        "", "ComponentStatus", "core.v1.ComponentStatus", plural="componentstatuses", namespaced=False, short=("cs",), resource=_READ_ONLY,
    ),
    builtin("", "PodTemplate", "core.v1.PodTemplate", defaults=jobs.default_template, resource={**GENERATION, **RETURNED}),
    builtin(
        "", "ReplicationController", "core.v1.ReplicationController", short=("rc",), all_category=True, status=True,
        defaults=_default_replication_controller, table=columns.REPLICA_SET, selectable=fields("status.replicas"),
        resource={**GENERATION, "orphans": True, "scale": Scale(".spec.replicas", ".status.replicas", ".spec.selector")},
    ),
    builtin(
        "batch", "Job", "batch.v1.Job", all_category=True, status=True, table=jobs.TABLE, defaults=jobs.default, on_create=jobs.on_create,
        validate=jobs.validate, validate_update=jobs.validate_update, selectable=fields("status.successful"),
        resource={**GENERATION, "orphans": True},
    ),
    builtin(
        "batch", "CronJob", "batch.v1.CronJob", short=("cj",), all_category=True, status=True, defaults=jobs.default_cron,
        validate=jobs.validate_cron,
        table=shown(
            ("Schedule", "spec.schedule"), ("Timezone", "spec.timeZone"), ("Suspend", "spec.suspend", "boolean"),
            ("Active", "len status.active", "integer"), ("Last Schedule", "status.lastScheduleTime"), _AGE,
        ),
        resource=GENERATION,
    ),
    *(
        builtin(
            "autoscaling", "HorizontalPodAutoscaler", f"autoscaling.{version}.HorizontalPodAutoscaler", version=version, short=("hpa",),
            all_category=True, status=True, handler=AutoscalerHandler, defaults=_default_autoscaler, table=_AUTOSCALERS,
            resource={"storage": "autoscaling/v2"},
        )
        for version in ("v2", "v1")
    ),
    builtin(
        "certificates.k8s.io", "CertificateSigningRequest", "certificates.v1.CertificateSigningRequest", namespaced=False, short=("csr",),
        status=True, table=_SIGNING, validate=_validate_signing_request, selectable=fields("spec.signerName"),
        on_update=lambda o, old: o.update(spec=old.get("spec") or {}), resource={"subresources": ("approval",)},
    ),
    builtin(
        "networking.k8s.io", "Ingress", "networking.v1.Ingress", plural="ingresses", short=("ing",), status=True, table=_INGRESS,
        resource=GENERATION,
    ),
    builtin(
        "networking.k8s.io", "IngressClass", "networking.v1.IngressClass", plural="ingressclasses", namespaced=False,
        defaults=filled({"spec.parameters.scope": "Cluster"}), validate_update=_keeps("controller", path="spec"),
        table=shown(("Controller", "spec.controller"), ("Parameters", "spec.parameters.name"), _AGE), resource=GENERATION,
    ),
    builtin(
        "networking.k8s.io", "NetworkPolicy", "networking.v1.NetworkPolicy", short=("netpol",), defaults=_default_network_policy,
        table=shown(("Pod-Selector", "spec.podSelector.matchLabels"), _AGE), resource=GENERATION,
    ),
    builtin(
        "networking.k8s.io", "IPAddress", "networking.v1.IPAddress", plural="ipaddresses", namespaced=False, short=("ip",),
        name_rule="none",
        validate_update=_keeps("parentRef", path="spec"), table=shown(("ParentRef", "spec.parentRef.name"), _AGE),
    ),
    builtin(
        "networking.k8s.io", "ServiceCIDR", "networking.v1.ServiceCIDR", namespaced=False, status=True,
        validate_update=_keeps("cidrs", path="spec"), table=shown(("CIDRs", "spec.cidrs"), _AGE),
    ),
    builtin(
        "node.k8s.io", "RuntimeClass", "node.v1.RuntimeClass", plural="runtimeclasses", namespaced=False, validate_update=_keeps("handler"),
        table=shown(("Handler", "handler"), _AGE), resource={**STRICT, **UPSERT},
    ),
    builtin(
        "scheduling.k8s.io", "PriorityClass", "scheduling.v1.PriorityClass", plural="priorityclasses", namespaced=False, short=("pc",),
        defaults=filled({"preemptionPolicy": "PreemptLowerPriority"}), validate=_validate_priority_class,
        validate_update=_keeps("value", "preemptionPolicy"),
        table=shown(
            ("Value", "value", "integer"), ("Global-Default", "globalDefault", "boolean"), _AGE, ("PreemptionPolicy", "preemptionPolicy")
        ),
        resource=GENERATION,
    ),
    builtin(
        _FLOW, "FlowSchema", "flowcontrol.v1.FlowSchema", namespaced=False, status=True, status_keeps=None,
        defaults=filled({}, zero={"spec.matchingPrecedence": 1000}), validate=flowcontrol.validate_schema,
        table=shown(
            ("PriorityLevel", "spec.priorityLevelConfiguration.name"), ("MatchingPrecedence", "spec.matchingPrecedence", "integer"),
            ("DistinguisherMethod", "spec.distinguisherMethod.type"), _AGE,
        ),
        resource=GENERATION,
    ),
    builtin(
        _FLOW, "PriorityLevelConfiguration", "flowcontrol.v1.PriorityLevelConfiguration", namespaced=False, status=True, status_keeps=None,
        validate=flowcontrol.validate_level, defaults=filled(
            {
                "spec.limited.nominalConcurrencyShares": 30, "spec.limited.lendablePercent": 0,
                "spec.exempt.nominalConcurrencyShares": 0, "spec.exempt.lendablePercent": 0,
            },
            zero={
                "spec.limited.limitResponse.queuing.queues": 64, "spec.limited.limitResponse.queuing.handSize": 8,
                "spec.limited.limitResponse.queuing.queueLengthLimit": 50,
            },
        ),
        table=shown(
            ("Type", "spec.type"), ("NominalConcurrencyShares", "spec.limited.nominalConcurrencyShares"),
            ("Queues", "spec.limited.limitResponse.queuing.queues"), ("HandSize", "spec.limited.limitResponse.queuing.handSize"),
            ("QueueLengthLimit", "spec.limited.limitResponse.queuing.queueLengthLimit"), _AGE,
        ),
        resource=GENERATION,
    ),
    builtin(
        "storage.k8s.io", "CSIStorageCapacity", "storage.v1.CSIStorageCapacity", plural="csistoragecapacities",
        validate_update=_keeps("nodeTopology", "storageClassName"),
        table=shown(("StorageClassName", "storageClassName"), ("Capacity", "capacity")), resource=STRICT,
    ),
    builtin(
        "storage.k8s.io", "VolumeAttributesClass", "storage.v1.VolumeAttributesClass", plural="volumeattributesclasses", namespaced=False,
        short=("vac",), validate_update=_keeps("driverName", "parameters"), table=shown(("DriverName", "driverName"), _AGE),
        resource=RETURNED,
    ),
    builtin(
        "apiregistration.k8s.io", "APIService", "apiregistration.v1.APIService", namespaced=False, status=True, status_keeps=None,
        defaults=filled({"spec.service.port": 443}), table=shown(("Service", "spec.service.name"), _AGE), resource=STRICT,
    ),
    builtin(
        _ADMISSION, "ValidatingAdmissionPolicy", "admissionregistration.v1.ValidatingAdmissionPolicy", plural="validatingadmissionpolicies",
        namespaced=False, status=True, status_keeps=None, defaults=_policy_defaults("matchConstraints", failurePolicy="Fail"),
        table=shown(("Validations", "len spec.validations", "integer"), ("ParamKind", "spec.paramKind.kind"), _AGE),
        validate=policies.validating, resource={**GENERATION, **STRICT},
    ),
    builtin(
        _ADMISSION, "ValidatingAdmissionPolicyBinding", "admissionregistration.v1.ValidatingAdmissionPolicyBinding", namespaced=False,
        defaults=_policy_defaults("matchResources"), table=shown(("PolicyName", "spec.policyName"), ("ParamRef", "spec.paramRef.name"),
        _AGE),
        validate=policies.validating_binding, resource={**GENERATION, **STRICT},
    ),
    builtin(
        _ADMISSION, "MutatingAdmissionPolicy", "admissionregistration.v1.MutatingAdmissionPolicy", plural="mutatingadmissionpolicies",
        namespaced=False, defaults=_policy_defaults("matchConstraints", failurePolicy="Fail"),
        table=shown(("Mutations", "len spec.mutations", "integer"), ("ParamKind", "spec.paramKind.kind"), _AGE),
        validate=policies.mutating, resource={**GENERATION, **STRICT},
    ),
    builtin(
        _ADMISSION, "MutatingAdmissionPolicyBinding", "admissionregistration.v1.MutatingAdmissionPolicyBinding", namespaced=False,
        defaults=_policy_defaults("matchResources"), table=shown(("PolicyName", "spec.policyName"), ("ParamRef", "spec.paramRef.name"),
        _AGE),
        validate=policies.binding, resource={**GENERATION, **STRICT},
    ),
    builtin(
        "resource.k8s.io", "DeviceClass", "resource.v1.DeviceClass", plural="deviceclasses", namespaced=False,
        resource={**GENERATION, **RETURNED},
    ),
    builtin(
        "resource.k8s.io", "ResourceClaim", "resource.v1.ResourceClaim", status=True, status_keeps=None, validate_update=_keeps("spec"),
        defaults=filled({"spec.devices.requests[].exactly.allocationMode": "ExactCount"}), resource=RETURNED,
    ),
    builtin(
        "resource.k8s.io", "ResourceClaimTemplate", "resource.v1.ResourceClaimTemplate", validate_update=_keeps("spec"),
        defaults=filled({"spec.spec.devices.requests[].exactly.allocationMode": "ExactCount"}), resource=RETURNED,
    ),
    builtin(
        "resource.k8s.io", "ResourceSlice", "resource.v1.ResourceSlice", namespaced=False, selectable=fields("spec.nodeName",
        "spec.driver"),
        table=shown(("Node", "spec.nodeName"), ("Driver", "spec.driver"), ("Pool", "spec.pool.name"), _AGE), resource={**GENERATION,
        **RETURNED},
    ),
)  # fmt: skip
