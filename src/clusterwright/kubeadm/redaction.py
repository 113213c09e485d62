"""Bootstrap data without its secrets, to find out why a node does not boot.

Hidden: private keys, contents that came from Secrets, passwords, the secret half of bootstrap tokens. The rest stays byte for byte.
"""

from __future__ import annotations

import re
from base64 import b64decode
from collections.abc import Collection, Iterator
from typing import Any
from urllib.parse import unquote_to_bytes

import msgspec
import yaml

from clusterwright.api.bootstrap import KubeadmConfigSpec
from clusterwright.api.wire import UNREADABLE
from clusterwright.kubeadm.container_linux import data_url
from clusterwright.kubeadm.presence import is_defined

HIDDEN = "<redacted>"
_TOKEN = re.compile(r"\b([a-z0-9]{6})\.[a-z0-9]{16}\b")
_PRIVATE = re.compile(r"PRIVATE KEY")


class CannotRedact(ValueError):
    """The data have an unknown format."""


def secret_paths(spec: KubeadmConfigSpec) -> frozenset[str]:
    """Return the files on the node whose content came from a Secret, or holds credentials."""
    paths = {file.path for file in spec.files if is_defined(file.content_from)}
    discovery = spec.join_configuration.discovery if spec.join_configuration else None
    if discovery is not None and discovery.file is not None and is_defined(discovery.file.kube_config):
        paths.add(discovery.file.kube_config_path)
    return frozenset(paths)


def redacted(data: str, hidden: Collection[str] = ()) -> str:
    """Return the data with every secret replaced; contents of the files in `hidden` are secret. Raises CannotRedact."""
    text = _ignition(data, hidden) if data.startswith("{") else _cloud_config(data, hidden)
    return _without_tokens(text)


def _without_tokens(text: str) -> str:
    return _TOKEN.sub(rf"\1.{HIDDEN}", text)


def _is_secret(path: str, content: str, encoding: str, hidden: Collection[str]) -> bool:
    if path in hidden or _PRIVATE.search(content):
        return True
    if "base64" not in encoding:
        return False
    try:
        plain = b64decode(content)
    except ValueError:
        return True
    return "gzip" in encoding or b"PRIVATE KEY" in plain


def _cloud_config(data: str, hidden: Collection[str]) -> str:
    try:
        root = yaml.compose(data, yaml.SafeLoader)
    except yaml.YAMLError:
        raise CannotRedact("the cloud-config is not YAML") from None
    out, position = [], 0
    for start, end in sorted(_secret_spans(root, hidden)):
        out += [data[position:start], HIDDEN]
        # a literal block includes the line break that ends it
        position = end - 1 if data[end - 1 : end] == "\n" else end
    return "".join(out) + data[position:]


def _secret_spans(root: Any, hidden: Collection[str]) -> Iterator[tuple[int, int]]:
    sections = _members(root)
    for item in _items(sections.get("write_files")):
        file = _members(item)
        content = file.get("content")
        if content is None:
            continue
        path, encoding = (str(file[key].value) if key in file else "" for key in ("path", "encoding"))
        if _is_secret(path, str(content.value), encoding, hidden):
            yield content.start_mark.index, content.end_mark.index
    for item in _items(sections.get("users")):
        passwd = _members(item).get("passwd")
        if passwd is not None:
            yield passwd.start_mark.index, passwd.end_mark.index


def _members(node: Any) -> dict[str, Any]:
    return {str(key.value): value for key, value in node.value} if isinstance(node, yaml.MappingNode) else {}


def _items(node: Any) -> list[Any]:
    return list(node.value) if isinstance(node, yaml.SequenceNode) else []


def _ignition(data: str, hidden: Collection[str]) -> str:
    try:
        config = msgspec.json.decode(data)
        for file in config["storage"].get("files", ()):
            contents = file.get("contents", {})
            text = unquote_to_bytes(contents.get("source", "")).decode("utf-8", "replace")
            if _is_secret(file.get("path", ""), text, "", hidden):
                contents["source"] = HIDDEN
            elif _TOKEN.search(text):  # encoded, it has no end that could be seen
                contents["source"] = data_url(_without_tokens(text.removeprefix("data:,")).encode())
        for account in (*config["passwd"].get("users", ()), *config["passwd"].get("groups", ())):
            if "passwordHash" in account:
                account["passwordHash"] = HIDDEN
    except (*UNREADABLE, KeyError, TypeError, AttributeError):
        raise CannotRedact("the Ignition config is not in the form that we write") from None
    return msgspec.json.format(msgspec.json.encode(config), indent=2).decode()
