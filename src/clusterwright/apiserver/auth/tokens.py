"""Bearer tokens: signed ones for service accounts (TokenRequest), and bootstrap tokens kept as Secrets."""

from __future__ import annotations

import base64
import hashlib
import hmac
from collections import OrderedDict
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from random import Random
from typing import Any, Final, NamedTuple

import msgspec
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature, encode_dss_signature

from clusterwright.api.meta import Json
from clusterwright.apiserver.core import Core
from clusterwright.apiserver.identity import User

AUDIENCE: Final = "https://kubernetes.default.svc.cluster.local"
"""The issuer of tokens, and their default audience."""
_REMEMBERED: Final = 1024


class Bound(NamedTuple):
    """The object that a token is bound to: the token is valid while it exists."""

    kind: str
    name: str
    uid: str


_BOUND_TABLES: Final = {"Pod": "pods", "Secret": "secrets", "Node": "nodes"}


def _b64(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def _unb64(text: str) -> bytes:
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))


def new_token_key(random: Random) -> bytes:
    """Return a new key to sign tokens with, as PEM."""
    order = 0xFFFFFFFF00000000FFFFFFFFFFFFFFFFBCE6FAADA7179E84F3B9CAC2FC632551
    key = ec.derive_private_key(1 + random.getrandbits(320) % (order - 1), ec.SECP256R1())
    return key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())


class ServiceAccountTokens:
    """Issues and checks JSON Web Tokens, signed with ES256: checking needs only the public key."""

    def __init__(self, server: Core, key: bytes) -> None:
        """Create an issuer; `key` is PEM, as from `new_token_key`."""
        loaded = serialization.load_pem_private_key(key, None)
        if not isinstance(loaded, ec.EllipticCurvePrivateKey) or not isinstance(loaded.curve, ec.SECP256R1):
            raise ValueError("tokens are signed with a P-256 key")
        self._server = server
        self._key = loaded
        self._public = loaded.public_key()
        der = self._public.public_bytes(serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo)
        self._id = _b64(hashlib.sha256(der).digest())
        self._header = _b64(msgspec.json.encode({"alg": "ES256", "kid": self._id}))
        self._genuine: OrderedDict[str, Any] = OrderedDict()
        """The claims of tokens with a verified signature; they never change."""
        server.tokens = self
        server.token_sources.append(self.user)

    def key_set(self) -> Json:
        """Return the public key as a JSON Web Key Set."""
        numbers = self._public.public_numbers()
        x, y = (_b64(number.to_bytes(32, "big")) for number in (numbers.x, numbers.y))
        return {"keys": [{"use": "sig", "kty": "EC", "kid": self._id, "crv": "P-256", "alg": "ES256", "x": x, "y": y}]}

    def issue(
        self, namespace: str, name: str, uid: str, *, audiences: list[str], lifetime: timedelta, bound: Bound | None = None
    ) -> tuple[str, datetime]:
        """Return a token for a service account, and the time when it expires."""
        now = self._server.now()
        end = now + lifetime
        private: Json = {"namespace": namespace, "serviceaccount": {"name": name, "uid": uid}}
        if bound is not None:
            private[bound.kind.lower()] = {"name": bound.name, "uid": bound.uid}
        claims = {
            "aud": audiences or [AUDIENCE],
            "exp": int(end.timestamp()),
            "iat": int(now.timestamp()),
            "iss": AUDIENCE,
            "jti": self._server.new_uid(),
            "kubernetes.io": private,
            "nbf": int(now.timestamp()),
            "sub": f"system:serviceaccount:{namespace}:{name}",
        }
        text = f"{self._header}.{_b64(msgspec.json.encode(claims))}"
        r, s = decode_dss_signature(self._key.sign(text.encode(), ec.ECDSA(hashes.SHA256())))
        return f"{text}.{_b64(r.to_bytes(32, 'big') + s.to_bytes(32, 'big'))}", end

    def user(self, token: str) -> User | None:
        """Return the service account of a token for this API server; None if it is invalid."""
        found = self.review(token, (AUDIENCE,))
        return None if found is None or not found[1] else found[0]

    def review(self, token: str, audiences: Sequence[str]) -> tuple[User, list[str]] | None:
        """Return the service account of a valid token and its matching audiences; None if it is invalid.

        A token is valid if it is genuine and not expired, its account and its bound object exist, and it is for an audience.
        """
        claims = self._claims(token)
        if claims is None:
            return None
        try:
            private, now = claims["kubernetes.io"], self._server.now().timestamp()
            namespace, account, said = private["namespace"], private["serviceaccount"], claims["aud"]
            if not int(claims["nbf"]) <= now < int(claims["exp"]) or claims["iss"] != AUDIENCE:
                return None
            if not self._exists("serviceaccounts", f"{namespace}/{account['name']}", account["uid"]):
                return None
            extra: dict[str, tuple[str, ...]] = {"authentication.kubernetes.io/credential-id": (f"JTI={claims['jti']}",)}
            for kind, table in _BOUND_TABLES.items():
                bound = private.get(kind.lower())
                if bound is None:
                    continue
                key = bound["name"] if kind == "Node" else f"{namespace}/{bound['name']}"
                if not self._exists(table, key, bound["uid"]):
                    return None
                if kind != "Secret":
                    extra[f"authentication.kubernetes.io/{kind.lower()}-name"] = (bound["name"],)
                    extra[f"authentication.kubernetes.io/{kind.lower()}-uid"] = (bound["uid"],)
        except (ValueError, KeyError, TypeError):
            return None
        groups = ("system:serviceaccounts", f"system:serviceaccounts:{namespace}", "system:authenticated")
        return User(claims["sub"], groups, account["uid"], extra), [a for a in audiences if a in said]

    def _exists(self, table: str, key: str, uid: str) -> bool:
        entry = self._server.store.table(table).objects.get(key)
        return entry is not None and entry.uid == uid

    def _claims(self, token: str) -> Any:
        """Return the claims of a token that this issuer signed; None for any other."""
        if token in self._genuine:
            self._genuine.move_to_end(token)
            return self._genuine[token]
        text, _, signature = token.rpartition(".")
        header, dot, body = text.partition(".")
        if not dot or header != self._header:
            return None
        try:
            raw = _unb64(signature)
            if len(raw) != 64 or _b64(raw) != signature:
                return None
            encoded = encode_dss_signature(int.from_bytes(raw[:32], "big"), int.from_bytes(raw[32:], "big"))
            self._public.verify(encoded, text.encode(), ec.ECDSA(hashes.SHA256()))
            claims = msgspec.json.decode(_unb64(body))
        except (InvalidSignature, ValueError, msgspec.MsgspecError):
            return None
        self._genuine[token] = claims
        while len(self._genuine) > _REMEMBERED:
            self._genuine.popitem(last=False)
        return claims


def bootstrap_token_source(server: Core) -> Callable[[str], User | None]:
    """Return a function that finds the users of bootstrap tokens (`id.secret`), which are Secrets in kube-system."""

    def user(token: str) -> User | None:
        identity, dot, secret = token.partition(".")
        if not dot or len(identity) != 6:
            return None
        entry = server.store.table("secrets").objects.get(f"kube-system/bootstrap-token-{identity}")
        if entry is None:
            return None
        obj = msgspec.json.decode(entry.raw)
        if obj.get("type") != "bootstrap.kubernetes.io/token" or obj["metadata"].get("deletionTimestamp"):
            return None
        data = {k: base64.b64decode(v).decode("utf-8", "replace") for k, v in (obj.get("data") or {}).items()}
        if not hmac.compare_digest(data.get("token-secret", "").encode(), secret.encode()) or data.get("token-id") != identity:
            return None
        if data.get("usage-bootstrap-authentication") != "true":
            return None
        expiration = data.get("expiration")
        if expiration and not _is_ahead(expiration, server.now()):
            return None
        groups = [g for g in data.get("auth-extra-groups", "").split(",") if g.startswith("system:bootstrappers:")]
        return User(f"system:bootstrap:{identity}", ("system:bootstrappers", *groups, "system:authenticated"))

    return user


def _is_ahead(expiration: str, now: datetime) -> bool:
    """Return whether a time is in the future; False for text that is not a time with a zone."""
    try:
        end = datetime.fromisoformat(expiration)
    except ValueError:
        return False
    return end.tzinfo is not None and end > now
