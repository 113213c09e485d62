"""The connection to the workload cluster: a client, if the etcd certificates exist too."""

from __future__ import annotations

from clusterwright.api.kubernetes import Secret
from clusterwright.api.meta import ObjectKey
from clusterwright.controllers.wiring import Dependencies
from clusterwright.kubeadm.certificates import CertificateError, Purpose, decode_certificate, decode_private_key, secret_name
from clusterwright.runtime.client import Client
from clusterwright.runtime.errors import ApiError


class WorkloadUnavailable(Exception):
    """The workload cluster cannot be used for a reason other than the connection."""


async def workload_client(deps: Dependencies, cluster: ObjectKey) -> Client:
    """Return a client of the workload cluster; raises NotConnected, or WorkloadUnavailable if etcd cannot be reached.

    The etcd certificates are read before anything is done there, so that no operation stops half way.
    """
    client = await deps.workload.client(cluster)
    await _require(deps, cluster, Purpose.ETCD_CA, key_required=False)
    return client


async def _require(deps: Dependencies, cluster: ObjectKey, purpose: Purpose, *, key_required: bool) -> None:
    name = secret_name(cluster.name, purpose)
    try:
        secret = await deps.client.find(Secret, ObjectKey(cluster.namespace, name))
    except (ApiError, ValueError) as error:
        raise WorkloadUnavailable(f"failed to get secret {name}: {error}") from error
    if secret is None:
        raise WorkloadUnavailable(f"failed to get secret {name}: it does not exist")
    certificate, key = secret.data.get("tls.crt"), secret.data.get("tls.key")
    if certificate is None or (key_required and key is None):
        raise WorkloadUnavailable(f"secret {name} is incomplete")
    if purpose is Purpose.ETCD_CA and key is None:
        await _require(deps, cluster, Purpose.API_SERVER_ETCD_CLIENT, key_required=True)
        return
    try:
        decode_certificate(certificate)
        decode_private_key(key or b"")
    except CertificateError as error:
        raise WorkloadUnavailable(f"secret {name} cannot be used: {error}") from error
