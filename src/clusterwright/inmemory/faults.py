"""Faults of simulated machines and clusters, requested by annotation. Pure."""

from __future__ import annotations

from collections.abc import Mapping

FAULT = "inmemory.clusterwright.dev/fault"
"""The annotation on a DevMachine or DevCluster: names of faults, separated by commas. Removing it ends them."""
SLOW = "inmemory.clusterwright.dev/slow"
"""The annotation on a DevMachine: a factor by which every stage takes longer."""
FAILURE_DOMAINS = "inmemory.clusterwright.dev/failure-domains"
"""The annotation on a DevCluster: names of failure domains, separated by commas."""

NEVER_BOOTS = "machine-never-boots"
BOOTSTRAP_FAILS = "bootstrap-fails"
NODE_DIES = "node-dies"
KUBELET_STOPS = "kubelet-stops"
ETCD_CORRUPT = "etcd-corrupt"
ETCD_NO_SPACE = "etcd-no-space"
ETCD_LEARNER = "etcd-learner"
ETCD_UNNAMED = "etcd-unnamed"
ETCD_STOPS = "etcd-stops"
API_SERVER_STOPS = "api-server-stops"
UNREACHABLE = "api-server-unreachable"

DESCRIPTIONS: Mapping[str, str] = {
    NEVER_BOOTS: "the VM does not start",
    BOOTSTRAP_FAILS: "kubeadm fails and, as on a real machine, does not run again: only a new machine helps",
    NODE_DIES: "the machine stops, with kubelet, etcd and API server",
    KUBELET_STOPS: "the kubelet stops reporting; Pods continue to run",
    ETCD_CORRUPT: "the member raises a CORRUPT alarm",
    ETCD_NO_SPACE: "the member raises a NOSPACE alarm",
    ETCD_LEARNER: "the member stays a learner, without a vote",
    ETCD_UNNAMED: "kubeadm has added the member, a learner, but its process has not started: the member has no name",
    ETCD_STOPS: "the member's process is down",
    API_SERVER_STOPS: "the API server of this machine is down",
    UNREACHABLE: "the endpoint of the cluster does not answer",
}

CLUSTER_FAULTS = frozenset({UNREACHABLE})
MACHINE_FAULTS = frozenset(DESCRIPTIONS) - CLUSTER_FAULTS


class UnknownFault(ValueError):
    """The fault does not exist; the text lists the existing ones."""


def requested(annotations: Mapping[str, str], known: frozenset[str]) -> frozenset[str]:
    """Return the faults in the annotation."""
    names = frozenset(name.strip() for name in annotations.get(FAULT, "").split(",") if name.strip())
    if unknown := names - known:
        raise UnknownFault(f"annotation {FAULT}: {', '.join(sorted(unknown))}: no such fault; known: {', '.join(sorted(known))}")
    return names


def slowness(annotations: Mapping[str, str]) -> float:
    """Return the factor by which stages take longer; 1 without the annotation."""
    text = annotations.get(SLOW, "1")
    try:
        factor = float(text)
    except ValueError as error:
        raise UnknownFault(f"annotation {SLOW}: {text!r} is not a number") from error
    if not 0 <= factor < float("inf"):
        raise UnknownFault(f"annotation {SLOW}: {text!r} is not a number of at least 0")
    return factor
