"""The container engine that `--engine` names, and the host that it runs on."""

from __future__ import annotations

import argparse
import os
from contextlib import AsyncExitStack
from ipaddress import ip_address
from pathlib import Path

from clusterwright.cli.errors import Failed, Usage
from clusterwright.containers.build import Host
from clusterwright.containers.site import NODE_IMAGE
from clusterwright.engine import Engine, EngineError
from clusterwright.engine.client import Version
from clusterwright.engine.locate import BadEngine, connect

RESOLVERS = ("/etc/resolv.conf", "/run/systemd/resolve/resolv.conf")
"""The resolver files. The second lists the upstream servers of a local resolver."""


async def opened(arguments: argparse.Namespace, stack: AsyncExitStack) -> Host:
    """Return the engine, and close it when the stack unwinds; raises Usage, Failed."""
    engine, version = await located(arguments.engine)
    stack.push_async_callback(engine.close)
    print(f"machines are containers of {version} at {engine.address}", flush=True)
    return Host(
        engine=engine,
        node_image=arguments.node_image or NODE_IMAGE,
        load_balancer_image=arguments.load_balancer_image,
        allows_host_mounts=arguments.engine_allow_host_mounts,
        name_servers=name_servers(),
        has_modules=Path("/lib/modules").is_dir(),
    )


def check(arguments: argparse.Namespace) -> None:
    """Refuse flags that only containers use when no engine is named; raises Usage."""
    for flag in ("node_image", "load_balancer_image", "engine_allow_host_mounts"):
        if getattr(arguments, flag) and not arguments.engine:
            raise Usage(f"--{flag.replace('_', '-')}: only for containers; name their engine with --engine")


async def located(name: str) -> tuple[Engine, Version]:
    """Return the engine of a name, and its location; raises Usage, Failed."""
    try:
        return await connect(name, os.environ)
    except BadEngine as error:
        raise Usage(f"--engine: {error}") from error
    except EngineError as error:
        raise Failed(f"--engine {name}: {error}") from error


def name_servers() -> tuple[str, ...]:
    """Return the host's name servers that containers can reach: those not on its loopback."""
    for path in RESOLVERS:
        try:
            lines = Path(path).read_text(encoding="utf-8", errors="replace").splitlines()
        except OSError:
            continue
        words = [line.split() for line in lines]
        found = tuple(w[1] for w in words if len(w) > 1 and w[0] == "nameserver" and _is_reachable(w[1]))
        if found:
            return found
    return ()


def _is_reachable(address: str) -> bool:
    try:
        return not ip_address(address).is_loopback
    except ValueError:
        return False
