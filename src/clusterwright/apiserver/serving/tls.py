"""The certificates that a server issues itself: an authority, a serving certificate, an administrator's."""

from __future__ import annotations

import os
import ssl
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta
from functools import lru_cache
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec

from clusterwright.kubeadm import certificates
from clusterwright.kubeadm.certificates import KeyPair
from clusterwright.streams.tls import authorities, use_certificate

__all__ = ["KeyPair", "make_authority", "server_context", "sign", "validity_problem", "write_private"]

_YEARS = timedelta(days=3650)


def make_authority(now: datetime, name: str = "clusterwright", validity: timedelta = _YEARS) -> KeyPair:
    """Create a self-signed certificate authority."""
    return certificates.new_ca(_new_key(), now=now, serial=x509.random_serial_number(), days=validity / timedelta(days=1), common_name=name)


def sign(
    authority: KeyPair,
    now: datetime,
    common: str,
    *,
    organizations: Sequence[str] = (),
    hosts: Sequence[str] = (),
    validity: timedelta = _YEARS,
) -> KeyPair:
    """Issue a certificate: for serving if `hosts` are given, else for a client."""
    return certificates.sign(
        authority,
        _new_key(),
        common_name=common,
        organizations=organizations,
        serial=x509.random_serial_number(),
        not_before=now - certificates.CLOCK_SKEW,
        not_after=now + validity,
        client=not hosts,
        server=bool(hosts),
        hosts=hosts,
        encipherment=False,
    )


def _new_key() -> ec.EllipticCurvePrivateKey:
    return ec.generate_private_key(ec.SECP256R1())


def server_context(serving: KeyPair, client_authority: bytes, *, require_client: bool = False) -> ssl.SSLContext:
    """Return the TLS context of a server that accepts client certificates of the authority, or requires one."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.set_alpn_protocols(["http/1.1"])
    use_certificate(context, serving.certificate, serving.key)
    context.load_verify_locations(cadata=authorities(client_authority))
    context.verify_mode = ssl.CERT_REQUIRED if require_client else ssl.CERT_OPTIONAL
    return context


def validity_problem(certificates: Mapping[str, bytes], now: Callable[[], datetime]) -> str:
    """Return which certificate (PEM, by name) is not valid now and what to do; empty if all are valid."""
    time = now()
    for name, pem in certificates.items():
        begin, end = _validity(pem)
        if time < begin:
            return f"the {name} is valid from {begin:%Y-%m-%dT%H:%M:%SZ}, but the clock says {time:%Y-%m-%dT%H:%M:%SZ}: set the clock"
        if time > end:
            return f"the {name} was valid until {end:%Y-%m-%dT%H:%M:%SZ}: set the clock, or remove ca.crt and ca.key and restart"
    return ""


@lru_cache(maxsize=16)
def _validity(pem: bytes) -> tuple[datetime, datetime]:
    certificate = x509.load_pem_x509_certificate(pem)
    return certificate.not_valid_before_utc, certificate.not_valid_after_utc


def write_private(path: Path, content: bytes) -> None:
    """Write a file that only its owner can read, atomically."""
    partial = path.with_name(path.name + ".partial")
    partial.unlink(missing_ok=True)
    descriptor = os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    partial.replace(path)
