"""Find the subject of a provider's report (quota, credentials, connection, name) by phrases that are kept as data."""

from __future__ import annotations

from collections.abc import Container, Mapping
from dataclasses import dataclass
from typing import Final

from clusterwright.api.contract import crd_name
from clusterwright.api.meta import Unstructured
from clusterwright.api.wellknown import CORE_GROUP
from clusterwright.offline.complaints import Complaint, Tier, is_built_in, references, with_cause
from clusterwright.offline.ownership import name_of

_ROLES: Final[Mapping[str, str]] = {
    "infrastructure": "infrastructure",
    "bootstrap": "bootstrap",
    "controlplane": "control plane",
    "ipam": "IPAM",
}
"""By the first word of the API group."""


@dataclass(frozen=True, slots=True)
class Subject:
    """A subject of reports, recognised by phrases. The first match counts."""

    cause: str
    words: tuple[str, ...]
    example: str


SUBJECTS: Final = (
    Subject(
        "cloud.rate",
        ("429", "requestlimitexceeded", "throttl", "rate limit", "ratelimit", "too many requests"),
        "RequestLimitExceeded: 429 Too Many Requests",
    ),
    Subject(
        "cloud.certificate",
        ("x509", "certificate has expired", "certificate signed by unknown", "not yet valid"),
        "x509: certificate has expired or is not yet valid",
    ),
    Subject(
        "cloud.credentials",
        ("credential", "unauthorized", "authfailure", "authentication", "401", "accessdenied", "access denied", "not authorized",
         "is not allowed to", "permission denied", "invalid token", "login", "api key", "apikey"),
        "AuthFailure: AWS was not able to validate the provided access credentials",
    ),
    Subject(
        "cloud.unreachable",
        ("i/o timeout", "connection refused", "no such host", "dial tcp", "no route to host", "service unavailable", "answers 503",
         "bad gateway", "tls handshake timeout", "deadline exceeded"),
        "dial tcp 10.1.0.1:443: i/o timeout",
    ),
    Subject(
        "cloud.capacity",
        ("quota", "limitexceeded", "limit exceeded", "insufficient", "maximum number", "no room", "no available", "out of capacity",
         "no host is compatible", "has been exceeded", "exhausted", "no free", "is full", "left in", "than the limit", "outofcapacity"),
        "VcpuLimitExceeded: You have requested more vCPU capacity than your current vCPU limit of 64 allows",
    ),
    Subject(
        "cloud.boot",
        ("kubeadm", "cloud-init", "bootstrap failed", "bootstrapfailed", "bootstrapping failed", "vmbootstrapfailed", "ignition failed"),
        "BootstrapFailed: cloud-init exited with status 1",
    ),
    Subject(
        "cloud.name",
        ("not found", "notfound", "does not exist", "no such", "unknown", "not available in", "not supported in", "unsupported", "invalid"),
        "image capi-ubuntu-2404 was not found in project infra",
    ),
)  # fmt: skip
"""In order of precision: the last one has the vaguest words."""


def subject_of(words: str) -> str:
    """Return the cause that a provider's message names, or that of a general report."""
    lower = words.lower()
    return next((s.cause for s in SUBJECTS if any(word in lower for word in s.words)), "provider.reports")


_OURS: Final = frozenset({"KubeadmControlPlane", "KubeadmConfig"})
"""Kinds of providers' groups that report faults of the objects themselves, not of a cloud."""


def role_of(obj: Unstructured) -> str:
    """Return the name of the provider role that owns this API group; empty if it is not a provider's group."""
    if obj.kind in _OURS:
        return ""
    group = obj.gvk.group
    is_foreign = bool(group) and group != CORE_GROUP and not group.endswith(f".{CORE_GROUP}") and not is_built_in(group)
    return _ROLES.get(group.partition(".")[0], "foreign" if is_foreign else "")


def mirrored(obj: Unstructured, complaint: Complaint, there: Container[str]) -> Unstructured:
    """Return the object for which a Machine's condition speaks, if it is not known itself; else the object."""
    path = _MIRRORS.get(complaint.about, "") if obj.kind == "Machine" else ""
    for reference in references(obj.at("spec"), home=obj.key.namespace) if path else ():
        if reference.path == path and name_of(reference.kind, obj.key.namespace, reference.name) not in there:
            metadata = {"namespace": obj.key.namespace, "name": reference.name}
            return Unstructured({"apiVersion": f"{reference.group}/v1", "kind": reference.kind, "metadata": metadata})
    return obj


_MIRRORS: Final = {"InfrastructureReady": "spec.infrastructureRef", "BootstrapConfigReady": "spec.bootstrap.configRef"}


def told(obj: Unstructured, complaint: Complaint, there: Container[str]) -> Complaint:
    """Return a provider's complaint with its cause, unless it has one. `there`: the known objects."""
    obj = mirrored(obj, complaint, there)
    role = role_of(obj)
    is_report = (
        bool(complaint.raw)
        and (not complaint.path or complaint.path.startswith("status"))
        and not any(word in complaint.raw for word in _ANSWERED)
    )
    if not role or not is_report or complaint.cause or complaint.tier in _OTHERWISE:
        return complaint
    said = (complaint.text or complaint.raw).partition("\n")[0].rstrip(" .")
    facts = {
        "provider": f"{role} provider that reconciles {obj.kind}",
        "object": f"{obj.kind} {obj.key.name}",
        "namespace": obj.key.namespace,
        "resource": f"{crd_name(obj.gvk.group, obj.kind).partition('.')[0]}/{obj.key.name}",
        "said": said.partition(": ")[2] or said,
        "machine": next((r.name for r in obj.metadata.owner_references if r.kind == "Machine"), obj.key.name),
    }
    is_error = complaint.tier <= Tier.UNHEALTHY
    words = complaint.raw or complaint.text
    subject = subject_of(words.partition(" ")[2])  # a reason like RetriesExhausted says less than the message
    subject = subject if subject != "provider.reports" else subject_of(words)
    cause = subject if is_error or complaint.tier is Tier.UNKNOWN else "provider.waits"
    if cause == "provider.reports" and not is_error:
        cause = "provider.waits"
    return with_cause(complaint, cause, facts, secondary=complaint.secondary)


_ANSWERED: Final = (
    'User "',
    "webhook",
    "ValidatingAdmissionPolicy",
    "feature gate",
    "alarm",
)
"""Phrases in reports on answers of the API server or etcd: these have advice of their own."""
_OTHERWISE: Final = frozenset({Tier.MISSING, Tier.PAUSED, Tier.DELETING, Tier.HELD, Tier.UNRECONCILED, Tier.PROGRESS})
"""Complaints with the same advice for objects of every kind."""
