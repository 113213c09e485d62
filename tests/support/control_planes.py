"""Control planes and their Machines as decisions see them, made of what a test wants to say."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from clusterwright.api import codec
from clusterwright.api.controlplane import KubeadmControlPlane
from clusterwright.api.core import Machine
from clusterwright.api.meta import Condition, OwnerReference, Unstructured
from clusterwright.controllers.kubeadmcontrolplane.machines.machine import NO_DIFFERENCE, ControlPlaneMachine, Differences
from clusterwright.controllers.kubeadmcontrolplane.snapshot import ClusterFacts, ControlPlaneDone

CLUSTER = ClusterFacts(
    reference=OwnerReference(api_version="cluster.x-k8s.io/v1beta2", kind="Cluster", name="c1"), namespace="ns", paused=False
)


def _stamp(at: datetime | None) -> str | None:
    return at.isoformat() if at is not None else None


def owned(
    name: str,
    *,
    node: str = "",
    provider_id: str = "",
    created: datetime | None = None,
    deletion_timestamp: datetime | None = None,
    annotations: Mapping[str, str] | None = None,
    conditions: Sequence[Condition] = (),
    version: str = "",
    failure_domain: str = "",
    spec: Mapping[str, Any] | None = None,
    status: Mapping[str, Any] | None = None,
    infrastructure: Unstructured | None = None,
    config: Unstructured | None = None,
    differences: Differences = NO_DIFFERENCE,
) -> ControlPlaneMachine:
    """A Machine of a control plane; what is not said it does not have."""
    metadata = {
        "name": name,
        "annotations": dict(annotations or {}),
        "creationTimestamp": _stamp(created),
        "deletionTimestamp": _stamp(deletion_timestamp),
    }
    body = {
        "metadata": {k: v for k, v in metadata.items() if v is not None},
        "spec": {"version": version, "failureDomain": failure_domain, "providerID": provider_id, **(spec or {})},
        "status": {"conditions": [codec.to_json(c) for c in conditions], **({"nodeRef": {"name": node}} if node else {}), **(status or {})},
    }
    machine = codec.convert(body, Machine)
    return ControlPlaneMachine(object=machine, infrastructure=infrastructure, config=config, differences=differences)


def control_plane(
    *machines: ControlPlaneMachine, now: datetime, replicas: int | None = None, spec: Mapping[str, Any] | None = None, **seen: Any
) -> ControlPlaneDone:
    """A control plane that is initialized, with these Machines and as many replicas."""
    body = {"replicas": len(machines) if replicas is None else replicas, "version": "v1.34.1", **(spec or {})}
    obj = codec.convert(
        {
            "metadata": {"name": "kcp1", "namespace": "ns", "uid": "u"},
            "spec": body,
            "status": {"initialization": {"controlPlaneInitialized": True}},
        },
        KubeadmControlPlane,
    )
    facts = seen.pop("cluster", CLUSTER)
    return ControlPlaneDone(now=now, object=obj, spec=body, cluster=facts, owned=machines, **seen)
