"""The objects of an engine: containers, networks, volumes, images, commands inside containers, events."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any
from urllib.parse import quote

from clusterwright.engine import commands
from clusterwright.engine.commands import Finished
from clusterwright.engine.connection import Connection
from clusterwright.engine.errors import Conflict, EngineError, Missing, Unsupported, refused
from clusterwright.engine.specs import Container, creation

LEAST: tuple[int, int] = (1, 41)
"""The used version of the API, unless the engine requires a later one."""
STOP_SECONDS = 5
PULL_SILENCE = 300.0

Json = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Version:
    """The type and version of an engine."""

    name: str
    """Docker or Podman."""
    version: str
    api: tuple[int, int]
    """The version of the API to use with it."""

    def __str__(self) -> str:
        return f"{self.name} {self.version}"


class Engine:
    """A container engine behind a Unix socket. Every method raises EngineError."""

    def __init__(self, socket: Path) -> None:
        self._connection = Connection(socket)
        self._version: Version | None = None

    @property
    def address(self) -> str:
        """The address, as a URL."""
        return f"unix://{self._connection.socket}"

    async def close(self) -> None:
        """Close all connections; safe to call twice."""
        await self._connection.close()

    async def version(self) -> Version:
        """Return the type and version of the engine; cached. Raises Unsupported for one that is too old."""
        if self._version is None:
            found = await self._connection.json("GET", "/version")
            names = [str(c.get("Name", "")) for c in found.get("Components") or [] if isinstance(c, dict)]
            name = "Podman" if any("podman" in n.lower() for n in names) else "Docker"
            newest, oldest = _number(found.get("ApiVersion")), _number(found.get("MinAPIVersion"))
            if newest < LEAST:
                served, needed = ".".join(map(str, newest)), ".".join(map(str, LEAST))
                raise Unsupported(
                    f"{name} at {self.address} serves API version {served}, but at least {needed} is needed: update the engine"
                )
            self._version = Version(name=name, version=str(found.get("Version", "")), api=max(LEAST, oldest))
        return self._version

    async def info(self) -> Json:
        """Return the engine's information about its host."""
        found: Json = await self._json("GET", "/info")
        return found

    async def _path(self, path: str) -> str:
        major, minor = (await self.version()).api
        return f"/v{major}.{minor}{path}"

    async def _json(self, method: str, path: str, query: Mapping[str, Any] | None = None, *, body: object = None) -> Any:
        return await self._connection.json(method, await self._path(path), query, body=body)

    # ------------------------------------------------------------------------------------------------ containers

    async def create(self, spec: Container) -> str:
        """Create a container without starting it. Return its id. Raises Conflict if the name is taken, Missing without the image."""
        made = await self._json("POST", "/containers/create", {"name": spec.name}, body=creation(spec))
        return str(made["Id"])

    async def start(self, container: str) -> None:
        """Start a container; a running one is left alone."""
        await self._json("POST", f"/containers/{_quoted(container)}/start")

    async def stop(self, container: str, seconds: int = STOP_SECONDS) -> None:
        """Stop a container; a stopped one is left alone."""
        await self._json("POST", f"/containers/{_quoted(container)}/stop", {"t": seconds})

    async def kill(self, container: str, signal: str) -> None:
        """Send a signal to a container's first process."""
        await self._json("POST", f"/containers/{_quoted(container)}/kill", {"signal": signal})

    async def remove(self, container: str) -> bool:
        """Remove a container with its unnamed volumes, running or not. Return False if there was none."""
        try:
            await self._json("DELETE", f"/containers/{_quoted(container)}", {"force": True, "v": True})
        except Missing:
            return False
        except Conflict as error:
            if "removal" in str(error) and "progress" in str(error):
                return True
            raise
        return True

    async def inspect(self, container: str) -> Json | None:
        """Return everything about a container; None if it does not exist."""
        with suppress(Missing):
            found: Json = await self._json("GET", f"/containers/{_quoted(container)}/json")
            return found
        return None

    async def containers(self, labels: Mapping[str, str]) -> list[Json]:
        """Return the containers with these labels, including stopped ones. An empty value stands for any."""
        return await self._json("GET", "/containers/json", {"all": True, "filters": _filters(labels)}) or []

    async def put(self, container: str, folder: str, tar: bytes) -> None:
        """Unpack a tar archive in a folder of the container, which need not run.

        It cannot write to a tmpfs; for files in a volume the folder is its mount point.
        """
        path = await self._path(f"/containers/{_quoted(container)}/archive")
        await self._connection.call("PUT", path, {"path": folder}, data=tar)

    async def has_path(self, container: str, path: str) -> bool:
        """Return whether a file or folder exists in a container, which need not run."""
        try:
            await self._connection.call("HEAD", await self._path(f"/containers/{_quoted(container)}/archive"), {"path": path})
        except Missing:
            return False
        return True

    async def run(
        self, container: str, command: Sequence[str], *, input: bytes | Path = b"", timeout: float = 60.0, most: int = commands.MOST_OUTPUT
    ) -> Finished:
        """Run a command in a container and return its result; `input` is its standard input, or the file with it.

        All users of the engine can see the command itself: pass secrets only through `input`.
        """
        body = {"AttachStdin": bool(input), "AttachStdout": True, "AttachStderr": True, "Cmd": list(command)}
        made = await self._json("POST", f"/containers/{_quoted(container)}/exec", body=body)
        path = await self._path(f"/exec/{made['Id']}/start")
        output = await commands.attached(self._connection, path, input, timeout=timeout, most=most)
        state = await self._json("GET", f"/exec/{made['Id']}/json")
        return Finished(code=int(state.get("ExitCode") or 0), output=output)

    # ------------------------------------------------------------------------------------------------ networks, volumes

    async def network(self, name: str) -> Json | None:
        """Return a network; None if it does not exist."""
        with suppress(Missing):
            found: Json = await self._json("GET", f"/networks/{_quoted(name)}")
            return found
        return None

    async def create_network(self, name: str, labels: Mapping[str, str], *, subnets: Sequence[str] = (), has_ipv6: bool = False) -> None:
        """Create a bridge network; an existing one of that name is left alone."""
        body = {
            "Name": name,
            "Driver": "bridge",
            "CheckDuplicate": True,
            "EnableIPv6": has_ipv6,
            "Labels": dict(labels),
            "IPAM": {"Driver": "default", "Config": [{"Subnet": subnet} for subnet in subnets]},
        }
        with suppress(Conflict):
            await self._json("POST", "/networks/create", body=body)

    async def networks(self, labels: Mapping[str, str]) -> list[Json]:
        """Return the networks with these labels."""
        return await self._json("GET", "/networks", {"filters": _filters(labels)}) or []

    async def remove_network(self, name: str) -> None:
        """Remove a network, if it exists."""
        with suppress(Missing):
            await self._json("DELETE", f"/networks/{_quoted(name)}")

    async def create_volume(self, name: str, labels: Mapping[str, str]) -> None:
        """Create a volume; an existing one of that name is left alone."""
        with suppress(Conflict):
            await self._json("POST", "/volumes/create", body={"Name": name, "Driver": "local", "Labels": dict(labels)})

    async def volumes(self, labels: Mapping[str, str]) -> list[Json]:
        """Return the volumes with these labels."""
        found = await self._json("GET", "/volumes", {"filters": _filters(labels)})
        return (found or {}).get("Volumes") or []

    async def remove_volume(self, name: str) -> None:
        """Remove a volume, if it exists."""
        with suppress(Missing):
            await self._json("DELETE", f"/volumes/{_quoted(name)}", {"force": True})

    # ------------------------------------------------------------------------------------------------ images, events

    async def has_image(self, image: str) -> bool:
        """Return whether the engine has an image."""
        try:
            await self._json("GET", f"/images/{quote(image, safe='/:@')}/json")
        except Missing:
            return False
        return True

    async def pull(self, image: str) -> AsyncGenerator[str, None]:
        """Pull an image and yield its progress repeatedly, in words."""
        name, tag = _reference(image)
        layers: dict[str, tuple[int, int]] = {}
        query = {"fromImage": name, "tag": tag}
        async for line in self._connection.lines("POST", await self._path("/images/create"), query, silence=PULL_SILENCE):
            if error := line.get("error"):
                raise refused(f"pull {image}", 500, str(error))
            detail = line.get("progressDetail") or {}
            if isinstance(detail.get("total"), int) and isinstance(detail.get("current"), int):
                layers[str(line.get("id"))] = (detail["current"], detail["total"])
            yield _progress(image, layers)

    async def import_image(self, image: str, tar: bytes) -> None:
        """Create an image of one layer from the tar archive of its files."""
        name, tag = _reference(image)
        found = ""
        query = {"fromSrc": "-", "repo": name, "tag": tag}
        async for line in self._connection.lines("POST", await self._path("/images/create"), query, data=tar):
            if error := line.get("error"):
                raise refused(f"import {image}", 500, str(error))
            found = str(line.get("status") or found)
        if not await self.has_image(image):  # Podman does not read the tag
            await self._json("POST", f"/images/{quote(found, safe=':')}/tag", {"repo": name, "tag": tag})

    async def save(self, image: str, path: Path) -> None:
        """Write an image, as an archive that engines and containerd import, into a file."""
        source = await self._path(f"/images/{quote(image, safe='/:@')}/get")
        await self._connection.download(source, path)

    async def now(self) -> str:
        """Return the engine's time, from which `events` can start."""
        said = str((await self.info()).get("SystemTime", ""))
        try:
            return f"{datetime.fromisoformat(said).timestamp():.6f}"
        except ValueError:
            raise EngineError(f"the engine's time {said!r} cannot be read") from None

    async def events(self, labels: Mapping[str, str], since: str) -> AsyncGenerator[Json, None]:
        """Yield events of containers with these labels since a time of the engine, until the connection breaks."""
        query = {"filters": json.dumps({"label": _labels(labels), "type": ["container"]}), "since": since}
        async for line in self._connection.lines("GET", await self._path("/events"), query, silence=None):
            yield line


def _quoted(name: str) -> str:
    return quote(name, safe="")


def _filters(labels: Mapping[str, str]) -> str:
    return json.dumps({"label": _labels(labels)})


def _labels(labels: Mapping[str, str]) -> list[str]:
    return [f"{name}={value}" if value else name for name, value in labels.items()]


def _number(version: object) -> tuple[int, int]:
    major, _, minor = str(version or "0.0").partition(".")
    try:
        return int(major), int(minor)
    except ValueError:
        raise EngineError(f"the engine's API version {version!r} cannot be read") from None


def _reference(image: str) -> tuple[str, str]:
    """Return an image's name, and its tag or digest."""
    name, at, digest = image.partition("@")
    if at:
        return name, digest
    head, colon, tag = image.rpartition(":")
    return (head, tag) if colon and "/" not in tag else (image, "latest")


def _progress(image: str, layers: Mapping[str, tuple[int, int]]) -> str:
    done, total = (sum(part) for part in zip(*layers.values(), strict=True)) if layers else (0, 0)
    return f"pulling {image}" + (f": {done / 1e6:.0f} of {total / 1e6:.0f} MB" if total else "")
