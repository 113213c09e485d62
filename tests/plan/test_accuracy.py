"""Plans come true: random changes of random clusters are planned, then made, and both are compared.

Compared are refusals, the objects that are created (by kind and owner, because names end in random texts), replaced and deleted, the
order in which the Machines of control planes go, whether the change ends, and how long it takes.
"""

from __future__ import annotations

import pytest

from clusterwright.testing import run_virtual, virtual_plane
from support.accuracy import FEATURES, one_world


def _differences(seed: int, changes: int, *, small: bool = False) -> list[str]:
    async def main() -> list[str]:
        async with virtual_plane(seed=seed + 1000, features=FEATURES) as p:
            return await one_world(p, seed, changes, small=small)

    return run_virtual(main())


def test_a_slice_of_plans_comes_true():
    assert _differences(2, 3, small=True) == []


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(125))
def test_plans_come_true(seed: int):
    assert _differences(seed, 4) == []
