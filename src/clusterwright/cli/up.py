"""`clusterwright up`: run the management plane: API server, controllers, in-memory infrastructure, in one process."""

from __future__ import annotations

import argparse
import asyncio
import shlex
import signal
import sys
from contextlib import AsyncExitStack
from pathlib import Path
from random import SystemRandom
from tempfile import TemporaryFile

from clusterwright import admission, app
from clusterwright.api.crds import crds, embedded_crds
from clusterwright.api.kubeconfig import InvalidKubeconfig
from clusterwright.api.meta import Json
from clusterwright.apiserver.serving import serve
from clusterwright.apiserver.serving.inprocess import InProcessTransport
from clusterwright.apiserver.storage.sqlite import StoreBroken
from clusterwright.cli import demo, engines, insight, manager, running, settings, verdicts, webview
from clusterwright.cli.defaults import LOCAL
from clusterwright.providers.placing import Server
from clusterwright.providers.records import claimed
from clusterwright.runtime import digest, garbage
from clusterwright.runtime.clock import SystemClock
from clusterwright.runtime.errors import ApiError
from clusterwright.runtime.keys import PooledKeySource
from clusterwright.runtime.kubeconfig import Kubeconfig
from clusterwright.runtime.logging import configure
from clusterwright.runtime.rest import RestClient
from clusterwright.verdicts.judge import Judge
from clusterwright.verdicts.wiring import add_judge
from clusterwright.webhooks import embedded


def run(arguments: argparse.Namespace) -> int:
    """Start the plane and serve until SIGTERM or SIGINT; return the exit status."""
    check(arguments)
    if arguments.against:
        return manager.run_against(arguments, Kubeconfig.load([arguments.against]).resolve())
    configure(arguments.log_format, arguments.log_level)
    if arguments.log_format == "text" and arguments.log_level != "debug":
        digest.for_people()
    try:
        return asyncio.run(_run(arguments))
    except (serve.BadOption, StoreBroken, InvalidKubeconfig, ApiError) as error:
        print(f"clusterwright up: {error}", file=sys.stderr)
        return 1


def check(arguments: argparse.Namespace) -> argparse.Namespace:
    """Return the arguments with the values of the settings file and dependent defaults; end the program if one is invalid."""
    parser: argparse.ArgumentParser = arguments.parser
    settings.read(arguments)
    engines.check(arguments)
    if arguments.against and arguments.engine:
        parser.error("--engine: this needs the embedded API server; with --against, another provider makes the machines")
    if arguments.against and arguments.no_controllers:
        parser.error("--against and --no-controllers cannot be combined: nothing would run")
    if not arguments.against:
        for flag in ("webhook_port", "install_crds"):
            if getattr(arguments, flag) not in {None, False}:
                parser.error(
                    f"--{flag.replace('_', '-')} needs --against: the embedded API server always has our kinds, admission and conversion"
                )
        _check_places(parser, arguments)
    running.check(arguments, embedded=not arguments.against)
    return arguments


def _check_places(parser: argparse.ArgumentParser, arguments: argparse.Namespace) -> None:
    """End the program, naming the flag, if a path is not writable."""
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
            parser.error(f"{flag}: {folder} is not writable: {error.strerror}")
    for flag, path in (("--kubeconfig", kubeconfig), ("--audit-log", arguments.audit_log)):
        if path is not None and path.is_dir():
            parser.error(f"{flag}: {path} is a directory")


async def _run(arguments: argparse.Namespace) -> int:
    clock, random = SystemClock(), SystemRandom()
    data_dir = None if arguments.in_memory else arguments.data_dir
    stop = asyncio.Event()
    started: running.Running | None = None
    judge: Judge | None = None
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop.set)
    workloads = admission.Workloads()
    link = _Link()
    async with AsyncExitStack() as stack:
        host = await engines.opened(arguments, stack) if arguments.engine else None
        keys = PooledKeySource()
        stack.push_async_callback(keys.close)
        kubeconfig = arguments.kubeconfig or LOCAL
        server = await serve.start(
            serve.ServeOptions(
                listen=arguments.listen,
                data_dir=data_dir,
                kubeconfig=kubeconfig,
                controllers=arguments.garbage_collection or not arguments.no_controllers,
                crds=(*crds(), *_offered(data_dir)),
                admission=admission.chain(arguments.features, workloads),
                converters=embedded.converters,
                audit_log=arguments.audit_log,
                now=clock.now,
                random=random,
            )
        )
        stack.push_async_callback(server.stop)
        server.server.ensure(insight.reader())
        server.broken.add_done_callback(lambda _: stop.set())
        kept = f"data in {data_dir}" if data_dir is not None else "in memory only"
        print(f"clusterwright API server is ready at {server.url} ({kept})", flush=True)
        print(f"to use kubectl: export KUBECONFIG={shlex.quote(str(kubeconfig.absolute()))}", flush=True)
        transport = InProcessTransport(server.server)
        garbage.settle()
        if not arguments.no_controllers:
            place = running.Place(transport=transport, is_embedded=True, data_dir=data_dir, workloads=workloads, host=host)
            manager, cloud = running.build(arguments, stack, place, clock, random, keys)
            if data_dir is not None:
                app.add_providers(manager, data_dir, Server(server.url, server.authority.certificate))
            judge = add_judge(manager, everything=True, folder=data_dir)
            stack.callback(judge.history.close)
            started = running.start(arguments, stack, manager, cloud, stop)
        page = started.manager if started is not None else None
        server.server.report = page.report if page is not None else None
        await webview.open_page(stack, server, page, judge, clock=clock, random=random, keys=keys, told=link.tell, folder=data_dir)
        stack.push_async_callback(_cancel, asyncio.create_task(_tell(arguments, RestClient(transport, clock=clock), clock, judge, link)))
        # until here Ctrl-C gives up; from here it ends what runs
        asyncio.get_running_loop().add_signal_handler(signal.SIGINT, stop.set)
        await stop.wait()
        print("clusterwright: stopping", flush=True)
    complaint = started.complaint if started is not None else ""
    if server.broken.done():
        complaint = f"the store can no longer be written: {server.broken.exception()}"
    if complaint:
        print(f"{arguments.parser.prog}: {complaint}", file=sys.stderr)
    # a supervisor starts again only what did not end well
    return 1 if complaint else 0


def _offered(data_dir: Path | None) -> list[Json]:
    """Return the definitions that only the embedded plane has, but for those that a recorded provider brings in its own form."""
    brought = claimed(data_dir) if data_dir is not None else frozenset()
    return [crd for crd in embedded_crds() if crd["metadata"]["name"] not in brought]


async def _tell(arguments: argparse.Namespace, client: RestClient, clock: SystemClock, judge: Judge | None, link: _Link) -> None:
    """Show the demo at the terminal if asked to, then every change of a cluster's verdict."""
    objects = demo.manifests(are_real=bool(arguments.engine), version=arguments.kubernetes_version)
    shown = await demo.show(client, clock, _hint(arguments), link.last, objects) if arguments.demo else None
    if judge is not None and arguments.log_format == "text" and arguments.log_level != "error":
        verdicts.Teller(judge, clock, lambda line: print(line, flush=True), shown)


class _Link:
    """The link to the web view; each one works for one browser."""

    _last = ""

    def tell(self, link: str) -> None:
        """Print the next link."""
        self._last = link
        print(f"web view (this link works once): {link}", flush=True)

    def last(self) -> str:
        """Return the link that works now; None without a web view."""
        return self._last


async def _cancel(task: asyncio.Task[None]) -> None:
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


def _hint(arguments: argparse.Namespace) -> str:
    path = arguments.kubeconfig or LOCAL
    return "" if path == LOCAL else f"--kubeconfig {shlex.quote(str(path))} "
