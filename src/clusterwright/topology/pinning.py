"""Workers of a topology that are pinned to a version: they keep it while the rest of the topology is upgraded."""

from __future__ import annotations

from typing import Final, Literal

from clusterwright.api.meta import Json
from clusterwright.topology.paths import at

GATE: Final = "ClusterTopologyWorkerVersionPinning"
LARGEST_SKEW: Final = 3
"""How many minor versions workers may be older than their control plane."""
Workers = Literal["machineDeployments", "machinePools"]
KINDS: Final[tuple[Workers, ...]] = ("machineDeployments", "machinePools")


def pins(cluster: Json | None, kind: Workers) -> dict[str, str]:
    """Return the pinned versions of a Cluster's workers by their topology names."""
    entries = at(cluster, "spec", "topology", "workers", kind) or ()
    return {entry.get("name") or "": entry["version"] for entry in entries if entry.get("version")}
