"""Keys that a tenant brings are used only if one operation with them is cheap, and are refused before anything costly is done."""

from __future__ import annotations

import threading
import time
from base64 import b64encode
from datetime import UTC, datetime

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.x509.oid import NameOID

from clusterwright.kubeadm.certificates import (
    CertificateError,
    KeyPair,
    decode_certificate,
    decode_private_key,
    encode_certificate,
    encode_private_key,
    pair_from_secret,
    sign,
)
from clusterwright.runtime.keys import FixedKeySource, PooledKeySource

NOW = datetime(2026, 5, 1, tzinfo=UTC)


def huge_key(p_bits: int, q_bits: int) -> rsa.RSAPrivateKey:
    """A key of two Mersenne primes: they cost nothing to find, and have any size."""
    p, q, e = (1 << p_bits) - 1, (1 << q_bits) - 1, 65537
    d = pow(e, -1, (p - 1) * (q - 1))
    numbers = rsa.RSAPrivateNumbers(p, q, d, d % (p - 1), d % (q - 1), pow(q, -1, p), rsa.RSAPublicNumbers(e, p * q))
    return numbers.private_key(unsafe_skip_rsa_key_validation=True)


def certificate_of(public: rsa.RSAPublicKey | ec.EllipticCurvePublicKey) -> bytes:
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "x")])
    builder = x509.CertificateBuilder().subject_name(name).issuer_name(name).public_key(public).serial_number(1)
    signer = ec.generate_private_key(ec.SECP256R1())
    return encode_certificate(builder.not_valid_before(NOW).not_valid_after(NOW.replace(year=2030)).sign(signer, hashes.SHA256()))


def test_a_huge_key_is_refused_before_it_is_parsed() -> None:
    pem = encode_private_key(huge_key(21_701, 23_209))
    started = time.process_time()

    with pytest.raises(CertificateError, match=r"has \d+ bytes, more than 16384: use RSA with at most 8192 bits"):
        decode_private_key(pem)
    with pytest.raises(CertificateError, match=r"tls.key of Secret ns/c-ca cannot be used"):
        pair_from_secret("ns", "c-ca", {"tls.crt": b"", "tls.key": pem})

    assert time.process_time() - started < 0.5


def test_certificates_with_huge_public_keys_are_refused() -> None:
    pem = certificate_of(huge_key(21_701, 23_209).public_key())
    started = time.process_time()

    with pytest.raises(CertificateError, match="the RSA key has 44910 bits: use one of 2048 to 8192 bits"):
        decode_certificate(pem)

    assert time.process_time() - started < 0.5


@pytest.mark.parametrize("primes", [(521, 607), (4_253, 4_423)])
def test_rsa_keys_below_and_above_the_allowed_sizes_are_refused(primes: tuple[int, int]) -> None:
    key = huge_key(*primes)

    with pytest.raises(CertificateError, match=f"the RSA key has {sum(primes)} bits: use one of 2048 to 8192 bits"):
        decode_private_key(encode_private_key(key))
    with pytest.raises(CertificateError, match=f"the RSA key has {sum(primes)} bits"):
        decode_certificate(certificate_of(key.public_key()))


@pytest.mark.parametrize("curve", [ec.SECP256K1(), ec.SECP224R1(), ec.BrainpoolP512R1()], ids=lambda c: c.name)
def test_keys_on_other_curves_are_refused(curve: ec.EllipticCurve) -> None:
    with pytest.raises(CertificateError, match="use P-256, P-384 or P-521"):
        decode_private_key(encode_private_key(ec.generate_private_key(curve)))


@pytest.mark.parametrize("primes", [(1_279, 2_203), (2_203, 4_253), (3_217, 4_253)])
def test_keys_of_the_allowed_sizes_are_taken(primes: tuple[int, int]) -> None:
    assert decode_private_key(encode_private_key(huge_key(*primes))).key_size == sum(primes)


def test_nothing_is_signed_with_a_huge_authority() -> None:
    pair = KeyPair(certificate_of(ec.generate_private_key(ec.SECP256R1()).public_key()), encode_private_key(huge_key(21_701, 23_209)))
    started = time.process_time()

    with pytest.raises(CertificateError, match="the private key has"):
        sign(pair, ec.generate_private_key(ec.SECP256R1()), common_name="x", serial=1, not_before=NOW, not_after=NOW)

    assert time.process_time() - started < 0.5


async def test_work_with_keys_is_done_in_a_thread_of_the_pool() -> None:
    keys = PooledKeySource(threads=1)
    try:
        assert (await keys.run(lambda: threading.current_thread().name)).startswith("keys")
        with pytest.raises(CertificateError):
            await keys.run(lambda: decode_private_key(b64encode(b"x")))
    finally:
        await keys.close()
    assert await FixedKeySource().run(threading.current_thread) is threading.current_thread()
