"""The identity towards an API server: rotating tokens, commands that print credentials, impersonation."""

from __future__ import annotations

import asyncio
import base64
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import msgspec

from clusterwright.api.wire import UNREADABLE
from clusterwright.runtime.clock import Clock, utc
from clusterwright.runtime.errors import ConnectionFailed
from clusterwright.runtime.kubeconfig import Connection, ExecPlugin

_TOKEN_FILE_AGE = 60.0
_EXEC_TIMEOUT = 60.0
_SKEW = timedelta(seconds=10)


class NoCredentials(ConnectionFailed):
    """The credentials are not available: nothing was sent."""


@dataclass(frozen=True, slots=True)
class Credentials:
    """The credentials of one request. `certificate` is (chain, key) in PEM."""

    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    certificate: tuple[bytes, bytes] | None = field(default=None, repr=False)


class CredentialSource:
    """The current credentials of one connection."""

    def __init__(self, connection: Connection, clock: Clock, environ: Mapping[str, str] | None = None) -> None:
        self._connection = connection
        self._clock = clock
        self._environ = dict(environ or {})
        self._token = ""
        self._token_read = float("-inf")
        self._plugin = Credentials()
        self._plugin_expires: datetime | None = None
        self._plugin_ran = False
        self._lock = asyncio.Lock()
        own = (connection.client_certificate, connection.client_key) if connection.client_certificate else None
        self._fixed = Credentials(dict(_fixed_headers(connection)), own)

    @property
    def can_refresh(self) -> bool:
        """Whether another call may return other credentials: after a 401 it is worth one try."""
        return self._connection.exec is not None or bool(self._connection.token_file)

    async def get(self, *, refresh: bool = False) -> Credentials:
        """Return the credentials for a request; `refresh`: the previous ones were refused. Raises NoCredentials."""
        if self._connection.token_file:
            return Credentials({**self._fixed.headers, "authorization": f"Bearer {self._read_token(refresh)}"}, self._fixed.certificate)
        if self._connection.exec is not None:
            plugin = await self._run_plugin(self._connection.exec, refresh)
            return Credentials({**self._fixed.headers, **plugin.headers}, plugin.certificate or self._fixed.certificate)
        return self._fixed

    def _read_token(self, refresh: bool) -> str:
        now = self._clock.monotonic()
        if refresh or not self._token or now - self._token_read >= _TOKEN_FILE_AGE:
            try:
                token = Path(self._connection.token_file).read_text().strip()
            except OSError as error:
                # a token that was good a minute ago is better than none
                if not self._token:
                    raise NoCredentials(f"token file {self._connection.token_file}: {error.strerror}") from error
                token = self._token
            if not token:
                raise NoCredentials(f"token file {self._connection.token_file} is empty")
            self._token, self._token_read = token, now
        return self._token

    async def _run_plugin(self, plugin: ExecPlugin, refresh: bool) -> Credentials:
        before = self._plugin
        async with self._lock:
            # many requests may find the credentials expired at once; one of them runs the command
            if self._plugin_ran and not self._is_expired() and not (refresh and self._plugin is before):
                return self._plugin
            status = await self._exec(plugin)
            token, certificate, key = (str(status.get(name) or "") for name in ("token", "clientCertificateData", "clientKeyData"))
            if bool(certificate) != bool(key) or not (token or certificate):
                raise NoCredentials(f"exec plugin {plugin.command} returned neither a token nor a certificate with its key")
            expires = status.get("expirationTimestamp")
            self._plugin = Credentials(
                {"authorization": f"Bearer {token}"} if token else {},
                (certificate.encode(), key.encode()) if certificate else None,
            )
            try:
                self._plugin_expires = utc(str(expires)) if expires else None
            except ValueError:
                raise NoCredentials(f"exec plugin {plugin.command} returned an expirationTimestamp that is not a time") from None
            self._plugin_ran = True
            return self._plugin

    def _is_expired(self) -> bool:
        return self._plugin_expires is not None and self._clock.now() >= self._plugin_expires - _SKEW

    async def _exec(self, plugin: ExecPlugin) -> Mapping[str, Any]:
        command = plugin.command
        if os.sep in command and not os.path.isabs(command) and plugin.directory:
            command = os.path.join(plugin.directory, command)
        spec: dict[str, Any] = {"interactive": False}
        if plugin.provide_cluster_info:
            spec["cluster"] = self._cluster_info(plugin)
        info = {"kind": "ExecCredential", "apiVersion": plugin.api_version, "spec": spec}
        environ = {**self._environ, **dict(plugin.env), "KUBERNETES_EXEC_INFO": msgspec.json.encode(info).decode()}
        try:
            process = await asyncio.create_subprocess_exec(
                command,
                *plugin.args,
                stdin=asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.PIPE,
                env=environ,
            )
        except OSError as error:
            hint = f"; {plugin.install_hint}" if plugin.install_hint else ""
            raise NoCredentials(f"exec plugin {plugin.command}: {error.strerror}{hint}") from error
        try:
            async with asyncio.timeout(_EXEC_TIMEOUT):
                output, complaint = await process.communicate()
        except TimeoutError as error:
            raise NoCredentials(f"exec plugin {plugin.command} did not finish within {_EXEC_TIMEOUT:g} s") from error
        finally:
            if process.returncode is None:
                process.kill()
                await process.wait()
        if process.returncode:
            text = complaint.decode("utf-8", "replace").strip().splitlines()
            raise NoCredentials(
                f"exec plugin {plugin.command} failed with exit code {process.returncode}: {text[-1][:200] if text else ''}"
            )
        try:
            answer = msgspec.json.decode(output)
            if answer["kind"] != "ExecCredential" or answer["apiVersion"] != plugin.api_version:
                raise NoCredentials(f"exec plugin {plugin.command} answered with another kind or version than {plugin.api_version}")
            status = answer["status"]
            if not isinstance(status, Mapping):
                raise TypeError
        except (*UNREADABLE, KeyError, TypeError):
            raise NoCredentials(f"exec plugin {plugin.command} did not print an ExecCredential") from None  # never quote its output
        return status

    def _cluster_info(self, plugin: ExecPlugin) -> dict[str, Any]:
        connection = self._connection
        info: dict[str, Any] = {"server": connection.server, "config": plugin.extension}
        if connection.tls_server_name:
            info["tls-server-name"] = connection.tls_server_name
        if connection.insecure_skip_tls_verify:
            info["insecure-skip-tls-verify"] = True
        if connection.certificate_authority:
            info["certificate-authority-data"] = base64.b64encode(connection.certificate_authority).decode()
        if connection.proxy_url:
            info["proxy-url"] = connection.proxy_url
        return info


def _fixed_headers(connection: Connection) -> list[tuple[str, str]]:
    headers: list[tuple[str, str]] = []
    if connection.token:
        headers.append(("authorization", f"Bearer {connection.token}"))
    elif connection.username:
        basic = base64.b64encode(f"{connection.username}:{connection.password}".encode()).decode()
        headers.append(("authorization", f"Basic {basic}"))
    if connection.impersonate_user:
        headers.append(("impersonate-user", connection.impersonate_user))
    if connection.impersonate_uid:
        headers.append(("impersonate-uid", connection.impersonate_uid))
    return headers
