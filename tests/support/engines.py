"""Container engines that tests can use, and a tiny image for them. Where there is none, tests are skipped and say so."""

from __future__ import annotations

import asyncio
import io
import os
import shutil
import stat
import subprocess
import sys
import tarfile
import uuid
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import cache
from pathlib import Path

import pytest

from clusterwright.containers.naming import PLANE_LABEL
from clusterwright.engine import Container, Engine, EngineError
from clusterwright.engine.locate import sockets

ENGINES = "CLUSTERWRIGHT_TEST_ENGINES"
"""Names the sockets of the engines to test on, separated by commas; without it, the usual sockets are tried."""
IMAGE = "localhost/clusterwright-test:5"
TEST_LABEL = "clusterwright.test"

KUBECTL = b"""#!/bin/sh
# the Node of this machine: all that is known of it is its providerID
case "$*" in
  *" patch "*) echo "$*" | sed 's/.*"providerID": "\\([^"]*\\)".*/\\1/' > /var/provider-id;;
  *) cat /var/provider-id 2>/dev/null || true;;
esac
"""
INIT = ("/bin/sh", "-c", "trap 'exit 0' TERM; while :; do sleep 1 & wait $!; done")
"""The first process of a container: it ends when it is told to."""


CTR = b"""#!/bin/sh
# containerd's client: an image is imported if it is an archive with the image's manifest
cat > /var/image.tar && grep -q manifest.json /var/image.tar && echo "$@" >> /var/imported
"""


def found() -> list[Path]:
    """The sockets of engines on this machine."""
    named = os.environ.get(ENGINES)
    paths = [Path(part) for part in named.split(",") if part] if named is not None else sockets("auto", os.environ)
    return [path for path in paths if _is_socket(path)]


def _is_socket(path: Path) -> bool:
    try:
        return stat.S_ISSOCK(path.stat().st_mode) and os.access(path, os.W_OK)
    except OSError:
        return False


def busybox() -> str | None:
    """A busybox that needs no libraries."""
    path = shutil.which("busybox")
    return path if path and b"ld-linux" not in Path(path).read_bytes()[:4096] else None


def why_not() -> str:
    """Why nothing can be tested on an engine here; empty: something can."""
    if not found():
        return f"NO CONTAINER ENGINE: nothing was tried on a real one; start Docker or Podman, or name a socket in {ENGINES}"
    if busybox() is None:
        return "NO BUSYBOX: nothing was tried on a real container engine; install busybox-static"
    return ""


def demand() -> None:
    """Skip the whole module, with one line that says why, where there is no engine."""
    if reason := why_not():
        pytest.skip(reason, allow_module_level=True)


@cache
def files() -> bytes:
    """The image: busybox under the names of its most used programs."""
    program = busybox()
    assert program is not None
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as tar:
        for folder, mode in (("bin", 0o755), ("etc", 0o755), ("tmp", 0o777), ("var", 0o755), ("run", 0o755), ("root", 0o700)):
            entry = tarfile.TarInfo(folder)
            entry.type, entry.mode = tarfile.DIRTYPE, mode
            tar.addfile(entry)
        tar.add(program, "bin/busybox")
        for name in (
            "sh",
            "sleep",
            "cat",
            "mkdir",
            "chmod",
            "chown",
            "echo",
            "ls",
            "id",
            "test",
            "rm",
            "mv",
            "cp",
            "sed",
            "head",
            "stat",
            "kill",
            "grep",
            "date",
            "true",
        ):
            entry = tarfile.TarInfo(f"bin/{name}")
            entry.type, entry.linkname = tarfile.SYMTYPE, "busybox"
            tar.addfile(entry)
        for path, content, mode in (
            ("etc/passwd", b"root:x:0:0:root:/root:/bin/sh\n", 0o644),
            ("bin/kubectl", KUBECTL, 0o755),
            ("bin/ctr", CTR, 0o755),
        ):
            entry = tarfile.TarInfo(path)
            entry.size, entry.mode = len(content), mode
            tar.addfile(entry, io.BytesIO(content))
    return buffer.getvalue()


@asynccontextmanager
async def engine_for_tests(socket: Path) -> AsyncIterator[tuple[Engine, str]]:
    """An engine that has the image, and a mark: everything that has it as `TEST_LABEL`, or as the name of its plane, is removed afterwards."""
    mark, engine = uuid.uuid4().hex[:12], Engine(socket)
    try:
        if not await engine.has_image(IMAGE):
            await engine.import_image(IMAGE, files())
        try:
            yield engine, mark
        finally:
            for labels in ({TEST_LABEL: mark}, {PLANE_LABEL: mark}):
                for container in await engine.containers(labels):
                    await engine.remove(container["Id"])
                for network in await engine.networks(labels):
                    await engine.remove_network(network["Name"])
                for volume in await engine.volumes(labels):
                    await engine.remove_volume(volume["Name"])
    finally:
        await engine.close()


def names() -> list[str]:
    """The engines, for parameters of tests."""
    return [str(path) for path in found()]


HAPROXY_IMAGE = "localhost/clusterwright-test-haproxy:1"


@cache
def haproxy_files() -> bytes | None:
    """An image of this machine's haproxy with its libraries; None: there is no haproxy."""
    program, linker = shutil.which("haproxy"), shutil.which("ldd")
    if program is None or linker is None:
        return None
    listed = subprocess.run([linker, program], capture_output=True, text=True, check=True).stdout
    libraries = [Path(word) for word in listed.split() if word.startswith("/")]
    buffer = io.BytesIO(files())
    with tarfile.open(fileobj=buffer, mode="a") as tar:
        for path in (Path(program), *libraries):
            tar.add(path.resolve(), str(path) if path in libraries else "usr/sbin/haproxy")
    return buffer.getvalue()


async def have_haproxy(engine: Engine) -> None:
    """Give an engine the image of haproxy, or skip the test."""
    content = haproxy_files()
    if content is None:
        pytest.skip("NO HAPROXY: the load balancer was not tried; install haproxy")
    if not await engine.has_image(HAPROXY_IMAGE):
        await engine.import_image(HAPROXY_IMAGE, content)


async def _can_run(socket: Path) -> str:
    """Why the engine cannot run a privileged container; empty: it can."""
    try:
        async with engine_for_tests(socket) as (engine, mark):
            name = f"cw-{mark}"
            await engine.create_network(name, {TEST_LABEL: mark})
            spec = Container(
                name=name, image=IMAGE, labels={TEST_LABEL: mark}, entrypoint=("sleep", "60"), network=name, is_privileged=True
            )
            await engine.create(spec)
            await engine.start(name)
            done = await engine.run(name, ["true"])
            return "" if done.code == 0 else done.text
    except EngineError as error:
        return str(error)


if __name__ == "__main__":
    if complaint := asyncio.run(_can_run(Path(sys.argv[1]))):
        sys.exit(f"it cannot run privileged containers: {complaint}")
