"""The kubeconfig Secret of a Cluster whose control plane no provider manages: created once; its client certificate is renewed.

A Secret that we did not make is never touched; nor is one whose content we do not understand.
"""

from __future__ import annotations

from base64 import b64encode
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import Enum
from functools import lru_cache, partial
from random import Random

from clusterwright.api.codec import DecodeError
from clusterwright.api.core import Cluster
from clusterwright.api.kubeconfig import InvalidKubeconfig, data_of, read
from clusterwright.api.kubernetes import Secret
from clusterwright.api.meta import Json, ObjectKey, OwnerReference
from clusterwright.api.wellknown import CORE_GROUP
from clusterwright.controllers.cluster.plan import EXTERNAL_WAIT
from clusterwright.controllers.cluster.snapshot import is_valid
from clusterwright.controllers.external import is_owned_by
from clusterwright.controllers.kit.lookup import Missing, Unreadable, names_anything
from clusterwright.kubeadm.addresses import host_port
from clusterwright.kubeadm.certificates import (
    CLIENT_VALIDITY,
    KUBECONFIG_KEY,
    CertificateError,
    KeyPair,
    Purpose,
    algorithm_of,
    decode_certificate,
    decode_private_key,
    kubeconfig_secret,
    new_admin_client,
    new_kubeconfig,
    new_serial,
    pair_from_secret,
    secret_name,
)
from clusterwright.runtime.client import Client, Reader
from clusterwright.runtime.errors import ApiError, NotFound
from clusterwright.runtime.keys import KeySource
from clusterwright.tables import KEEP, OTHERWISE, Row, Table, guard, message

RENEW_BEFORE = CLIENT_VALIDITY / 2
"""How long before its expiry a client certificate is renewed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KubeconfigView:
    """The Cluster and its two Secrets; None for one that was not needed."""

    cluster: Cluster
    now: datetime
    secret: Secret | Missing | Unreadable | None = None
    authority: KeyPair | Missing | Unreadable | None = None


async def look_at_secrets(reader: Reader, cluster: Cluster, now: datetime) -> KubeconfigView:
    """Read the Secrets, but only if they can matter."""
    if not is_valid(cluster.spec.control_plane_endpoint) or names_anything(cluster.spec.control_plane_ref):
        return KubeconfigView(cluster=cluster, now=now)
    namespace, name = cluster.metadata.namespace, cluster.metadata.name
    secret = await _find(reader, ObjectKey(namespace, secret_name(name, Purpose.KUBECONFIG)))
    if isinstance(secret, Unreadable):
        text = f'failed to retrieve Kubeconfig Secret for Cluster "{name}" in namespace "{namespace}": {secret.error}'
        return KubeconfigView(cluster=cluster, now=now, secret=Unreadable(text))
    if isinstance(secret, Secret) and not _is_due(secret, cluster, now):
        return KubeconfigView(cluster=cluster, now=now, secret=secret)
    authority = await _find(reader, ObjectKey(namespace, secret_name(name, Purpose.CA)))
    return KubeconfigView(cluster=cluster, now=now, secret=secret, authority=_pair(authority))


async def _find(reader: Reader, key: ObjectKey) -> Secret | Missing | Unreadable:
    try:
        return await reader.get(Secret, key)
    except NotFound:
        return Missing()
    except (ApiError, DecodeError) as error:
        return Unreadable(f"failed to get Secret {key}: {error}")


def _pair(secret: Secret | Missing | Unreadable) -> KeyPair | Missing | Unreadable:
    """Return the CA after checking it, before a key is made."""
    if not isinstance(secret, Secret):
        return secret
    try:
        pair = pair_from_secret(secret.metadata.namespace, secret.metadata.name, secret.data)
        decode_certificate(pair.certificate)
        decode_private_key(pair.key)
    except CertificateError as error:
        return Unreadable(f"CA of the cluster in Secret {secret.key} cannot be used: {error}")
    return pair


def _is_due(secret: Secret, cluster: Cluster, now: datetime) -> bool:
    """Return whether we made the Secret and its client certificate expires soon."""
    left = _time_left(secret, cluster, now)
    return left is not None and left < timedelta(0)


def _time_left(secret: Secret, cluster: Cluster, now: datetime) -> timedelta | None:
    """Return how long until the client certificate must be renewed; None for a Secret that is not ours."""
    if not is_owned_by(secret.metadata, CORE_GROUP, "Cluster", cluster.metadata.name):
        return None
    parsed = _parse(secret, cluster)
    return parsed.not_after - RENEW_BEFORE - now if parsed else None


def look_again(view: KubeconfigView) -> timedelta | None:
    """Return when to check the renewal again: when it is due, and at least every day, because no event announces it."""
    if not isinstance(view.secret, Secret):
        return None
    left = _time_left(view.secret, view.cluster, view.now)
    return None if left is None else min(max(left, timedelta(hours=1)), timedelta(days=1))


@dataclass(frozen=True, slots=True)
class _Parsed:
    server: str
    not_after: datetime


def _parse(secret: Secret, cluster: Cluster) -> _Parsed | None:
    """Return the content of our own kubeconfig; None for any other."""
    return _parsed(secret.data.get(KUBECONFIG_KEY, b""), cluster.metadata.name)


@lru_cache(maxsize=1024)
def _parsed(kubeconfig: bytes, cluster: str) -> _Parsed | None:
    # asked in every pass over every stand-alone Cluster, and YAML is slow
    try:
        document = read(kubeconfig)
        certificate = decode_certificate(data_of(document.users[f"{cluster}-admin"], "client-certificate"))
        server = document.clusters[cluster]["server"]
    except (InvalidKubeconfig, KeyError, CertificateError):
        return None
    return _Parsed(server, certificate.not_valid_after_utc) if isinstance(server, str) else None


# ------------------------------------------------------------------------------------------------ table


@guard("spec.controlPlaneEndpoint valid")
def endpoint_valid(v: KubeconfigView) -> bool:
    return is_valid(v.cluster.spec.control_plane_endpoint)


@guard("spec.controlPlaneRef defined")
def control_plane_ref(v: KubeconfigView) -> bool:
    return names_anything(v.cluster.spec.control_plane_ref)


@guard("Kubeconfig Secret exists")
def exists(v: KubeconfigView) -> bool:
    return isinstance(v.secret, Secret)


@guard("Kubeconfig Secret cannot be read")
def unreadable(v: KubeconfigView) -> bool:
    return isinstance(v.secret, Unreadable)


@guard("no Kubeconfig Secret")
def missing(v: KubeconfigView) -> bool:
    return isinstance(v.secret, Missing)


@guard("we made it and its client certificate ends in less than half a year")
def due(v: KubeconfigView) -> bool:
    return isinstance(v.secret, Secret) and v.authority is not None


@guard("CA usable")
def authority_usable(v: KubeconfigView) -> bool:
    return isinstance(v.authority, KeyPair)


@guard("no CA Secret")
def authority_missing(v: KubeconfigView) -> bool:
    return isinstance(v.authority, Missing)


@message("<the error>")
def secret_error(v: KubeconfigView) -> str:
    return v.secret.error if isinstance(v.secret, Unreadable) else ""


@message("<the error>")
def authority_error(v: KubeconfigView) -> str:
    return v.authority.error if isinstance(v.authority, Unreadable) else ""


class Make(Enum):
    """The kubeconfig Secret to create or renew."""

    WHOLE = "generate Kubeconfig secret"
    CERTIFICATE = "renew its client certificate"


# fmt: off
RECONCILE_KUBECONFIG: Table[KubeconfigView] = Table(
    "reconcileKubeconfig",
    Row("no-endpoint",        ~endpoint_valid,                  KEEP),
    Row("not-ours",           control_plane_ref,                KEEP, "the control plane's provider makes it"),
    Row("unreadable",         unreadable,                       KEEP, error=secret_error),
    Row("current",            exists & ~due,                    KEEP),
    Row("renew",              exists & due & authority_usable,  KEEP, act=Make.CERTIFICATE),
    Row("renewal-impossible", exists & due,                     KEEP, "leave it: it still works"),
    Row("create",             missing & authority_usable,       KEEP, act=Make.WHOLE),
    Row("no-ca",              missing & authority_missing,      KEEP, "wait for the CA", requeue=EXTERNAL_WAIT),
    Row("ca-unusable",        OTHERWISE,                        KEEP, error=authority_error),
    about="The kubeconfig Secret of a stand-alone control plane. Created as soon as the endpoint is valid: initialization waits for it.",
    at_most_one=[(exists, unreadable, missing), (authority_usable, authority_missing)],
    assuming=[~endpoint_valid | control_plane_ref | exists | unreadable | missing, ~due | exists],
)
# fmt: on


# --------------------------------------------------------------------------------------------------- acts


async def make_kubeconfig(view: KubeconfigView, client: Client, keys: KeySource, random: Random, what: Make) -> None:
    """Create the Secret, or renew its client certificate; raises ApiError, also if another process created it meanwhile."""
    authority, endpoint, cluster = view.authority, view.cluster.spec.control_plane_endpoint, view.cluster
    assert isinstance(authority, KeyPair)
    assert endpoint is not None
    key = await keys.new_key(algorithm_of(authority))
    admin = await keys.run(partial(new_admin_client, authority, key, now=view.now, serial=new_serial(random)))
    server = f"https://{host_port(endpoint.host, endpoint.port).lstrip('/')}"
    if what is Make.CERTIFICATE and isinstance(view.secret, Secret):
        parsed = _parse(view.secret, cluster)
        kubeconfig = new_kubeconfig(cluster.metadata.name, parsed.server if parsed else server, authority, admin)
        patch: Json = {
            "metadata": {"resourceVersion": view.secret.metadata.resource_version},
            "data": {KUBECONFIG_KEY: b64encode(kubeconfig).decode()},
        }
        await client.patch(Secret, view.secret.key, patch)
        return
    metadata = cluster.metadata
    owner = OwnerReference(api_version=cluster.api_version, kind=cluster.kind, name=metadata.name, uid=metadata.uid)
    kubeconfig = new_kubeconfig(metadata.name, server, authority, admin)
    secret = kubeconfig_secret(namespace=metadata.namespace, cluster=metadata.name, kubeconfig=kubeconfig, owner=owner)
    await client.create(secret)
