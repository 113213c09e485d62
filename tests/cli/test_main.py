from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from clusterwright.cli import main as command
from clusterwright.cli.grammar import COMMANDS
from support.forks import program
from tools import reference


def test_without_a_command_the_usage_is_printed_and_it_fails(capsys: pytest.CaptureFixture[str]) -> None:
    assert command.main([]) == 2

    said = capsys.readouterr().out
    assert all(name in said for name, entry in COMMANDS.items() if entry.summary)


def test_names_and_summaries_of_commands_are_columns(capsys: pytest.CaptureFixture[str]) -> None:
    assert command.main(["--help"]) == 0
    lines = [line for line in capsys.readouterr().out.splitlines() if line.startswith("  ")]

    [start] = {line.index(COMMANDS[line.split()[0]].summary) for line in lines}
    assert all(line[start - 2 : start] == "  " for line in lines)


def test_an_unknown_command_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    assert command.main(["upp"]) == 2

    assert "unknown command 'upp'" in capsys.readouterr().err


def test_the_version_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    assert command.main(["--version"]) == 0

    assert capsys.readouterr().out.startswith("clusterwright ")


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_explains_itself(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert command.main([name, "--help"]) == 0

    assert f"clusterwright {name}" in capsys.readouterr().out


def test_no_flag_is_left_unexplained() -> None:
    assert "` |  |" not in reference.as_markdown()


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["up", "--feature-gates", "Nope=true"], "'Nope' is not known"),
        (["up", "--feature-gates", "MachinePool=maybe"], "NAME=true or NAME=false"),
        (["up", "--feature-gates", "InPlaceUpdates=true"], "InPlaceUpdates needs RuntimeSDK"),
        (["up", "--against", "x", "--no-controllers"], "nothing would run"),
    ],
)
def test_bad_arguments_are_named(arguments: list[str], complaint: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert command.main(arguments) == 2

    assert complaint in capsys.readouterr().err


@pytest.mark.parametrize("arguments", [["get", "clusters"], ["describe", "cluster", "x"], ["delete", "cluster", "x"]])
def test_a_missing_kubeconfig_is_a_clear_error(arguments: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert command.main([*arguments, "--kubeconfig", str(tmp_path / "none")]) == 1

    assert "no kubeconfig found" in capsys.readouterr().err


def test_an_invalid_address_is_a_clear_error(tmp_path: Path) -> None:
    done = subprocess.run(
        [*program(), "up", "--listen", "nonsense", "--in-memory"], cwd=tmp_path, capture_output=True, text=True, check=False
    )

    assert done.returncode == 1
    assert "HOST:PORT is expected" in done.stderr


def test_the_demo_comes_up_says_what_to_try_and_ends_cleanly(tmp_path: Path) -> None:
    """What `make run` does, in a folder of its own."""
    out, err = tmp_path / "out", tmp_path / "err"
    with out.open("w") as stdout, err.open("w") as stderr:
        process = subprocess.Popen(
            [sys.executable, "-m", "clusterwright.cli.main", "up", "--demo"], cwd=tmp_path, stdout=stdout, stderr=stderr, text=True
        )
    try:
        deadline = time.monotonic() + 600  # a net, not a measurement
        while "Ctrl-C ends it" not in out.read_text():
            assert process.poll() is None, err.read_text()
            assert time.monotonic() < deadline, out.read_text()
            time.sleep(0.2)
        environment = {k: v for k, v in os.environ.items() if k != "KUBECONFIG"}
        explained = subprocess.run(
            [*program(), "explain", "kubeadmcontrolplane/demo"],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            env=environment,
            check=False,
        )
        assert explained.returncode == 0, explained.stderr
        process.send_signal(signal.SIGTERM)
        assert process.wait(timeout=600) == 0
    finally:
        process.kill()
        process.wait()

    said = out.read_text()
    assert "API server is ready at https://127.0.0.1:" in said
    assert "control plane 3/3 ready  workers 3/3 ready" in said
    assert err.read_text() == ""
    assert (tmp_path / ".clusterwright" / "kubeconfig").stat().st_mode & 0o777 == 0o600
