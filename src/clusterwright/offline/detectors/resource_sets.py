"""Finds what a ClusterResourceSet cannot apply: a Secret of another type, an object whose kind the workload cluster does not serve."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from clusterwright.api.meta import Unstructured
from clusterwright.offline.complaints import Complaint, Reference, Tier
from clusterwright.offline.known import Found, Known
from clusterwright.offline.ownership import name_of, resources

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
            said = _said(obj) or told[0].raw
            unserved = _UNSERVED.search(said)
            if unserved is None and said and _is_alone(known, obj, reference):
                text = f"could not be applied by ClusterResourceSet {obj.key.name}: {said}"
                more = {**facts, "said": said.partition("\n")[0]}
                yield _found(source, name, Complaint(Tier.ERROR, text, told[0].since, path="data", cause="addon.refused", facts=more))
            if unserved is not None:
                text = f"could not be applied by ClusterResourceSet {obj.key.name}: {said}"
                more = {**facts, "kind": unserved[1] or unserved[2]}
                yield _found(source, name, Complaint(Tier.ERROR, text, told[0].since, path="data", cause="addon.kind", facts=more))


def _said(obj: Unstructured) -> str:
    """Return the reason that a ClusterResourceSet gives in its condition of the old form, which says more."""
    listed = obj.at("status", "deprecated", "v1beta1", "conditions")
    told = [c for c in listed if isinstance(c, dict) and c.get("type") == _APPLIED] if isinstance(listed, list) else []
    return str(told[0].get("message") or "") if told and told[0].get("status") == "False" else ""


def _is_alone(known: Known, obj: Unstructured, reference: Reference) -> bool:
    """Return whether a source is the only one that was not applied, so that the reason is about it."""
    for _, binding in known.of_kind("ClusterResourceSetBinding"):
        for one in binding.at("spec", "bindings") or ():
            if one.get("clusterResourceSetName") == obj.key.name:
                failed = [(r.get("kind"), r.get("name")) for r in one.get("resources") or () if r.get("applied") is not True]
                return failed == [(reference.kind, reference.name)]
    return sum(1 for _ in resources(obj)) == 1


def _found(source: str, name: str, complaint: Complaint) -> Found:
    return Found(object=source, complaint=complaint, explains={name: "applies it"}, is_all=True)
