"""Kubeconfig files: merged as kubectl merges them, and resolved to what a connection needs.

Nothing here touches the environment: which files to read is the caller's knowledge (`default_paths(os.environ)`).
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from clusterwright.api import yamlreader

SERVICE_ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")


class InvalidKubeconfig(ValueError):
    """A kubeconfig that cannot be used. The text never quotes credentials."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ExecPlugin:
    """A command that prints credentials."""

    command: str
    args: tuple[str, ...] = ()
    env: tuple[tuple[str, str], ...] = ()
    api_version: str = "client.authentication.k8s.io/v1"
    provide_cluster_info: bool = False
    install_hint: str = ""
    directory: str = ""
    """Where a relative command is looked up: next to the file that names it."""
    extension: Any = None
    """`client.authentication.k8s.io/exec` of the cluster's extensions, handed to the plugin as cluster.config."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Connection:
    """How to reach an API server, and as whom. Its repr shows no credential."""

    server: str
    certificate_authority: bytes = field(default=b"", repr=False)
    """PEM; empty: the machine's own trust store."""
    insecure_skip_tls_verify: bool = False
    tls_server_name: str = ""
    proxy_url: str = field(default="", repr=False)
    client_certificate: bytes = field(default=b"", repr=False)
    client_key: bytes = field(default=b"", repr=False)
    token: str = field(default="", repr=False)
    token_file: str = ""
    username: str = ""
    password: str = field(default="", repr=False)
    exec: ExecPlugin | None = field(default=None, repr=False)
    impersonate_user: str = ""
    impersonate_uid: str = ""
    impersonate_groups: tuple[str, ...] = ()
    impersonate_extra: Mapping[str, Sequence[str]] = field(default_factory=dict)
    namespace: str = "default"


def default_paths(environ: Mapping[str, str]) -> list[Path]:
    """The files that kubectl would read."""
    named = environ.get("KUBECONFIG", "")
    if named:
        return [Path(part) for part in named.split(":") if part]
    return [Path(environ.get("HOME") or "/") / ".kube" / "config"]


class Kubeconfig:
    """The union of one or more files: of two entries with one name, the first counts; so does the first current-context."""

    def __init__(self) -> None:
        self._clusters: dict[str, tuple[Mapping[str, Any], Path | None]] = {}
        self._users: dict[str, tuple[Mapping[str, Any], Path | None]] = {}
        self._contexts: dict[str, Mapping[str, Any]] = {}
        self.current_context = ""

    @staticmethod
    def load(paths: Sequence[Path]) -> Kubeconfig:
        """Read files; those that do not exist are left out, as kubectl does, but one must be there."""
        config = Kubeconfig()
        found = False
        for path in paths:
            try:
                text = path.read_bytes()
            except FileNotFoundError:
                continue
            except OSError as error:
                raise InvalidKubeconfig(f"{path}: {error.strerror}") from error
            found = True
            config._add(text, path)
        if not found:
            raise InvalidKubeconfig(f"no kubeconfig found: {', '.join(map(str, paths)) or 'no file named'}")
        return config

    @staticmethod
    def parse(text: bytes | str) -> Kubeconfig:
        """From memory, as from a Secret; files that it names are relative to nowhere and therefore refused if relative."""
        config = Kubeconfig()
        config._add(text, None)
        return config

    def _add(self, text: bytes | str, path: Path | None) -> None:
        where = str(path) if path else "kubeconfig"
        try:
            document = yamlreader.load(text)
        except yaml.YAMLError:
            raise InvalidKubeconfig(f"{where}: not YAML") from None  # the parser's message quotes the text
        if document is None:
            return
        if not isinstance(document, Mapping):
            raise InvalidKubeconfig(f"{where}: not an object")
        for section, key in (("clusters", "cluster"), ("users", "user"), ("contexts", "context")):
            for item in document.get(section) or ():
                if not isinstance(item, Mapping) or not isinstance(item.get("name"), str):
                    raise InvalidKubeconfig(f"{where}: {section} has an entry without a name")
                value = item.get(key) or {}
                if not isinstance(value, Mapping):
                    raise InvalidKubeconfig(f"{where}: {section} {item['name']!r} is not an object")
                if section == "clusters":
                    self._clusters.setdefault(item["name"], (value, path))
                elif section == "users":
                    self._users.setdefault(item["name"], (value, path))
                else:
                    self._contexts.setdefault(item["name"], value)
        self.current_context = self.current_context or str(document.get("current-context") or "")

    @property
    def contexts(self) -> list[str]:
        """The names of all contexts."""
        return list(self._contexts)

    def resolve(self, context: str = "") -> Connection:
        """What a context, by default the current one, means; raises InvalidKubeconfig."""
        name = context or self.current_context
        if not name:
            raise InvalidKubeconfig("no context is given and current-context is not set")
        if name not in self._contexts:
            raise InvalidKubeconfig(f"context {name!r} does not exist")
        chosen = self._contexts[name]
        cluster_name, user_name = str(chosen.get("cluster") or ""), str(chosen.get("user") or "")
        if cluster_name not in self._clusters:
            raise InvalidKubeconfig(f"context {name!r}: cluster {cluster_name!r} does not exist")
        if user_name and user_name not in self._users:
            raise InvalidKubeconfig(f"context {name!r}: user {user_name!r} does not exist")
        cluster, cluster_path = self._clusters[cluster_name]
        user, user_path = self._users.get(user_name, ({}, None))
        server = str(cluster.get("server") or "")
        if not server:
            raise InvalidKubeconfig(f"cluster {cluster_name!r} has no server")
        if "://" not in server:
            server = f"https://{server}"
        if user.get("auth-provider"):
            raise InvalidKubeconfig(f"user {user_name!r}: auth-provider is not supported, use an exec plugin")
        insecure = bool(cluster.get("insecure-skip-tls-verify"))
        authority = _data(cluster, "certificate-authority", cluster_path)
        if insecure and authority:
            raise InvalidKubeconfig(f"cluster {cluster_name!r}: a certificate authority together with insecure-skip-tls-verify")
        certificate, key = _data(user, "client-certificate", user_path), _data(user, "client-key", user_path)
        if bool(certificate) != bool(key):
            raise InvalidKubeconfig(f"user {user_name!r}: client-certificate and client-key go together")
        token_file = "" if user.get("token") else str(user.get("tokenFile") or "")
        return Connection(
            server=server.rstrip("/"),
            certificate_authority=authority,
            insecure_skip_tls_verify=insecure,
            tls_server_name=str(cluster.get("tls-server-name") or ""),
            proxy_url=str(cluster.get("proxy-url") or ""),
            client_certificate=certificate,
            client_key=key,
            token=str(user.get("token") or ""),
            token_file=str(_resolved(token_file, user_path)) if token_file else "",
            username=str(user.get("username") or ""),
            password=str(user.get("password") or ""),
            exec=_exec(user.get("exec"), user_name, user_path, cluster),
            impersonate_user=str(user.get("as") or ""),
            impersonate_uid=str(user.get("as-uid") or ""),
            impersonate_groups=tuple(map(str, user.get("as-groups") or ())),
            impersonate_extra=user.get("as-user-extra") or {},
            namespace=str(chosen.get("namespace") or "default"),
        )


def in_cluster(environ: Mapping[str, str], directory: Path = SERVICE_ACCOUNT) -> Connection:
    """The connection of a Pod with its service account; the token is read again as it rotates."""
    host, port = environ.get("KUBERNETES_SERVICE_HOST", ""), environ.get("KUBERNETES_SERVICE_PORT", "")
    if not host or not port:
        raise InvalidKubeconfig("not in a cluster: KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT are not set")
    try:
        authority = (directory / "ca.crt").read_bytes()
    except OSError as error:
        raise InvalidKubeconfig(f"{error.filename}: {error.strerror}") from error
    if not (directory / "token").exists():
        raise InvalidKubeconfig(f"{directory / 'token'}: no such file")
    namespace = directory / "namespace"
    return Connection(
        server=f"https://{f'[{host}]' if ':' in host else host}:{port}",
        certificate_authority=authority,
        token_file=str(directory / "token"),
        namespace=namespace.read_text().strip() if namespace.exists() else "default",
    )


def _exec(value: Any, user: str, path: Path | None, cluster: Mapping[str, Any]) -> ExecPlugin | None:
    if not value:
        return None
    if not isinstance(value, Mapping) or not value.get("command"):
        raise InvalidKubeconfig(f"user {user!r}: exec names no command")
    api_version = str(value.get("apiVersion") or "")
    if api_version not in {"client.authentication.k8s.io/v1", "client.authentication.k8s.io/v1beta1"}:
        raise InvalidKubeconfig(f"user {user!r}: exec has apiVersion {api_version!r}, which is not supported")
    if value.get("interactiveMode") == "Always":
        raise InvalidKubeconfig(f"user {user!r}: the exec plugin wants a terminal")
    extensions = {str(item.get("name")): item.get("extension") for item in cluster.get("extensions") or () if isinstance(item, Mapping)}
    return ExecPlugin(
        command=str(value["command"]),
        args=tuple(map(str, value.get("args") or ())),
        env=tuple((str(item["name"]), str(item.get("value", ""))) for item in value.get("env") or ()),
        api_version=api_version,
        provide_cluster_info=bool(value.get("provideClusterInfo")),
        install_hint=str(value.get("installHint") or ""),
        directory=str(path.parent) if path else "",
        extension=extensions.get("client.authentication.k8s.io/exec"),
    )


def _data(entry: Mapping[str, Any], name: str, path: Path | None) -> bytes:
    """The value of `<name>-data`, or of the file that `<name>` names."""
    inline = entry.get(f"{name}-data")
    if inline:
        try:
            return base64.b64decode(inline, validate=True)
        except (binascii.Error, ValueError, TypeError):
            raise InvalidKubeconfig(f"{name}-data is not base64") from None
    file = entry.get(name)
    if not file:
        return b""
    try:
        return _resolved(str(file), path).read_bytes()
    except OSError as error:
        raise InvalidKubeconfig(f"{name}: {error.filename}: {error.strerror}") from error


def _resolved(file: str, path: Path | None) -> Path:
    resolved = Path(file)
    if resolved.is_absolute():
        return resolved
    if path is None:
        raise InvalidKubeconfig(f"a kubeconfig that is not a file cannot name the relative file {file!r}")
    return path.parent / resolved
