"""Every recorded pass over a KubeadmConfig is decided as recorded, bootstrap data included."""

from __future__ import annotations

import pytest

from support.vectors import Played, play


@pytest.fixture(scope="module")
def played() -> Played:
    return play("kubeadmconfig")


def test_every_recorded_pass_over_a_kubeadmconfig_agrees(played: Played) -> None:
    assert played.count >= 1466
    assert played.differing == {}


def test_no_recorded_pass_contradicts_a_table(played: Played) -> None:
    assert played.decided
    assert played.contradictions == set()
