"""Judge a cluster's credentials without their values, by their keys and the times at which they were written.

All of them are made before the first control-plane Machine gets its bootstrap data. One that was written after that was changed
by hand, or rotated. This is reported only if the cluster has trouble that such a change could explain.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from clusterwright.api.meta import Unstructured
from clusterwright.offline.complaints import Reference

KEYS: Final[Mapping[str, tuple[str, ...]]] = {
    "ca": ("tls.crt", "tls.key"),
    "etcd": ("tls.crt", "tls.key"),
    "proxy": ("tls.crt", "tls.key"),
    "sa": ("tls.crt", "tls.key"),
    "kubeconfig": ("value",),
}
CERTIFICATE_AUTHORITIES: Final = frozenset(KEYS) - {"kubeconfig"}
"""Credentials that cannot be created again. A kubeconfig can."""
EXTERNAL_ETCD: Final = "etcd.external"


def external_etcd_secrets(obj: Unstructured, cluster: str) -> list[Reference]:
    """Return the Secrets that the author of a cluster with an external etcd must create."""
    for path in (("spec", "kubeadmConfigSpec"), ("spec",)):
        if obj.at(*path, "clusterConfiguration", "etcd", "external"):
            where = ".".join((*path, "clusterConfiguration", EXTERNAL_ETCD))
            return [Reference("", "Secret", f"{cluster}-{purpose}", where) for purpose in ("etcd", "apiserver-etcd-client")]
    return []


def suspicions(secrets: Mapping[str, Unstructured], bootstrap: Iterable[Unstructured]) -> dict[str, str]:
    """Return the purposes of Secrets that look wrong, each with the reason. `bootstrap`: the Secrets with the Machines' bootstrap data."""
    found: dict[str, str] = {}
    first = min((_version(s) for s in bootstrap), default=0)
    for purpose, keys in KEYS.items():
        secret = secrets.get(purpose)
        if secret is None:
            continue
        data = secret.at("data")
        lacking = [k for k in keys if not isinstance(data, Mapping) or k not in data]
        if lacking:
            found[purpose] = f"has no {', '.join(lacking)}"
        elif first and _version(secret) > first:
            found[purpose] = "was changed after the control plane had been set up with it"
    return found


def _version(obj: Unstructured) -> int:
    version = obj.metadata.resource_version
    return int(version) if version.isdecimal() else 0
