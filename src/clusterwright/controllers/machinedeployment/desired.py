"""The MachineSets that a MachineDeployment wants, as server-side apply intents. Pure."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from copy import deepcopy
from dataclasses import dataclass
from typing import Any, Final

from clusterwright.api.meta import Json, ObjectMeta
from clusterwright.api.wellknown import (
    CONVERSION_DATA_ANNOTATION,
    DESIRED_REPLICAS_ANNOTATION,
    DISABLE_MACHINE_CREATE_ANNOTATION,
    LAST_APPLIED_ANNOTATION,
    MACHINE_DEPLOYMENT_NAME_LABEL,
    MACHINE_SET_FINALIZER,
    MACHINE_TEMPLATE_HASH_LABEL,
    MAX_REPLICAS_ANNOTATION,
    REVISION_ANNOTATION,
    REVISION_HISTORY_ANNOTATION,
)
from clusterwright.controllers.intstr import capped
from clusterwright.controllers.machinedeployment.revisions import Revision
from clusterwright.controllers.machinedeployment.templates import IN_PLACE, template_hash
from clusterwright.kubeadm.naming import suffix

FIELD_MANAGER: Final = "capi-machinedeployment"
_MOST: Final = 58
_OURS_ALONE: Final = frozenset(
    {
        LAST_APPLIED_ANNOTATION,
        REVISION_ANNOTATION,
        REVISION_HISTORY_ANNOTATION,
        DESIRED_REPLICAS_ANNOTATION,
        MAX_REPLICAS_ANNOTATION,
        CONVERSION_DATA_ANNOTATION,
    }
)
"""Annotations of a MachineDeployment that are not copied to its MachineSets."""


@dataclass(frozen=True, slots=True)
class Maker:
    """A MachineDeployment as the source of its MachineSets. `spec` is its spec as JSON, with unknown fields."""

    metadata: ObjectMeta
    api_version: str
    spec: Mapping[str, Any]
    surge: int

    @property
    def _template(self) -> Mapping[str, Any]:
        return self.spec.get("template") or {}

    @property
    def machine_spec(self) -> Mapping[str, Any]:
        """`spec.template.spec`."""
        return self._template.get("spec") or {}

    @property
    def template_labels(self) -> dict[str, str]:
        """The labels of its Machines."""
        return dict((self._template.get("metadata") or {}).get("labels") or {})

    @property
    def template_annotations(self) -> dict[str, str]:
        """The annotations of its Machines."""
        return dict((self._template.get("metadata") or {}).get("annotations") or {})

    def annotations(self, revision: Revision, *, may_create: bool) -> dict[str, str]:
        """Return the annotations of a MachineSet."""
        replicas = int(self.spec.get("replicas") or 0)
        return {
            **{name: value for name, value in self.metadata.annotations.items() if name not in _OURS_ALONE},
            **revision.annotations,
            DESIRED_REPLICAS_ANNOTATION: str(replicas),
            MAX_REPLICAS_ANNOTATION: str(capped(replicas + self.surge)),
            DISABLE_MACHINE_CREATE_ANNOTATION: "false" if may_create else "true",
        }


def new_name(maker: Maker, slot: str, taken: Collection[str]) -> tuple[str, str]:
    """Return name and `machine-template-hash` of a new MachineSet.

    Both are derived from the template and the slot, so that a repeated creation finds the first. `taken` names are skipped.
    """
    number = template_hash(maker.machine_spec)
    for turn in range(len(taken) + 1):
        random = suffix(maker.metadata.uid, f"{number}/{slot}/{turn}")
        name = f"{maker.metadata.name}-"[:_MOST] + random
        if name not in taken:
            break
    return name, f"{number}-{random}"


def new_machine_set(maker: Maker, name: str, hash_label: str, *, replicas: int, annotations: Mapping[str, str]) -> Json:
    """Return a MachineSet that does not exist yet."""
    identity = {"name": name, "finalizers": [MACHINE_SET_FINALIZER]}
    return _machine_set(maker, identity, hash_label, maker.machine_spec, replicas, annotations)


def updated_machine_set(maker: Maker, machine_set: Mapping[str, Any], *, replicas: int, annotations: Mapping[str, str]) -> Json:
    """Return an existing MachineSet in its desired state: its Machines stay the same, except for what changes in place."""
    metadata, spec = machine_set.get("metadata") or {}, machine_set.get("spec") or {}
    finalizers = metadata.get("finalizers")
    identity = {"name": metadata.get("name"), "uid": metadata.get("uid"), **({"finalizers": finalizers} if finalizers else {})}
    kept = {k: v for k, v in ((spec.get("template") or {}).get("spec") or {}).items() if k not in IN_PLACE}
    changed = {k: v for k, v in maker.machine_spec.items() if k in IN_PLACE and v not in (None, [], {})}
    hash_label = (metadata.get("labels") or {}).get(MACHINE_TEMPLATE_HASH_LABEL, "")
    return _machine_set(maker, identity, hash_label, {**kept, **changed}, replicas, annotations)


def _machine_set(
    maker: Maker, identity: Json, hash_label: str, machine_spec: Mapping[str, Any], replicas: int, annotations: Mapping[str, str]
) -> Json:
    mark = {MACHINE_TEMPLATE_HASH_LABEL: hash_label}
    selector: Json = deepcopy(dict(maker.spec.get("selector") or {}))
    selector["matchLabels"] = {**(selector.get("matchLabels") or {}), **mark}
    template_annotations = maker.template_annotations
    spec: Json = {
        "clusterName": maker.spec.get("clusterName", ""),
        "replicas": replicas,
        "selector": selector,
        "template": {
            "metadata": {
                "labels": {**maker.template_labels, **mark},
                **({"annotations": template_annotations} if template_annotations else {}),
            },
            "spec": deepcopy(dict(machine_spec)),
        },
    }
    spec |= {field: value for field in ("deletion", "machineNaming") if (value := maker.spec.get(field))}
    return {
        "apiVersion": maker.api_version,
        "kind": "MachineSet",
        "metadata": {
            **identity,
            "namespace": maker.metadata.namespace,
            "labels": {**maker.template_labels, **mark, MACHINE_DEPLOYMENT_NAME_LABEL: maker.metadata.name},
            "annotations": dict(annotations),
            "ownerReferences": [
                {
                    "apiVersion": maker.api_version,
                    "kind": "MachineDeployment",
                    "name": maker.metadata.name,
                    "uid": maker.metadata.uid,
                    "controller": True,
                    "blockOwnerDeletion": True,
                }
            ],
        },
        "spec": spec,
    }
