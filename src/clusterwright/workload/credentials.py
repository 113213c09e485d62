"""Credentials for etcd of a workload cluster: a client certificate made from its CA, or the one that the user provided."""

from __future__ import annotations

import hashlib
import ssl
from base64 import b64decode
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from random import Random

from clusterwright.api.meta import GroupVersionKind, ObjectKey
from clusterwright.kubeadm import certificates as pki
from clusterwright.kubeadm.certificates import CertificateError, KeyPair, Purpose
from clusterwright.runtime.client import Reader
from clusterwright.runtime.clock import Clock
from clusterwright.runtime.errors import ApiError
from clusterwright.runtime.keys import KeySource
from clusterwright.workload.access import EtcdError
from clusterwright.workload.etcd import EtcdCredentials, client_context

SECRET = GroupVersionKind("", "v1", "Secret")
COMMON_NAME = "cluster-api.x-k8s.io"
VALIDITY = timedelta(days=3650)
RENEW_AFTER = timedelta(hours=24)


@dataclass(frozen=True, slots=True)
class _Kept:
    made: datetime
    source: str
    context: ssl.SSLContext


class EtcdAccess:
    """TLS contexts for etcd, one per cluster; renewed after a day, or when the CA changes."""

    def __init__(self, reader: Reader, *, clock: Clock, random: Random, keys: KeySource) -> None:
        self._reader = reader
        self._clock = clock
        self._random = random
        self._keys = keys
        self._kept: dict[ObjectKey, _Kept] = {}

    def forget(self, cluster: ObjectKey) -> None:
        """Drop the context of a cluster."""
        self._kept.pop(cluster, None)

    async def context(self, cluster: ObjectKey) -> ssl.SSLContext:
        """Return a context for etcd of the cluster; raises EtcdError."""
        try:
            authority = await self._pair(cluster, Purpose.ETCD_CA)
            source = hashlib.sha256(authority.certificate + b"\0" + authority.key).hexdigest()
            now = self._clock.now()
            kept = self._kept.get(cluster)
            if kept is not None and kept.source == source and now - kept.made < RENEW_AFTER:
                return kept.context
            client = await self._client_pair(cluster, authority, now)
            context = client_context(EtcdCredentials(authority.certificate, client.certificate, client.key))
        except (ApiError, CertificateError, ssl.SSLError) as error:
            raise EtcdError(f"failed to prepare the etcd client certificate: {error}") from error
        self._kept[cluster] = _Kept(now, source, context)
        return context

    async def _client_pair(self, cluster: ObjectKey, authority: KeyPair, now: datetime) -> KeyPair:
        if not authority.key:
            return await self._pair(cluster, Purpose.API_SERVER_ETCD_CLIENT)
        key = await self._keys.new_key(pki.algorithm_of(authority))
        sign = partial(
            pki.sign,
            authority,
            key,
            common_name=COMMON_NAME,
            serial=pki.new_serial(self._random),
            not_before=now - pki.CLOCK_SKEW,
            not_after=now + VALIDITY,
            client=True,
            encipherment=False,
        )
        return await self._keys.run(sign)

    async def _pair(self, cluster: ObjectKey, purpose: Purpose) -> KeyPair:
        name = pki.secret_name(cluster.name, purpose)
        secret = await self._reader.find(SECRET, ObjectKey(cluster.namespace, name))
        if secret is None:
            raise CertificateError(f"Secret {name} does not exist")
        try:
            data = {k: b64decode(v) for k, v in (secret.at("data") or {}).items()}
        except ValueError:
            raise CertificateError(f"the data of Secret {name} is not base64") from None
        return pki.pair_from_secret(cluster.namespace, name, data)
