"""The user's own kubeconfig files: merged as kubectl merges them, and resolved to what a connection needs.

Nothing here reads the environment: the caller chooses the files (`default_paths(os.environ)`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

from clusterwright.api import kubeconfig
from clusterwright.api.kubeconfig import Document, Inline, InvalidKubeconfig, choose, data_of, inline, meaning

SERVICE_ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")


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
    """The directory of a relative command: that of the file that names it."""
    extension: Any = None
    """The extension `client.authentication.k8s.io/exec` of the cluster, passed to the plugin as cluster.config."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Connection(Inline):
    """The address and identity of a connection to an API server: inline data, and files and commands of a user's own kubeconfig."""

    proxy_url: str = field(default="", repr=False)
    token_file: str = ""
    exec: ExecPlugin | None = field(default=None, repr=False)


def default_paths(environ: Mapping[str, str]) -> list[Path]:
    """Return the files that kubectl would read."""
    named = environ.get("KUBECONFIG", "")
    if named:
        return [Path(part) for part in named.split(":") if part]
    return [Path(environ.get("HOME") or "/") / ".kube" / "config"]


class Kubeconfig:
    """The union of one or more files: of two entries with one name, the first counts; likewise for current-context."""

    def __init__(self) -> None:
        self._merged = Document({}, {}, {}, "")
        self._files: dict[tuple[str, str], Path] = {}
        """The file of each entry, by section and name: relative paths in it start there."""

    @staticmethod
    def load(paths: Sequence[Path]) -> Kubeconfig:
        """Read files; missing ones are skipped, as in kubectl, but one must exist."""
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
            config._add(kubeconfig.read(text, where=str(path), trusted=True), path)
        if not found:
            raise InvalidKubeconfig(f"no kubeconfig found: {', '.join(map(str, paths)) or 'no file named'}")
        return config

    def _add(self, added: Document, path: Path) -> None:
        seen = self._merged
        for section in ("clusters", "users"):
            for name in getattr(added, section):
                self._files.setdefault((section, name), path)
        self._merged = Document(
            {**added.clusters, **seen.clusters},
            {**added.users, **seen.users},
            {**seen.contexts, **{name: value for name, value in added.contexts.items() if name not in seen.contexts}},
            seen.current_context or added.current_context,
        )

    @property
    def current_context(self) -> str:
        """The default context; may be empty."""
        return self._merged.current_context

    @property
    def contexts(self) -> list[str]:
        """The names of all contexts."""
        return list(self._merged.contexts)

    def resolve(self, context: str = "") -> Connection:
        """Return the connection of a context, by default the current one; raises InvalidKubeconfig."""
        chosen = choose(self._merged, context)
        cluster, user, user_name = chosen.cluster, chosen.user, chosen.user_name
        cluster_path, user_path = self._files[("clusters", chosen.cluster_name)], self._files.get(("users", user_name), Path())
        if user.get("auth-provider"):
            raise InvalidKubeconfig(f"user {user_name!r}: auth-provider is not supported, use an exec plugin")
        said = meaning(
            chosen,
            authority=_data(cluster, "certificate-authority", cluster_path),
            certificate=_data(user, "client-certificate", user_path),
            key=_data(user, "client-key", user_path),
        )
        token_file = "" if said.token else str(user.get("tokenFile") or "")
        return _connection(
            said,
            proxy_url=str(cluster.get("proxy-url") or ""),
            token_file=str(user_path.parent / token_file) if token_file else "",
            exec=_exec(user.get("exec"), user_name, user_path, cluster),
        )


def from_secret(text: bytes) -> Connection:
    """Return the connection of the kubeconfig in a Secret; raises InvalidKubeconfig if it refers to anything outside its text."""
    return _connection(inline(text))


def _connection(said: Inline, **more: Any) -> Connection:
    return Connection(**{field.name: getattr(said, field.name) for field in fields(said)}, **more)


def in_cluster(environ: Mapping[str, str], directory: Path = SERVICE_ACCOUNT) -> Connection:
    """Return the connection of a Pod with its service account; the token is read again after rotation."""
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


def _exec(value: Any, user: str, path: Path, cluster: Mapping[str, Any]) -> ExecPlugin | None:
    if not value:
        return None
    if not isinstance(value, Mapping) or not value.get("command"):
        raise InvalidKubeconfig(f"user {user!r}: exec has no command")
    api_version = str(value.get("apiVersion") or "")
    if api_version not in {"client.authentication.k8s.io/v1", "client.authentication.k8s.io/v1beta1"}:
        raise InvalidKubeconfig(f"user {user!r}: exec has apiVersion {api_version!r}, which is not supported")
    if value.get("interactiveMode") == "Always":
        raise InvalidKubeconfig(f"user {user!r}: the exec plugin requires a terminal, which this process does not have")
    extensions = {str(item.get("name")): item.get("extension") for item in cluster.get("extensions") or () if isinstance(item, Mapping)}
    return ExecPlugin(
        command=str(value["command"]),
        args=tuple(map(str, value.get("args") or ())),
        env=tuple((str(item["name"]), str(item.get("value", ""))) for item in value.get("env") or ()),
        api_version=api_version,
        provide_cluster_info=bool(value.get("provideClusterInfo")),
        install_hint=str(value.get("installHint") or ""),
        directory=str(path.parent),
        extension=extensions.get("client.authentication.k8s.io/exec"),
    )


def _data(entry: Mapping[str, Any], name: str, path: Path) -> bytes:
    """Return the value of `<name>-data`, or of the file that `<name>` names."""
    if data := data_of(entry, name):
        return data
    file = entry.get(name)
    if not file:
        return b""
    try:
        return (path.parent / str(file)).read_bytes()
    except OSError as error:
        raise InvalidKubeconfig(f"{name}: {error.filename}: {error.strerror}") from error
