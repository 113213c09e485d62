"""Find failed preflight checks of MachineSets: the check, its object, and the person who must act."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from clusterwright.api.copying import replace
from clusterwright.api.meta import Unstructured
from clusterwright.api.wellknown import TOPOLOGY_OWNED_LABEL
from clusterwright.offline.complaints import Complaint, Tier, with_cause
from clusterwright.offline.known import Found, Known

_FAILED: Final = '" preflight check failed)'
_THEIRS: Final = "ControlPlane version ("
VERSION: Final = "spec.template.spec.version"


_CHECKS: Final[Mapping[str, str]] = {
    "ControlPlaneIsStable": "preflight.stable",
    "ControlPlaneVersionSkew": "preflight.topology",
    "KubernetesVersionSkew": "preflight.kubernetes",
    "KubeadmVersionSkew": "preflight.kubeadm",
}
"""The causes by check. The first two pass by themselves once the control plane has reached its version, as an unknown check may."""
_ERRORS: Final = frozenset({"preflight.kubernetes", "preflight.kubeadm"})


@dataclass(frozen=True, slots=True)
class Failure:
    """A failed check, as a MachineSet reports it."""

    check: str
    what: str
    kind: str = ""
    name: str = ""
    """The object concerned, if the message names one."""
    theirs: str = ""
    """The version of the control plane, if the message names it."""
    raw: str = ""


def failures(text: str) -> Iterator[Failure]:
    """Yield the checks that a text reports as failed.

    Example: `* KubeadmControlPlane ns/c is upgrading ("ControlPlaneIsStable" preflight check failed)`.
    """
    for line in (part.lstrip("* ") for part in text.splitlines() if _FAILED in part):
        what, _, check = line.partition(_FAILED)[0].rpartition(' ("')
        kind, _, rest = what.partition(" ")
        name, _, verb = rest.partition(" ")
        is_named = kind[:1].isupper() and verb.startswith(("is ", "has ")) and name[:1].islower()
        theirs = what.partition(_THEIRS)[2].partition(")")[0] if _THEIRS in what else "its version"
        yield Failure(check, what, *((kind, name.rpartition("/")[2]) if is_named else ("", "")), theirs, line)


def preflights(known: Known) -> Iterator[Found]:
    """Yield MachineSets and their deployments that make no Machines. To wait for the control plane is not an error; a wrong version is."""
    for name, obj in known.of_kind("MachineSet", "MachineDeployment"):
        if obj.metadata.deletion_timestamp is not None:
            continue
        for complaint in known.complaints.get(name, ()):
            for failure in failures(complaint.text):
                yield _found(known, name, obj, complaint, failure)


def _found(known: Known, name: str, obj: Unstructured, complaint: Complaint, failure: Failure) -> Found:
    cause = _CHECKS.get(failure.check, "preflight.unknown")
    cluster = known.cluster
    owner = known.owner(obj, "MachineDeployment") or obj  # people change that one
    source, target = f"{owner.kind} {owner.key.name}", f"{owner.kind.lower()}s/{owner.key.name}"
    is_managed = cluster is not None and TOPOLOGY_OWNED_LABEL in obj.metadata.labels
    if cluster is not None and is_managed and cause in _ERRORS:
        source, target, cause = f"Cluster {cluster.key.name}", f"clusters/{cluster.key.name}", "preflight.managed"
    facts = {"source": source, "resource": target, "namespace": obj.key.namespace, "kind": obj.kind, "theirs": failure.theirs}
    text = f"makes no Machines: {failure.what} (preflight check {failure.check})"
    told = with_cause(complaint, cause, facts, text=text, raw=failure.raw, secondary=complaint.secondary)
    if _CHECKS.get(failure.check) in _ERRORS:
        return Found(object=name, complaint=replace(told, tier=Tier.ERROR, path=VERSION), replaces=complaint)
    carriers = [n for n in known.control_plane() if n in known.objects and failure.name in {"", known.objects[n].key.name}]
    is_moving = any(c.tier is Tier.PROGRESS for n in carriers for c in known.complaints.get(n, ()))
    because = {n: f"its preflight check {failure.check} asks for it" for n in carriers if known.complaints.get(n)}
    return Found(
        object=name, complaint=replace(told, tier=Tier.PROGRESS if is_moving else Tier.WAITING), replaces=complaint, because=because
    )
