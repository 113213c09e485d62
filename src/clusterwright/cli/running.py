"""Run controllers as a part of a process: the common code of `up` and `manager`."""

from __future__ import annotations

import argparse
import asyncio
import logging
import os
import socket
from collections.abc import Collection
from contextlib import AsyncExitStack
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from random import SystemRandom

from clusterwright import admission, app
from clusterwright.api.meta import ObjectKey
from clusterwright.api.wire import Transport
from clusterwright.apiserver.serving.datadir import demand_private
from clusterwright.cli import connect, settings
from clusterwright.cli.serving import metrics_address
from clusterwright.containers.build import Host
from clusterwright.controllers.belonging import belongs_to
from clusterwright.controllers.crdmigrator import PHASES
from clusterwright.controllers.kit.features import DEFAULT_FEATURES, EMBEDDED_FEATURES, UnknownFeature, check_features, parse_features
from clusterwright.inmemory.cloud import FIRST_PORT, LAST_PORT, Cloud
from clusterwright.inmemory.listener import TlsListener
from clusterwright.runtime.clock import SystemClock
from clusterwright.runtime.fence import Fence
from clusterwright.runtime.keys import KeySource
from clusterwright.runtime.leases import LeadershipLost, LeaseTimes, new_identity
from clusterwright.runtime.logging import leaves
from clusterwright.runtime.manager import GRACE_PERIOD, RESYNC, Manager, Options
from clusterwright.runtime.shards import ShardOptions

log = logging.getLogger(__name__)
LEASE_NAMESPACE = "kube-system"
HAND_OVER = 2.0
"""Seconds that passes have to finish while another replica waits to take over."""


def check(arguments: argparse.Namespace, *, embedded: bool) -> None:
    """Validate the arguments and fill in defaults that depend on others; end the program if one is invalid."""
    parser: argparse.ArgumentParser = arguments.parser
    if arguments.webhook_url and not arguments.webhook_url.startswith("https://"):
        parser.error("--webhook-url: https is required, because API servers call webhooks only over https")
    arguments.skipped = tuple(filter(None, arguments.skip_crd_migration_phases.split(",")))
    if unknown := [phase for phase in arguments.skipped if phase not in PHASES]:
        parser.error(f"--skip-crd-migration-phases: {', '.join(unknown)} is unknown; known: {', '.join(PHASES)}")
    try:
        # an API server of our own has our admission; elsewhere the gates are as upstream has them
        arguments.features = {**(EMBEDDED_FEATURES if embedded else DEFAULT_FEATURES), **parse_features(arguments.feature_gates)}
        check_features(arguments.features)
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
    try:
        arguments.selected = select(arguments.controllers, app.selectable_names())
    except ValueError as error:
        parser.error(f"--controllers {arguments.controllers}: {error}")
    arguments.times = LeaseTimes(
        duration=arguments.leader_elect_lease_duration.total_seconds(),
        renew_deadline=arguments.leader_elect_renew_deadline.total_seconds(),
        retry=arguments.leader_elect_retry_period.total_seconds(),
    )
    if not arguments.times.duration > arguments.times.renew_deadline > arguments.times.retry:
        parser.error("--leader-elect-lease-duration must be longer than --leader-elect-renew-deadline, and that than the retry period")
    if arguments.leader_elect and arguments.shard:
        parser.error("--leader-elect and --shard cannot be combined: either one replica works and the others wait, or all share the work")


def select(patterns: str, known: Collection[str]) -> frozenset[str]:
    """Return the names that the patterns select: those that match a pattern without `-`, if any, minus those that match one with `-`.

    Raises ValueError for a pattern that matches no name.
    """
    items = [item.strip() for item in patterns.split(",") if item.strip()]
    for item in items:
        if not any(fnmatchcase(name, item.removeprefix("-")) for name in known):
            raise ValueError(f"no controller {item.removeprefix('-')!r}; known: {', '.join(sorted(known))}")
    wanted = [item for item in items if not item.startswith("-")] or ["*"]
    unwanted = [item[1:] for item in items if item.startswith("-")]

    def fits(name: str, any_of: list[str]) -> bool:
        return any(fnmatchcase(name, pattern) for pattern in any_of)

    return frozenset(name for name in known if fits(name, wanted) and not fits(name, unwanted))


def names_migrator(patterns: str) -> bool:
    """Return whether the CRD migrator is selected by name: it writes to CRDs, so globs do not select it."""
    return "crdmigrator" in {item.strip() for item in patterns.split(",")}


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """The environment that controllers run in."""

    transport: Transport
    unfenced: Transport | None = None
    """A transport to the same API server for requests that the fence does not cover."""
    lease_transport: Transport | None = None
    """A transport to the same API server for renewing Leases on a separate thread."""
    fence: Fence | None = None
    is_embedded: bool
    data_dir: Path | None
    namespace: str = ""
    """The namespace of the Leases."""
    workloads: admission.Workloads
    host: Host | None = None
    """The container engine for machines that are containers, if one was named."""
    webhooks: asyncio.Event | None = None
    """Set when the registration of our webhooks may be out of date."""


@dataclass(frozen=True, slots=True)
class Running:
    """Running controllers."""

    task: asyncio.Task[None]
    cloud: Cloud | None
    manager: Manager
    addresses: str
    """The flags with the listening addresses, as given."""

    @property
    def complaint(self) -> str:
        """The error that ended the process, if any."""
        if self.cloud is not None and self.cloud.broken:
            return str(self.cloud.broken)
        if not self.task.done():
            return ""
        error = None if self.task.cancelled() else self.task.exception()
        if isinstance(error, OSError):  # endpoints are opened outside of every group of tasks: nothing else ends like this
            return f"{self.addresses}: {error.strerror}"
        return "" if error is None and not self.task.cancelled() else f"the controllers have stopped: {cause(error)}"


def build(
    arguments: argparse.Namespace, stack: AsyncExitStack, place: Place, clock: SystemClock, random: SystemRandom, keys: KeySource
) -> tuple[Manager, Cloud | None]:
    """Return the controllers that the arguments select, not started yet."""
    selected: frozenset[str] = arguments.selected
    cloud = None
    if place.data_dir is not None and place.data_dir.exists():
        demand_private(place.data_dir)
    if not arguments.no_inmemory and selected & app.inmemory_names():
        folder = place.data_dir / "workload" if place.data_dir is not None else None
        first_port = random.randrange(FIRST_PORT, LAST_PORT)
        cloud = Cloud(now=clock.now, random=random, keys=keys, listener=TlsListener(), data_dir=folder, first_port=first_port)
        stack.push_async_callback(cloud.close)
    identity = new_identity(socket.gethostname(), os.getpid(), random)
    lease = ObjectKey(arguments.lease_namespace or place.namespace or LEASE_NAMESPACE, "clusterwright")
    shares = ShardOptions(
        group=lease._replace(name="clusterwright-shards"), belongs_to=belongs_to, identity=identity, times=arguments.times
    )
    health_host, health_port = arguments.health_probe_bind_address or ("127.0.0.1", arguments.health_port)
    options = Options(
        namespace=arguments.namespace,
        watch_filter=arguments.watch_filter,
        qps=arguments.qps,
        burst=arguments.burst,
        concurrency=arguments.passes,
        resync=arguments.resync.total_seconds() if arguments.resync else RESYNC,
        health_host=health_host,
        health_port=health_port,
        health_insight=arguments.health_probe_bind_address is None,
        health_guarded=arguments.metrics_secure != "false",
        metrics=metrics_address(arguments, clock),
        leader_election=lease if arguments.leader_elect else None,
        shards=shares if arguments.shard else None,
        identity=identity,
        lease_times=arguments.times,
        fence=place.fence,
        tracing=arguments.tracing,
        freeze_caches=True,
        grace_period=HAND_OVER if arguments.leader_elect or arguments.shard else GRACE_PERIOD,
    )
    manager = app.build_manager(
        place.transport,
        unfenced=place.unfenced,
        lease_transport=place.lease_transport,
        clock=clock,
        random=random,
        keys=keys,
        cloud=cloud,
        docker=place.is_embedded,  # elsewhere the real provider may be at work on them
        ipam=place.is_embedded,
        host=place.host,
        reach=connect.reach,
        options=options,
        features=arguments.features,
        flags=settings.controller_options(arguments),
        workloads=place.workloads,
        selected=selected,
    )
    if "crdmigrator" in selected and (place.is_embedded or arguments.install_crds or names_migrator(arguments.controllers)):
        app.add_migrator(manager, arguments.skipped)
    if place.webhooks is not None:
        app.watch_webhooks(manager, place.webhooks.set)
    if cloud is not None:
        manager.add_part("kubelets", cloud.run_kubelets)
    return manager, cloud


def start(arguments: argparse.Namespace, stack: AsyncExitStack, manager: Manager, cloud: Cloud | None, stop: asyncio.Event) -> Running:
    """Run the controllers until the stack unwinds; `stop` is set if they end before that."""
    if cloud is not None:
        cloud.on_failure(stop.set)
    task = asyncio.create_task(manager.run(), name="manager")

    def ended(done: asyncio.Task[None]) -> None:
        error = None if done.cancelled() else done.exception()
        if error is not None and not isinstance(error, OSError):
            foreseen = all(isinstance(part, LeadershipLost) for part in leaves(error))
            log.error("the controllers have stopped: %s", cause(error), exc_info=None if foreseen else error)
        stop.set()

    task.add_done_callback(ended)

    async def shut_down() -> None:
        manager.stop()
        await asyncio.wait([task])

    stack.push_async_callback(shut_down)
    given = {f"--{flag.replace('_', '-')}": value for flag in _ADDRESSES if (value := getattr(arguments, flag)) is not None}
    return Running(task, cloud, manager, ", ".join(f"{flag} {_shown(value)}" for flag, value in given.items()))


_ADDRESSES = ("health_port", "health_probe_bind_address", "metrics_bind_address")


def _shown(address: int | tuple[str, int]) -> str:
    return f"{address[0]}:{address[1]}" if isinstance(address, tuple) else str(address)


def cause(error: BaseException | None) -> str:
    """Return the error that ended a group of tasks, in one line."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return f"{type(error).__name__}: {error}"
