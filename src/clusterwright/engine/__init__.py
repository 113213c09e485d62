"""A client for the API that Docker and Podman serve on a Unix socket: containers, networks, volumes, images, commands, events.

It supports version 1.41 of that API and later. It has no code for clusters, and never starts a program: everything goes over the socket.
"""

from __future__ import annotations

from clusterwright.engine.client import Engine
from clusterwright.engine.errors import Conflict, Denied, EngineError, Full, Missing, Slow, Unreachable, Unsupported
from clusterwright.engine.specs import Container, Mount, PortMapping

__all__ = [
    "Conflict",
    "Container",
    "Denied",
    "Engine",
    "EngineError",
    "Full",
    "Missing",
    "Mount",
    "PortMapping",
    "Slow",
    "Unreachable",
    "Unsupported",
]
