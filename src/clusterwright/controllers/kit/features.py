"""Feature gates: their names and defaults."""

from __future__ import annotations

from collections.abc import Mapping

DEFAULT_FEATURES: Mapping[str, bool] = {
    "ClusterTopology": False,
    "ClusterTopologyWorkerVersionPinning": False,
    "CrossNamespaceClasses": True,
    "InPlaceUpdates": False,
    "KubeadmBootstrapFormatIgnition": False,
    "MachinePool": True,
    "MachineSetPreflightChecks": True,
    "MachineTaintPropagation": False,
    "MachineWaitForVolumeDetachConsiderVolumeAttachments": True,
    "PriorityQueue": True,
    "ReconcilerRateLimiting": True,
    "RuntimeSDK": False,
}


EMBEDDED_FEATURES: Mapping[str, bool] = {**DEFAULT_FEATURES, "ClusterTopology": True}
"""The features that are on in an embedded management plane, where no other webhooks are involved."""


class UnknownFeature(ValueError):
    """A text does not name a feature gate or a state of one."""


def parse_features(text: str) -> dict[str, bool]:
    """Return the gates that `Name=true,Other=false` sets; raises UnknownFeature."""
    features: dict[str, bool] = {}
    for item in filter(None, (part.strip() for part in text.split(","))):
        name, _, value = item.partition("=")
        if name not in DEFAULT_FEATURES:
            raise UnknownFeature(f"{name!r} is not known; known: {', '.join(sorted(DEFAULT_FEATURES))}")
        if value not in {"true", "false"}:
            raise UnknownFeature(f"{item!r}: NAME=true or NAME=false is expected")
        features[name] = value == "true"
    return features


def check_features(features: Mapping[str, bool]) -> None:
    """Refuse gates that need each other; raises UnknownFeature."""
    if features.get("InPlaceUpdates") and not features.get("RuntimeSDK"):
        raise UnknownFeature("InPlaceUpdates needs RuntimeSDK: Machines are updated in place by runtime extensions")
    if features.get("ClusterTopologyWorkerVersionPinning") and not features.get("ClusterTopology"):
        raise UnknownFeature("ClusterTopologyWorkerVersionPinning needs ClusterTopology: versions are pinned in the topology of a Cluster")
