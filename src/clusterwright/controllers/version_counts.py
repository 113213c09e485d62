"""Count Machines by Kubernetes version: `status.versions` of all owners of Machines. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime
from functools import cmp_to_key
from typing import Final

from clusterwright.api.core import Machine
from clusterwright.api.core.shared import StatusVersion
from clusterwright.kubeadm.versions import Version, compare, parse_version

MOST: Final = 100
"""The largest number of versions that the API allows in `status.versions`."""
MOST_OF_CLUSTER: Final = 32
"""The largest number of versions that the API allows for the control plane, and for the workers, of a Cluster."""
_LONGEST: Final = 256
_BEGINNING: Final = datetime.min.replace(tzinfo=UTC)


def of_machines(machines: Iterable[Machine], most: int = MOST) -> tuple[StatusVersion, ...]:
    """Count Machines by kubelet version, or by `spec.version` if that is unknown; the oldest version first."""

    def age(machine: Machine) -> tuple[datetime, str]:
        return machine.metadata.creation_timestamp or _BEGINNING, machine.metadata.name

    return aggregated((StatusVersion(version=version_of(m), replicas=1) for m in sorted(machines, key=age)), most)


def of_kubelets(kubelets: Iterable[str], most: int = MOST) -> tuple[StatusVersion, ...]:
    """Count Nodes by the versions of their kubelets, the oldest first."""
    return aggregated((StatusVersion(version=v, replicas=1) for v in kubelets if len(v) <= _LONGEST), most)


def aggregated(versions: Iterable[StatusVersion], most: int = MOST) -> tuple[StatusVersion, ...]:
    """Add up the counts of equal versions; the oldest version first.

    Kubelets report their own version, so there may be more versions than the API allows: then the newest are left out.
    """
    replicas: dict[str, int] = {}
    for found in versions:
        if found.version:
            replicas[found.version] = replicas.get(found.version, 0) + (found.replicas or 0)
    read = {text: _read(text) for text in replicas}

    def order(one: str, other: str) -> int:
        mine, theirs = read[one], read[other]
        if mine is None or theirs is None:
            return (mine is None) - (theirs is None) or (one > other) - (one < other)
        found = compare(mine, theirs, build=True)
        return (one > other) - (one < other) if found == 0 else found or 0

    return tuple(StatusVersion(version=text, replicas=replicas[text] or None) for text in sorted(replicas, key=cmp_to_key(order))[:most])


def as_reported(versions: Iterable[StatusVersion]) -> tuple[StatusVersion, ...]:
    """Return the counts that a control plane reports, within the limits of the Cluster API."""
    usable = (v for v in versions if 0 < len(v.version) <= _LONGEST)
    return tuple(StatusVersion(version=v.version, replicas=v.replicas or None) for v in usable)[:MOST_OF_CLUSTER]


def version_of(machine: Machine) -> str:
    """Return the version of the Machine's kubelet, or `spec.version` if that is unknown."""
    info = machine.status.node_info
    kubelet = info.kubelet_version if info is not None else ""
    return kubelet if 0 < len(kubelet) <= _LONGEST else machine.spec.version


def _read(text: str) -> Version | None:
    try:
        return parse_version(text)
    except ValueError:
        return None
