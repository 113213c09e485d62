"""Functions of cryptography: those whose answer is always the same. The others are known, and refuse."""

from __future__ import annotations

import base64
import hashlib
import hmac
import struct
from typing import Any, Final

from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

from clusterwright.gotemplate.sprig.signatures import Library
from clusterwright.gotemplate.values import Opaque, from_bytes, to_bytes

LIBRARY: Final = Library()
_VOWELS, _CONSONANTS = "aeiou", "bcdfghjklmnpqrstvwxyz"
_CLASSES: Final = {
    "V": _VOWELS.upper(), "C": _CONSONANTS.upper(), "v": _VOWELS, "c": _CONSONANTS, "A": (_VOWELS + _CONSONANTS).upper(),
    "a": "AEIOUaeiouBCDFGHJKLMNPQRSTVWXYZbcdfghjklmnpqrstvwxyz", "n": "0123456789", "o": "@&%?,=[]_:-+*$#!'^~;()/.",
    "x": "AEIOUaeiouBCDFGHJKLMNPQRSTVWXYZbcdfghjklmnpqrstvwxyz0123456789!@#$%^&*()",
}  # fmt: skip
_TEMPLATES: Final = {
    "maximum": "anoxxxxxxxxxxxxxxxxx axxxxxxxxxxxxxxxxxno",
    "long": (
        "CvcvnoCvcvCvcv CvcvCvcvnoCvcv CvcvCvcvCvcvno CvccnoCvcvCvcv CvccCvcvnoCvcv CvccCvcvCvcvno CvcvnoCvccCvcv CvcvCvccnoCvcv "
        "CvcvCvccCvcvno CvcvnoCvcvCvcc CvcvCvcvnoCvcc CvcvCvcvCvccno CvccnoCvccCvcv CvccCvccnoCvcv CvccCvccCvcvno CvcvnoCvccCvcc "
        "CvcvCvccnoCvcc CvcvCvccCvccno CvccnoCvcvCvcc CvccCvcvnoCvcc CvccCvcvCvccno"
    ),
    "medium": "CvcnoCvc CvcCvcno",
    "short": "Cvcn",
    "basic": "aaanaaan aannaaan aaannaaa",
    "pin": "nnnn",
}
_SCOPE: Final = b"com.lyndir.masterpassword"


class Certificate(Opaque):
    """A certificate and its key, both PEM."""

    go_type = "sprig.certificate"

    def __init__(self, cert: str, key: str) -> None:
        self.cert, self.key = cert, key

    def __str__(self) -> str:
        return f"{{{self.cert} {self.key}}}"

    def member(self, name: str, arguments: tuple[Any, ...]) -> Any:
        """`Cert` or `Key`."""
        found = {"Cert": self.cert, "Key": self.key}.get(name)
        return super().member(name, arguments) if found is None or arguments else found


def _derived(counter: int, kind: str, password: str, user: str, site: str) -> str:
    templates = _TEMPLATES.get(kind, "").split()
    if not templates:
        return f"cannot find password template {kind}"
    name, where = to_bytes(user), to_bytes(site)
    key = hashlib.scrypt(
        to_bytes(password), salt=_SCOPE + struct.pack(">I", len(name)) + name, n=32768, r=8, p=2, dklen=64, maxmem=128 * 1024 * 1024
    )
    seed = hmac.digest(key, _SCOPE + struct.pack(">I", len(where)) + where + struct.pack(">I", counter & 0xFFFFFFFF), "sha256")
    template = templates[seed[0] % len(templates)]
    return "".join(_CLASSES[c][seed[i + 1] % len(_CLASSES[c])] for i, c in enumerate(template))


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


def _unrepeatable(*_: Any) -> Any:
    raise ValueError("it gives another value in every pass, which would change the objects for ever; use a variable instead")


LIBRARY.define("derivePassword", "int string string string string", _derived, steps=25_000)  # it is made to be slow
LIBRARY.define("buildCustomCert", "string string", _custom_certificate)
LIBRARY.define("decryptAES", "string string", _decrypted)
LIBRARY.define(
    "ago bcrypt encryptAES genCA genCAWithKey genPrivateKey genSelfSignedCert genSelfSignedCertWithKey genSignedCert genSignedCertWithKey "
    "htpasswd randInt",
    "any...",
    _unrepeatable,
)
