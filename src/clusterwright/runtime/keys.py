"""Key material as an argument: making keys is slow and random, so it happens behind this seam, off the event loop."""

from __future__ import annotations

from typing import Protocol

from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePrivateKey
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey

PrivateKey = RSAPrivateKey | EllipticCurvePrivateKey


class KeySource(Protocol):
    """Makes private keys."""

    async def new_key(self, algorithm: str) -> PrivateKey:
        """A new key; `algorithm` is one of RSA-2048, RSA-3072, RSA-4096, ECDSA-P256, ECDSA-P384. Never blocks the event loop."""
