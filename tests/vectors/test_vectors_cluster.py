"""One pass of the Cluster controller agrees with every recorded pass, letter for letter."""

from __future__ import annotations

import pytest

from support.vectors import Played, play


@pytest.fixture(scope="module")
def played() -> Played:
    return play("cluster")


def test_every_recorded_pass_of_the_cluster_controller_agrees(played: Played) -> None:
    assert played.count >= 1452
    assert played.differing == {}


def test_no_recorded_pass_contradicts_a_table(played: Played) -> None:
    assert played.decided
    assert played.contradictions == set()
