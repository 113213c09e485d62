"""Find objects of the workload cluster that controllers need and that are missing or unreadable."""

from __future__ import annotations

from collections.abc import Iterator
from fnmatch import fnmatchcase
from typing import Final

from clusterwright.offline.complaints import Complaint, Tier
from clusterwright.offline.known import Found, Known

SYSTEM: Final = "kube-system"
IN_WORKLOAD: Final = (
    ("ConfigMap", "kubeadm-config"),
    ("ConfigMap", "kubelet-config*"),
    ("ConfigMap", "coredns"),
    ("ConfigMap", "kube-proxy"),
    ("ConfigMap", "cluster-info"),
    ("DaemonSet", "kube-proxy"),
    ("Deployment", "coredns"),
    ("Secret", "bootstrap-token-*"),
)
"""Kind and name of objects that controllers read only from workload clusters."""
_DNS: Final = "CoreDNS"


def is_in_workload(kind: str, name: str) -> bool:
    """Return whether the missing object belongs to the workload cluster."""
    return any(kind == k and fnmatchcase(name, pattern) for k, pattern in IN_WORKLOAD)


def workload_objects(known: Known) -> Iterator[Found]:
    """Yield missing or unreadable objects in the workload cluster's kube-system, by the messages of control planes."""
    if known.cluster is None:
        return
    for name, obj in known.of_kind("KubeadmControlPlane", "KubeadmConfig", "Machine"):
        for complaint in known.complaints.get(name, ()):
            words = complaint.raw
            facts = {"cluster": known.cluster.key.name, "namespace": SYSTEM}
            for kind, pattern in IN_WORKLOAD:
                if f'"{pattern}" not found' not in words:
                    continue
                text = f"does not exist in namespace {SYSTEM} of the workload cluster, but {obj.kind} {obj.key.name} needs it"
                more = {**facts, "what": f"{kind} {pattern}", "resource": f"{kind.lower()}/{pattern}"}
                missing = Complaint(Tier.MISSING, text, complaint.since, cause="workload.missing", facts=more)
                yield Found(object=f"{kind}/{SYSTEM}/{pattern}", complaint=missing, explains={name: "needs it"}, is_all=True)
            if _DNS in words and "version" in words and complaint.tier <= Tier.UNHEALTHY:
                path = "spec.template.spec.containers[0].image"
                bad = Complaint(Tier.ERROR, complaint.text, complaint.since, path=path, cause="workload.dns", facts=facts)
                yield Found(object=f"Deployment/{SYSTEM}/coredns", complaint=bad, explains={name: "upgrades it"}, is_all=True)
