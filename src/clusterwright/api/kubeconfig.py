"""Read and write kubeconfigs in one place; files and programs that they name are never used.

`runtime.kubeconfig` uses them, for the user's own kubeconfig only. A kubeconfig from a Secret is not trusted: `inline` accepts embedded
credentials for a server with https, and refuses by name any field that would make this process read a file, start a program or contact
another host.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final
from urllib.parse import urlsplit

import yaml

from clusterwright.api import yamlreader

MAX_FOREIGN: Final = 64 * 1024
"""The largest kubeconfig in a Secret; with a certificate chain and a key it has about six kilobytes."""

_KINDS = {"clusters": "cluster", "users": "user", "contexts": "context"}
# fmt: off
_FOREIGN_TO_INLINE: Final[Mapping[str, Mapping[str, str]]] = {
    "clusters": {
        "certificate-authority": "names a file; use certificate-authority-data",
        "proxy-url":             "names a proxy",
    },
    "users": {
        "exec":                  "names a program",
        "auth-provider":         "names an authentication provider",
        "tokenFile":             "names a file; use token",
        "client-certificate":    "names a file; use client-certificate-data",
        "client-key":            "names a file; use client-key-data",
    },
}
"""Fields that a kubeconfig from a Secret must not have, with the reasons."""
# fmt: on


class InvalidKubeconfig(ValueError):
    """The kubeconfig cannot be used. The text never quotes credentials."""


class RefusedKubeconfig(InvalidKubeconfig):
    """The kubeconfig is valid, but has a field that is forbidden in a Secret; `field` names it."""

    def __init__(self, field: str, why: str) -> None:
        super().__init__(f"{field}: {why}; a kubeconfig in a Secret holds its credentials itself and reaches its server by https")
        self.field = field


@dataclass(frozen=True, slots=True, kw_only=True)
class Inline:
    """A server, and credentials for it. Its repr never shows a credential."""

    server: str
    certificate_authority: bytes = field(default=b"", repr=False)
    """The CA in PEM; empty: the machine's own trust store."""
    insecure_skip_tls_verify: bool = False
    tls_server_name: str = ""
    client_certificate: bytes = field(default=b"", repr=False)
    client_key: bytes = field(default=b"", repr=False)
    token: str = field(default="", repr=False)
    username: str = ""
    password: str = field(default="", repr=False)
    impersonate_user: str = ""
    impersonate_uid: str = ""
    impersonate_groups: tuple[str, ...] = ()
    impersonate_extra: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    namespace: str = "default"


@dataclass(frozen=True, slots=True)
class Document:
    """The entries of a kubeconfig by name; of two with one name, the first counts."""

    clusters: Mapping[str, Mapping[str, Any]]
    users: Mapping[str, Mapping[str, Any]]
    contexts: Mapping[str, Mapping[str, Any]]
    current_context: str


def read(text: bytes | str, *, where: str = "kubeconfig", trusted: bool = False) -> Document:
    """Return the entries of a kubeconfig; raises InvalidKubeconfig, which never quotes the text."""
    try:
        document = yamlreader.load(text, trusted=trusted)
    except yamlreader.Refused as error:
        raise InvalidKubeconfig(f"{where}: {error}") from None
    except yaml.YAMLError:
        raise InvalidKubeconfig(f"{where}: not YAML") from None  # the parser's message quotes the text
    if document is None:
        document = {}
    if not isinstance(document, Mapping):
        raise InvalidKubeconfig(f"{where}: not an object")
    entries: dict[str, dict[str, Mapping[str, Any]]] = {section: {} for section in _KINDS}
    for section, key in _KINDS.items():
        items = document.get(section) or ()
        if not isinstance(items, list | tuple):
            raise InvalidKubeconfig(f"{where}: {section} is not a list")
        for item in items:
            if not isinstance(item, Mapping) or not isinstance(item.get("name"), str):
                raise InvalidKubeconfig(f"{where}: {section} has an entry without a name")
            value = item.get(key) or {}
            if not isinstance(value, Mapping):
                raise InvalidKubeconfig(f"{where}: {section} {item['name']!r} is not an object")
            entries[section].setdefault(item["name"], value)
    return Document(**entries, current_context=str(document.get("current-context") or ""))


@dataclass(frozen=True, slots=True)
class Chosen:
    """A context with the entries that it names."""

    cluster_name: str
    cluster: Mapping[str, Any]
    user_name: str
    user: Mapping[str, Any]
    namespace: str
    server: str


def choose(document: Document, context: str = "") -> Chosen:
    """Return the entries of a context, by default of the current one; raises InvalidKubeconfig."""
    name = context or document.current_context
    if not name:
        raise InvalidKubeconfig("no context is given and current-context is not set")
    if name not in document.contexts:
        raise InvalidKubeconfig(f"context {name!r} does not exist")
    chosen = document.contexts[name]
    cluster_name, user_name = str(chosen.get("cluster") or ""), str(chosen.get("user") or "")
    if cluster_name not in document.clusters:
        raise InvalidKubeconfig(f"context {name!r}: cluster {cluster_name!r} does not exist")
    if user_name and user_name not in document.users:
        raise InvalidKubeconfig(f"context {name!r}: user {user_name!r} does not exist")
    cluster = document.clusters[cluster_name]
    server = str(cluster.get("server") or "")
    if not server:
        raise InvalidKubeconfig(f"cluster {cluster_name!r} has no server")
    return Chosen(
        cluster_name=cluster_name,
        cluster=cluster,
        user_name=user_name,
        user=document.users.get(user_name, {}),
        namespace=str(chosen.get("namespace") or "default"),
        server=(server if "://" in server else f"https://{server}").rstrip("/"),
    )


def inline(text: bytes | str) -> Inline:
    """Return the connection in a kubeconfig from a Secret; raises InvalidKubeconfig, and RefusedKubeconfig with the forbidden field."""
    if len(text) > MAX_FOREIGN:
        raise InvalidKubeconfig(f"kubeconfig: longer than {MAX_FOREIGN} bytes")
    chosen = choose(read(text))
    for section, name, entry in (("clusters", chosen.cluster_name, chosen.cluster), ("users", chosen.user_name, chosen.user)):
        for asked, why in _FOREIGN_TO_INLINE[section].items():
            if entry.get(asked):
                raise RefusedKubeconfig(f"{section}[{name}].{_KINDS[section]}.{asked}", why)
    url = _split(chosen.server)
    where = f"clusters[{chosen.cluster_name}].cluster.server"
    if url is None or url.scheme != "https" or not url.hostname:
        raise RefusedKubeconfig(where, "is not an https URL")
    if url.username is not None or url.password is not None or url.query or url.fragment:
        raise RefusedKubeconfig(where, "has more than host, port and path")
    return meaning(
        chosen,
        authority=data_of(chosen.cluster, "certificate-authority"),
        certificate=data_of(chosen.user, "client-certificate"),
        key=data_of(chosen.user, "client-key"),
    )


def meaning(chosen: Chosen, *, authority: bytes, certificate: bytes, key: bytes) -> Inline:
    """Return the connection of the entries with this key material. Raises InvalidKubeconfig if they contradict each other."""
    cluster, user = chosen.cluster, chosen.user
    insecure, extra = bool(cluster.get("insecure-skip-tls-verify")), user.get("as-user-extra") or {}
    if insecure and authority:
        raise InvalidKubeconfig(f"cluster {chosen.cluster_name!r}: a certificate authority together with insecure-skip-tls-verify")
    if bool(certificate) != bool(key):
        raise InvalidKubeconfig(f"user {chosen.user_name!r}: client-certificate and client-key go together")
    if not isinstance(extra, Mapping):
        raise InvalidKubeconfig(f"user {chosen.user_name!r}: as-user-extra is not an object")
    return Inline(
        server=chosen.server,
        certificate_authority=authority,
        insecure_skip_tls_verify=insecure,
        tls_server_name=_text(cluster, "tls-server-name"),
        client_certificate=certificate,
        client_key=key,
        token=_text(user, "token"),
        username=_text(user, "username"),
        password=_text(user, "password"),
        impersonate_user=_text(user, "as"),
        impersonate_uid=_text(user, "as-uid"),
        impersonate_groups=_texts(user.get("as-groups")),
        impersonate_extra={str(name): _texts(values) for name, values in extra.items()},
        namespace=chosen.namespace,
    )


def data_of(entry: Mapping[str, Any], name: str) -> bytes:
    """Return the value of `<name>-data`; raises InvalidKubeconfig."""
    value = entry.get(f"{name}-data")
    if not value:
        return b""
    try:
        # as Go reads it: what YAML folded may have line breaks
        return base64.b64decode(value.replace("\n", "").replace("\r", ""), validate=True)
    except (binascii.Error, ValueError, TypeError, AttributeError):
        raise InvalidKubeconfig(f"{name}-data is not base64") from None


def document(
    *, server: str, certificate_authority: bytes, client_certificate: bytes, client_key: bytes, cluster: str, user: str, context: str
) -> dict[str, Any]:
    """Return a kubeconfig of one cluster and one user, with everything embedded, to be written as YAML."""

    def b64(data: bytes) -> str:
        return base64.b64encode(data).decode()

    return {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": cluster, "cluster": {"certificate-authority-data": b64(certificate_authority), "server": server}}],
        "contexts": [{"name": context, "context": {"cluster": cluster, "user": user}}],
        "current-context": context,
        "users": [{"name": user, "user": {"client-certificate-data": b64(client_certificate), "client-key-data": b64(client_key)}}],
    }


def _split(url: str) -> Any:
    try:
        parts = urlsplit(url)
        _ = parts.port  # raises, where it is none
    except ValueError:
        return None
    return parts


def _text(entry: Mapping[str, Any], name: str) -> str:
    return str(entry.get(name) or "")


def _texts(values: Any) -> tuple[str, ...]:
    return tuple(map(str, values)) if isinstance(values, list | tuple) else ()
