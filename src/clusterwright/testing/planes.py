"""A plane for one test, as a context and as a decorator."""

from __future__ import annotations

import functools
import inspect
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable, Mapping
from contextlib import asynccontextmanager
from random import Random
from typing import Any, Concatenate, ParamSpec

from clusterwright.api.meta import Json
from clusterwright.controllers.kit.features import EMBEDDED_FEATURES
from clusterwright.runtime.clock import LoopClock
from clusterwright.runtime.manager import Manager
from clusterwright.simulation.loop import run_virtual
from clusterwright.simulation.plane import Plane, management_server, plane
from clusterwright.simulation.world import START
from clusterwright.topology.extensions import Extensions

P = ParamSpec("P")


@asynccontextmanager
async def virtual_plane(
    *,
    seed: int = 1,
    features: Mapping[str, bool] | None = None,
    crds: Iterable[Json] = (),
    setup: Callable[[Manager], None] | None = None,
    extensions: Extensions | None = None,
) -> AsyncIterator[Plane]:
    """Yield a plane at `START`, for use inside `run_virtual`.

    `seed`: the seed of all randomness, so that a test takes the same steps every time. `features`: gates that differ from those of `up`.
    `crds`: definitions of further kinds, served from the start. `setup` gets the manager before it runs, to add controllers. `extensions`:
    answers calls of runtime hooks; by default none is registered.
    """
    clock, random = LoopClock(START), Random(seed)
    gates = {**EMBEDDED_FEATURES, **(features or {})}
    server = management_server(clock, random, gates)
    try:
        server.ensure(crds, update=True)
        async with plane(clock, seed=seed, server=server, features=gates, setup=setup, extensions=extensions, docker=True) as made:
            yield made
    finally:
        server.close()


def with_plane(
    *,
    seed: int = 1,
    features: Mapping[str, bool] | None = None,
    crds: Iterable[Json] = (),
    setup: Callable[[Manager], None] | None = None,
    extensions: Extensions | None = None,
) -> Callable[[Callable[Concatenate[Plane, P], Coroutine[Any, Any, None]]], Callable[P, None]]:
    """Make a test from a coroutine function whose first parameter is the plane: it runs in virtual time. Options as for `virtual_plane`.

    Its other parameters stay the test's own: pytest fixtures, parameters, drawn examples.
    """
    options: dict[str, Any] = {"seed": seed, "features": features, "crds": tuple(crds), "setup": setup, "extensions": extensions}

    def decorate(test: Callable[Concatenate[Plane, P], Coroutine[Any, Any, None]]) -> Callable[P, None]:
        async def main(*arguments: P.args, **named: P.kwargs) -> None:
            async with virtual_plane(**options) as made:
                await test(made, *arguments, **named)

        @functools.wraps(test)
        def run(*arguments: P.args, **named: P.kwargs) -> None:
            run_virtual(main(*arguments, **named))

        signature = inspect.signature(test)
        _, *others = signature.parameters.values()
        del run.__wrapped__  # a test runner would ask it for its parameters
        run.__signature__ = signature.replace(parameters=others, return_annotation=None)  # type: ignore[attr-defined]
        return run

    return decorate
