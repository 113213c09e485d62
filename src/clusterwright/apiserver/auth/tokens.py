"""Bearer tokens: signed ones for service accounts (TokenRequest), and bootstrap tokens kept as Secrets."""

from __future__ import annotations

import base64
import hashlib
import hmac
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any, Final

import msgspec

from clusterwright.apiserver.auth.identity import User
from clusterwright.apiserver.core import Core

AUDIENCE: Final = "https://kubernetes.default.svc.cluster.local"
_HEADER: Final = base64.urlsafe_b64encode(b'{"alg":"HS256","typ":"JWT"}').rstrip(b"=").decode()


def _b64(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def _unb64(text: str) -> bytes:
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))


class ServiceAccountTokens:
    """Issues and checks JSON Web Tokens with one secret key."""

    def __init__(self, server: Core, key: bytes) -> None:
        self._server = server
        self._key = key
        server.tokens = self
        server.token_sources.append(self.user)

    def _signature(self, text: str) -> str:
        return _b64(hmac.new(self._key, text.encode(), hashlib.sha256).digest())

    def issue(self, namespace: str, name: str, uid: str, *, audiences: list[str], lifetime: timedelta) -> tuple[str, datetime]:
        """A token for a service account, and when it ends."""
        now = self._server.now()
        end = now + lifetime
        claims = {
            "aud": audiences or [AUDIENCE],
            "exp": int(end.timestamp()),
            "iat": int(now.timestamp()),
            "iss": AUDIENCE,
            "jti": self._server.new_uid(),
            "kubernetes.io": {"namespace": namespace, "serviceaccount": {"name": name, "uid": uid}},
            "nbf": int(now.timestamp()),
            "sub": f"system:serviceaccount:{namespace}:{name}",
        }
        text = f"{_HEADER}.{_b64(msgspec.json.encode(claims))}"
        return f"{text}.{self._signature(text)}", end

    def user(self, token: str) -> User | None:
        """The service account of a token that is genuine, not expired, and whose account still exists."""
        text, _, signature = token.rpartition(".")
        if text.count(".") != 1 or not hmac.compare_digest(signature.encode(), self._signature(text).encode()):
            return None
        try:
            claims: Any = msgspec.json.decode(_unb64(text.partition(".")[2]))
            bound = claims["kubernetes.io"]
            namespace, account = bound["namespace"], bound["serviceaccount"]
            expires = int(claims["exp"])
        except (ValueError, KeyError, TypeError, msgspec.MsgspecError):
            return None
        if expires <= self._server.now().timestamp():
            return None
        entry = self._server.store.table("serviceaccounts").objects.get(f"{namespace}/{account['name']}")
        if entry is None or entry.uid != account["uid"]:
            return None
        groups = ("system:serviceaccounts", f"system:serviceaccounts:{namespace}", "system:authenticated")
        return User(claims["sub"], groups, account["uid"])


def bootstrap_token_source(server: Core) -> Callable[[str], User | None]:
    """Users of bootstrap tokens (`id.secret`), which are Secrets in kube-system."""

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
        if expiration and datetime.fromisoformat(expiration) <= server.now():
            return None
        groups = [g for g in data.get("auth-extra-groups", "").split(",") if g.startswith("system:bootstrappers:")]
        return User(f"system:bootstrap:{identity}", ("system:bootstrappers", *groups, "system:authenticated"))

    return user
