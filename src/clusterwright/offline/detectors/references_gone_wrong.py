"""Find references to a wrong API group, malformed objects, and kinds whose conversion webhook fails."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from clusterwright.api.contract import crd_name
from clusterwright.api.scheme import CUSTOM
from clusterwright.offline.complaints import Complaint, Tier, references, with_cause
from clusterwright.offline.known import Found, Known
from clusterwright.offline.ownership import name_of

_GROUPS: Final = {resource.gvk.kind: resource.group for resource in CUSTOM}
_CONVERSION: Final = "conversion webhook for "
"""Example: `conversion webhook for infrastructure.acme.io/v1alpha1, Kind=AcmeMachine failed: Post "https://...": connection refused`."""
_TAKEN: Final = ": already owned by another "
"""Example: `failed to set the owner of DevMachine default/m1: already owned by another Machine controller m0`."""


def _shape(words: str, namespace: str) -> tuple[str, str, str] | None:
    """Return kind, object and field of `AcmeMachine default/m1: status.addresses: Expected object, got str`."""
    subject, _, rest = words.partition(": ")
    kind, _, name = subject.partition(" ")
    path, colon, _ = rest.partition(": ")
    if not colon or not path.startswith(("status.", "spec.")) or " " in f"{name}{path}" or not name:
        return None
    return kind, name_of(kind, name.rpartition("/")[0] or namespace, name.rpartition("/")[2]), path


def references_gone_wrong(known: Known) -> Iterator[Found]:
    """Yield objects that cannot be read through the references to them."""
    for name, obj in known.objects.items():
        complaints = known.complaints.get(name, ())
        if not complaints or obj.metadata.deletion_timestamp is not None:
            continue
        if obj.kind in {"Cluster", "MachineDeployment", "KubeadmControlPlane", "MachinePool"} or not obj.metadata.owner_references:
            yield from _group(known, name)
        for complaint in complaints:
            words = complaint.raw or complaint.text
            if (shape := _shape(words, obj.key.namespace)) is not None and shape[1] in known.objects:
                kind, target, path = shape
                broken = known.objects[target]
                facts = {"kind": kind, "path": path, "namespace": broken.key.namespace}
                facts["resource"] = f"{crd_name(broken.gvk.group, broken.kind).partition('.')[0]}/{broken.key.name}"
                text = words.partition(": ")[2]
                told = Complaint(Tier.ERROR, text, complaint.since, path=path, cause="provider.shape", facts=facts)
                yield Found(object=target, complaint=told, explains={name: "cannot read it"})
            before, _, owner = words.partition(_TAKEN)
            if owner:
                what = " ".join(before.split(" ")[-2:])
                yield from _taken(known, name, complaint, what, what.partition(" ")[2], owner.partition("\n")[0].rstrip("."))
            if _CONVERSION in words:
                gvk, _, why = words.partition(_CONVERSION)[2].partition("\n")[0].partition(" failed: ")
                version, _, kind = gvk.partition(", Kind=")
                crd = crd_name(version.partition("/")[0], kind)
                text = f"its conversion webhook does not answer: {why}"
                facts = {"kind": kind, "name": crd}
                told = Complaint(Tier.ERROR, text, complaint.since, path="spec.conversion.webhook", cause="conversion.down", facts=facts)
                yield Found(object=f"CustomResourceDefinition/{crd}", complaint=told, explains={name: "cannot read it"}, is_all=True)


def _taken(known: Known, name: str, complaint: Complaint, what: str, target: str, owner: str) -> Iterator[Found]:
    """Yield the object that references an object which already has another owner."""
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
