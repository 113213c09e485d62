"""Certificates that users bring, and that servers show, may be anything: what nobody can use is told, and found out quickly."""

from __future__ import annotations

import time
from base64 import b64encode
from datetime import UTC, datetime

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import serialization

from clusterwright.kubeadm import certificates
from clusterwright.kubeadm.certificates import CertificateError
from clusterwright.runtime.keys import FixedKeySource
from clusterwright.workload.connection import certificate_expiry


async def der() -> bytes:
    key = await FixedKeySource().new_key("ECDSA-P256")
    pair = certificates.new_ca(key, now=datetime(2026, 1, 1, tzinfo=UTC), serial=1)
    return x509.load_pem_x509_certificate(pair.certificate).public_bytes(serialization.Encoding.DER)


def pem(raw: bytes, kind: str = "CERTIFICATE") -> bytes:
    return f"-----BEGIN {kind}-----\n{b64encode(raw).decode()}\n-----END {kind}-----\n".encode()


async def test_an_unknown_version_is_refused() -> None:
    strange = (await der()).replace(bytes.fromhex("a003020102"), bytes.fromhex("a003020101"), 1)

    with pytest.raises(CertificateError, match="unable to parse"):
        certificates.decode_certificates(pem(strange))
    with pytest.raises(ValueError, match="version"):
        certificate_expiry(strange)


async def test_a_key_of_an_unknown_kind_is_refused() -> None:
    strange = (await der()).replace(bytes.fromhex("2a8648ce3d0201"), bytes.fromhex("2a8648ce3d027f"), 1)

    with pytest.raises(CertificateError, match="unable to parse"):
        certificates.discovery_hashes(pem(strange))


async def test_other_blocks_are_skipped() -> None:
    good = pem(await der())

    assert len(certificates.decode_certificates(b"text\n-----BEGIN X-----\n" + pem(b"key", "EC PRIVATE KEY") + good + b"\n" + good)) == 2


@pytest.mark.parametrize("kind", ["CERTIFICATE", "A{}"])
def test_blocks_that_do_not_end_are_not_looked_for_again_and_again(kind: str) -> None:
    bomb = "".join(f"-----BEGIN {kind.format(n)}-----\n" for n in range(40_000)).encode()
    began = time.process_time()

    with pytest.raises(CertificateError, match="does not contain any"):
        certificates.decode_certificates(bomb)

    assert time.process_time() - began < 5.0  # it took minutes
