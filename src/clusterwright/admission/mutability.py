"""The fields of a KubeadmControlPlane that may change: those that a rollout, or an in-place update, can change."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from clusterwright.api.meta import Json

Path = tuple[str, ...]

_WHOLE: Final = {
    "spec": "replicas version remediation machineNaming rollout",
    "spec.machineTemplate": "metadata spec",
    "spec.kubeadmConfigSpec": (
        "bootCommands preKubeadmCommands postKubeadmCommands files verbosity users ntp ignition diskSetup format mounts"
    ),
    "spec.kubeadmConfigSpec.clusterConfiguration": (
        "etcd dns imageRepository featureGates apiServer controllerManager scheduler certificateValidityPeriodDays encryptionAlgorithm"
    ),
    "spec.kubeadmConfigSpec.initConfiguration": "nodeRegistration patches skipPhases bootstrapTokens localAPIEndpoint timeouts",
    "spec.kubeadmConfigSpec.joinConfiguration": "nodeRegistration patches skipPhases caCertPath controlPlane discovery timeouts",
}
"""By parent: the fields that may change completely, including being set or unset."""

MUTABLE: Final[frozenset[Path]] = frozenset((*parent.split("."), field) for parent, fields in _WHOLE.items() for field in fields.split())


def is_mutable(path: Path) -> bool:
    """Return whether the value at the path may change."""
    return (path[0] == "metadata" and len(path) > 1) or any(path[:n] in MUTABLE for n in range(2, len(path) + 1))


def changed_paths(old: Json, new: Json, at: Path = ()) -> Iterator[Path]:
    """Yield the leaves of the merge patch from one to the other: scalars, lists, and removed fields; never an empty object."""
    for key in [*new, *(k for k in old if k not in new)]:
        before, after, path = old.get(key), new.get(key), (*at, key)
        if before == after:
            continue
        if isinstance(after, dict):
            yield from changed_paths(before if isinstance(before, dict) else {}, after, path)
        else:
            yield path


def differences(old: Json, new: Json) -> list[str]:
    """Return the changed leaves, sorted, as texts."""
    return sorted(".".join(path) for path in changed_paths(old, new))
