"""Finds certificates of control planes that have expired, or are about to: nothing answers then, and nobody says why."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime

from clusterwright.api.meta import Unstructured
from clusterwright.api.wellknown import CERTIFICATES_EXPIRY_ANNOTATION, CONTROL_PLANE_LABEL
from clusterwright.offline.complaints import Complaint, Tier
from clusterwright.offline.known import Found, Known
from clusterwright.offline.ownership import name_of


def certificate_expiry(known: Known) -> Iterator[Found]:
    """Yield the Machines of a control plane whose certificates are of no use any more."""
    for name, machine in known.of_kind("Machine"):
        expiry = _expiry(machine)
        is_gone = machine.metadata.deletion_timestamp is not None or CONTROL_PLANE_LABEL not in machine.metadata.labels
        if known.now is None or expiry is None or expiry > known.now or is_gone:
            continue
        text = f"the certificates of its API server and its etcd have expired at {expiry:%Y-%m-%dT%H:%M:%SZ}"
        facts = {"machine": machine.key.name, "namespace": machine.key.namespace}
        path = "status.certificatesExpiryDate"
        complaint = Complaint(Tier.ERROR, text, f"{expiry:%Y-%m-%dT%H:%M:%SZ}", path=path, cause="certificate.expired", facts=facts)
        shared = [] if known.cluster is None else [f"{name_of('Cluster', *known.cluster.key)}#connection"]
        yield Found(object=name, complaint=complaint, explains=dict.fromkeys(shared, "answers with it"), is_all=True)


def _expiry(machine: Unstructured) -> datetime | None:
    told = machine.at("status", "certificatesExpiryDate") or machine.metadata.annotations.get(CERTIFICATES_EXPIRY_ANNOTATION)
    try:
        found = datetime.fromisoformat(str(told)) if told else None
    except ValueError:
        return None
    return found if found is not None and found.tzinfo is not None else None
