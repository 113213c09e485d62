"""Take secret values out of a capture, so that a plan works with stand-ins. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from clusterwright.api.meta import Json
from clusterwright.kubeadm import certificates as pki
from clusterwright.kubeadm.certificates import CertificateError, Purpose

_BUNDLED: Final = "addons.cluster.x-k8s.io/resource-set"
"""The type of Secrets whose content a ClusterResourceSet applies: it decides whether there is something to do."""
_PAIR: Final = (pki.CERTIFICATE_KEY, pki.PRIVATE_KEY_KEY)


def blank(objects: Iterable[Mapping[str, Any]]) -> Iterator[Json]:
    """Yield the objects, with empty values in the Secrets that a replica has stand-ins for.

    Certificates and kubeconfigs keep the keys that their controllers look for, even if the capture has none.
    """
    for obj in objects:
        if obj.get("kind") != "Secret" or obj.get("type") == _BUNDLED:
            yield dict(obj)
            continue
        kept: Json = {k: v for k, v in obj.items() if k not in {"data", "stringData"}}
        yield {**kept, "data": dict.fromkeys([*(obj.get("data") or {}), *_expected(str(obj["metadata"].get("name")))], "")}


def _expected(name: str) -> tuple[str, ...]:
    """Return the keys of a Secret with the name of a certificate or kubeconfig of a Cluster."""
    try:
        _, purpose = pki.parse_secret_name(name)
    except CertificateError:
        return ()
    return (pki.KUBECONFIG_KEY,) if purpose is Purpose.KUBECONFIG else _PAIR
