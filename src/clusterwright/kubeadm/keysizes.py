"""Accept only keys whose operations take milliseconds, also from users. Pure."""

from __future__ import annotations

from typing import Final

from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePrivateKey, EllipticCurvePublicKey
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey, RSAPublicKey

SMALLEST_RSA: Final = 2048
LARGEST_RSA: Final = 8192
"""The largest RSA key. A signature takes 50 ms with 8,192 bits and 9 s with 44,910: the cost grows with the cube of the size."""
CURVES: Final = ("secp256r1", "secp384r1", "secp521r1")
LONGEST_KEY: Final = 16_384
"""The longest PEM text of a private key, in bytes; one of 8,192 bits has 6,400. A longer text is not parsed."""


def broken_rule(key: object) -> str:
    """Return the rule that a private or public key violates; empty if it is acceptable."""
    match key:
        case RSAPrivateKey() | RSAPublicKey() if not SMALLEST_RSA <= key.key_size <= LARGEST_RSA:
            return f"the RSA key has {key.key_size} bits: use one of {SMALLEST_RSA} to {LARGEST_RSA} bits"
        case EllipticCurvePrivateKey() | EllipticCurvePublicKey() if key.curve.name not in CURVES:
            return f"the key is on the curve {key.curve.name}: use P-256, P-384 or P-521"
    return ""
