"""Find pools of addresses that are exhausted."""

from __future__ import annotations

from collections.abc import Iterator

from clusterwright.api.contract import crd_name
from clusterwright.offline.complaints import Tier, with_cause
from clusterwright.offline.known import Found, Known
from clusterwright.offline.words import EXHAUSTED


def addresses(known: Known) -> Iterator[Found]:
    """Yield claims whose pool cannot serve them."""
    for name, claim in known.of_kind("IPAddressClaim"):
        reference = claim.at("spec", "poolRef")
        for complaint in known.complaints.get(name, ()):
            if not isinstance(reference, dict) or not EXHAUSTED.said_in(complaint.raw):
                continue
            kind, pool = str(reference.get("kind")), str(reference.get("name"))
            resource = f"{crd_name(str(reference.get('apiGroup')), kind).partition('.')[0]}/{pool}"
            facts = {"pool": f"{kind} {pool}", "namespace": claim.key.namespace, "resource": resource}
            better = with_cause(complaint, "address.exhausted", facts, tier=Tier.ERROR)
            yield Found(object=name, complaint=better, is_all=True)
            break
