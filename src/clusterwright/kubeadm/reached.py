"""Which Kubernetes versions a control plane says it has reached, and whether kubelets run what they should. Pure.

Distributions append suffixes of their own to the version of a kubelet, as `-eks-1a2b3c` or `+k3s1`, and machine images differ in them.
A suffix is therefore no reason to wait for an upgrade: releases are compared, and the pre-releases that Kubernetes itself makes.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from clusterwright.api.contract import CONTRACTS, ContractVersion, or_none
from clusterwright.kubeadm.versions import Version, compare, parse_version

_PRE_RELEASE = re.compile(r"(?:alpha|beta|rc)\.[0-9]+")


def upstream(version: Version) -> Version:
    """Return the version without what a distribution appended."""
    return version._replace(pre=version.pre if _PRE_RELEASE.fullmatch(version.pre) else "", build="")


def runs(kubelet: str, wanted: str) -> bool:
    """Return whether a kubelet of one version runs the Kubernetes release that another version names.

    A version that cannot be read is taken for the wanted one: waiting for it would never end.
    """
    try:
        return upstream(parse_version(kubelet)) == upstream(parse_version(wanted))
    except ValueError:
        return True


def is_any_older(versions: Iterable[str], wanted: Version) -> bool:
    """Return whether one of these versions is of an older Kubernetes release. Raises ValueError."""
    return any(compare(upstream(parse_version(v)), upstream(wanted)) == -1 for v in versions)


def reported_versions(control_plane: Mapping[str, Any], contract: ContractVersion = "v1beta2") -> tuple[str, ...]:
    """Return what a control plane has in `status.versions`, oldest first; empty if it does not have the field.

    Raises ValueError if the field is malformed, a version cannot be read, or the order is wrong.
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
