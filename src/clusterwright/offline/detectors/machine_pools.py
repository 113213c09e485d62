"""Find MachinePools that have fewer Nodes than replicas, and the reason."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from clusterwright.api.contract import crd_name
from clusterwright.api.wellknown import REPLICAS_MANAGED_BY_ANNOTATION
from clusterwright.offline.complaints import Complaint, Tier
from clusterwright.offline.known import Found, Known

_LISTED: Final = "spec.providerIDList"


def machine_pools(known: Known) -> Iterator[Found]:
    """Yield infrastructure that reports completion and lists no machines, and pools that lack Nodes."""
    for name, pool in known.of_kind("MachinePool"):
        wanted, nodes = pool.at("spec", "replicas"), pool.at("status", "nodeRefs") or ()
        is_managed = REPLICAS_MANAGED_BY_ANNOTATION in pool.metadata.annotations
        if pool.metadata.deletion_timestamp is not None or not isinstance(wanted, int) or is_managed or len(nodes) >= wanted:
            continue
        if pool.at("status", "initialization", "infrastructureProvisioned") is not True or pool.at("spec", "providerIDList"):
            continue
        source = known.named(pool, "spec.infrastructureRef")
        infrastructure = known.objects.get(source)
        if infrastructure is None or infrastructure.at("spec", "providerIDList"):
            continue
        text = f"says that it is provisioned, but lists no machines in {_LISTED}, so that MachinePool {pool.key.name} has no Nodes"
        resource = f"{crd_name(infrastructure.gvk.group, infrastructure.kind).partition('.')[0]}/{infrastructure.key.name}"
        facts = {"kind": infrastructure.kind, "path": _LISTED, "namespace": pool.key.namespace, "resource": resource}
        since = str(infrastructure.at("metadata", "creationTimestamp") or "")
        complaint = Complaint(Tier.ERROR, text, since, path=_LISTED, cause="provider.shape", facts=facts)
        yield Found(object=source, complaint=complaint, explains={name: "waits for its machines"}, is_all=True)
