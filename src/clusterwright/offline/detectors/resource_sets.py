"""Finds what a ClusterResourceSet cannot apply: a Secret of another type, an object whose kind the workload cluster does not serve."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from clusterwright.offline.complaints import Complaint, Tier
from clusterwright.offline.kinship import name_of, resources
from clusterwright.offline.known import Found, Known

_TYPE: Final = "addons.cluster.x-k8s.io/resource-set"
_UNSERVED: Final = re.compile(r'no matches for kind "?(\w+)|(?:the server could not find|does not serve)[^\n]*?(\w+)')
"""Example: `no matches for kind "CiliumNetworkPolicy" in version "cilium.io/v2"`."""
_APPLIED: Final = "ResourcesApplied"


def resource_sets(known: Known) -> Iterator[Found]:
    """Yield the sources of ClusterResourceSets that could not be applied, with the reason."""
    for name, obj in known.of_kind("ClusterResourceSet"):
        told = [c for c in known.complaints.get(name, ()) if c.about == _APPLIED]
        for reference in resources(obj) if told else ():
            source = name_of(reference.kind, obj.key.namespace, reference.name)
            there = known.objects.get(source)
            if there is None:
                continue
            facts = {"namespace": there.key.namespace, "name": there.key.name}
            facts |= {"source": f"{reference.kind} {reference.name}", "resource": f"{reference.kind.lower()}/{reference.name}"}
            if there.kind == "Secret" and there.at("type") != _TYPE:
                text = f"has the type {there.at('type')}, so that ClusterResourceSet {obj.key.name} leaves it out: the type must be {_TYPE}"
                yield _found(source, name, Complaint(Tier.ERROR, text, told[0].since, path="type", cause="addon.type", facts=facts))
                continue
            unserved = _UNSERVED.search(told[0].raw)
            if unserved is not None:
                text = f"could not be applied by ClusterResourceSet {obj.key.name}: {told[0].text}"
                more = {**facts, "kind": unserved[1] or unserved[2]}
                yield _found(source, name, Complaint(Tier.ERROR, text, told[0].since, path="data", cause="addon.kind", facts=more))


def _found(source: str, name: str, complaint: Complaint) -> Found:
    return Found(object=source, complaint=complaint, explains={name: "applies it"}, is_all=True)
