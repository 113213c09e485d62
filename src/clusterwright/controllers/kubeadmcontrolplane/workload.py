"""The workload cluster as this controller reaches it: a client, provided that etcd's certificates are there too."""

from __future__ import annotations

from clusterwright.api.meta import ObjectKey
from clusterwright.controllers.kubeadmcontrolplane.scope import SECRET, Scope
from clusterwright.kubeadm.certificates import Purpose, secret_name
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
    if not data.get("tls.crt") or (key_required and not data.get("tls.key")):
        raise WorkloadUnavailable(f"secret {name} is incomplete")
    if purpose is Purpose.ETCD_CA and not data.get("tls.key"):
        await _require(scope, Purpose.API_SERVER_ETCD_CLIENT, key_required=True)
