"""What conditions say may be long, and written by anybody: it is read in one go."""

from __future__ import annotations

import re
import time

import pytest

from clusterwright.golang.quantities import parse_quantity
from clusterwright.offline import missing, summaries
from clusterwright.offline.detectors.extensions import deferred
from clusterwright.offline.detectors.preflights import failures

PATTERNS = {
    "types": summaries._TYPE,
    "absences": missing._NOT_FOUND,
}


@pytest.mark.parametrize("name", PATTERNS)
@pytest.mark.parametrize("unit", ["a", "A", " ", "\n", "* ", "a.", "a-", "a ", 'a "', "a upgrade to version "])
def test_no_text_is_looked_through_again_and_again(name: str, unit: str) -> None:
    pattern: re.Pattern[str] = PATTERNS[name]
    text = unit * (20_000 // len(unit)) + "\x01"
    began = time.process_time()

    assert list(pattern.finditer(text)) == []

    assert time.process_time() - began < 2.0  # some took minutes for ten times as much


def test_nor_is_a_quantity() -> None:
    began = time.process_time()

    with pytest.raises(ValueError, match="quantities must match"):
        parse_quantity("0" * 100_000 + "!")

    assert time.process_time() - began < 2.0


def first(pattern: re.Pattern[str], text: str) -> object:
    return pattern.findall(text)[0]


def test_what_they_look_for_is_found() -> None:
    assert first(missing._NOT_FOUND, 'failed: clusters.cluster.x-k8s.io "ns/a" not found') == ("clusters", "a")
    (failure,) = failures('x\n  * MachineSet is old ("Skew" preflight check failed)')
    assert (failure.what, failure.check) == ("MachineSet is old", "Skew")
    held = deferred("* Workers md upgrade to version v1 deferred using a, b annotations")
    assert held is not None
    assert held[:2] == ("Workers md", "a, b")
    assert summaries._TYPE.findall("* Ready: x\n  Available: y") == ["Ready", "Available"]
