from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from cli.conftest import environment
from clusterwright.cli.completion import candidates
from clusterwright.cli.forms import form
from clusterwright.cli.grammar import COMMANDS
from clusterwright.cli.main import main
from support.terminals import openpty


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["de"], ["describe", "delete"]),
        (["get", "--out"], ["--output"]),
        (["get", "clusters", "-o", "j"], ["json", "jsonpath="]),
        (["get", "clusters", "--output=y"], ["--output=yaml"]),
        (["get", "machinep"], ["machinepool"]),
        (["get", "-A", "kubeadmcontrolplanet"], ["kubeadmcontrolplanetemplate"]),
        (["store", "re"], ["repair", "restore"]),
        (["store", "backup", "--data"], ["--data-dir"]),
        (["completion", ""], ["bash", "zsh", "fish"]),
        (["fault", "inject", "machine/m", "node"], ["node-dies"]),
        (["fault", "remove", "cluster", "c", "api-server-u"], ["api-server-unreachable"]),
        (["create", "--flavor", "h"], ["health-check"]),
        (["up", "--config", ""], []),
        (["nope", ""], []),
    ],
    ids=" ".join,
)
def test_completions_are_offered(words: list[str], expected: list[str]) -> None:
    assert candidates(words) == expected


def test_every_form_of_get_that_is_offered_is_accepted() -> None:
    for offered in candidates(["get", "clusters", "-o", ""]):
        form({"jsonpath=": "jsonpath={.kind}", "custom-columns=": "custom-columns=A:.kind"}.get(offered, offered))


def test_every_command_that_is_for_people_is_offered() -> None:
    assert candidates([]) == candidates([""]) == [name for name, command in COMMANDS.items() if command.summary]


def test_names_are_not_offered_without_a_server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("KUBECONFIG", raising=False)

    assert candidates(["describe", "cluster", ""]) == []


def test_an_unknown_shell_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["completion", "csh"]) == 2
    assert "'csh'" in capsys.readouterr().err


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_scripts_are_valid_for_the_shell(shell: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    if shutil.which(shell) is None:
        pytest.skip(f"{shell} is not installed")
    assert main(["completion", shell]) == 0
    script = tmp_path / "script"
    script.write_text(capsys.readouterr().out)

    done = subprocess.run([shell, "-n", str(script)], capture_output=True, text=True, check=False)

    assert (done.returncode, done.stderr) == (0, "")


def installed(shell: str, folder: Path) -> dict[str, str]:
    """The environment of a shell that finds the program; skips where the shell is not there, loudly."""
    if shutil.which(shell) is None:
        pytest.skip(f"{shell} is not installed: its completion is NOT tried")
    program = folder / "clusterwright"
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m clusterwright "$@"\n')
    program.chmod(0o755)
    found = environment(folder)
    return {**found, "PATH": f"{folder}{os.pathsep}{found['PATH']}", "TERM": "dumb"}


def test_bash_completes(tmp_path: Path) -> None:
    env = installed("bash", tmp_path)
    ask = (
        "source <(clusterwright completion bash); COMP_WORDS=(clusterwright get --sel); COMP_CWORD=2; _clusterwright; echo ${COMPREPLY[@]}"
    )

    done = subprocess.run(["bash", "-c", ask], env=env, capture_output=True, text=True, check=True)

    assert done.stdout == "--selector\n"


@pytest.mark.parametrize(
    ("typed", "offered"),
    [
        ("get --sel", ["--selector"]),
        ("completion ", ["bash", "fish", "zsh"]),
        ("get clusters -o j", ["json"]),
        ("up --config cl", ["clusterwright"]),
    ],
)
def test_fish_completes(typed: str, offered: list[str], tmp_path: Path) -> None:
    env = installed("fish", tmp_path)
    ask = f"clusterwright completion fish | source; complete -C 'clusterwright {typed}'"

    done = subprocess.run(["fish", "--no-config", "-c", ask], cwd=tmp_path, env=env, capture_output=True, text=True, check=True)

    assert sorted(line.split("\t")[0] for line in done.stdout.splitlines()) == offered


def test_zsh_completes(tmp_path: Path) -> None:
    """At a terminal, by the key: zsh completes nowhere else."""
    env = installed("zsh", tmp_path)
    screen, terminal = openpty()
    shell = subprocess.Popen(
        ["zsh", "-f", "-i"], env=env, cwd=tmp_path, stdin=terminal, stdout=terminal, stderr=terminal, start_new_session=True
    )
    os.close(terminal)

    def until(text: str) -> str:
        seen = ""
        while text not in seen:
            seen += os.read(screen, 4096).decode(errors="replace")  # ends with an OSError when the shell does
        return seen

    try:
        os.write(screen, b"PS1='rea''dy> '; autoload -U compinit && compinit -u -D && source <(clusterwright completion zsh)\n")
        until("ready> ")
        os.write(screen, b"clusterwright get --sel\t")
        until("--selector")
        os.write(screen, b"\x15clusterwright get clusters -o j\t")
        until("-o json")
    finally:
        shell.kill()
        shell.wait()
        os.close(screen)
