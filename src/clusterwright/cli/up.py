"""`clusterwright up`: the management plane: API server, controllers, in-memory infrastructure, in one process."""

from __future__ import annotations

import argparse
import asyncio
import gc
import logging
import os
import shlex
import signal
import socket
import sys
from contextlib import AsyncExitStack
from pathlib import Path
from random import SystemRandom
from tempfile import TemporaryFile

from clusterwright import admission, app
from clusterwright.api.crds import crds
from clusterwright.api.kubeconfig import InvalidKubeconfig
from clusterwright.api.meta import ObjectKey
from clusterwright.api.wire import Transport
from clusterwright.apiserver.serving import serve
from clusterwright.apiserver.serving.inprocess import InProcessTransport
from clusterwright.apiserver.storage.sqlite import StoreBroken
from clusterwright.cli import connect, demo, settings, webview
from clusterwright.cli.defaults import LOCAL
from clusterwright.controllers.crdmigrator import PHASES
from clusterwright.controllers.kit.features import DEFAULT_FEATURES, EMBEDDED_FEATURES, UnknownFeature, parse_features
from clusterwright.inmemory.cloud import FIRST_PORT, LAST_PORT, Cloud
from clusterwright.inmemory.listener import TlsListener
from clusterwright.runtime.clock import SystemClock
from clusterwright.runtime.errors import ApiError
from clusterwright.runtime.http import HttpTransport
from clusterwright.runtime.keys import KeySource, PooledKeySource
from clusterwright.runtime.kubeconfig import Kubeconfig
from clusterwright.runtime.leases import new_identity
from clusterwright.runtime.logging import configure
from clusterwright.runtime.manager import Manager, Options
from clusterwright.runtime.rest import RestClient
from clusterwright.webhooks import embedded
from clusterwright.webhooks.certificates import CertificateMissing
from clusterwright.webhooks.running import WebhookOptions, serving

log = logging.getLogger(__name__)


def run(arguments: argparse.Namespace) -> int:
    """Start the plane and serve until SIGTERM or SIGINT; the exit status."""
    check(arguments)
    configure(arguments.log_format, arguments.log_level)
    try:
        return asyncio.run(_run(arguments))
    except (serve.BadOption, StoreBroken, InvalidKubeconfig, ApiError, CertificateMissing) as error:
        print(f"clusterwright up: {error}", file=sys.stderr)
        return 1


def check(arguments: argparse.Namespace) -> argparse.Namespace:
    """The arguments with what a file adds to them, and what can be said only here; ends the program where something is wrong."""
    parser: argparse.ArgumentParser = arguments.parser
    settings.read(arguments)
    if arguments.against and arguments.no_controllers:
        parser.error("--against and --no-controllers together leave nothing to run")
    if arguments.webhook_port is not None and not arguments.against:
        parser.error("--webhook-port needs --against: the embedded API server has admission and conversion in itself")
    if arguments.webhook_url and not arguments.webhook_url.startswith("https://"):
        parser.error("--webhook-url: API servers ask webhooks over https only")
    arguments.skipped = tuple(filter(None, arguments.skip_crd_migration_phases.split(",")))
    if unknown := [phase for phase in arguments.skipped if phase not in PHASES]:
        parser.error(f"--skip-crd-migration-phases: {', '.join(unknown)} is not known; known: {', '.join(PHASES)}")
    try:
        # an API server of our own has our admission; elsewhere the gates are as upstream has them
        arguments.features = {**(DEFAULT_FEATURES if arguments.against else EMBEDDED_FEATURES), **parse_features(arguments.feature_gates)}
    except UnknownFeature as error:
        parser.error(f"--feature-gates: {error}")
    arguments.passes = {}
    for item in arguments.concurrency:
        name, _, number = item.partition("=")
        if not number.isdecimal() or not int(number):
            parser.error(f"--concurrency {item}: CONTROLLER=N with a positive number is expected")
        if name not in app.controller_names():
            parser.error(f"--concurrency {item}: no controller {name!r}; known: {', '.join(sorted(app.controller_names()))}")
        arguments.passes[name] = int(number)
    if not arguments.against:
        _check_places(parser, arguments)
    return arguments


def _check_places(parser: argparse.ArgumentParser, arguments: argparse.Namespace) -> None:
    """Whether everything can be written where it is to be written; ends the program otherwise, naming the flag."""
    kubeconfig = arguments.kubeconfig or LOCAL
    places = {"--kubeconfig": kubeconfig.parent}
    if not arguments.in_memory:
        places["--data-dir"] = arguments.data_dir
    if arguments.audit_log is not None:
        places["--audit-log"] = arguments.audit_log.parent
    for flag, folder in places.items():
        try:
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            with TemporaryFile(dir=folder):
                pass
        except OSError as error:
            parser.error(f"{flag}: nothing can be written in {folder}: {error.strerror}")
    for flag, path in (("--kubeconfig", kubeconfig), ("--audit-log", arguments.audit_log)):
        if path is not None and path.is_dir():
            parser.error(f"{flag}: {path} is a directory")


async def _run(arguments: argparse.Namespace) -> int:
    clock, random = SystemClock(), SystemRandom()
    data_dir = None if arguments.in_memory else arguments.data_dir
    stop = asyncio.Event()
    controllers: asyncio.Task[None] | None = None
    cloud: Cloud | None = None
    manager: Manager | None = None
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop.set)
    webhooks: asyncio.Event | None = None
    workloads = admission.Workloads()
    async with AsyncExitStack() as stack:
        keys = PooledKeySource()
        stack.push_async_callback(keys.close)
        transport: Transport
        if arguments.against:
            connection = Kubeconfig.load([arguments.against]).resolve()
            transport = HttpTransport(connection, clock, os.environ)
            stack.push_async_callback(transport.close)
            webhooks = await _install(arguments, stack, RestClient(transport, clock=clock), clock, workloads)
            print(f"clusterwright: controllers against {connection.server}", flush=True)
        else:
            kubeconfig = arguments.kubeconfig or LOCAL
            running = await serve.start(
                serve.ServeOptions(
                    listen=arguments.listen,
                    data_dir=data_dir,
                    kubeconfig=kubeconfig,
                    controllers=not arguments.no_controllers,
                    crds=tuple(crds()),
                    admission=admission.chain(arguments.features, workloads),
                    converters=embedded.converters,
                    audit_log=arguments.audit_log,
                    now=clock.now,
                    random=random,
                )
            )
            stack.push_async_callback(running.stop)
            running.broken.add_done_callback(lambda _: stop.set())
            kept = f"data in {data_dir}" if data_dir is not None else "in memory only"
            print(f"clusterwright API server is ready at {running.url} ({kept}); KUBECONFIG={kubeconfig}", flush=True)
            transport = InProcessTransport(running.server)
        # what is there from the start stays: looking through it for garbage would make everybody wait
        gc.collect()
        gc.freeze()
        if not arguments.no_controllers:
            controllers, cloud, manager = await _start_controllers(
                arguments, stack, transport, clock, random, keys, data_dir, stop, webhooks, workloads
            )
        if not arguments.against:
            await webview.open_page(stack, running, manager, clock=clock, random=random, keys=keys, told=_tell_link)
        if arguments.demo:
            stack.push_async_callback(_cancel, asyncio.create_task(demo.show(RestClient(transport, clock=clock), clock, _hint(arguments))))
        # until here Ctrl-C gives up; from here it ends what runs
        asyncio.get_running_loop().add_signal_handler(signal.SIGINT, stop.set)
        await stop.wait()
        print("clusterwright: stopping", flush=True)
    if not arguments.against and running.broken.done():
        print(f"clusterwright: the store can no longer be written: {running.broken.exception()}", file=sys.stderr)
        return 1
    if cloud is not None and cloud.broken:
        print(f"clusterwright: {cloud.broken}", file=sys.stderr)
        return 1
    # a supervisor starts again only what did not end well
    return 1 if controllers is not None and (controllers.cancelled() or controllers.exception() is not None) else 0


async def _install(
    arguments: argparse.Namespace, stack: AsyncExitStack, client: RestClient, clock: SystemClock, workloads: admission.Workloads
) -> asyncio.Event | None:
    """Make the API server serve our kinds, and ask us about them if we listen; then what is set when that may have changed."""
    if arguments.webhook_port is None:
        await app.install_crds(client)
        return None
    options = WebhookOptions(
        host=arguments.webhook_host, port=arguments.webhook_port, url=arguments.webhook_url, certificates=arguments.webhook_cert_dir
    )
    webhooks = await stack.enter_async_context(serving(client, clock, options, arguments.features, workloads))
    print(f"clusterwright: webhooks at port {webhooks.server.port}", flush=True)
    return webhooks.changed


async def _start_controllers(
    arguments: argparse.Namespace,
    stack: AsyncExitStack,
    transport: Transport,
    clock: SystemClock,
    random: SystemRandom,
    keys: KeySource,
    data_dir: Path | None,
    stop: asyncio.Event,
    webhooks: asyncio.Event | None,
    workloads: admission.Workloads,
) -> tuple[asyncio.Task[None], Cloud | None, Manager]:
    cloud = None
    if not arguments.no_inmemory:
        folder = data_dir / "workload" if data_dir is not None else None
        first_port = random.randrange(FIRST_PORT, LAST_PORT)
        cloud = Cloud(now=clock.now, random=random, keys=keys, listener=TlsListener(), data_dir=folder, first_port=first_port)
        stack.push_async_callback(cloud.close)
        cloud.on_failure(stop.set)

    options = Options(
        namespace=arguments.namespace,
        watch_filter=arguments.watch_filter,
        qps=arguments.qps,
        burst=arguments.burst,
        concurrency=arguments.passes,
        resync=arguments.resync.total_seconds() if arguments.resync is not None else app.RESYNC,
        health_port=arguments.health_port,
        leader_election=ObjectKey("kube-system", "clusterwright") if arguments.leader_elect else None,
        identity=new_identity(socket.gethostname(), os.getpid(), random),
        tracing=arguments.tracing,
        freeze_caches=True,
    )
    manager = app.build_manager(
        transport,
        clock=clock,
        random=random,
        keys=keys,
        cloud=cloud,
        docker=not arguments.against,  # there the real provider may be at work on them
        reach=connect.reach,
        options=options,
        features=arguments.features,
        flags=settings.controller_options(arguments),
        workloads=workloads,
    )
    app.add_migrator(manager, arguments.skipped)
    if webhooks is not None:
        app.watch_webhooks(manager, webhooks.set)
    if cloud is not None:
        manager.add_part("kubelets", cloud.run_kubelets)
    task = asyncio.create_task(manager.run(), name="manager")

    def ended(done: asyncio.Task[None]) -> None:
        error = None if done.cancelled() else done.exception()
        if isinstance(error, OSError) and arguments.health_port is not None:
            print(f"clusterwright up: --health-port {arguments.health_port}: {error.strerror}", file=sys.stderr, flush=True)
        elif error is not None:
            log.error("the controllers have ended", exc_info=error)
            print(f"clusterwright: the controllers have ended: {_cause(error)}", file=sys.stderr, flush=True)
        stop.set()

    task.add_done_callback(ended)

    async def shut_down() -> None:
        manager.stop()
        await asyncio.wait([task])

    stack.push_async_callback(shut_down)
    return task, cloud, manager


def _cause(error: BaseException | None) -> str:
    """What ended a group of tasks, in one line."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return f"{type(error).__name__}: {error}"


def _tell_link(link: str) -> None:
    """The next way in; each is good for one browser."""
    print(f"web view (this link works once): {link}", flush=True)


async def _cancel(task: asyncio.Task[None]) -> None:
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


def _hint(arguments: argparse.Namespace) -> str:
    path = arguments.kubeconfig or LOCAL
    return "" if path == LOCAL else f"--kubeconfig {shlex.quote(str(path))} "
