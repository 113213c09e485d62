"""Finds references whose group does not have their kind, objects of another shape, and CRDs that nobody can convert."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from clusterwright.api.contract import crd_name
from clusterwright.api.scheme import CUSTOM
from clusterwright.offline.complaints import Complaint, Tier, references, with_cause
from clusterwright.offline.known import Found, Known
from clusterwright.offline.ownership import name_of

_GROUPS: Final = {resource.gvk.kind: resource.group for resource in CUSTOM}
_SHAPE: Final = re.compile(r"^([A-Z]\w+) (?:([a-z0-9.-]+)/)?([a-z0-9.-]+): ((?:status|spec)\.[\w.]+): ")
"""Example: `AcmeMachine default/m1: status.addresses: Expected object, got str`."""
_CONVERSION: Final = re.compile(r"conversion webhook for ([\w.-]+)/\w+, Kind=(\w+) failed: ([^\n]*)")
"""Example: `conversion webhook for infrastructure.acme.io/v1alpha1, Kind=AcmeMachine failed: Post "https://...": connection refused`."""


_TAKEN: Final = re.compile(r"the owner of (\w+) (\S+): already owned by another ([^\n]+?)\.?$", re.MULTILINE)
"""Example: `failed to set the owner of DevMachine default/m1: already owned by another Machine controller m0`."""


def references_gone_wrong(known: Known) -> Iterator[Found]:
    """Yield what keeps an object from being read by those who name it."""
    for name, obj in known.objects.items():
        complaints = known.complaints.get(name, ())
        if not complaints or obj.metadata.deletion_timestamp is not None:
            continue
        if obj.kind in {"Cluster", "MachineDeployment", "KubeadmControlPlane", "MachinePool"} or not obj.metadata.owner_references:
            yield from _group(known, name)
        for complaint in complaints:
            words = complaint.raw or complaint.text
            if (found := _SHAPE.match(words)) and (target := name_of(found[1], found[2] or obj.key.namespace, found[3])) in known.objects:
                broken = known.objects[target]
                facts = {"kind": found[1], "path": found[4], "namespace": broken.key.namespace}
                facts["resource"] = f"{crd_name(broken.gvk.group, broken.kind).partition('.')[0]}/{broken.key.name}"
                text = words.partition(": ")[2]
                told = Complaint(Tier.ERROR, text, complaint.since, path=found[4], cause="provider.shape", facts=facts)
                yield Found(object=target, complaint=told, explains={name: "cannot read it"})
            if found := _TAKEN.search(words):
                yield from _taken(known, name, complaint, f"{found[1]} {found[2]}", found[2], found[3])
            if found := _CONVERSION.search(words):
                crd = crd_name(found[1], found[2])
                text = f"its conversion webhook does not answer: {found[3]}"
                facts = {"kind": found[2], "name": crd}
                told = Complaint(Tier.ERROR, text, complaint.since, path="spec.conversion.webhook", cause="conversion.down", facts=facts)
                yield Found(object=f"CustomResourceDefinition/{crd}", complaint=told, explains={name: "cannot read it"}, is_all=True)


def _taken(known: Known, name: str, complaint: Complaint, what: str, target: str, owner: str) -> Iterator[Found]:
    """Yield the object that names what another one has already."""
    obj = known.objects[name]
    bare = target.rpartition("/")[2]
    path = next((r.path for r in references(obj.at("spec"), home=obj.key.namespace) if r.name == bare), "spec")
    resource = f"{crd_name(obj.gvk.group, obj.kind).partition('.')[0]}/{obj.key.name}"
    facts = {"object": f"{obj.kind} {obj.key.name}", "path": path, "what": what, "owner": owner}
    facts |= {"namespace": obj.key.namespace, "resource": resource}
    yield Found(object=name, complaint=with_cause(complaint, "reference.taken", facts, tier=Tier.ERROR, path=path), is_all=True)


def _group(known: Known, name: str) -> Iterator[Found]:
    obj = known.objects[name]
    for reference in references(obj.at("spec"), home=obj.key.namespace):
        right = _GROUPS.get(reference.kind) or next((g for g, k in known.definitions if k == reference.kind), "")
        if not right or reference.group == right or (reference.group, reference.kind) in known.definitions:
            continue
        path = f"{reference.path}.apiGroup"
        text = f"names {reference.kind} {reference.name} of group {reference.group} in {reference.path}, but {reference.kind} is of {right}"
        resource = f"{crd_name(obj.gvk.group, obj.kind).partition('.')[0]}/{obj.key.name}"
        facts = {"object": f"{obj.kind} {obj.key.name}", "path": path, "group": right, "kind": reference.kind}
        facts |= {"namespace": obj.key.namespace, "resource": resource}
        yield Found(object=name, complaint=Complaint(Tier.ERROR, text, path=path, cause="reference.group", facts=facts), is_all=True)
