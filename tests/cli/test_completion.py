from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from cli.conftest import environment
from clusterwright.cli.completion import candidates
from clusterwright.cli.grammar import COMMANDS
from clusterwright.cli.main import main


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["de"], ["describe", "delete"]),
        (["get", "--out"], ["--output"]),
        (["get", "clusters", "-o", "j"], ["json"]),
        (["get", "clusters", "--output=y"], ["--output=yaml"]),
        (["get", "machinep"], ["machinepool"]),
        (["get", "-A", "kubeadmcontrolplanet"], ["kubeadmcontrolplanetemplate"]),
        (["store", "re"], ["repair", "restore"]),
        (["store", "backup", "--data"], ["--data-dir"]),
        (["completion", ""], ["bash", "zsh", "fish"]),
        (["create", "--flavor", "h"], ["health-check"]),
        (["up", "--config", ""], []),
        (["nope", ""], []),
    ],
    ids=" ".join,
)
def test_what_may_come_next(words: list[str], expected: list[str]) -> None:
    assert candidates(words) == expected


def test_every_command_that_is_for_people_is_offered() -> None:
    assert candidates([]) == candidates([""]) == [name for name, command in COMMANDS.items() if command.summary]


def test_names_are_not_offered_where_nobody_answers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("KUBECONFIG", raising=False)

    assert candidates(["describe", "cluster", ""]) == []


def test_an_unknown_shell_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["completion", "csh"]) == 2
    assert "'csh'" in capsys.readouterr().err


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_scripts_are_what_the_shell_reads(shell: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    if shutil.which(shell) is None:
        pytest.skip(f"{shell} is not installed")
    assert main(["completion", shell]) == 0
    script = tmp_path / "script"
    script.write_text(capsys.readouterr().out)

    done = subprocess.run([shell, "-n", str(script)], capture_output=True, text=True, check=False)

    assert (done.returncode, done.stderr) == (0, "")


def test_bash_completes(tmp_path: Path) -> None:
    if shutil.which("bash") is None:
        pytest.skip("bash is not installed")
    program = tmp_path / "clusterwright"
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m clusterwright "$@"\n')
    program.chmod(0o755)
    ask = (
        f'source <("{program}" completion bash); COMP_WORDS=("{program}" get --sel); COMP_CWORD=2; _clusterwright; echo "${{COMPREPLY[@]}}"'
    )

    done = subprocess.run(["bash", "-c", ask], env=environment(tmp_path), capture_output=True, text=True, check=True)

    assert done.stdout == "--selector\n"
