"""What a pass writes at once, and what it leaves for a moment: a whole controller on an API server, in virtual time."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from datetime import datetime
from random import Random
from typing import Any

import pytest

from clusterwright.api.copying import replace
from clusterwright.api.meta import Condition, ObjectKey, ObjectMeta
from clusterwright.api.wellknown import PAUSED_ANNOTATION
from clusterwright.api.wire import Request, Response, Transport
from clusterwright.apiserver.server import ApiServer
from clusterwright.apiserver.serving.inprocess import InProcessTransport
from clusterwright.conditions import get, set_condition
from clusterwright.controllers.kit.owners import Unowned
from clusterwright.controllers.kit.passing import Pass
from clusterwright.controllers.kit.reconciler import Kind, KindReconciler, Shape
from clusterwright.controllers.wiring import PassTools
from clusterwright.runtime.clock import LoopClock
from clusterwright.runtime.errors import Conflict
from clusterwright.runtime.manager import Manager
from clusterwright.runtime.models import conditions_of, with_conditions
from clusterwright.runtime.reports import DELAY
from clusterwright.runtime.rest import RestClient
from clusterwright.runtime.transports import Around
from clusterwright.simulation.loop import run_virtual
from clusterwright.simulation.sample import Parent, ParentSpec, crds
from clusterwright.simulation.world import START

KEY = ObjectKey("default", "ada")


@dataclass(frozen=True)
class Seen:
    object: Parent
    now: datetime


class Writes(Around):
    """When something of a Parent was written; `refuse` makes so many writes fail."""

    def __init__(self, inner: Transport) -> None:
        super().__init__(inner)
        self.at: list[float] = []
        self.refuse = 0

    async def send(self, request: Request) -> Response:
        if request.method != "GET" and "/parents/" in request.path:
            if self.refuse:
                self.refuse -= 1
                return Response(
                    status=403, body=b'{"kind": "Status", "apiVersion": "v1", "reason": "Forbidden", "message": "not now"}', headers={}
                )
            self.at.append(round(asyncio.get_running_loop().time(), 2))
        return await self._inner.send(request)


@dataclass
class Parents(Kind[Parent, Unowned, Seen, Seen]):
    """Says `message` of a Parent, or that it is up; the pass ends early where `error` or `nothing` say so."""

    clock: LoopClock
    message: str = "waiting"
    is_up: bool = False
    nothing: bool = False
    error: Exception | None = None
    failing: bool = False
    passes: list[float] = field(default_factory=list)

    async def owner(self, obj: Parent) -> Unowned:
        return Unowned()

    async def observe(self, obj: Parent, owner: Unowned) -> Seen | None:
        self.passes.append(round(asyncio.get_running_loop().time(), 2))
        if self.error is not None:
            raise self.error
        return None if self.nothing else Seen(obj, self.clock.now())

    async def act(self, run: Pass[Parent, Seen, Seen]) -> None:
        if self.failing:
            run.fail("it cannot be done")

    def conclude(self, run: Pass[Parent, Seen, Seen]) -> None:
        told = Condition(type="Up", status="True" if self.is_up else "False", reason="R", message=self.message)
        run.become(with_conditions(run.object, set_condition(conditions_of(run.object), told, generation=1, now=run.done.now)))


class Bench:
    def __init__(self) -> None:
        self.clock = LoopClock(START)
        self.server = ApiServer(now=self.clock.now, random=Random(1))
        self.user = RestClient(InProcessTransport(self.server), clock=self.clock)
        self.writes = Writes(InProcessTransport(self.server))
        self.manager = Manager(self.writes, clock=self.clock, random=Random(2))
        self.kind = Parents(self.clock)
        self.told: list[str] = []

    def record(self, obj: Any, type: str, reason: str, message: str) -> None:
        self.told.append(message)

    async def __aenter__(self) -> Bench:
        for crd in crds():
            await self.user.create(crd)

        def make(controller: Any) -> Any:
            tools = PassTools(client=self.manager.client, clock=self.clock, random=Random(3), events=self, reports=controller.reports)
            return KindReconciler(tools, Shape(kind=Parent, owned=("Paused", "Up")), self.kind)

        self.controller = self.manager.add_controller("parent", Parent, make)
        self._task = asyncio.ensure_future(self.manager.run())
        await asyncio.sleep(1)
        self.begun = asyncio.get_running_loop().time()
        await self.user.create(Parent(metadata=ObjectMeta(namespace="default", name="ada"), spec=ParentSpec()))
        return self

    async def __aexit__(self, *_: object) -> None:
        self.manager.stop()
        await self._task

    async def said(self, type: str = "Up") -> tuple[str, str] | None:
        found = get(conditions_of(await self.user.get(Parent, KEY)), type)
        return None if found is None else (found.status, found.message)

    def wake(self) -> None:
        self.controller.enqueue(KEY, "test")

    def since(self) -> list[float]:
        return [round(at - self.begun, 2) for at in self.writes.at]


def on_a_bench(test: Callable[[Bench], Awaitable[None]]) -> Callable[[], None]:
    async def main() -> None:
        async with Bench() as bench:
            await test(bench)

    def run() -> None:
        run_virtual(main())

    run.__name__ = test.__name__
    return run


@on_a_bench
async def test_a_report_is_written_after_a_moment_together_with_paused_and_the_generation(bench: Bench) -> None:
    await asyncio.sleep(DELAY - 0.1)
    assert await bench.said() is None
    await asyncio.sleep(0.2)

    assert bench.since() == [DELAY]
    assert (await bench.said(), await bench.said("Paused")) == (("False", "waiting"), ("False", ""))
    status = (await bench.user.get(Parent, KEY)).status
    assert status is not None
    assert status.observed_generation == 1


@on_a_bench
async def test_a_real_change_writes_everything_at_once_and_nothing_comes_after_it(bench: Bench) -> None:
    await asyncio.sleep(0.2)
    bench.kind.is_up, bench.kind.message = True, "up"
    bench.wake()
    await asyncio.sleep(10)

    assert bench.since() == [0.2]
    assert (await bench.said(), await bench.said("Paused")) == (("True", "up"), ("False", ""))


@on_a_bench
async def test_an_earlier_report_is_not_written_after_a_pass_that_found_otherwise(bench: Bench) -> None:
    await asyncio.sleep(1)
    bench.kind.message = "for a moment"
    bench.wake()
    await asyncio.sleep(0.1)
    bench.kind.message = "waiting"
    bench.wake()
    await asyncio.sleep(10)

    assert bench.since() == [DELAY]
    assert await bench.said() == ("False", "waiting")


@pytest.mark.parametrize("end", ["nothing", "error"])
def test_a_pass_that_ends_early_still_sets_paused_to_false(end: str) -> None:
    @on_a_bench
    async def scenario(bench: Bench) -> None:
        bench.kind.nothing, bench.kind.error = (True, None) if end == "nothing" else (False, Conflict("not now"))
        await asyncio.sleep(2)

        assert await bench.said("Paused") == ("False", "")
        assert len(bench.writes.at) == 1

    scenario()


@on_a_bench
async def test_a_pass_that_ends_before_it_acts_keeps_an_earlier_report(bench: Bench) -> None:
    await asyncio.sleep(0.1)
    bench.kind.nothing = True
    bench.wake()
    await asyncio.sleep(2)

    assert bench.since() == [DELAY]
    assert await bench.said() == ("False", "waiting")


@on_a_bench
async def test_a_pass_that_fails_still_reports(bench: Bench) -> None:
    bench.kind.failing, bench.kind.message = True, "it failed"
    await asyncio.sleep(2)

    assert await bench.said() == ("False", "it failed")
    assert bench.told[0] == "it cannot be done"


@on_a_bench
async def test_of_a_paused_object_only_the_paused_condition_is_written(bench: Bench) -> None:
    await asyncio.sleep(0.1)
    parent = await bench.user.get(Parent, KEY)
    await bench.user.update(replace(parent, metadata=replace(parent.metadata, annotations={PAUSED_ANNOTATION: ""})))
    await asyncio.sleep(2)

    assert (await bench.said(), await bench.said("Paused")) == (None, ("True", "Parent has the cluster.x-k8s.io/paused annotation"))
    assert len(bench.writes.at) == 1


@on_a_bench
async def test_a_report_that_cannot_be_written_is_logged_and_retried(bench: Bench) -> None:
    bench.writes.refuse = 3
    await asyncio.sleep(10)

    assert await bench.said() == ("False", "waiting")
    assert len(bench.kind.passes) >= 4
    assert any("not now" in text for text in bench.told)
