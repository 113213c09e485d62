"""Every edge that the specification lists for topologies and for runtime extensions has a test that is named by its number.

`test_27_28_...` is about the edges 27 and 28, `test_57_to_60_...` about four of them. In files whose numbers are those of another list, an
`x` stands before each of these.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

TESTS = Path(__file__).parent
TEST = re.compile(r"^(?:async )?def test_(?P<numbers>(?:(?:to_)?x?\d+_)+)", re.MULTILINE)
LISTS = {
    "topology": (range(1, 164), ["controllers/topology", "controllers/clusterclass"]),
    "extensions": (range(1, 23), ["runtimesdk"]),
    "updates in place": (range(23, 38), ["controllers/*/test_in_place_*"]),
    "resource sets": (range(38, 55), ["controllers/clusterresourceset"]),
    "pools": (range(55, 68), ["controllers/machinepool"]),
}
ELSEWHERE = ["controllers/machine", "controllers/machineset", "scenarios"]


def numbers(name: str, mark: str = "") -> set[int]:
    """The edges that a test's name begins with."""
    found: list[int] = []
    for is_range, number in re.findall(rf"(?:^|(?<=_))(to_)?{mark}(\d+)_", name):
        found += range(found[-1] + 1, int(number) + 1) if is_range else [int(number)]
    return set(found)


def named_in(places: list[str], mark: str = "") -> set[int]:
    files = [f for place in places for f in TESTS.glob(place if "*" in place else f"{place}/test_*.py")]
    assert len(files) >= len(places)
    return {n for f in files for found in TEST.finditer(f.read_text()) for n in numbers(found["numbers"], mark)}


@pytest.mark.parametrize("name", LISTS)
def test_every_edge_has_a_test(name: str) -> None:
    edges, places = LISTS[name]

    assert set(edges) - named_in(places) - named_in(ELSEWHERE, "x") == set()


def test_how_names_are_read() -> None:
    assert numbers("57_to_60_") == {57, 58, 59, 60}
    assert numbers("31_32_") == {31, 32}
    assert (numbers("35_x31_"), numbers("35_x31_", "x")) == ({35}, {31})
