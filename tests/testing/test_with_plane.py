"""What `with_plane` makes of a function."""

from __future__ import annotations

import asyncio
import inspect

import pytest

from clusterwright.api.core import Cluster
from clusterwright.runtime.errors import ApiError
from clusterwright.testing import START, Overdue, Plane, run_virtual, samples, virtual_plane, with_plane


@pytest.mark.parametrize("hours", [1, 48])
@with_plane()
async def test_parameters_after_the_plane_are_the_tests_own(plane: Plane, hours: int) -> None:
    await asyncio.sleep(3600 * hours)

    assert (plane.clock.now() - START).total_seconds() == 3600 * hours


@with_plane()
async def test_objects_are_judged_as_up_judges_them(plane: Plane) -> None:
    with pytest.raises(ApiError, match=r"spec\.version"):
        await plane.apply(samples.control_plane("c", replicas=1, version="soon"))


def test_a_test_that_fails_fails() -> None:
    @with_plane()
    async def fails(plane: Plane) -> None:
        raise ValueError("no")

    assert list(inspect.signature(fails).parameters) == []
    with pytest.raises(ValueError, match="no"):
        fails()


def test_a_missing_condition_error_shows_the_present_state() -> None:
    async def main() -> None:
        async with virtual_plane() as plane:
            await plane.apply(samples.cluster("c")[:1])
            await plane.until_condition(Cluster, "c", "InfrastructureReady", "True", within=300)

    with pytest.raises(
        Overdue, match=r"not reached within 300 s: InfrastructureReady=True of Cluster c; it says:\n(.*\n)*InfrastructureReady="
    ):
        run_virtual(main())


def test_two_planes_of_one_seed_take_the_same_steps() -> None:
    async def life() -> list[str]:
        async with virtual_plane(seed=3) as plane:
            await plane.apply([*samples.cluster("c"), *samples.machine("c", "cp-0", is_control_plane=True, seconds=2)])
            await plane.until_available("c")
            return [str(plane.clock.now()), *(f"{name} {sorted(table.objects)}" for name, table in plane.server.store.tables.items())]

    assert run_virtual(life()) == run_virtual(life())
