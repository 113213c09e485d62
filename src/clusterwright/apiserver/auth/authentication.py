"""Authentication: client certificates, bearer tokens, impersonation."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, Protocol
from urllib.parse import unquote

from clusterwright.api.names import dns_label, dns_subdomain
from clusterwright.apiserver.core import Core
from clusterwright.apiserver.identity import ANONYMOUS, User
from clusterwright.apiserver.requestinfo import RequestInfo
from clusterwright.apiserver.status import bad_request, forbidden_error, unauthorized

TokenSource = Callable[[str], User | None]
_BEARER: Final = re.compile(r"bearer ([^ ]+)", re.IGNORECASE)
"""A token ends at the next blank; a header without a token after the first blank is ignored."""
_BROKEN_ESCAPE: Final = re.compile(r"%(?![0-9a-f]{2})", re.IGNORECASE)


class Headers(Protocol):
    """The headers of a request, repeated ones included."""

    def get(self, name: str, default: str = "") -> str:
        """Return the first value."""

    def getall(self, name: str, default: Sequence[str] = ()) -> Sequence[str]:
        """Return all values."""

    def keys(self) -> Any:
        """Return all names."""


class Authenticator:
    """Identifies users by certificate or token. Without either the user is anonymous."""

    def __init__(self, tokens: Mapping[str, User] | None = None, sources: Sequence[TokenSource] = ()) -> None:
        self._tokens = dict(tokens or {})
        self._sources = tuple(sources)

    def authenticate(self, headers: Headers, certified: User | None) -> User:
        """Return the user of a verified client certificate, else of the token. Raises StatusError (401) for an invalid token."""
        if certified is not None:
            return certified
        given = _BEARER.match(headers.get("Authorization", "").strip())
        if given is None:
            return ANONYMOUS
        user = self._by_token(given[1]) if given[1].isascii() else None
        if user is None:
            raise unauthorized()
        return user

    def _by_token(self, token: str) -> User | None:
        user = self._tokens.get(token)
        if user is not None:
            return user
        for source in self._sources:
            user = source(token)
            if user is not None:
                return user
        return None


def user_of_certificate(certificate: Mapping[str, Any], der: bytes) -> User | None:
    """Return the user of a verified client certificate: CN is the name, each O a group. `der`: the same certificate as sent."""
    name, groups = "", []
    for relative in certificate.get("subject", ()):
        for key, value in relative:
            if key == "commonName":
                name = value
            elif key == "organizationName":
                groups.append(value)
    if not name:
        return None
    extra = {"authentication.kubernetes.io/credential-id": (f"X509SHA256={hashlib.sha256(der).hexdigest()}",)}
    return User(name, (*groups, "system:authenticated"), extra=extra)


def impersonated(server: Core, user: User, headers: Headers) -> User:
    """Return the user that the request acts as. Raises StatusError if impersonation is not allowed."""
    name = headers.get("Impersonate-User", "")
    groups = tuple(headers.getall("Impersonate-Group", ()))
    uid = headers.get("Impersonate-Uid", "")
    extra = {
        _unescaped(k[len("impersonate-extra-") :].lower()): tuple(headers.getall(k, ()))
        for k in {str(k) for k in headers.keys()}  # noqa: SIM118 - a multi-dict
        if k.lower().startswith("impersonate-extra-")
    }
    if not name:
        if groups or uid or extra:
            raise bad_request(f"requested {_go_user(groups, uid, extra)} without impersonating a user name")
        return user
    account = _service_account(name)
    if account is not None:
        _check(server, user, "", "serviceaccounts", account[1], account[0])
    else:
        _check(server, user, "", "users", name, "")
    for group in groups:
        _check(server, user, "", "groups", group, "")
    if uid:
        _check(server, user, "authentication.k8s.io", "uids", uid, "")
    for key, values in extra.items():
        for value in values:
            _check(server, user, "authentication.k8s.io", "userextras", value, "", subresource=key)
    found = list(groups)
    if account is not None and not groups:
        found = ["system:serviceaccounts", f"system:serviceaccounts:{account[0]}"]
    if name != ANONYMOUS.name and not {"system:authenticated", "system:unauthenticated"} & set(found):
        found.append("system:authenticated")
    elif name == ANONYMOUS.name and "system:unauthenticated" not in found:
        found.append("system:unauthenticated")
    return User(name, tuple(found), uid, extra)


def _service_account(name: str) -> tuple[str, str] | None:
    """Return namespace and name of the service account that has this user name; None if it is another user's."""
    parts = name.split(":")
    if len(parts) != 4 or parts[:2] != ["system", "serviceaccount"] or dns_label(parts[2]) or dns_subdomain(parts[3]):
        return None
    return parts[2], parts[3]


def _unescaped(key: str) -> str:
    """Decode a percent-encoded key of extra information; return a malformed one unchanged."""
    return key if _BROKEN_ESCAPE.search(key) else unquote(key)


def _go_user(groups: tuple[str, ...], uid: str, extra: dict[str, tuple[str, ...]]) -> str:
    """Return a user without a name as Go prints it."""

    def texts(values: tuple[str, ...]) -> str:
        return "[]string{" + ", ".join(json.dumps(v) for v in values) + "}" if values else "[]string(nil)"

    shown = ", ".join(f"{json.dumps(k)}:{texts(v)}" for k, v in sorted(extra.items()))
    more = f"map[string][]string{{{shown}}}" if extra else "map[string][]string(nil)"
    return f'&user.DefaultInfo{{Name:"", UID:{json.dumps(uid)}, Groups:{texts(groups)}, Extra:{more}}}'


def _check(server: Core, user: User, group: str, resource: str, name: str, namespace: str, subresource: str = "") -> None:
    info = RequestInfo(
        path="",
        verb="impersonate",
        is_resource=True,
        group=group,
        version="v1",
        namespace=namespace,
        resource=resource,
        name=name,
        subresource=subresource,
    )
    if server.authorizer is not None and not server.authorizer.allows(server, user, info):
        where = f'in the namespace "{namespace}"' if namespace else "at the cluster scope"
        text = f'User "{user.name}" cannot impersonate resource "{resource}" in API group "{group}" {where}'
        raise forbidden_error(group, resource, name, text)
