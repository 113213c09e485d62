"""Find machines that run without a control plane coming up on them, while no other object complains."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime

from clusterwright.api.meta import Condition, Unstructured
from clusterwright.api.wellknown import CONTROL_PLANE_LABEL
from clusterwright.conditions import get
from clusterwright.offline.complaints import Complaint, Tier, references, since
from clusterwright.offline.known import Found, Known
from clusterwright.offline.ownership import name_of
from clusterwright.offline.unreconciled import AT_ONCE


def boots(known: Known) -> Iterator[Found]:
    """Yield the first machines of a control plane that has not come up, if no other object complains."""
    if known.is_initialized or known.cluster is None or known.cluster.metadata.deletion_timestamp is not None:
        return
    for name, machine in known.of_kind("Machine"):
        if machine.metadata.deletion_timestamp is not None or CONTROL_PLANE_LABEL not in machine.metadata.labels:
            continue
        named = [name_of(r.kind, machine.key.namespace, r.name) for r in references(machine.at("spec"), home=machine.key.namespace)]
        complaint = booting_in_vain(machine, known.conditions(name), known.now)
        if complaint is not None and all(n in known.objects and not known.complaints.get(n) for n in named):
            yield Found(object=name, complaint=complaint, is_all=True)


def booting_in_vain(machine: Unstructured, conditions: Sequence[Condition], now: datetime | None) -> Complaint | None:
    """Return a complaint if a control-plane machine has run with its bootstrap data for a while and no control plane came up on it."""
    begun = get(conditions, "InfrastructureReady")
    provisioned = machine.at("status", "initialization", "infrastructureProvisioned") is True
    if not provisioned or machine.at("status", "nodeRef") or begun is None or begun.status != "True":
        return None
    if now is not None and begun.last_transition_time is not None and now - begun.last_transition_time < AT_ONCE:
        return None
    text = "its machine runs, but no control plane has come up on it yet; what happens there only its console tells"
    facts = {"machine": machine.key.name, "namespace": machine.key.namespace}
    return Complaint(Tier.WAITING, text, since(begun), path="status.nodeRef", cause="machine.silent", facts=facts)
