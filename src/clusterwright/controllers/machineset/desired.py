"""The desired objects of a MachineSet: Machines and their clones, as server-side apply intents. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from copy import deepcopy
from dataclasses import dataclass
from itertools import count
from typing import Any, Final

from clusterwright.api.core import ContractVersionedObjectReference
from clusterwright.api.meta import Json, ObjectMeta, Unstructured
from clusterwright.api.wellknown import (
    CLONED_FROM_GROUP_KIND_ANNOTATION,
    CLONED_FROM_NAME_ANNOTATION,
    CLUSTER_NAME_LABEL,
    MACHINE_DEPLOYMENT_NAME_LABEL,
    MACHINE_FINALIZER,
    MACHINE_SET_NAME_LABEL,
    UPDATE_IN_PROGRESS_ANNOTATION,
)
from clusterwright.controllers import field_ownership
from clusterwright.kubeadm.naming import generated_name, label_value, slot

FIELD_MANAGER: Final = "capi-machineset"
METADATA_MANAGER: Final = "capi-machineset-metadata"
DEFAULT_NAMING: Final = "{{ .machineSet.name }}-{{ .random }}"
NODE_DELETION_TIMEOUT: Final = 10
"""The default that admission sets for the Node deletion timeout of Machines."""


@dataclass(frozen=True, slots=True)
class Maker:
    """A MachineSet as the source of its objects. `spec` is its spec as JSON, with unknown fields."""

    metadata: ObjectMeta
    api_version: str
    spec: Mapping[str, Any]

    @property
    def cluster(self) -> str:
        """The name of the Cluster."""
        return str(self.spec.get("clusterName") or "")

    @property
    def template(self) -> Mapping[str, Any]:
        """`spec.template.spec`."""
        return (self.spec.get("template") or {}).get("spec") or {}

    @property
    def config_ref(self) -> Mapping[str, Any] | None:
        """The bootstrap template, if there is one."""
        found = (self.template.get("bootstrap") or {}).get("configRef")
        return found if found and found.get("name") else None

    @property
    def infrastructure_ref(self) -> Mapping[str, Any]:
        """The infrastructure template."""
        return self.template.get("infrastructureRef") or {}

    @property
    def labels(self) -> dict[str, str]:
        """Return the labels of a Machine and its clones; users cannot override ours."""
        given = ((self.spec.get("template") or {}).get("metadata") or {}).get("labels") or {}
        labels = {**given, MACHINE_SET_NAME_LABEL: label_value(self.metadata.name)}
        if MACHINE_DEPLOYMENT_NAME_LABEL in self.metadata.labels:
            labels[MACHINE_DEPLOYMENT_NAME_LABEL] = self.metadata.labels[MACHINE_DEPLOYMENT_NAME_LABEL]
        return labels

    @property
    def annotations(self) -> dict[str, str]:
        """The annotations of a Machine and its clones."""
        return dict(((self.spec.get("template") or {}).get("metadata") or {}).get("annotations") or {})

    def digest(self) -> str:
        """Return a digest of everything that the objects of existing Machines are made of."""
        identity = (self.api_version, self.metadata.namespace, self.metadata.uid)
        return field_ownership.digest(
            {"of": identity, "cluster": self.cluster, "labels": self.labels, "template": self.spec.get("template")}
        )

    def reference(self, *, controller: bool) -> Json:
        """Return an ownerReference to the MachineSet."""
        reference: Json = {"apiVersion": self.api_version, "kind": "MachineSet", "name": self.metadata.name, "uid": self.metadata.uid}
        return {**reference, "controller": True, "blockOwnerDeletion": True} if controller else reference


# ---------------------------------------------------------------------------------------------------- names


def new_names(maker: Maker, *, present: Iterable[str], taken: Iterable[str]) -> Iterator[str]:
    """Yield names for new Machines endlessly, each on demand; skip `taken` names.

    The names depend only on the situation (`present`: the UIDs of the Machines, and the like), so that two passes that see the same
    Machines create the same new ones, in any process. Raises BadNamingTemplate.
    """
    naming = (maker.spec.get("machineNaming") or {}).get("template") or DEFAULT_NAMING
    data = {"cluster": {"name": maker.cluster}, "machineSet": {"name": maker.metadata.name}}
    situation, used = slot(present), set(taken)
    for n in count():
        name = generated_name(template=naming, data=data, uid=maker.metadata.uid, slot=f"{situation}/{n}", taken=used)
        used.add(name)
        yield name


# ------------------------------------------------------------------------------------------------- Machines


def new_machine(maker: Maker, name: str) -> Json:
    """Return a new Machine; its clones have the same name."""
    bootstrap: Json = deepcopy(dict(maker.template.get("bootstrap") or {}))
    if maker.config_ref is not None:
        bootstrap["configRef"] = _clone_reference(maker.config_ref, name)
    return _machine(
        maker,
        {"name": name, "finalizers": [MACHINE_FINALIZER]},
        {"bootstrap": bootstrap, "infrastructureRef": _clone_reference(maker.infrastructure_ref, name)},
    )


def updated_machine(maker: Maker, machine: Mapping[str, Any], *, in_place: bool = False) -> Json:
    """Return an existing Machine in its desired state: its identity stays, the rest follows the template.

    Version and failure domain also stay: changing them needs a new Machine, or (`in_place`) an accepted in-place update.
    """
    metadata, spec = machine.get("metadata") or {}, machine.get("spec") or {}
    finalizers = list(metadata.get("finalizers") or ())
    bootstrap: Json = deepcopy(dict(maker.template.get("bootstrap") or {}))
    bootstrap.pop("configRef", None)
    if config_ref := (spec.get("bootstrap") or {}).get("configRef"):
        bootstrap["configRef"] = config_ref
    kept: Json = {"bootstrap": bootstrap, "infrastructureRef": spec.get("infrastructureRef") or {}}
    if not in_place:
        kept |= {field: spec.get(field) for field in ("version", "failureDomain")}
    identity = {
        "name": metadata.get("name"),
        "uid": metadata.get("uid"),
        "finalizers": finalizers if MACHINE_FINALIZER in finalizers else [*finalizers, MACHINE_FINALIZER],
    }
    return _machine(maker, identity, kept)


def _machine(maker: Maker, metadata: Json, spec: Json) -> Json:
    merged = {**deepcopy(dict(maker.template)), "clusterName": maker.cluster, **spec}
    annotations = maker.annotations
    return {
        "apiVersion": maker.api_version,
        "kind": "Machine",
        "metadata": {
            **metadata,
            "namespace": maker.metadata.namespace,
            "labels": maker.labels,
            **({"annotations": annotations} if annotations else {}),
            "ownerReferences": [maker.reference(controller=True)],
        },
        "spec": {field: value for field, value in merged.items() if value not in (None, "", [], {})},
    }


def typed_reference(reference: Mapping[str, Any]) -> ContractVersionedObjectReference:
    """Return a typed reference from JSON."""
    return ContractVersionedObjectReference(
        api_group=str(reference.get("apiGroup", "")), kind=str(reference.get("kind", "")), name=str(reference.get("name", ""))
    )


def _clone_reference(template: Mapping[str, Any], name: str) -> Json:
    return {"apiGroup": template.get("apiGroup", ""), "kind": str(template.get("kind", "")).removesuffix("Template"), "name": name}


# --------------------------------------------------------------------------------------------------- clones


def cloned_from(reference: Mapping[str, Any]) -> dict[str, str]:
    """Return annotations that name the template of an object."""
    return {
        CLONED_FROM_NAME_ANNOTATION: str(reference.get("name", "")),
        CLONED_FROM_GROUP_KIND_ANNOTATION: f"{reference.get('kind', '')}.{reference.get('apiGroup', '')}",
    }


def clone(maker: Maker, template: Unstructured, reference: Mapping[str, Any], name: str) -> Json:
    """Return the clone of a template, with the labels and annotations of template and Machine."""
    content = template.at("spec", "template")
    made: Json = deepcopy(dict(content)) if isinstance(content, Mapping) else {}
    metadata = made.pop("metadata", None) or {}
    return {
        **made,
        "apiVersion": str(template.json.get("apiVersion", "")),
        "kind": template.kind.removesuffix("Template"),
        "metadata": {
            "name": name,
            "namespace": maker.metadata.namespace,
            "labels": {**(metadata.get("labels") or {}), CLUSTER_NAME_LABEL: maker.cluster, **maker.labels},
            "annotations": {**(metadata.get("annotations") or {}), **maker.annotations, **cloned_from(reference)},
            "ownerReferences": [maker.reference(controller=False)],
        },
    }


def metadata_intent(maker: Maker, obj: Unstructured) -> Json:
    """Return only labels and annotations of an InfraMachine or BootstrapConfig, for the metadata manager."""
    metadata = obj.metadata
    intent: Json = {"name": metadata.name, "namespace": metadata.namespace, "uid": metadata.uid, "labels": maker.labels}
    # always there, though it may be empty: left out, the map would go with all annotations if this manager ever owned it
    intent["annotations"] = maker.annotations
    return {"apiVersion": str(obj.json.get("apiVersion", "")), "kind": obj.kind, "metadata": intent}


def in_place_intent(obj: Unstructured, template: Unstructured, reference: Mapping[str, Any]) -> Json:
    """Return an InfraMachine or BootstrapConfig from the present template, marked for the in-place update."""
    metadata = obj.metadata
    spec = template.at("spec", "template", "spec")
    return {
        "apiVersion": str(obj.json.get("apiVersion", "")),
        "kind": obj.kind,
        "metadata": {
            "name": metadata.name,
            "namespace": metadata.namespace,
            "uid": metadata.uid,
            "annotations": {**cloned_from(reference), UPDATE_IN_PROGRESS_ANNOTATION: ""},
        },
        **({"spec": deepcopy(spec)} if spec else {}),
    }
