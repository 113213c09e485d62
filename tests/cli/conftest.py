"""Commands as processes, and one management plane for those that need one."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from support.forks import program

Run = Callable[..., "subprocess.CompletedProcess[str]"]


def environment(folder: Path, **more: str) -> dict[str, str]:
    """A user's environment without clusters of its own."""
    mine = {k: v for k, v in os.environ.items() if k not in {"KUBECONFIG", "KUBERNETES_SERVICE_HOST"}}
    return {**mine, "HOME": str(folder), "COLUMNS": "200", **more}


def run_in(folder: Path) -> Run:
    """How commands are run in a folder."""

    def run(*arguments: str, **more: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [*program(), *arguments], cwd=folder, env=environment(folder, **more), capture_output=True, text=True, timeout=600, check=False
        )

    return run


@pytest.fixture
def alone(tmp_path: Path) -> Run:
    """Commands in an empty folder, without a server."""
    return run_in(tmp_path)


def start(folder: Path, *arguments: str) -> subprocess.Popen[str]:
    """`clusterwright up`, ready."""
    out = folder / "out"
    with out.open("w") as stdout, (folder / "err").open("w") as stderr:
        process = subprocess.Popen(
            [*program(), "up", *arguments], cwd=folder, env=environment(folder), stdout=stdout, stderr=stderr, text=True
        )
    deadline = time.monotonic() + 600  # a net, not a measurement
    while "is ready at" not in out.read_text():
        assert process.poll() is None, (folder / "err").read_text()
        assert time.monotonic() < deadline, out.read_text()
        time.sleep(0.1)
    return process


def stop(process: subprocess.Popen[str]) -> None:
    """End it."""
    process.terminate()
    try:
        process.wait(timeout=60)
    finally:
        process.kill()


@contextmanager
def running(folder: Path, *arguments: str) -> Iterator[Path]:
    """A plane that runs in the folder meanwhile."""
    process = start(folder, *arguments)
    try:
        yield folder
    finally:
        stop(process)


@pytest.fixture(scope="module")
def plane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Run]:
    """Commands beside a plane that runs in the same folder."""
    with running(tmp_path_factory.mktemp("plane")) as folder:
        yield run_in(folder)
