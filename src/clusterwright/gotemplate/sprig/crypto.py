"""Deterministic cryptographic functions. Random or deliberately slow ones are defined and fail."""

from __future__ import annotations

import base64
from typing import Any, Final

from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

from clusterwright.gotemplate.sprig.signatures import Library
from clusterwright.gotemplate.values import Opaque, from_bytes, to_bytes

LIBRARY: Final = Library()


class Certificate(Opaque):
    """A certificate and its key, both PEM."""

    go_type = "sprig.certificate"

    def __init__(self, cert: str, key: str) -> None:
        self.cert, self.key = cert, key

    def __str__(self) -> str:
        return f"{{{self.cert} {self.key}}}"

    def member(self, name: str, arguments: tuple[Any, ...]) -> Any:
        """Return the member `Cert` or `Key`."""
        found = {"Cert": self.cert, "Key": self.key}.get(name)
        return super().member(name, arguments) if found is None or arguments else found


def _custom_certificate(cert: str, key: str) -> Certificate:
    return Certificate(*(from_bytes(base64.b64decode(part, validate=True)) for part in (cert, key)))


def _decrypted(password: str, text: str) -> str:
    raw = base64.b64decode(text, validate=True)
    key = to_bytes(password)[:32].ljust(32, b"\0")
    if len(raw) < 16 or len(raw) % 16:
        raise ValueError("crypto/cipher: input not full blocks")
    decryptor = Cipher(algorithms.AES(key), modes.CBC(raw[:16])).decryptor()
    plain = decryptor.update(raw[16:]) + decryptor.finalize()
    return from_bytes(plain[: len(plain) - plain[-1]]) if plain else ""


def _slow(*_: Any) -> Any:
    raise ValueError("it takes 0.1 s of CPU time on purpose, which would stall all clusters; use a variable instead")


def _unrepeatable(*_: Any) -> Any:
    raise ValueError("it gives another value in every pass, which would change the objects forever; use a variable instead")


LIBRARY.define("derivePassword", "int string string string string", _slow)
LIBRARY.define("buildCustomCert", "string string", _custom_certificate)
LIBRARY.define("decryptAES", "string string", _decrypted)
LIBRARY.define(
    "ago bcrypt encryptAES genCA genCAWithKey genPrivateKey genSelfSignedCert genSelfSignedCertWithKey genSignedCert genSignedCertWithKey "
    "htpasswd randInt",
    "any...",
    _unrepeatable,
)
