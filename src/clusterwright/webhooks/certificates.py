"""The serving certificates of the webhooks: our own, in a Secret that all replicas share, or mounted ones."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Final, Protocol

from cryptography import x509
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives import serialization

from clusterwright.api.kubernetes import Namespace, Secret
from clusterwright.api.meta import ObjectKey, ObjectMeta
from clusterwright.apiserver.serving.tls import KeyPair, make_authority, sign
from clusterwright.runtime.client import Client
from clusterwright.runtime.errors import AlreadyExists, Conflict

SERVING_VALIDITY: Final = timedelta(days=90)
AUTHORITY_VALIDITY: Final = timedelta(days=3650)
RENEWED_BEFORE_END: Final = 1 / 3
"""The remaining share of its life at which a certificate is renewed."""


class CertificateMissing(Exception):
    """There is no serving certificate."""


@dataclass(frozen=True, slots=True)
class Identity:
    """A serving certificate with its key, and the authorities that clients must trust (PEM); empty: configured elsewhere."""

    serving: KeyPair
    bundle: bytes


class Certificates(Protocol):
    """The source of the serving certificate."""

    async def current(self) -> Identity:
        """Return the current certificate, renewed if it is due; raises CertificateMissing."""


@dataclass(frozen=True, slots=True)
class Mounted:
    """A directory with `tls.crt` and `tls.key`, as a Secret is mounted; with `ca.crt`, we configure the API server to trust it."""

    folder: Path

    async def current(self) -> Identity:
        """Return the current content of the files."""
        try:
            serving = KeyPair((self.folder / "tls.crt").read_bytes(), (self.folder / "tls.key").read_bytes())
        except OSError as error:
            raise CertificateMissing(f"no serving certificate for webhooks: {error}") from None
        authority = self.folder / "ca.crt"
        return Identity(serving, authority.read_bytes() if authority.exists() else b"")


@dataclass(frozen=True, slots=True)
class Made:
    """Certificates that we create and store in a Secret. The first replica renews them; the others use the result."""

    client: Client
    secret: ObjectKey
    hosts: Sequence[str]
    now: Callable[[], datetime]

    async def current(self) -> Identity:
        """Return the content of the Secret, created or renewed if necessary."""
        for _ in range(5):
            found = await self.client.live.find(Secret, self.secret)
            data = dict(found.data) if found is not None else {}
            renewed = renew(data, self.hosts, self.now())
            if renewed == data:
                return Identity(KeyPair(data["tls.crt"], data["tls.key"]), data["ca.crt"])
            try:
                await self._write(found, renewed)
            except (AlreadyExists, Conflict):
                continue  # another replica was faster
        raise CertificateMissing(f"Secret {self.secret} cannot be written: other processes keep changing it")

    async def _write(self, found: Secret | None, data: dict[str, bytes]) -> None:
        if found is not None:
            await self.client.update(Secret(metadata=found.metadata, type=found.type, data=data))
            return
        if await self.client.live.find(Namespace, ObjectKey("", self.secret.namespace)) is None:
            await self.client.create(Namespace(metadata=ObjectMeta(name=self.secret.namespace)))
        metadata = ObjectMeta(name=self.secret.name, namespace=self.secret.namespace)
        await self.client.create(Secret(metadata=metadata, type="kubernetes.io/tls", data=data))


def renew(data: dict[str, bytes], hosts: Sequence[str], now: datetime) -> dict[str, bytes]:
    """Return the desired content of the Secret: unchanged while everything is valid for long enough.

    A new authority is trusted together with the old one, so that no client fails during the change.
    """
    wanted = dict(data)
    authority = KeyPair(wanted.get("ca.crt", b""), wanted.get("ca.key", b""))
    if _is_due(authority, now):
        made = make_authority(now, "clusterwright-webhooks-authority", AUTHORITY_VALIDITY)
        wanted["ca.crt"] = made.certificate + (_first(authority.certificate) if _is_valid(authority.certificate, now) else b"")
        wanted["ca.key"] = made.key
        wanted.pop("tls.crt", None)
    if _is_due(KeyPair(wanted.get("tls.crt", b""), wanted.get("tls.key", b"")), now) or not _names(wanted["tls.crt"]) >= set(hosts):
        issuer = KeyPair(_first(wanted["ca.crt"]), wanted["ca.key"])
        serving = sign(issuer, now, "clusterwright-webhooks", hosts=hosts, validity=SERVING_VALIDITY)
        wanted["tls.crt"], wanted["tls.key"] = serving.certificate, serving.key
    return wanted


_END: Final = b"-----END CERTIFICATE-----\n"


def _first(bundle: bytes) -> bytes:
    head, mark, _ = bundle.partition(_END)
    return head + mark


def _load(pem: bytes) -> x509.Certificate | None:
    try:
        return x509.load_pem_x509_certificate(pem)
    except (ValueError, x509.InvalidVersion):
        return None


def _is_its_key(key: bytes, certificate: x509.Certificate) -> bool:
    try:
        return serialization.load_pem_private_key(key, None).public_key() == certificate.public_key()
    except (ValueError, TypeError, UnsupportedAlgorithm):
        return False


def _is_valid(pem: bytes, now: datetime) -> bool:
    certificate = _load(pem)
    return certificate is not None and certificate.not_valid_before_utc <= now < certificate.not_valid_after_utc


def _is_due(pair: KeyPair, now: datetime) -> bool:
    certificate = _load(pair.certificate)
    if certificate is None or not _is_its_key(pair.key, certificate):
        return True
    begin, end = certificate.not_valid_before_utc, certificate.not_valid_after_utc
    return now < begin or (end - now) < (end - begin) * RENEWED_BEFORE_END


def _names(pem: bytes) -> set[str]:
    certificate = _load(pem)
    assert certificate is not None
    try:
        names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except (x509.ExtensionNotFound, x509.DuplicateExtension, ValueError):
        return set()
    return {*names.get_values_for_type(x509.DNSName), *map(str, names.get_values_for_type(x509.IPAddress))}
