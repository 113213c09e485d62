"""`clusterwright provider new`: what it writes keeps the contract, and runs with the rights of its release."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from clusterwright.providers import skeleton
from clusterwright.providers.deployment import BadRelease
from clusterwright.providers.release import contract_problems, read
from support.forks import program


def test_the_skeleton_passes_its_own_test_and_can_be_added(tmp_path: Path) -> None:
    made = subprocess.run([*program(), "provider", "new", "rack-seven"], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert made.returncode == 0, made.stderr
    folder = tmp_path / "rack-seven"

    release = list(yaml.safe_load_all((folder / "release.yaml").read_text()))
    found = read(release)
    assert (found.name, found.type, found.namespace, found.left_out) == (
        "infrastructure-rack-seven",
        "InfrastructureProvider",
        "rack-seven-system",
        (),
    )
    assert contract_problems(release) == []
    assert os.access(folder / "provider.py", os.X_OK)
    tested = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_provider.py"],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )
    assert "1 passed" in tested.stdout, tested.stdout

    again = subprocess.run([*program(), "provider", "new", "rack-seven"], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (again.returncode, again.stderr) == (1, "clusterwright provider: rack-seven exists already: choose another one with --folder\n")


@pytest.mark.parametrize("name", ["", "Rack", "7up", "a/b", "..", "a" * 31])
def test_a_bad_name_is_refused(name: str) -> None:
    with pytest.raises(BadRelease, match="cannot be used"):
        skeleton.files(name, "/usr/bin/python3", lambda name: [])
