"""Requests for external remediation, made from the template that the check names. Pure."""

from __future__ import annotations

from clusterwright.api.copying import replace
from clusterwright.api.core import Machine, MachineHealthCheck
from clusterwright.api.meta import GroupVersionKind, Json, ObjectKey, Unstructured
from clusterwright.api.wellknown import CLONED_FROM_GROUP_KIND_ANNOTATION, CLONED_FROM_NAME_ANNOTATION, CLUSTER_NAME_LABEL

TEMPLATE_SUFFIX = "Template"


def template_of(check: MachineHealthCheck) -> tuple[GroupVersionKind, ObjectKey] | None:
    """Return kind and name of the template; None if the Machines' owners remediate."""
    ref = check.spec.remediation.template_ref if check.spec.remediation else None
    return None if ref is None else (GroupVersionKind.of(ref.api_version, ref.kind), ObjectKey(check.metadata.namespace, ref.name))


def request_kind(template: GroupVersionKind) -> GroupVersionKind:
    """Return the kind of the requests that are made from a template."""
    return replace(template, kind=template.kind.removesuffix(TEMPLATE_SUFFIX))


def request_for(machine: Machine, check: MachineHealthCheck, template: Unstructured) -> Json:
    """Return the request for a Machine: it has the Machine's name, so it is unique, and is owned by it."""
    body = template.at("spec", "template")
    body = dict(body) if isinstance(body, dict) else {}
    metadata = body.get("metadata") if isinstance(body.get("metadata"), dict) else {}
    gvk = template.gvk
    kind = request_kind(gvk)
    owner = {"apiVersion": machine.api_version, "kind": machine.kind, "name": machine.metadata.name, "uid": machine.metadata.uid}
    return {
        **body,
        "apiVersion": kind.api_version,
        "kind": kind.kind,
        "metadata": {
            "name": machine.metadata.name,
            "namespace": machine.metadata.namespace,
            "labels": {**((metadata or {}).get("labels") or {}), CLUSTER_NAME_LABEL: check.spec.cluster_name},
            "annotations": {
                **((metadata or {}).get("annotations") or {}),
                CLONED_FROM_NAME_ANNOTATION: template.key.name,
                CLONED_FROM_GROUP_KIND_ANNOTATION: f"{gvk.kind}.{gvk.group}",
            },
            "ownerReferences": [owner],
        },
    }
