"""What can be told of a cluster's credentials although their values are blotted out: which keys they have, and when they were written.

All of them are made before the first control-plane Machine gets its bootstrap data. One that was written after that was changed
by hand, or rotated; that is worth a word only when something is wrong that such a change could explain.
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
"""What cannot be made again; a kubeconfig can."""
EXTERNAL_ETCD: Final = "etcd.external"


def external_etcd_secrets(obj: Unstructured, cluster: str) -> list[Reference]:
    """Return the Secrets that the author of a cluster with an etcd of its own must bring along."""
    for path in (("spec", "kubeadmConfigSpec"), ("spec",)):
        if obj.at(*path, "clusterConfiguration", "etcd", "external"):
            where = ".".join((*path, "clusterConfiguration", EXTERNAL_ETCD))
            return [Reference("", "Secret", f"{cluster}-{purpose}", where) for purpose in ("etcd", "apiserver-etcd-client")]
    return []


def suspicions(secrets: Mapping[str, Unstructured], bootstrap: Iterable[Unstructured]) -> dict[str, str]:
    """Purposes of Secrets that look wrong, and why; `bootstrap` are the Secrets with the Machines' bootstrap data."""
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
