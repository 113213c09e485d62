"""Find machines that share a providerID, and Nodes whose providerID differs from that of their machine."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from clusterwright.api.contract import crd_name
from clusterwright.offline.complaints import Complaint, Tier
from clusterwright.offline.known import Found, Known

_PATH: Final = "spec.providerID"


def provider_ids(known: Known) -> Iterator[Found]:
    """Yield infrastructure machines whose providerID cannot be right."""
    by_id: dict[str, list[str]] = {}
    behind: dict[str, str] = {}
    for name, machine in known.of_kind("Machine"):
        infrastructure = known.named(machine, "spec.infrastructureRef")
        own = known.objects.get(infrastructure)
        provider_id = own.at("spec", "providerID") if own is not None else machine.at("spec", "providerID")
        if isinstance(provider_id, str) and provider_id and own is not None and machine.metadata.deletion_timestamp is None:
            by_id.setdefault(provider_id, []).append(infrastructure)
            behind[infrastructure] = name
    nodes = {o.key.name: str(o.at("spec", "providerID") or "") for o in known.workload.values() if o.kind == "Node"}
    taken = frozenset(nodes.values())
    for provider_id, names in by_id.items():
        obj = known.objects[names[0]]
        machine = known.objects[behind[names[0]]]
        facts = {
            "kind": obj.kind,
            "namespace": obj.key.namespace,
            "resource": f"{crd_name(obj.gvk.group, obj.kind).partition('.')[0]}/{obj.key.name}",
            "cluster": known.cluster.key.name if known.cluster is not None else "",
            "node": machine.key.name,
        }
        if len(set(names)) > 1:
            others = ", ".join(n.rpartition("/")[2] for n in names[1:])
            text = f"reports the providerID {provider_id}, as {others} does: only one of them can have the Node"
            complaint = Complaint(Tier.ERROR, text, path=_PATH, cause="provider.duplicate", facts=facts)
            yield Found(object=names[0], complaint=complaint, explains={behind[n]: "its providerID is not its own" for n in names})
        elif not machine.at("status", "nodeRef") and provider_id not in taken:
            node = next((n for n in (machine.key.name, obj.key.name) if n in nodes), "")
            found = nodes.get(node)
            if node and not found:
                text = f"waits for a Node with the providerID {provider_id}, but its Node {node} has none"
                complaint = Complaint(Tier.ERROR, text, path="spec.providerID", cause="node.uninitialized", facts={**facts, "node": node})
                yield Found(object=behind[names[0]], complaint=complaint, is_all=True)
            elif found:
                text = f"reports the providerID {provider_id}, but its Node {machine.key.name} has {found}"
                complaint = Complaint(Tier.ERROR, text, path=_PATH, cause="provider.other-node", facts=facts)
                yield Found(object=names[0], complaint=complaint, explains={behind[names[0]]: "its Node cannot be found by it"})
