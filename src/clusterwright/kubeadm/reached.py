"""The Kubernetes versions that a control plane reports, and whether kubelets run the wanted release. Pure.

Distributions append their own suffixes to the version of a kubelet, as `-eks-1a2b3c` or `+k3s1`, and machine images differ in them. So
suffixes do not count: only releases, and Kubernetes' own pre-releases, are compared.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from clusterwright.api.contract import CONTRACTS, ContractVersion, or_none
from clusterwright.kubeadm.versions import Version, compare, parse_version

_PRE_RELEASE = re.compile(r"(?:alpha|beta|rc)\.[0-9]+")


def upstream(version: Version) -> Version:
    """Return the version without the suffix of a distribution."""
    return version._replace(pre=version.pre if _PRE_RELEASE.fullmatch(version.pre) else "", build="")


def runs(kubelet: str, wanted: str) -> bool:
    """Return whether a kubelet of one version runs the Kubernetes release of another version.

    An invalid version counts as equal: waiting for it would never end.
    """
    try:
        return upstream(parse_version(kubelet)) == upstream(parse_version(wanted))
    except ValueError:
        return True


def is_any_older(versions: Iterable[str], wanted: Version) -> bool:
    """Return whether one of these versions is from an older Kubernetes release. Raises ValueError."""
    return any(compare(upstream(parse_version(v)), upstream(wanted)) == -1 for v in versions)


def reported_versions(control_plane: Mapping[str, Any], contract: ContractVersion = "v1beta2") -> tuple[str, ...]:
    """Return a control plane's `status.versions`, oldest first; empty if it has no such field.

    Raises ValueError if the field is malformed, a version is invalid, or the order is wrong.
    """
    found = or_none(CONTRACTS[contract].control_plane.status_versions.read(control_plane)) or ()
    before: str | None = None
    for index, entry in enumerate(found):
        try:
            version = parse_version(entry.version)
        except ValueError as error:
            raise ValueError(f"failed to parse .status.versions[{index}].version from object: {error}") from error
        if before is not None and compare(version, parse_version(before), build=True) == -1:
            raise ValueError(f'version "{before}" and "{entry.version}" are in the wrong order')
        if entry.replicas is not None and entry.replicas < 0:
            raise ValueError(f".status.versions[{index}].replicas must not be negative")
        before = entry.version
    return tuple(entry.version for entry in found)
