"""The rules of nodes, Pods and kinds that create Pods, in kube-apiserver's words."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any, Final

from clusterwright.api.meta import Json
from clusterwright.api.names import dns_subdomain, label_value, qualified_name
from clusterwright.api.selectors import object_selector
from clusterwright.apiserver.builtins.amounts import AT_LEAST_ZERO, at_most_all, count_or_share, label_selector, network
from clusterwright.apiserver.builtins.podspec import pod_spec
from clusterwright.apiserver.builtins.validation import immutable, internal
from clusterwright.apiserver.status import (
    ErrorType,
    FieldError,
    Verbatim,
    forbidden,
    invalid,
    not_supported,
    required,
)
from clusterwright.golang.quantities import parse_quantity

# ---------------------------------------------------------------- nodes

_EFFECTS: Final = ("NoSchedule", "PreferNoSchedule", "NoExecute")


def node(obj: Json) -> list[FieldError]:
    """Check taints."""
    errors: list[FieldError] = []
    seen: set[tuple[Any, str]] = set()
    for i, taint in enumerate((obj.get("spec") or {}).get("taints") or ()):
        path = f"metadata.taints[{i}]"
        errors.extend(invalid(f"{path}.key", taint.get("key") or "", p) for p in qualified_name(taint.get("key") or ""))
        errors.extend(invalid(f"{path}.value", taint.get("value"), p) for p in label_value(taint.get("value") or ""))
        effect = taint.get("effect") or ""
        if not effect:
            errors.append(required(f"{path}.effect"))
        elif effect not in _EFFECTS:
            errors.append(not_supported(f"{path}.effect", effect, _EFFECTS))
        key = (taint.get("key"), effect)
        if key in seen:
            errors.append(FieldError(ErrorType.DUPLICATE, path, _shown_taint(taint), "taints must be unique by key and effect pair"))
        seen.add(key)
    spec = obj.get("spec") or {}
    for i, cidr in enumerate(spec.get("podCIDRs") or ()):
        errors.extend(network(cidr, f"spec.podCIDRs[{i}]"))
    return errors


def _shown_taint(taint: Json) -> Verbatim:
    return Verbatim(
        json.dumps(
            {f.capitalize(): taint.get(f) or "" for f in ("key", "value", "effect")} | {"TimeAdded": taint.get("timeAdded")},
            separators=(",", ":"),
        )
    )


def node_update(obj: Json, old: Json) -> list[FieldError]:
    """Check that the provider ID and the Pod CIDR are set only once."""
    errors = []
    spec, before = obj.get("spec") or {}, old.get("spec") or {}
    if before.get("providerID") and spec.get("providerID") != before["providerID"]:
        errors.append(forbidden("spec.providerID", 'node updates may not change providerID except from "" to valid'))
    if before.get("podCIDRs") and spec.get("podCIDRs") != before["podCIDRs"]:
        errors.append(forbidden("spec.podCIDRs", 'node updates may not change podCIDR except from "" to valid'))
    return errors


# ---------------------------------------------------------------- pods


def pod(obj: Json) -> list[FieldError]:
    """Return the errors of a Pod's spec."""
    return pod_spec(obj.get("spec") or {}, "spec")


_POD_CHANGES: Final = (
    "pod updates may not change fields other than `spec.containers[*].image`,`spec.initContainers[*].image`,"
    "`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing tolerations),`spec.terminationGracePeriodSeconds` "
    "(allow it to be set to 1 if it was previously negative)"
)


def pod_update(obj: Json, old: Json) -> list[FieldError]:
    """Check that only the few mutable fields of a Pod's spec change."""
    errors = []
    spec, before = obj.get("spec") or {}, old.get("spec") or {}
    deadline, earlier = spec.get("activeDeadlineSeconds"), before.get("activeDeadlineSeconds")
    if earlier is not None:
        if deadline is None:
            errors.append(invalid("spec.activeDeadlineSeconds", deadline, "must not update from a positive integer to nil value"))
        elif deadline > earlier:
            errors.append(invalid("spec.activeDeadlineSeconds", deadline, "must be less than or equal to previous value"))
    if len(spec.get("containers") or ()) != len(before.get("containers") or ()):
        return [*errors, forbidden("spec.containers", "pod updates may not add or remove containers")]
    if _comparable_spec(spec, before) != _comparable_spec(before, before):
        errors.append(forbidden("spec", _POD_CHANGES))
    return errors


def _comparable_spec(spec: Json, before: Json) -> Json:
    out = {k: v for k, v in spec.items() if k not in ("activeDeadlineSeconds", "containers", "initContainers", "schedulingGates")}
    for group in ("containers", "initContainers"):
        out[group] = [{k: v for k, v in c.items() if k != "image"} for c in spec.get(group) or ()]
    added = [t for t in spec.get("tolerations") or () if t not in (before.get("tolerations") or ())]
    out["tolerations"] = [t for t in spec.get("tolerations") or () if t not in added]
    return out


# ---------------------------------------------------------------- workloads


_NO_MATCH: Final = "`selector` does not match template `labels`"


def _selector(obj: Json, *, allow_empty: bool = False) -> list[FieldError]:
    spec = obj.get("spec") or {}
    selector = spec.get("selector")
    if selector is None:
        labels = ((spec.get("template") or {}).get("metadata") or {}).get("labels")
        return [required("spec.selector"), invalid("spec.template.metadata.labels", labels, _NO_MATCH)]
    errors: list[FieldError] = []
    if not selector and not allow_empty:
        return [invalid("spec.selector", selector, "empty selector is invalid for deployment")]
    errors.extend(label_selector(selector, "spec.selector"))
    if errors:
        if selector.get("matchExpressions"):
            errors.append(invalid("spec.selector", selector, "invalid label selector"))
        return errors
    labels = ((spec.get("template") or {}).get("metadata") or {}).get("labels")
    if not object_selector(selector)(labels or {}):
        errors.append(invalid("spec.template.metadata.labels", labels, _NO_MATCH))
    return errors


def workload(obj: Json) -> list[FieldError]:
    """Check replicas, selector and template."""
    spec = obj.get("spec") or {}
    errors = []
    for field in ("replicas", "minReadySeconds", "revisionHistoryLimit"):
        value = spec.get(field)
        if value is not None and value < 0:
            errors.append(invalid(f"spec.{field}", value, AT_LEAST_ZERO))
    errors.extend(_selector(obj))
    template = (spec.get("template") or {}).get("spec") or {}
    errors.extend(pod_spec(_with_claims(template, spec.get("volumeClaimTemplates") or ()), "spec.template.spec"))
    if template.get("restartPolicy") != "Always":
        errors.append(not_supported("spec.template.spec.restartPolicy", template.get("restartPolicy"), ("Always",)))
    if template.get("activeDeadlineSeconds") is not None:
        kind = "ReplicaSet" if obj.get("kind") == "Deployment" else obj.get("kind")
        errors.append(forbidden("spec.template.spec.activeDeadlineSeconds", f"activeDeadlineSeconds in {kind} is not Supported"))
    return errors


def _with_claims(template: Json, claims: Sequence[Json]) -> Json:
    """Return a Pod template with the volumes of claim templates, which replace volumes of the same names."""
    names = dict.fromkeys(str((claim.get("metadata") or {}).get("name") or "") for claim in claims)
    if not names:
        return template
    added = [{"name": name, "persistentVolumeClaim": {"claimName": name}} for name in names]
    return {**template, "volumes": [*added, *(v for v in template.get("volumes") or () if v.get("name") not in names)]}


_ACCESS_MODES: Final = ("ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod")


def claim_spec(spec: Json, path: str) -> list[FieldError]:
    """Check access modes, size and class."""
    errors: list[FieldError] = []
    modes = spec.get("accessModes") or ()
    if not modes:
        errors.append(required(f"{path}.accessModes", "at least 1 access mode is required"))
    errors.extend(not_supported(f"{path}.accessModes", mode, _ACCESS_MODES) for mode in modes if mode not in _ACCESS_MODES)
    if len(modes) > 1 and "ReadWriteOncePod" in modes:
        errors.append(forbidden(f"{path}.accessModes", "may not use ReadWriteOncePod with other access modes"))
    size = ((spec.get("resources") or {}).get("requests") or {}).get("storage")
    if size is None:
        errors.append(required(f"{path}.resources[storage]"))
    elif parse_quantity(str(size)).amount <= 0:
        errors.append(invalid(f"{path}.resources[storage]", str(size), "must be greater than zero"))
    if storage_class := spec.get("storageClassName"):
        errors.extend(invalid(f"{path}.storageClassName", storage_class, p) for p in dns_subdomain(storage_class))
    if spec.get("volumeMode") not in ("Block", "Filesystem"):
        errors.append(not_supported(f"{path}.volumeMode", spec.get("volumeMode"), ("Block", "Filesystem")))
    return errors


def persistent_volume_claim(obj: Json) -> list[FieldError]:
    """Return the errors of a claim's spec."""
    return claim_spec(obj.get("spec") or {}, "spec")


_CLAIM_CHANGES: Final = "spec is immutable after creation except resources.requests and volumeAttributesClassName for bound claims"


def persistent_volume_claim_update(obj: Json, old: Json) -> list[FieldError]:
    """Check that only the volume is set once, and that only a bound claim requests more storage."""
    spec, before = dict(obj.get("spec") or {}), dict(old.get("spec") or {})
    if (old.get("status") or {}).get("phase") == "Bound":
        for field in ("resources", "volumeAttributesClassName"):
            spec.pop(field, None), before.pop(field, None)
    if not before.get("volumeName"):
        spec.pop("volumeName", None)
    return [forbidden("spec", _CLAIM_CHANGES)] if spec != before else []


def stateful_set(obj: Json) -> list[FieldError]:
    """Check a workload, and the order of Pods and templates of claims."""
    spec = obj.get("spec") or {}
    errors: list[FieldError] = []
    if spec.get("podManagementPolicy") not in ("OrderedReady", "Parallel"):
        errors.append(invalid("spec.podManagementPolicy", spec.get("podManagementPolicy"), "must be 'OrderedReady' or 'Parallel'"))
    start = (spec.get("ordinals") or {}).get("start") or 0
    if start < 0:
        errors.append(invalid("spec.ordinals.start", start, AT_LEAST_ZERO))
    errors.extend(workload(obj))
    for i, claim in enumerate(spec.get("volumeClaimTemplates") or ()):
        errors.extend(claim_spec(claim.get("spec") or {}, f"spec.volumeClaimTemplates[{i}].spec"))
    return errors


def workload_update(obj: Json, old: Json) -> list[FieldError]:
    """Check that the selector does not change."""
    return immutable(obj.get("spec") or {}, old.get("spec") or {}, "selector", "spec.selector")


_STATEFUL: Final = (
    "updates to statefulset spec for fields other than 'replicas', 'ordinals', 'template', 'updateStrategy', 'revisionHistoryLimit', "
    "'persistentVolumeClaimRetentionPolicy' and 'minReadySeconds' are forbidden"
)


def stateful_set_update(obj: Json, old: Json) -> list[FieldError]:
    """Check that only the few mutable fields change."""
    fixed = immutable(obj.get("spec") or {}, old.get("spec") or {}, "serviceName", "spec.serviceName")
    if fixed:
        return fixed
    movable = {
        "replicas",
        "ordinals",
        "template",
        "updateStrategy",
        "revisionHistoryLimit",
        "persistentVolumeClaimRetentionPolicy",
        "minReadySeconds",
    }
    spec, before = obj.get("spec") or {}, old.get("spec") or {}
    if {k: v for k, v in spec.items() if k not in movable} != {k: v for k, v in before.items() if k not in movable}:
        return [forbidden("spec", _STATEFUL)]
    return []


def deployment_status(obj: Json, old: Json) -> list[FieldError]:
    """Check that counts are not negative, and that none exceeds the count that contains it."""
    status = obj.get("status") or {}
    counts = ("observedGeneration", "replicas", "updatedReplicas", "readyReplicas", "availableReplicas", "unavailableReplicas")
    errors = [invalid(f"status.{field}", status[field], AT_LEAST_ZERO) for field in counts if (status.get(field) or 0) < 0]
    errors.extend(
        invalid(f"status.{field}", status[field], "cannot be greater than status.replicas")
        for field in ("updatedReplicas", "readyReplicas", "availableReplicas")
        if (status.get(field) or 0) > (status.get("replicas") or 0)
    )
    if (status.get("availableReplicas") or 0) > (status.get("readyReplicas") or 0):
        errors.append(invalid("status.availableReplicas", status["availableReplicas"], "cannot be greater than readyReplicas"))
    return errors


def deployment(obj: Json) -> list[FieldError]:
    """Check a workload, and that its strategy can make progress."""
    spec = obj.get("spec") or {}
    errors = workload(obj)
    deadline = spec.get("progressDeadlineSeconds")
    if deadline is not None:
        if deadline < 0:
            errors.append(invalid("spec.progressDeadlineSeconds", deadline, AT_LEAST_ZERO))
        if deadline <= (spec.get("minReadySeconds") or 0):
            errors.append(invalid("spec.progressDeadlineSeconds", deadline, "must be greater than minReadySeconds"))
    strategy = spec.get("strategy") or {}
    rolling = strategy.get("rollingUpdate")
    match strategy.get("type"):
        case "Recreate":
            if rolling is not None:
                errors.append(forbidden("spec.strategy.rollingUpdate", "may not be specified when strategy `type` is 'Recreate'"))
        case "RollingUpdate":
            errors.extend(_rolling_update(rolling or {}, "spec.strategy.rollingUpdate"))
        case _:
            errors.append(
                not_supported("spec.strategy", internal(strategy, ("type", "rollingUpdate"), None), ("Recreate", "RollingUpdate"))
            )
    return errors


def _rolling_update(rolling: Json, path: str) -> Iterator[FieldError]:
    unavailable, surge = rolling.get("maxUnavailable"), rolling.get("maxSurge")
    yield from count_or_share(unavailable, f"{path}.maxUnavailable")
    yield from count_or_share(surge, f"{path}.maxSurge")
    if unavailable in (0, "0%") and surge in (0, "0%"):
        yield invalid(f"{path}.maxUnavailable", unavailable, "may not be 0 when `maxSurge` is 0")
    yield from at_most_all(unavailable, f"{path}.maxUnavailable")


_EVICTION_POLICIES: Final = ("AlwaysAllow", "IfHealthyBudget")


def pod_disruption_budget(obj: Json) -> list[FieldError]:
    """Check that exactly one of two limits is set."""
    spec = obj.get("spec") or {}
    errors: list[FieldError] = []
    if spec.get("minAvailable") is not None and spec.get("maxUnavailable") is not None:
        shown = internal(spec, ("minAvailable", "selector", "maxUnavailable", "unhealthyPodEvictionPolicy"), None)
        errors.append(invalid("spec", shown, "minAvailable and maxUnavailable cannot be both set"))
    for field in ("minAvailable", "maxUnavailable"):
        errors.extend(count_or_share(spec.get(field), f"spec.{field}"))
        errors.extend(at_most_all(spec.get(field), f"spec.{field}"))
    errors.extend(label_selector(spec.get("selector") or {}, "spec.selector"))
    policy = spec.get("unhealthyPodEvictionPolicy")
    if policy is not None and policy not in _EVICTION_POLICIES:
        errors.append(not_supported("spec.unhealthyPodEvictionPolicy", policy, _EVICTION_POLICIES))
    return errors
