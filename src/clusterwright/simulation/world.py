"""A run: an API server, processes with faulty connections to it, and a scenario with actions and invariants.

    outcome = run(seed, scenario, plan=ALL_FAULTS)

Everything random comes from the seed and time is virtual, so that a run can be repeated exactly: the same seed gives the same
`outcome.digest`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextvars import copy_context
from dataclasses import dataclass
from datetime import UTC, datetime
from random import Random

from clusterwright.api.wire import Transport
from clusterwright.apiserver.server import ApiServer
from clusterwright.apiserver.serving.inprocess import InProcessTransport
from clusterwright.runtime.clock import LoopClock
from clusterwright.runtime.rest import RestClient
from clusterwright.simulation.faults import NO_FAULTS, FaultPlan, FaultyTransport
from clusterwright.simulation.loop import run_virtual
from clusterwright.simulation.pausing import Pause, allow_pauses
from clusterwright.simulation.trace import Trace

START = datetime(2026, 1, 1, tzinfo=UTC)
TIME_TO_DIE = 3600.0
"""How many virtual seconds a program has to end."""

Program = Callable[[Transport, LoopClock, Random], Awaitable[None]]
"""The program of a process, from start to end; it gets a transport to the API server, the clock, and its own randomness."""


class Violation(AssertionError):
    """An invariant did not hold."""


class World:
    """The interface of a scenario. No fault affects `client`: the user's actions and the test's checks go through it."""

    def __init__(self, seed: int, plan: FaultPlan) -> None:
        self.random = Random(seed)
        self.clock = LoopClock(START)
        self.trace = Trace()
        self.plan = plan
        self.server = ApiServer(now=self.clock.now, random=Random(self.random.getrandbits(64)))
        self.client = RestClient(InProcessTransport(self.server), clock=self.clock)
        self.processes: list[Process] = []
        self.violations: list[str] = []
        """Violations that were found during the run; a scenario checks them at its end."""
        self.checks: dict[str, Callable[[], str]] = {}
        """Checks that processes offer for the end of a run, by name: each returns a violation or nothing."""

    def allow_pauses(self) -> None:
        """Let processes that are started from now on be paused."""
        allow_pauses(asyncio.get_running_loop())

    def start(self, name: str, program: Program) -> Process:
        """Start a process; after a crash, it restarts."""
        process = Process(self, name, program, Random(self.random.getrandbits(64)))
        self.processes.append(process)
        process.start()
        return process

    def calm(self) -> None:
        """Inject no faults from now on: later problems are permanent."""
        self.plan = NO_FAULTS
        for process in self.processes:
            process.transport.calm()

    async def until(self, holds: Callable[[], Awaitable[bool]], *, within: float, what: str) -> None:
        """Wait in virtual time until a predicate holds; raises a Violation if it does not in time."""
        deadline = self.clock.monotonic() + within
        while not await holds():
            if self.clock.monotonic() >= deadline:
                raise Violation(f"not reached within {within:g} s: {what}")
            await asyncio.sleep(1.0)

    async def until_nothing(self, problem: Callable[[], Awaitable[str]], *, within: float) -> None:
        """Wait in virtual time until there is no problem; raises a Violation with the remaining one."""
        deadline = self.clock.monotonic() + within
        while found := await problem():
            if self.clock.monotonic() >= deadline:
                raise Violation(found)
            await asyncio.sleep(5.0)

    async def close(self) -> None:
        """End all processes."""
        for process in self.processes:
            await process.end()


class Process:
    """A program that dies when its transport crashes it, and restarts a moment later with nothing but its name."""

    def __init__(self, world: World, name: str, program: Program, random: Random) -> None:
        self._world = world
        self._name = name
        self._program = program
        self._random = random
        self._task: asyncio.Task[None] | None = None
        self._ended = False
        self.starts = 0
        self.pause = Pause()
        """Pauses the process, after `World.allow_pauses`."""
        self.failure: BaseException | None = None

    def start(self) -> None:
        """Start the program again."""
        self.starts += 1
        life = f"{self._name}.{self.starts}"
        self.transport = FaultyTransport(
            InProcessTransport(self._world.server),
            Random(self._random.getrandbits(64)),
            self._world.plan,
            self._world.trace,
            process=life,
            on_crash=self.crash,
        )
        self._world.trace.note(life, "start")
        coroutine = self._program(self.transport, self._world.clock, Random(self._random.getrandbits(64)))
        context = copy_context()
        self.pause.enter(context)
        self._task = asyncio.get_running_loop().create_task(_awaited(coroutine), context=context)
        self._task.add_done_callback(self._died)

    def crash(self) -> None:
        """Die at once: pending work has no further effect."""
        self.transport.kill()
        if self._task is not None:
            asyncio.get_running_loop().call_soon(self._task.cancel)

    def _died(self, task: asyncio.Task[None]) -> None:
        if not task.cancelled() and (error := task.exception()) is not None:
            self.failure = error
            self._world.trace.note(self._name, f"failed: {type(error).__name__}")
        if not self._ended:
            asyncio.get_running_loop().call_later(self._random.uniform(0.1, 20.0), self._restart)

    def _restart(self) -> None:
        if not self._ended:
            self.start()

    async def end(self) -> None:
        """Die and stay dead."""
        self._ended = True
        self.pause.end()
        self.transport.kill()
        if self._task is not None and not self._task.done():
            self._task.cancel()
            done, _ = await asyncio.wait([self._task], timeout=TIME_TO_DIE)
            if not done:
                raise Violation(f"{self._name} did not end within {TIME_TO_DIE:g} s of being told to")


async def _awaited(awaitable: Awaitable[None]) -> None:
    await awaitable


Scenario = Callable[[World], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class Outcome:
    """The result of a run. `violation` is None if everything held."""

    seed: int
    digest: str
    requests: int
    virtual_seconds: float
    crashes: int
    violation: Violation | None
    trace: tuple[str, ...] = ()


def run(seed: int, scenario: Scenario, plan: FaultPlan = NO_FAULTS) -> Outcome:
    """Run one scenario. Violations are part of the outcome; other exceptions of the scenario are raised."""
    return run_virtual(_run(seed, scenario, plan))


async def _run(seed: int, scenario: Scenario, plan: FaultPlan) -> Outcome:
    world = World(seed, plan)
    violation: Violation | None = None
    try:
        await scenario(world)
    except Violation as error:
        violation = error
    finally:
        await world.close()
        world.server.close()
    return Outcome(
        seed,
        world.trace.digest,
        world.trace.requests,
        world.clock.monotonic(),
        sum(process.starts - 1 for process in world.processes),
        violation,
        tuple(world.trace.lines) if violation else (),
    )
