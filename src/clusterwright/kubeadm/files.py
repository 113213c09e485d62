"""Files and passwords from Secrets, and the kubeconfig for discovery by file."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Mapping
from typing import Any

from clusterwright.api.bootstrap import FileDiscovery, KubeConfigAuthExec
from clusterwright.api.copying import replace
from clusterwright.api.machine_setup import File, User
from clusterwright.api.meta import Json
from clusterwright.kubeadm import yamltext
from clusterwright.kubeadm.presence import defined

EXEC_API_VERSION = "client.authentication.k8s.io/v1"


class MissingKey(ValueError):
    """A Secret lacks the requested key."""


def secret_text(data: Mapping[str, bytes], key: str) -> str:
    """Return a value of a Secret as text. Raises MissingKey."""
    if key not in data:
        raise MissingKey(f'secret references non-existent secret key: "{key}"')
    return data[key].decode("utf-8", "surrogateescape")


def with_content(file: File, content: str) -> File:
    """Return the file with the content from its Secret."""
    return replace(file, content=content, content_from=None)


def with_password(user: User, passwd: str) -> User:
    """Return the user with the password hash from their Secret."""
    return replace(user, passwd=passwd, passwd_from=None)


def discovery_kubeconfig(discovery: FileDiscovery) -> File:
    """Return the kubeconfig file for discovery by a joining node."""
    return File(path=discovery.kube_config_path, owner="root:root", permissions="0640", content=yamltext.dump(_kubeconfig(discovery)))


def _kubeconfig(discovery: FileDiscovery) -> Json:
    config = discovery.kube_config
    cluster: Json = {}
    if config is not None and config.cluster is not None:
        c = config.cluster
        texts = {"server": c.server, "tls-server-name": c.tls_server_name, "proxy-url": c.proxy_url}
        cluster = {key: value for key, value in texts.items() if value}
        if c.certificate_authority_data:
            cluster["certificate-authority-data"] = b64encode(c.certificate_authority_data).decode()
        if c.insecure_skip_tls_verify:
            cluster["insecure-skip-tls-verify"] = True
    return {
        "clusters": [{"name": "default", "cluster": cluster}],
        "contexts": [{"name": "default", "context": {"cluster": "default", "user": "default"}}],
        "current-context": "default",
        "users": [{"name": "default", "user": _user(discovery)}],
    }


def _user(discovery: FileDiscovery) -> Json:
    out: dict[str, Any] = {}
    if discovery.kube_config is None:
        return out
    provider, exec_ = defined(discovery.kube_config.user.auth_provider), defined(discovery.kube_config.user.exec)
    if provider is not None:
        out["auth-provider"] = {"name": provider.name, "config": dict(provider.config) or None}
    if exec_ is not None:
        out["exec"] = _exec(exec_)
    return out


def _exec(command: KubeConfigAuthExec) -> Json:
    return {
        "apiVersion": command.api_version or EXEC_API_VERSION,
        "command": command.command,
        "args": list(command.args) or None,
        "env": [{"name": e.name, "value": e.value} for e in command.env] or None,
        "interactiveMode": "Never",
        "provideClusterInfo": bool(command.provide_cluster_info),
    }
