"""What newcomers type, rightly and wrongly: one clear line and the right exit status, never a traceback."""

from __future__ import annotations

import os
import re
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from cli.conftest import Run, environment, start, stop
from clusterwright.cli.main import main
from clusterwright.cli.program import as_called


def test_the_module_is_the_program(alone: Run) -> None:
    done = alone("--version")

    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("clusterwright ")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--data-dir", "/dev/null"], "--data-dir: /dev/null is not writable"),
        (["--data-dir", "{file}"], "is not writable"),
        (["--data-dir", "/proc/x"], "--data-dir: /proc/x is not writable"),
        (["--kubeconfig", "{file}/x"], "is not writable"),
        (["--kubeconfig", "{folder}"], "is a directory"),
        (["--audit-log", "{file}/x", "--in-memory"], "is not writable"),
        (["--health-port", "99999999"], "--health-port: '99999999' is not a port"),
        (["--concurrency", "x"], "--concurrency x: CONTROLLER=N with a positive number is expected"),
        (["--concurrency", "machine=0"], "--concurrency machine=0: CONTROLLER=N with a positive number"),
        (["--concurrency", "foo=3"], "no controller 'foo'; known: cluster"),
    ],
    ids=lambda v: " ".join(v) if isinstance(v, list) else "",
)
def test_a_flag_that_cannot_be_used_is_named(
    arguments: list[str], said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.chdir(tmp_path)

    assert main(["up", *(a.format(file=tmp_path / "file", folder=tmp_path) for a in arguments)]) == 2

    assert said in capsys.readouterr().err.splitlines()[-1]


def test_a_health_port_that_is_taken_is_named(alone: Run) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]

        done = alone("up", "--in-memory", "--health-port", str(port))

    assert done.returncode == 1
    assert done.stderr.startswith(f"clusterwright up: --health-port {port}: ")
    assert len(done.stderr.splitlines()) == 1


@pytest.mark.parametrize("module", ["clusterwright.cli.up", "clusterwright.apiserver.serving.serve"])
def test_an_interrupt_during_the_start_is_quiet(module: str, tmp_path: Path) -> None:
    """The process interrupts itself when it comes to import a module: no matter how fast it is, it is still starting."""
    (tmp_path / "sitecustomize.py").write_text(f"""
import os, signal, sys

signal.signal(signal.SIGINT, signal.default_int_handler)  # who starts tests in the background may have it ignored

class Interrupt:
    def find_spec(self, name, path=None, target=None):
        if name == {module!r}:
            os.kill(os.getpid(), signal.SIGINT)

sys.meta_path.insert(0, Interrupt())
""")

    done = subprocess.run(
        [sys.executable, "-m", "clusterwright", "up"],
        cwd=tmp_path,
        env=environment(tmp_path, PYTHONPATH=str(tmp_path)),
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )

    assert (done.returncode, done.stderr) == (130, "")


def test_without_any_kubeconfig_all_places_are_named(alone: Run, tmp_path: Path) -> None:
    done = alone("get", "clusters")

    assert done.returncode == 1
    assert len(done.stderr.splitlines()) == 1
    for place in ("$KUBECONFIG", ".clusterwright/kubeconfig", str(tmp_path / ".kube" / "config"), "clusterwright up` running"):
        assert place in done.stderr


def test_the_port_is_kept_with_the_data_and_a_stopped_plane_is_reported_plainly(tmp_path: Path, alone: Run) -> None:
    ports = []
    for _ in range(2):
        process = start(tmp_path, "--no-controllers")
        ports.append(re.findall(r"https://127\.0\.0\.1:(\d+)", (tmp_path / "out").read_text()))
        stop(process)

    assert set(ports[0]) == set(ports[1]) != set()
    for arguments in (["get", "clusters"], ["describe", "c"], ["explain", "c"], ["delete", "c"], ["record", "c"]):
        done = alone(*arguments)
        assert done.returncode == 1
        assert f"no answer from https://127.0.0.1:{ports[0][0]} (connection refused): is `" in done.stderr
        assert len(done.stderr.splitlines()) == 1


@pytest.mark.parametrize(
    "arguments",
    [
        ["get", "clusters", "nope"],
        ["get", "cl/nope"],
        ["get", "machines", "nope"],
        ["get", "kubeconfig", "nope"],
        ["describe", "cluster", "nope"],
        ["describe", "cluster/nope"],
        ["describe", "nope"],
        ["explain", "cluster", "nope"],
        ["explain", "kcp/nope"],
        ["delete", "cluster/nope"],
        ["delete", "nope"],
        ["record", "cl", "nope"],
    ],
    ids=" ".join,
)
def test_a_missing_object_is_not_found(arguments: list[str], plane: Run) -> None:
    done = plane(*arguments)

    assert done.returncode == 1
    assert "nope" in done.stderr
    assert "not found" in done.stderr
    assert len(done.stderr.splitlines()) == 1


@pytest.mark.parametrize("arguments", [["get", "widgets"], ["wait", "widget/w"], ["delete", "widget/w"]], ids=" ".join)
def test_an_unknown_kind_is_named(arguments: list[str], plane: Run) -> None:
    done = plane(*arguments)

    assert done.returncode == 2
    assert "is not a known kind, also not to the API server" in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_kinds_that_only_the_server_knows_are_found(plane: Run) -> None:
    for words in (["dockerclusters"], ["DockerCluster"], ["dockermachines.infrastructure.cluster.x-k8s.io", "-A"], ["cs"]):
        done = plane("get", *words)
        assert done.returncode == 0, done.stderr
    assert plane("get", "dockercluster/nope").returncode == 1
    assert plane("wait", "dockercluster/nope", "--for", "delete").returncode == 0


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["get", "kubeconfig"], "needs exactly one argument"),
        (["get", "clusters", "x", "-A"], "cannot be combined"),
        (["describe", "machine/x"], "does not name a cluster"),
        (["describe", "cluster", "x", "y"], "unexpected argument 'y'"),
        (["describe", "cluster"], "needs a name"),
        (["explain", "cluster"], "needs a name"),
        (["delete", "cluster/"], "is not KIND/NAME"),
    ],
    ids=lambda v: " ".join(v) if isinstance(v, list) else "",
)
def test_meaningless_arguments_are_a_wrong_call(arguments: list[str], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(arguments) == 2
    assert said in capsys.readouterr().err.splitlines()[-1]


def test_hints_call_the_program_as_it_was_called(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    script = tmp_path / "bin" / "clusterwright"
    script.parent.mkdir()
    script.write_text("#!/bin/sh\n")
    script.chmod(0o755)
    called = ["/usr/bin/python3", str(script), "up"]

    assert as_called(called) == str(script)
    monkeypatch.setenv("PATH", f"{script.parent}{os.pathsep}{os.environ['PATH']}")
    assert as_called(called) == "clusterwright"
    assert as_called(["./venv/bin/python", "-m", "clusterwright", "up"]) == "./venv/bin/python -m clusterwright"
