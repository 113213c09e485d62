"""TLS for servers of tests that nobody has to trust."""

from __future__ import annotations

import ssl
import tempfile
from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec


def self_signed(name: str = "test") -> tuple[ec.EllipticCurvePrivateKey, bytes]:
    """A new key, and a certificate of it (PEM) that nobody else signed."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, name)])
    now = datetime.now(UTC)
    made = x509.CertificateBuilder(subject, subject, key.public_key(), 1, now - timedelta(days=1), now + timedelta(days=1))
    return key, made.sign(key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM)


def server_context() -> ssl.SSLContext:
    """A context with a certificate of its own making."""
    key, text = self_signed()
    private = key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "both.pem"
        path.write_bytes(private + text)
        context.load_cert_chain(path)
    return context
