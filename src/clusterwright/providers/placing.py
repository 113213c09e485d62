"""Prepare what a provider's process needs on this machine: credentials, certificates, files, ports, arguments and environment."""

from __future__ import annotations

import asyncio
import os
import re
import shutil
import socket
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from typing import Final

import yaml

from clusterwright.api.copying import replace
from clusterwright.api.kubernetes import ConfigMap, Secret
from clusterwright.api.meta import GroupVersionKind, Json, ObjectKey
from clusterwright.apiserver.serving.tls import write_private
from clusterwright.providers import flags
from clusterwright.providers.deployment import Mount, Probe, Source, expanded, relocated
from clusterwright.providers.hooks import HOST
from clusterwright.providers.records import Record
from clusterwright.runtime.clock import Clock, utc
from clusterwright.runtime.rest import RestClient
from clusterwright.webhooks.certificates import renew

_ACCOUNT: Final = GroupVersionKind("", "v1", "ServiceAccount")
_WEBHOOK_PORT: Final = 9443
"""The port of webhooks in programs without a flag for it."""
_STEERING: Final = re.compile(r"(LD|DYLD|PYTHON|PERL|RUBY|NODE|GIT|SSL)_?[A-Z_]*$|PATH$|HOME$|TMPDIR$|KUBECONFIG$|GODEBUG$|ENV$|BASH_ENV$")
"""Variables that choose the code or the files of a process: a Secret or ConfigMap must not bring them under names of its own choice."""
TOKEN_LIFETIME: Final = timedelta(hours=1)
_KEYS: Final = ("ca.crt", "ca.key", "tls.crt", "tls.key")
_SERVED: Final = ("ca.crt", "tls.crt", "tls.key")


class NotPlaced(Exception):
    """Something that the process needs is missing; the text says what."""


@dataclass(frozen=True, slots=True)
class Server:
    """The API server of the plane, as processes of this machine reach it."""

    url: str
    authority: bytes


@dataclass(frozen=True, slots=True)
class Certificate:
    """The serving certificate of a provider's webhooks. `bundle`: the authorities that the API server trusts."""

    bundle: bytes
    is_new: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Start:
    """How to start the process."""

    command: tuple[str, ...]
    env: Mapping[str, str] = field(repr=False)
    liveness: Probe | None
    readiness: Probe | None


class Placing:
    """Prepares the folder of one provider."""

    def __init__(self, folder: Path, client: RestClient, clock: Clock, server: Server) -> None:
        self._folder, self._client, self._clock, self._server = folder, client, clock, server

    @property
    def certificates(self) -> Path:
        """The folder with the serving certificate, as controller-runtime reads it."""
        return self._folder / "certificates"

    async def certificate(self) -> Certificate:
        """Renew the serving certificate if it is due, and return it. Programs of controller-runtime load changed files by themselves."""
        return await asyncio.to_thread(self._certificate)

    def _certificate(self) -> Certificate:
        keys = self._made("keys")
        before = {name: _content(keys / name) for name in _KEYS}
        data = renew({name: value for name, value in before.items() if value}, (HOST, "localhost"), self._clock.now())
        is_new = data != {name: value for name, value in before.items() if value}
        served = self._made("certificates")
        for name in _KEYS:
            if data[name] != before[name]:
                write_private(keys / name, data[name])
            if name in _SERVED and data[name] != _content(served / name):
                write_private(served / name, data[name])
        return Certificate(data["ca.crt"], is_new)

    def webhook_port(self, record: Record) -> int:
        """Return the port of the webhooks: the user's, one that we choose and keep, or the default of programs without a flag."""
        flag = flags.chosen(flags.WEBHOOK_PORT, (*record.program.args, *record.extra), record.flags)
        given = flags.value_of(record.extra, flag) if flag else ""
        if given.isdecimal():
            return int(given)
        return self._port("webhook") if flag else _WEBHOOK_PORT

    def _port(self, name: str) -> int:
        """Return a port that is kept for a purpose, or another one while that is taken."""
        path = self._folder / f"port-{name}"
        kept = _content(path).decode("ascii", "replace").strip()
        port = int(kept) if kept.isdecimal() and 0 < int(kept) < 65536 else 0
        if port and _is_free(port):
            return port
        port = _free_port()
        write_private(path, f"{port}\n".encode())
        return port

    async def token(self, record: Record) -> datetime:
        """Write a new token of the provider's account, and return when the next one is due. Raises ApiError."""
        request: Json = {
            "apiVersion": "authentication.k8s.io/v1",
            "kind": "TokenRequest",
            "spec": {"expirationSeconds": int(TOKEN_LIFETIME.total_seconds())},
        }
        key = ObjectKey(record.namespace, record.program.account)
        status = (await self._client.create_subresource(_ACCOUNT, key, "token", request))["status"]
        await asyncio.to_thread(write_private, self._folder / "token", str(status["token"]).encode())
        now = self._clock.now()
        return now + (utc(status["expirationTimestamp"]) - now) / 2

    async def prepare(self, record: Record, port: int) -> Start:
        """Write all files that the process needs, and return how to start it. Raises NotPlaced, ApiError, OSError."""
        work = self._made("work")
        places = await self._mounted(record)
        temporary = self._made("work/tmp")
        with suppress(FileExistsError):  # the folder of controller-runtime, for programs without a flag
            (temporary / "k8s-webhook-server").mkdir()
            (temporary / "k8s-webhook-server" / "serving-certs").symlink_to(self.certificates)
        kubeconfig = await asyncio.to_thread(self._kubeconfig, record)
        env = {
            "PATH": os.environ.get("PATH", os.defpath),
            "LANG": "C.UTF-8",
            "HOME": str(work),
            "TMPDIR": str(temporary),
            "KUBECONFIG": str(kubeconfig),
        }
        env |= {name: relocated(value, places) for name, value in (await self._environment(record)).items()}
        env |= record.env
        health = f"{HOST}:{self._port('health')}"
        has_health = bool(flags.chosen(flags.HEALTH, (*record.program.args, *record.extra), record.flags))
        values = {
            flags.WEBHOOK_PORT: str(port),
            flags.WEBHOOK_HOST: HOST,
            flags.CERTIFICATES: str(self.certificates),
            flags.HEALTH: health,
            flags.METRICS: f"{HOST}:0",
        }
        args = [relocated(expanded(argument, env), places) for argument in record.program.args]
        extra = [expanded(argument, env) for argument in record.extra]
        given = {flags.name_of(argument) for argument in (*args, *extra)} | {name for purpose in values for name in purpose.flags}
        moved = {flag: relocated(default, places) for flag, default in record.flags.items() if default and flag not in given}
        args += [f"--{flag}={path}" for flag, path in moved.items() if path != record.flags[flag]]
        number = _port_of(flags.value_of(extra, flags.chosen(flags.HEALTH, extra, ()))) or int(health.rpartition(":")[2])
        return Start(
            command=(*record.binary, *flags.settled(args, extra, record.flags, values)),
            env=env,
            liveness=_moved(record.program.liveness, number if has_health else 0),
            readiness=_moved(record.program.readiness, number if has_health else 0),
        )

    def _kubeconfig(self, record: Record) -> Path:
        path = self._folder / "kubeconfig"
        authority = self._folder / "server.crt"
        write_private(authority, self._server.authority)
        config = {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": "plane", "cluster": {"certificate-authority": str(authority), "server": self._server.url}}],
            "users": [{"name": record.program.account, "user": {"tokenFile": str(self._folder / "token")}}],
            "contexts": [{"name": "plane", "context": {"cluster": "plane", "user": record.program.account, "namespace": record.namespace}}],
            "current-context": "plane",
        }
        write_private(path, yaml.safe_dump(config, sort_keys=False).encode())
        return path

    async def _mounted(self, record: Record) -> dict[str, str]:
        """Write the files of all mounts, and return where each mount is."""
        files = self._folder / "files"
        places: dict[str, str] = {}
        for number, mount in enumerate(record.program.mounts):
            if mount.kind == "Certificate":
                places[mount.path] = str(self.certificates)
                continue
            folder = files / str(number)
            if mount.kind:
                await asyncio.to_thread(shutil.rmtree, folder, ignore_errors=True)
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            if mount.kind:
                await self._filled(folder, mount, record.namespace)
            places[mount.path] = str(folder / _safe(mount.sub_path)) if mount.sub_path else str(folder)
        return places

    async def _filled(self, folder: Path, mount: Mount, namespace: str) -> None:
        data = await self._data(mount.kind, ObjectKey(namespace, mount.name), optional=mount.optional)
        for key, name in (mount.items or {key: key for key in data}).items():
            if key not in data:
                raise NotPlaced(f"{mount.kind} {namespace}/{mount.name} has no key {key!r}, which the provider expects at {mount.path}")
            path = folder / _safe(name)
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            await asyncio.to_thread(write_private, path, data[key])

    async def _data(self, kind: str, key: ObjectKey, *, optional: bool) -> Mapping[str, bytes]:
        """Return the content of a Secret or ConfigMap. Raises NotPlaced if it is missing and not optional."""
        if kind == "Secret":
            secret = await self._client.find(Secret, key)
            if secret is not None:
                return dict(secret.data)
        else:
            config = await self._client.find(ConfigMap, key)
            if config is not None:
                return {name: value.encode() for name, value in config.data.items()}
        if optional:
            return {}
        raise NotPlaced(f"{kind} {key} does not exist, and the provider needs it")

    async def _environment(self, record: Record) -> dict[str, str]:
        program = record.program
        env: dict[str, str] = {}
        for source in program.env_from:
            data = await self._data(source.kind, ObjectKey(record.namespace, source.name), optional=source.optional)
            named = {source.value + name: value.decode("utf-8", "replace") for name, value in data.items()}
            env |= {name: value for name, value in named.items() if not _STEERING.match(name)}
        for name, source in program.env.items():
            value = await self._value(source, record)
            if value is not None:
                env[name] = expanded(value, env)
        return env

    async def _value(self, source: Source, record: Record) -> str | None:
        if source.field:
            return _field(source.field, record)
        if not source.kind:
            return source.value
        data = await self._data(source.kind, ObjectKey(record.namespace, source.name), optional=source.optional)
        if source.key in data:
            return data[source.key].decode("utf-8", "replace")
        if source.optional:
            return None
        raise NotPlaced(
            f"{source.kind} {record.namespace}/{source.name} has no key {source.key!r}, and the provider's environment needs it"
        )

    def _made(self, name: str) -> Path:
        path = self._folder / name
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
        return path


def _field(path: str, record: Record) -> str:
    """Return a field of the Pod that the process would be."""
    host = socket.gethostname()
    return {
        "metadata.namespace": record.namespace,
        "metadata.name": f"{record.name}-0",
        "metadata.uid": record.name,
        "spec.serviceAccountName": record.program.account,
        "spec.nodeName": host,
        "status.hostIP": HOST,
        "status.podIP": HOST,
    }.get(path, "")


def _safe(name: str) -> str:
    """Return a relative path of a file in a volume; raises NotPlaced if it leads out of it."""
    if not name or name.startswith("/") or ".." in Path(name).parts:
        raise NotPlaced(f"a file of a volume is named {name!r}, which leads out of the volume")
    return name


def _moved(probe: Probe | None, port: int) -> Probe | None:
    return replace(probe, port=port) if probe is not None and port else probe


def _port_of(address: str) -> int:
    number = address.rpartition(":")[2]
    return int(number) if number.isdecimal() else 0


def _content(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError:
        return b""


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((HOST, port))
        except OSError:
            return False
        return True


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind((HOST, 0))
        return int(probe.getsockname()[1])
