import pytest

from clusterwright.runtime.clock import LoopClock
from clusterwright.simulation.loop import run_virtual
from clusterwright.simulation.plane import plane
from clusterwright.simulation.world import START


@pytest.fixture
def in_plane():
    """Runs `body(plane)` in virtual time, on a plane of its own."""

    def run(body, **options):
        async def main():
            async with plane(LoopClock(START), **options) as p:
                return await body(p)

        return run_virtual(main())

    return run
