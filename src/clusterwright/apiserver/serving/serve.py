"""Run a server from a few options: store, certificates, network, kubeconfig."""

from __future__ import annotations

import asyncio
import ipaddress
import logging
import os
import signal
import socket
import ssl
import sys
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from pathlib import Path
from random import Random
from typing import Any, TextIO

import msgspec
import yaml

from clusterwright.api import kubeconfig
from clusterwright.api.meta import Json
from clusterwright.apiserver.admission.webhooks import Webhooks
from clusterwright.apiserver.attributes import Admission
from clusterwright.apiserver.auth.authentication import Authenticator
from clusterwright.apiserver.auth.rbac import RbacAuthorizer, bootstrap_roles
from clusterwright.apiserver.auth.tokens import ServiceAccountTokens, bootstrap_token_source, new_token_key
from clusterwright.apiserver.core import Converters
from clusterwright.apiserver.identity import User
from clusterwright.apiserver.metrics import Metrics
from clusterwright.apiserver.server import ApiServer
from clusterwright.apiserver.serving import datadir
from clusterwright.apiserver.serving.audit import Record
from clusterwright.apiserver.serving.audit import in_process as audit_of
from clusterwright.apiserver.serving.http import HttpServer
from clusterwright.apiserver.serving.tls import KeyPair, make_authority, server_context, sign, validity_problem, write_private
from clusterwright.apiserver.storage.sqlite import SqliteJournal, StoreBroken
from clusterwright.apiserver.storage.store import NotDurable

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class ServeOptions:
    """How to run a server.

    `data_dir` None: nothing is kept after the end. `controllers`: collect garbage and empty deleted namespaces. `crds`: definitions to
    install (or update) at the start. `tokens`: static bearer tokens.
    """

    listen: str = "127.0.0.1:6443"
    data_dir: Path | None = None
    kubeconfig: Path | None = None
    controllers: bool = True
    crds: tuple[Json, ...] = ()
    admission: tuple[Admission, ...] = ()
    converters: Converters | None = None
    """Kinds that are converted in this process."""
    audit_log: Path | None = None
    serving: KeyPair | None = None
    """The server's certificate; None: the server's own authority signs one."""
    client_authority: bytes = b""
    """The certificates of an authority whose clients are accepted too, as PEM."""
    tokens: Mapping[str, User] | None = None
    version: str = "v1.36.1"
    now: Callable[[], datetime]
    random: Random
    """The random source, also for secrets: `random.SystemRandom()` outside of tests."""


class BadOption(Exception):
    """An option that cannot be used; the text says which and why."""


def parse_listen(text: str) -> tuple[str, int]:
    """Return host and port; raises BadOption."""
    host, _, port = text.rpartition(":")
    host = host.strip("[]") or "127.0.0.1"
    if not port.isdigit() or int(port) > 65535:
        raise BadOption(f"--listen {text!r}: HOST:PORT is expected")
    return host, int(port)


class RunningServer:
    """A running server. `stop` ends it; no acknowledged write is lost."""

    def __init__(self, server: ApiServer, http: HttpServer, url: str, authority: KeyPair, admin: KeyPair) -> None:
        self.server = server
        self.http = http
        self.url = url
        self.authority = authority
        self.admin = admin
        self.journal: SqliteJournal | None = None
        self.broken: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._audit: TextIO | None = None

    def kubeconfig(self) -> bytes:
        """Return the administrator's kubeconfig."""
        return kubeconfig_of(self.url, self.authority.certificate, self.admin)

    async def stop(self) -> None:
        """Stop listening, then finish writing."""
        await self.http.stop()
        await self.server.callouts.close()
        if self.journal is not None:
            self.journal.close()
        if self._audit is not None:
            self._audit.close()


def kubeconfig_of(url: str, authority: bytes, client: KeyPair, name: str = "clusterwright") -> bytes:
    """Return a kubeconfig with everything embedded."""
    config = kubeconfig.document(
        server=url,
        certificate_authority=authority,
        client_certificate=client.certificate,
        client_key=client.key,
        cluster=name,
        user=f"{name}-admin",
        context=name,
    )
    return yaml.safe_dump(config, sort_keys=False).encode()


async def start(options: ServeOptions) -> RunningServer:
    """Start a server; returns when it answers. Raises BadOption or StoreBroken."""
    host, port = parse_listen(options.listen)
    random = options.random
    journal = _journal(options.data_dir)
    try:
        authority, signing_key = _identity(options)
    except BaseException:
        if journal is not None:
            journal.close()
        raise
    server = ApiServer(
        now=options.now,
        random=random,
        journal=journal,
        authorizer=RbacAuthorizer(),
        admission=options.admission,
        converters=options.converters,
        version=options.version,
    )
    server.admission.append(Webhooks(server))
    server.metrics = Metrics()
    if journal is not None:
        try:
            server.recover(journal.entries(), journal.revision)
        except StoreBroken:
            journal.close()
            raise
        journal.start()
    server.ensure_namespaces()
    server.ensure(bootstrap_roles())
    server.ensure(options.crds, update=True)
    if options.controllers:
        server.start_controllers(authority.certificate)
    ServiceAccountTokens(server, signing_key)
    server.token_sources.append(bootstrap_token_source(server))
    serving = options.serving or sign(authority, options.now(), "kube-apiserver", hosts=_serving_names(host))
    certificates = {"authority (ca.crt)": authority.certificate, "serving certificate": serving.certificate}
    server.checks["certificates"] = partial(validity_problem, certificates, options.now)
    if problem := server.checks["certificates"]():
        log.error("clients will refuse the certificates of this server: %s", problem)
    audit, audit_file = _audit(options.audit_log)
    authenticator = Authenticator(options.tokens, [server.token_user])
    if audit is not None:
        server.audit = partial(audit_of, server, audit)
    http = HttpServer(server, authenticator, audit_log=audit)
    context = server_context(serving, authority.certificate + options.client_authority)
    try:
        port = await _listen(http, host, port, context, options.data_dir)
    except OSError as e:
        if journal is not None:
            journal.close()
        raise BadOption(f"--listen {options.listen}: {e.strerror or e}") from None
    try:
        await server.store.durable(server.store.revision)
    except NotDurable as e:
        await http.stop()
        if journal is not None:
            journal.close()
        raise StoreBroken(f"{e}: {journal.error if journal is not None else ''}") from e
    shown = "127.0.0.1" if host in {"0.0.0.0", "::"} else host  # noqa: S104 - compared, not bound
    url = f"https://[{shown}]:{port}" if ":" in shown else f"https://{shown}:{port}"
    admin = sign(authority, options.now(), "kubernetes-admin", organizations=["system:masters"])
    running = RunningServer(server, http, url, authority, admin)
    running.journal, running._audit = journal, audit_file
    if journal is not None:
        journal.on_failure(lambda error: _fail(running, error))
    if options.kubeconfig is not None:
        options.kubeconfig.parent.mkdir(parents=True, exist_ok=True)
        write_private(options.kubeconfig, running.kubeconfig())
    return running


async def _listen(http: HttpServer, host: str, port: int, context: ssl.SSLContext, data_dir: Path | None) -> int:
    """Listen; prefer the last port if any free one is wanted, because kubeconfigs outlive a restart."""
    if port or data_dir is None:
        return await http.start(host, port, context)
    if before := datadir.kept_port(data_dir):
        with suppress(OSError, OverflowError):
            port = await http.start(host, before, context)
    port = port or await http.start(host, 0, context)
    datadir.keep_port(data_dir, port)
    return port


def _journal(folder: Path | None) -> SqliteJournal | None:
    if folder is None:
        return None
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    datadir.demand_private(folder)
    return SqliteJournal(folder / "store.sqlite")


def _identity(options: ServeOptions) -> tuple[KeyPair, bytes]:
    """Return the authority and the token key, kept in the data directory, so that credentials outlive a restart."""
    folder = options.data_dir
    if folder is None:
        return make_authority(options.now()), new_token_key(options.random)
    datadir.kept_port(folder)
    try:
        return datadir.identity(folder, lambda: make_authority(options.now()), lambda: new_token_key(options.random))
    except OSError as e:
        raise StoreBroken(f"{folder}: {e}") from e


def _fail(running: RunningServer, error: BaseException) -> None:
    if not running.broken.done():
        running.broken.set_exception(error)


def _audit(path: Path | None) -> tuple[Callable[[Record], None] | None, TextIO | None]:
    if path is None:
        return None, None
    file = os.fdopen(os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600), "a", encoding="utf-8", buffering=1)
    os.fchmod(file.fileno(), 0o600)
    return lambda record: print(msgspec.json.encode(record.event()).decode(), file=file), file


def _serving_names(host: str) -> list[str]:
    names = ["localhost", "127.0.0.1", "::1", "kubernetes", "kubernetes.default", "kubernetes.default.svc", host]
    try:
        if ipaddress.ip_address(host).is_unspecified:
            names.append(socket.gethostname())
            names.remove(host)
    except ValueError:
        pass  # a name is a name
    return list(dict.fromkeys(names))


async def serve(options: ServeOptions, *, ready: Callable[[RunningServer], Awaitable[Any]] | None = None) -> int:
    """Run until SIGTERM or SIGINT, or until the store breaks; returns the exit code. `ready` runs once it answers."""
    running = await start(options)
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    where = f"; KUBECONFIG={options.kubeconfig}" if options.kubeconfig is not None else ""
    kept = f"data in {options.data_dir}" if options.data_dir is not None else "in memory only"
    sys.stdout.write(f"clusterwright API server is ready at {running.url} ({kept}){where}\n")
    sys.stdout.flush()
    try:
        if ready is not None:
            await ready(running)
        running.broken.add_done_callback(lambda _: stop.set())
        await stop.wait()
        if running.broken.done():
            sys.stderr.write(f"clusterwright: the store can no longer be written: {running.broken.exception()}\n")
            return 1
        return 0
    finally:
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.remove_signal_handler(number)
        await running.stop()
