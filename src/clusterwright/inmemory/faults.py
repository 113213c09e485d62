"""Faults of simulated machines and clusters, asked for by annotation. Pure."""

from __future__ import annotations

from collections.abc import Mapping

FAULT = "inmemory.clusterwright.dev/fault"
"""On a DevMachine or DevCluster: names of faults, separated by commas. Taking the annotation away ends them."""
SLOW = "inmemory.clusterwright.dev/slow"
"""On a DevMachine: a factor by which every stage takes longer."""
FAILURE_DOMAINS = "inmemory.clusterwright.dev/failure-domains"
"""On a DevCluster: names of failure domains, separated by commas."""

NEVER_BOOTS = "machine-never-boots"
BOOTSTRAP_FAILS = "bootstrap-fails"
NODE_DIES = "node-dies"
KUBELET_STOPS = "kubelet-stops"
ETCD_CORRUPT = "etcd-corrupt"
ETCD_STOPS = "etcd-stops"
API_SERVER_STOPS = "api-server-stops"
UNREACHABLE = "api-server-unreachable"

MACHINE_FAULTS = frozenset({NEVER_BOOTS, BOOTSTRAP_FAILS, NODE_DIES, KUBELET_STOPS, ETCD_CORRUPT, ETCD_STOPS, API_SERVER_STOPS})
CLUSTER_FAULTS = frozenset({UNREACHABLE})


class UnknownFault(ValueError):
    """A fault that does not exist; the text lists those that do."""


def requested(annotations: Mapping[str, str], known: frozenset[str]) -> frozenset[str]:
    """The faults that the annotation asks for."""
    names = frozenset(name.strip() for name in annotations.get(FAULT, "").split(",") if name.strip())
    if unknown := names - known:
        raise UnknownFault(f"annotation {FAULT}: {', '.join(sorted(unknown))}: no such fault; known: {', '.join(sorted(known))}")
    return names


def slowness(annotations: Mapping[str, str]) -> float:
    """The factor by which stages take longer; 1 without the annotation."""
    text = annotations.get(SLOW, "1")
    try:
        factor = float(text)
    except ValueError as error:
        raise UnknownFault(f"annotation {SLOW}: {text!r} is not a number") from error
    if factor < 0:
        raise UnknownFault(f"annotation {SLOW}: {text!r} is negative")
    return factor
