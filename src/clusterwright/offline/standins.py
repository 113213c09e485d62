"""Make stand-ins for redacted credentials, so that a pass over the bundle gets as far as in the recorded cluster.

The stand-ins are valid. Suspicions about the real credentials come from their keys and times (`credentials`).
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Mapping
from datetime import datetime

from clusterwright.api.copying import replace
from clusterwright.api.meta import Json, Unstructured
from clusterwright.kubeadm import certificates as pki
from clusterwright.kubeadm.certificates import CertificateError, KeyPair, Purpose
from clusterwright.offline.bundle import Bundle
from clusterwright.runtime.keys import KeySource

_SERIAL = 1


async def with_stand_ins(bundle: Bundle, now: datetime, keys: KeySource) -> Bundle:
    """Return the bundle with generated certificates and kubeconfigs in its Clusters' Secrets whose values are all empty."""
    clusters = {(o.key.namespace, o.key.name): o for o in map(Unstructured, bundle.objects) if o.kind == "Cluster"}
    pairs: dict[tuple[str, str], KeyPair] = {}
    objects: list[Json] = []
    for obj in bundle.objects:
        objects.append(obj)
        if not _is_blotted(obj):
            continue
        namespace, name = str(obj["metadata"].get("namespace") or ""), str(obj["metadata"]["name"])
        try:
            cluster_name, purpose = pki.parse_secret_name(name)
        except CertificateError:
            continue
        cluster = clusters.get((namespace, cluster_name))
        if cluster is None:
            continue
        key = await keys.new_key(pki.DEFAULT_ALGORITHM)
        if (namespace, cluster_name) not in pairs:
            pairs[namespace, cluster_name] = pki.new_ca(key, now=now, serial=_SERIAL)
        authority = pairs[namespace, cluster_name]
        if purpose is Purpose.KUBECONFIG:
            client = pki.new_admin_client(authority, key, now=now, serial=_SERIAL)
            values = {pki.KUBECONFIG_KEY: pki.new_kubeconfig(cluster_name, _server(cluster), authority, client)}
        else:
            pair = pki.new_service_account_pair(key) if purpose is Purpose.SERVICE_ACCOUNT else authority
            values = {pki.CERTIFICATE_KEY: pair.certificate, pki.PRIVATE_KEY_KEY: pair.key}
        kept = {k: b64encode(values[k]).decode() for k in obj["data"] if k in values}
        objects[-1] = obj | {"data": obj["data"] | kept}
    return replace(bundle, objects=tuple(objects))


def _is_blotted(obj: Json) -> bool:
    data = obj.get("data")
    return obj.get("kind") == "Secret" and isinstance(data, Mapping) and bool(data) and not any(data.values())


def _server(cluster: Unstructured) -> str:
    host, port = (cluster.at("spec", "controlPlaneEndpoint", part) for part in ("host", "port"))
    return f"https://{'' if host is None else host}:{'' if port is None else port}"
