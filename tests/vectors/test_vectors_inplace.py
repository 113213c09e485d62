"""Updates in place: one pass agrees with every recorded pass of the kinds that take part."""

from __future__ import annotations

import pytest

from support.vectors import play


@pytest.mark.parametrize(("kind", "count"), [("Machine", 28), ("MachineSet", 29), ("MachineDeployment", 42)])
def test_every_recorded_pass_agrees(kind: str, count: int) -> None:
    played = play("inplace", taking=lambda vector: vector["subject"].startswith(f"{kind}/"))

    assert played.count >= count
    assert played.differing == {}
    assert played.contradictions == set()
