"""Find the engine that `--engine` names."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path

from clusterwright.engine.client import Engine, Version
from clusterwright.engine.errors import EngineError, Unreachable

CHOICES = "auto, docker, podman, or unix:///PATH of its socket"


class BadEngine(ValueError):
    """The name is not that of an engine."""


def sockets(name: str, environ: Mapping[str, str]) -> list[Path]:
    """Return the sockets to try for `auto`, `docker`, `podman` or `unix:///PATH`, best first; raises BadEngine."""
    if name.startswith("unix://"):
        path = name.removeprefix("unix://")
        if not path.startswith("/"):
            raise BadEngine(f"{name!r} does not name an absolute path: write unix:///PATH")
        return [Path(path)]
    if name not in {"auto", "docker", "podman"}:
        raise BadEngine(f"{name!r} is not an engine: {CHOICES} is expected")
    found: list[Path] = []
    if name in {"auto", "docker"}:
        found += _docker(environ)
    if name in {"auto", "podman"}:
        found += _podman(environ)
    return list(dict.fromkeys(found))


def _docker(environ: Mapping[str, str]) -> Iterator[Path]:
    if (host := environ.get("DOCKER_HOST", "")).startswith("unix://"):
        yield Path(host.removeprefix("unix://"))
    yield Path("/var/run/docker.sock")
    yield Path(environ.get("XDG_RUNTIME_DIR") or f"/run/user/{os.getuid()}") / "docker.sock"
    if home := environ.get("HOME"):
        yield Path(home) / ".docker/run/docker.sock"


def _podman(environ: Mapping[str, str]) -> Iterator[Path]:
    if (host := environ.get("CONTAINER_HOST", "")).startswith("unix://"):
        yield Path(host.removeprefix("unix://"))
    if os.getuid() == 0:
        yield Path("/run/podman/podman.sock")
    yield Path(environ.get("XDG_RUNTIME_DIR") or f"/run/user/{os.getuid()}") / "podman/podman.sock"


async def connect(name: str, environ: Mapping[str, str]) -> tuple[Engine, Version]:
    """Return the first engine that answers, and its version; raises BadEngine, or the most helpful EngineError."""
    candidates = sockets(name, environ)
    failure: EngineError | None = None
    for socket in candidates:
        engine = Engine(socket)
        try:
            return engine, await engine.version()
        except EngineError as error:
            await engine.close()
            if failure is None or isinstance(failure, Unreachable):
                failure = error
    if len(candidates) > 1 and isinstance(failure, Unreachable):
        tried = ", ".join(str(socket) for socket in candidates)
        raise Unreachable(
            f"no container engine answers (tried {tried}): start Docker or Podman, or name its socket with --engine unix:///PATH"
        )
    raise failure or Unreachable(f"no container engine {name!r}")
