"""A cloud-config in cloud-init's order: files, commands and users. Pure."""

from __future__ import annotations

import base64
import re
import shlex
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

import yaml

from clusterwright.api import yamlreader

_JINJA = re.compile(r"\{\{\s*([\w.]+)\s*\}\}")
_MOST_UNPACKED = 64 << 20


class BadUserData(Exception):
    """The user data cannot be read; the text says why, without secrets."""


@dataclass(frozen=True, slots=True, kw_only=True)
class File:
    """An entry of write_files."""

    path: str
    content: bytes = field(repr=False)
    owner: str = "root:root"
    permissions: str = "0644"
    append: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class CloudConfig:
    """A cloud-config. Commands are lines for /bin/sh."""

    files: tuple[File, ...] = ()
    early_commands: tuple[str, ...] = field(default=(), repr=False)
    """The bootcmd commands: they run before files are written."""
    commands: tuple[str, ...] = field(default=(), repr=False)
    """The runcmd commands."""
    users: tuple[Mapping[str, Any], ...] = field(default=(), repr=False)
    unread: tuple[str, ...] = ()
    """Further keys, which are ignored."""


_READ = frozenset({"write_files", "bootcmd", "runcmd", "users"})


def read(value: bytes, hostname: str, known: Mapping[str, str] = MappingProxyType({})) -> CloudConfig:
    """Read user data as cloud-init does on the machine `hostname` with the metadata `known`; raises BadUserData."""
    try:
        text = value.decode()
    except UnicodeDecodeError:
        raise BadUserData("cloud-init: user data is not text") from None
    lines = text.splitlines()[:2]
    if lines and lines[0].strip() == "## template: jinja":
        text = _rendered(text, hostname, known)
        lines = lines[1:]
    if not lines or lines[0].strip() != "#cloud-config":
        raise BadUserData("cloud-init: user data does not start with #cloud-config")
    try:
        config = yamlreader.load(text)
    except (yaml.YAMLError, ValueError):
        raise BadUserData("cloud-init: user data is not YAML") from None  # the cause may quote a token
    if not isinstance(config, dict):
        raise BadUserData("cloud-init: user data is not a mapping")
    return CloudConfig(
        files=tuple(_file(entry) for entry in _list(config, "write_files")),
        early_commands=_commands(config, "bootcmd"),
        commands=_commands(config, "runcmd"),
        users=tuple(user for user in _list(config, "users") if isinstance(user, dict)),
        unread=tuple(sorted(str(key) for key in config if key not in _READ)),
    )


def _list(config: Mapping[str, Any], key: str) -> list[Any]:
    found = config.get(key) or []
    if not isinstance(found, list):
        raise BadUserData(f"cloud-init: {key} is not a list")
    return found


def _commands(config: Mapping[str, Any], key: str) -> tuple[str, ...]:
    found = _list(config, key)
    return tuple(c if isinstance(c, str) else shlex.join(map(str, c)) for c in found if isinstance(c, str | list))


def _file(entry: Any) -> File:
    path = str(entry.get("path", "")) if isinstance(entry, dict) else ""
    if not path:
        raise BadUserData("cloud-init: a file of write_files has no path")
    return File(
        path=path,
        content=decoded(str(entry.get("content") or ""), str(entry.get("encoding") or ""), path),
        owner=str(entry.get("owner") or "root:root"),
        permissions=str(entry.get("permissions") or "0644"),
        append=bool(entry.get("append")),
    )


def _rendered(text: str, hostname: str, known: Mapping[str, str]) -> str:
    """Replace names by instance data, as cloud-init does before it reads the YAML."""

    def value(found: re.Match[str]) -> str:
        name = found[1].rpartition(".")[2]
        if name in {"local_hostname", "hostname", "instance_id", "instance-id"}:
            return hostname
        return known.get(name, f"CI_MISSING_JINJA_VAR/{name}")

    return _JINJA.sub(value, text)


def decoded(content: str, encoding: str, path: str) -> bytes:
    """Return the bytes of a file; raises BadUserData."""
    try:
        data = (
            base64.b64decode("".join(content.split()), validate=True)
            if encoding in {"b64", "base64", "gz+b64", "gzip+base64", "gz+base64"}
            else content.encode()
        )
        return unpacked(data) if encoding.startswith("gz") else data
    except (ValueError, zlib.error):
        raise BadUserData(f"cloud-init: {path} cannot be decoded as {encoding}") from None


def unpacked(data: bytes) -> bytes:
    """Return unpacked gzip data, up to the limit of a machine; raises ValueError, zlib.error."""
    unpack = zlib.decompressobj(zlib.MAX_WBITS | 16)
    found = unpack.decompress(data, _MOST_UNPACKED)
    if not unpack.eof:
        raise ValueError("too long, or cut off")
    return found
