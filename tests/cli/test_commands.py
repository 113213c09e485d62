"""Every command is run as a process, with what it should take and with what it should refuse."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from cli.conftest import Run
from clusterwright.cli.grammar import COMMANDS

GOOD = {
    "install": ("install", "kind: Namespace"),
    "generate": ("generate cluster c", "kind: Cluster"),
    "incident": ("incident list", "cluster-api#14197"),
    "plan": ("plan --schema", "clusterwright plan -o json"),
    "tables": ("tables", "# cluster"),
    "crds": ("crds cluster", "kind: CustomResourceDefinition"),
    "convert": ("convert /dev/null", ""),
    "completion": ("completion bash", "complete -o default"),
    "envtest": ("envtest assets", "assets"),
    "complete": ("complete -- gener", "generate"),
    "version": ("version", "clusterwright "),
}
BESIDE_A_PLANE = {
    "up": "conftest.py",
    "manager": "test_manager.py",
    "adopt": "test_every_day.py",
    "create": "test_create.py",
    "tour": "test_tour.py",
    "get": "test_first_minutes.py",
    "describe": "test_first_minutes.py",
    "explain": "test_first_minutes.py",
    "delete": "test_first_minutes.py",
    "wait": "test_every_day.py",
    "timeline": "test_every_day.py",
    "mcp": "test_mcp.py",
    "web": "test_web.py",
    "fault": "test_every_day.py",
    "conformance": "test_conformance.py",
    "move": "test_move.py",
    "render": "test_every_day.py",
    "record": "test_first_minutes.py",
    "store": "test_every_day.py",
    "engine": "test_engine.py",
    "load": "test_engine.py",
    "provider": "test_provider.py",
}
"""Commands that need a management cluster, and the tests that run them beside one."""
BAD = {
    "up": ("up --listen nowhere", 1, "HOST:PORT is expected"),
    "manager": ("manager --kubeconfig nowhere", 1, "no kubeconfig found: nowhere"),
    "install": ("install --nonsense", 2, "--nonsense"),
    "adopt": ("adopt", 2, "--dry-run is required"),
    "create": ("create cluster c --kubeconfig nowhere", 1, "no kubeconfig found: nowhere"),
    "tour": ("tour --nonsense", 2, "--nonsense"),
    "generate": ("generate cluster c --from nowhere", 1, "nowhere: No such file or directory"),
    "get": ("get clusters -o nonsense", 2, "nonsense"),
    "describe": ("describe cluster/", 2, "'cluster/' is not KIND/NAME"),
    "explain": ("explain --from nowhere cluster c", 1, "nowhere: No such file or directory"),
    "delete": ("delete", 2, "required"),
    "wait": ("wait c --for nonsense", 2, "--for nonsense"),
    "timeline": ("timeline", 2, "required"),
    "web": ("web --kubeconfig nowhere", 1, "no kubeconfig found: nowhere"),
    "mcp": ("mcp --from nowhere", 1, "nowhere: No such file or directory"),
    "fault": ("fault nonsense", 2, "'nonsense'"),
    "conformance": ("conformance", 2, "a template is required"),
    "incident": ("incident replay 14198", 2, "near: cluster-api#14197"),
    "move": ("move", 2, "--to-kubeconfig"),
    "render": ("render machine/c", 2, "'machine/c' is not kubeadmconfig/NAME"),
    "record": ("record c --kubeconfig nowhere", 1, "no kubeconfig found: nowhere"),
    "store": ("store nonsense", 2, "'nonsense'"),
    "engine": ("engine list --engine unix:///nowhere", 1, "no container engine at /nowhere"),
    "load": ("load image c --engine unix:///nowhere", 2, "an image is expected"),
    "plan": ("plan --set spec.replicas=1", 1, "--set needs an --edit KIND/NAME before it"),
    "provider": ("provider add nowhere --binary sh", 1, "nowhere: No such file or directory"),
    "tables": ("tables Nonsense", 2, "no table 'Nonsense'"),
    "crds": ("crds nonsense", 2, "nonsense"),
    "convert": ("convert --to-version v1", 2, "expected one of v1beta2, v1beta1"),
    "completion": ("completion csh", 2, "'csh'"),
    "envtest": ("envtest /dev/null/assets", 1, "Not a directory"),
    "complete": ("complete --nonsense", 2, "--nonsense"),
    "version": ("version --nonsense", 2, "--nonsense"),
}


def test_no_command_is_forgotten() -> None:
    assert set(GOOD).isdisjoint(BESIDE_A_PLANE)
    assert set(GOOD) | set(BESIDE_A_PLANE) == set(BAD) == set(COMMANDS)


@pytest.mark.parametrize("command", GOOD)
def test_good_input(command: str, alone: Run) -> None:
    line, said = GOOD[command]

    done = alone(*line.split())

    assert (done.returncode, done.stderr) == (0, "")
    assert said in done.stdout


@pytest.mark.parametrize("command", BAD)
def test_bad_input(command: str, alone: Run) -> None:
    """It is told in one line, which names the command and what is wrong; nothing else is done."""
    line, code, said = BAD[command]

    done = alone(*line.split())

    assert (done.returncode, done.stdout) == (code, "")
    complaint, *more = done.stderr.splitlines()
    assert complaint.startswith(f"clusterwright {command}: ")
    assert said in complaint
    assert command == "tables" or more == []  # it names those that there are


@pytest.mark.parametrize(("command", "module"), BESIDE_A_PLANE.items())
def test_good_input_is_tried_against_a_plane(command: str, module: str) -> None:
    tree = ast.parse((Path(__file__).parent / module).read_text())
    called = [node for node in ast.walk(tree) if isinstance(node, ast.Call)]
    words = {a.value for call in called for top in call.args for a in ast.walk(top) if isinstance(a, ast.Constant)}

    assert command in words
