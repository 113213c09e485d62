"""Who owns the objects that a Machine refers to. Pure."""

from __future__ import annotations

from clusterwright.api.core import Cluster, Machine
from clusterwright.api.meta import Json, OwnerReference, Unstructured
from clusterwright.api.wellknown import CLUSTER_NAME_LABEL
from clusterwright.controllers.external import with_owner
from clusterwright.controllers.machine.status import is_control_plane


def owned_metadata(obj: Unstructured, machine: Machine, cluster: Cluster) -> Json | None:
    """A merge patch after which the Machine controls the object; None if it does. Raises AlreadyControlled.

    Whoever made the object owned it before the Machine existed; those references are dropped. All others are kept, with fields
    that we do not know.
    """
    metadata = obj.metadata
    kept = tuple(r for r in metadata.owner_references if not _made_it(r, machine, cluster))
    labelled = metadata.labels.get(CLUSTER_NAME_LABEL) == machine.spec.cluster_name
    if len(kept) == len(metadata.owner_references) and labelled and any(_is_exactly(r, machine) for r in kept):
        return None
    owner = OwnerReference(
        api_version=machine.api_version,
        kind=machine.kind,
        name=machine.metadata.name,
        uid=machine.metadata.uid,
        controller=True,
        block_owner_deletion=True,
    )
    references = [_json(r) for r in with_owner(kept, owner)]
    changes: Json = {"ownerReferences": references, "resourceVersion": metadata.resource_version, "uid": metadata.uid}
    if not labelled:
        changes["labels"] = {CLUSTER_NAME_LABEL: machine.spec.cluster_name}
    return {"metadata": changes}


def _made_it(reference: OwnerReference, machine: Machine, cluster: Cluster) -> bool:
    group = reference.api_version.rpartition("/")[0]
    if (group, reference.kind) == ("cluster.x-k8s.io", "MachineSet"):
        return True
    made_by = cluster.spec.control_plane_ref
    return is_control_plane(machine) and made_by is not None and (group, reference.kind) == (made_by.api_group, made_by.kind)


def _is_exactly(reference: OwnerReference, machine: Machine) -> bool:
    mine = (machine.api_version, machine.kind, machine.metadata.name, machine.metadata.uid, True)
    return (reference.api_version, reference.kind, reference.name, reference.uid, bool(reference.controller)) == mine


def _json(reference: OwnerReference) -> Json:
    json: Json = {"apiVersion": reference.api_version, "kind": reference.kind, "name": reference.name, "uid": reference.uid}
    if reference.controller is not None:
        json["controller"] = reference.controller
    if reference.block_owner_deletion is not None:
        json["blockOwnerDeletion"] = reference.block_owner_deletion
    return json
