from contextlib import ExitStack, asynccontextmanager
from functools import cache

import pytest

from clusterwright.runtime.clock import LoopClock
from clusterwright.simulation.loop import run_virtual
from clusterwright.simulation.plane import plane
from clusterwright.simulation.world import START
from support.moments import moment


@pytest.fixture
def in_plane():
    """Runs `body(plane)` in virtual time, on a plane of its own."""

    def run(body, **options):
        async def main():
            async with plane(LoopClock(START), **options) as p:
                return await body(p)

        return run_virtual(main())

    return run


@pytest.fixture(scope="module")
def after():
    """Runs `body(plane)` in virtual time, on a plane on which `beginning(plane, ...)` was done, once for all that ask for it."""
    with ExitStack() as stack:

        @cache
        def done(beginning, *arguments):
            @asynccontextmanager
            async def life():
                async with plane(LoopClock(START)) as p:
                    await beginning(p, *arguments)
                    yield p

            return stack.enter_context(moment(life))

        yield lambda body, beginning, *arguments: done(beginning, *arguments).then(body)
