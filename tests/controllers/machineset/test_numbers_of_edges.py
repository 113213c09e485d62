"""Every edge of the specification's lists for workers has a test that names its number."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

HERE = Path(__file__).parents[1]
LISTS = [
    pytest.param(("machineset", "machinedeployment"), r"s(\d\d)", 24, id="10.2 MachineSet"),
    pytest.param(("machineset", "machinedeployment"), r"d(\d\d)", 25, id="10.3 MachineDeployment"),
    pytest.param(("machinehealthcheck",), r"(\d\d)", 20, id="10.4 MachineHealthCheck"),
    pytest.param(("machinepool",), r"(\d\d)", 16, id="10.5 MachinePool"),
]


@pytest.mark.parametrize(("folders", "number", "last"), LISTS)
def test_no_edge_is_without_a_test(folders: tuple[str, ...], number: str, last: int) -> None:
    named = set()
    for path in (path for folder in folders for path in (HERE / folder).glob("test_*.py")):
        for head in re.findall(r"def test_((?:[sd]?\d\d_)+)", path.read_text(encoding="utf-8")):
            named |= {int(found[0]) for part in head.split("_") if (found := re.findall(f"^{number}$", part))}

    assert set(range(1, last + 1)) - named == set()
