"""The workload cluster as this controller reaches it: a client, provided that etcd's certificates are there too."""

from __future__ import annotations

from base64 import b64decode

from clusterwright.api.meta import ObjectKey
from clusterwright.controllers.kubeadmcontrolplane.scope import SECRET, Scope
from clusterwright.kubeadm.certificates import CertificateError, Purpose, decode_certificate, decode_private_key, secret_name
from clusterwright.runtime.client import Client
from clusterwright.runtime.errors import ApiError


class WorkloadUnavailable(Exception):
    """The workload cluster cannot be used for a reason other than the connection."""


async def workload_client(scope: Scope) -> Client:
    """A client of the workload cluster; raises NotConnected, or WorkloadUnavailable where etcd could not be spoken to.

    What etcd needs is looked up before anything is done there, so that no operation ends half way.
    """
    client = await scope.dependencies.workload.client(scope.cluster_key)
    await _require(scope, Purpose.ETCD_CA, key_required=False)
    return client


async def _require(scope: Scope, purpose: Purpose, *, key_required: bool) -> None:
    name = secret_name(scope.cluster.metadata.name, purpose)
    try:
        secret = await scope.dependencies.client.find(SECRET, ObjectKey(scope.cluster.metadata.namespace, name))
    except ApiError as error:
        raise WorkloadUnavailable(f"failed to get secret {name}: {error}") from error
    if secret is None:
        raise WorkloadUnavailable(f"failed to get secret {name}: it does not exist")
    data = secret.at("data") or {}
    certificate, key = data.get("tls.crt"), data.get("tls.key")
    if certificate is None or (key_required and key is None):
        raise WorkloadUnavailable(f"secret {name} is incomplete")
    if purpose is Purpose.ETCD_CA and key is None:
        await _require(scope, Purpose.API_SERVER_ETCD_CLIENT, key_required=True)
        return
    try:
        decode_certificate(b64decode(certificate))
        decode_private_key(b64decode(key or ""))
    except (CertificateError, ValueError) as error:
        raise WorkloadUnavailable(f"secret {name} cannot be used: {error}") from error
