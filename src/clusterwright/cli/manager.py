"""`clusterwright manager`: run the controllers on another API server, in a Pod or anywhere else."""

from __future__ import annotations

import argparse
import asyncio
import os
import signal
import sys
from contextlib import AsyncExitStack
from random import SystemRandom

from clusterwright import admission, app
from clusterwright.api.kubeconfig import InvalidKubeconfig
from clusterwright.api.meta import ObjectKey
from clusterwright.apiserver.storage.sqlite import StoreBroken
from clusterwright.cli import connect, running, settings
from clusterwright.runtime import garbage
from clusterwright.runtime.clock import SystemClock
from clusterwright.runtime.errors import ApiError
from clusterwright.runtime.fence import Fence
from clusterwright.runtime.http import HttpTransport
from clusterwright.runtime.keys import PooledKeySource
from clusterwright.runtime.kubeconfig import SERVICE_ACCOUNT, Connection
from clusterwright.runtime.logging import configure
from clusterwright.runtime.rest import RestClient
from clusterwright.verdicts.wiring import add_judge
from clusterwright.webhooks.certificates import CertificateMissing
from clusterwright.webhooks.configurations import SERVICE
from clusterwright.webhooks.running import WebhookOptions, serving


def run(arguments: argparse.Namespace) -> int:
    """Run the controllers until SIGTERM or SIGINT; return the exit status."""
    settings.read(arguments)
    running.check(arguments, embedded=False)
    arguments.in_memory = arguments.data_dir is None
    return run_against(arguments, connect.resolve(arguments))


def run_against(arguments: argparse.Namespace, connection: Connection) -> int:
    """Run the controllers on the API server of a connection, with checked arguments; return the exit status."""
    configure(arguments.log_format, arguments.log_level)
    try:
        return asyncio.run(_run(arguments, connection))
    except (InvalidKubeconfig, ApiError, CertificateMissing, StoreBroken) as error:
        print(f"{arguments.parser.prog}: {error}", file=sys.stderr)
        return 1


async def _run(arguments: argparse.Namespace, connection: Connection) -> int:
    clock, random = SystemClock(), SystemRandom()
    stop = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop.set)
    workloads = admission.Workloads()
    fence = Fence(clock)
    async with AsyncExitStack() as stack:
        keys = PooledKeySource()
        stack.push_async_callback(keys.close)
        transport = HttpTransport(connection, clock, os.environ, fence=fence)
        stack.push_async_callback(transport.close)
        unfenced = HttpTransport(connection, clock, os.environ)
        stack.push_async_callback(unfenced.close)
        # a process with a kubeconfig for `default` is not a Pod, and must not leave objects there
        namespace = connection.namespace if connection.token_file.startswith(str(SERVICE_ACCOUNT)) else ""
        service = ObjectKey(namespace or SERVICE.namespace, SERVICE.name)
        webhooks = await _webhooks(arguments, stack, RestClient(unfenced, clock=clock), clock, workloads, service)
        place = running.Place(
            transport=transport,
            unfenced=unfenced,
            lease_transport=HttpTransport(connection, clock, os.environ) if arguments.leader_elect or arguments.shard else None,
            fence=fence,
            is_embedded=False,
            data_dir=None if arguments.in_memory else arguments.data_dir,
            namespace=namespace,
            workloads=workloads,
            webhooks=webhooks,
        )
        manager, cloud = running.build(arguments, stack, place, clock, random, keys)
        if missing := await app.missing_kinds(manager):
            told = "create them with `clusterwright install`, or let --install-crds create them"
            print(f"{arguments.parser.prog}: {connection.server} does not serve {', '.join(missing)}: {told}", file=sys.stderr)
            return 1
        if any(controller.name == app.CONNECTIONS for controller in manager.controllers):  # a provider alone may not read CRDs
            judge = add_judge(manager, everything=False, folder=place.data_dir)
            stack.callback(judge.history.close)
        garbage.settle()
        started = running.start(arguments, stack, manager, cloud, stop)
        print(f"clusterwright: controllers against {connection.server}", flush=True)
        # until here Ctrl-C gives up; from here it ends what runs
        asyncio.get_running_loop().add_signal_handler(signal.SIGINT, stop.set)
        await stop.wait()
        print("clusterwright: stopping", flush=True)
    if started.complaint:
        print(f"{arguments.parser.prog}: {started.complaint}", file=sys.stderr)
    # a supervisor starts again only what did not end well
    return 1 if started.complaint else 0


async def _webhooks(
    arguments: argparse.Namespace,
    stack: AsyncExitStack,
    client: RestClient,
    clock: SystemClock,
    workloads: admission.Workloads,
    service: ObjectKey,
) -> asyncio.Event | None:
    """Serve webhooks if asked to, and register them with the API server if permitted. Return an event that is set after changes."""
    if arguments.webhook_port is None:
        if arguments.install_crds:
            await app.install_crds(client)
        return None
    options = WebhookOptions(
        host=arguments.webhook_host,
        port=arguments.webhook_port,
        url=arguments.webhook_url,
        service=service,
        certificates=arguments.webhook_cert_dir,
        install=arguments.install_crds,
    )
    webhooks = await stack.enter_async_context(serving(client, clock, options, arguments.features, workloads))
    print(f"clusterwright: webhooks on port {webhooks.server.port}", flush=True)
    return webhooks.changed
