"""Find needs of a Cluster that none of its objects can meet: a gate of availability, a name for its endpoint."""

from __future__ import annotations

from collections.abc import Iterator

from clusterwright.offline.complaints import Complaint, Tier, condition_path, since, text_of
from clusterwright.offline.known import Found, Known
from clusterwright.offline.ownership import name_of

_NAMELESS = "no such host"


def clusters(known: Known) -> Iterator[Found]:
    """Yield the Cluster with the gate that is not reported or bad, or with the endpoint that has no address."""
    cluster = known.cluster
    if cluster is None or cluster.metadata.deletion_timestamp is not None:
        return
    name = name_of(cluster.kind, *cluster.key)
    facts = {"cluster": cluster.key.name, "namespace": cluster.key.namespace}
    gates = cluster.at("spec", "availabilityGates")
    for gate in gates if isinstance(gates, list) else ():
        type_ = str(gate.get("conditionType"))
        said, good = known.said(name, type_), "False" if gate.get("polarity") == "Negative" else "True"
        if said is not None and said.status == good:
            continue
        told = "has not been reported by anybody" if said is None else f"is {said.status}: {said.message or said.reason}"
        text, begun = (
            f"waits for the condition {type_}, a gate of its availability, which {told}",
            since(said or known.said(name, "Available")),
        )
        path = "spec.availabilityGates" if said is None else condition_path(type_)
        tier = Tier.WAITING if said is None else Tier.ERROR
        told_by = Complaint(tier, text, begun, "Available", text, path=path, cause="cluster.gate", facts={**facts, "gate": type_})
        yield Found(object=name, complaint=told_by, is_all=True)
    host = str(cluster.at("spec", "controlPlaneEndpoint", "host") or "")
    for event in known.events.get(name, ()) if host and not known.is_reachable else ():
        words = text_of(event)
        if host in words and _NAMELESS in words:
            text = f"the workload cluster cannot be reached: {words}"
            lost = known.said(name, "RemoteConnectionProbe")
            facts = {**facts, "host": host, "said": words.rpartition("dial ")[2]}
            complaint = Complaint(
                Tier.UNHEALTHY, text, since(lost), path="spec.controlPlaneEndpoint.host", cause="endpoint.name", facts=facts
            )
            yield Found(object=name, complaint=complaint, explains={f"{name}#connection": "is reached by that name"}, is_all=True)
            return
