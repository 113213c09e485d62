"""`create cluster`, and the examples, which are what it prints."""

from __future__ import annotations

from pathlib import Path

import pytest

from cli.conftest import Run
from clusterwright.cli.create import FLAVORS
from clusterwright.cli.main import main

EXAMPLES = Path(__file__).parents[2] / "examples"


@pytest.mark.parametrize("flavor", FLAVORS)
def test_an_example_is_what_is_created(flavor: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["create", flavor, "--flavor", flavor, "--dry-run"]) == 0
    assert capsys.readouterr().out == (EXAMPLES / f"{flavor}.yaml").read_text()


@pytest.mark.parametrize("flavor", FLAVORS)
def test_an_example_comes_up_and_goes(flavor: str, plane: Run) -> None:
    created = plane("create", "cluster", flavor, "--flavor", flavor, "--wait")

    assert (created.returncode, created.stderr) == (0, "")
    assert "control plane 1/1 ready  workers 1/1 ready  machines: 2 Running  " in created.stdout
    again = plane("create", flavor, "--flavor", flavor)
    assert again.returncode == 1
    assert "already exists" in again.stderr
    deleted = plane("delete", flavor)
    assert deleted.returncode == 0
    assert "2 Machines (" in deleted.stdout.splitlines()[0]


def test_a_control_plane_of_two_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["create", "c", "--control-plane-machines", "2"]) == 2
    assert "an odd number is expected" in capsys.readouterr().err
