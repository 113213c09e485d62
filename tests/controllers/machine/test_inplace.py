"""In-place updates: what is done next, and what the conditions say."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from clusterwright.controllers.machine.build import CONTROLLER
from clusterwright.controllers.machine.inplace import UpdateAnswer

MARK = "in-place-updates.internal.cluster.x-k8s.io/update-in-progress"
HOOKS = "runtime.cluster.x-k8s.io/pending-hooks"
MARKED = {"metadata": {"annotations": {MARK: ""}}}
PENDING = {"metadata": {"annotations": {MARK: "", HOOKS: "UpdateMachine"}}}
GATE = {"features": {"InPlaceUpdates": True, "RuntimeSDK": True}}


def world(a: Any, machine: Any = PENDING, infra: Any = MARKED, bootstrap: Any = MARKED, **parts: Any) -> Any:
    made = {"infra": a.infra(**infra) if infra is not None else None, "bootstrap": a.bootstrap(**bootstrap), **parts}
    return a.Build(machine=a.merged(a.machine(), machine), observation=GATE, **made)


async def run(a: Any, *extensions: Any, **parts: Any) -> Any:
    """A pass with these extensions registered: the result or the error, and the running world."""
    from dataclasses import replace

    running = world(a, **parts).start()
    running.reconciler = CONTROLLER.make(replace(running.deps, options={"update-machine-extensions": extensions}))
    try:
        return await running.run(), running
    except Exception as error:
        return error, running


def answering(answer: Any) -> Any:
    async def extension(machine: Any, infra: Any, bootstrap: Any) -> UpdateAnswer:
        if isinstance(answer, Exception):
            raise answer
        return answer  # type: ignore[no-any-return]

    return extension


async def updating(running: Any) -> tuple[str, str, str]:
    found = next(c for c in (await running.machine()).status.conditions if c.type == "Updating")
    return found.status, found.reason, found.message


@pytest.mark.parametrize("count", [0, 2], ids=["35-none", "35-two"])
async def test_35_exactly_one_extension_must_be_registered(a: Any, count: int) -> None:
    result, running = await run(a, *[answering(UpdateAnswer())] * count)

    assert isinstance(result, Exception)
    assert await updating(running) == ("True", "InPlaceUpdateFailed", "UpdateMachine hook failed: please check controller logs for errors")


async def test_35_an_orphaned_hook_is_cleaned_up(a: Any) -> None:
    _, running = await run(a, machine={"metadata": {"annotations": {HOOKS: "Other,UpdateMachine"}}})
    machine = await running.machine()

    assert machine.metadata.annotations == {HOOKS: "Other"}
    assert {x[:2] for x in running.actions} == {("patch", "GenericInfrastructureMachine"), ("patch", "GenericBootstrapConfig")}
    assert (await updating(running))[0] == "False"


async def test_35_without_infrastructure_no_update_is_possible(a: Any) -> None:
    result, running = await run(a, answering(UpdateAnswer()), infra=None)

    assert isinstance(result, Exception)
    assert await updating(running) == ("True", "InPlaceUpdateFailed", "In-place update not possible: InfraMachine not found")


async def test_an_update_that_goes_on_is_asked_for_again(a: Any) -> None:
    result, running = await run(a, answering(UpdateAnswer("kernel", timedelta(seconds=7))))

    assert result.requeue_after == timedelta(seconds=7)
    assert await updating(running) == ("True", "InPlaceUpdating", "In-place update in progress: kernel")
    assert (await running.machine()).status.phase == "Updating"


async def test_a_failing_extension_is_told_without_its_words(a: Any) -> None:
    result, running = await run(a, answering(ValueError("password=hunter2")))

    assert isinstance(result, Exception)
    assert await updating(running) == ("True", "InPlaceUpdateFailed", "UpdateMachine hook failed: please check controller logs for errors")


async def test_when_an_update_is_done_all_marks_go(a: Any) -> None:
    _, running = await run(a, answering(UpdateAnswer()))
    machine = await running.machine()

    assert machine.metadata.annotations == {}
    assert {x[:2] for x in running.actions} == {("patch", "GenericInfrastructureMachine"), ("patch", "GenericBootstrapConfig")}
    assert (await updating(running))[1] == "NotUpdating"


@pytest.mark.parametrize(
    "parts",
    [
        pytest.param({"machine": MARKED}, id="hook-not-pending"),
        pytest.param({"infra": {}}, id="infrastructure-not-marked"),
        pytest.param({"bootstrap": {}}, id="bootstrap-not-marked"),
        pytest.param({"machine": {**PENDING, "status": {"nodeRef": None}}, "node": None}, id="no-node-yet"),
    ],
)
async def test_the_extension_is_not_called_before_its_time(a: Any, parts: Any) -> None:
    result, running = await run(a, answering(AssertionError("called too early")), **parts)

    assert result.requeue_after is None
    assert await updating(running) == ("True", "InPlaceUpdating", "In-place update in progress")


async def test_with_the_gate_off_nothing_is_done(a: Any) -> None:
    running = a.Build(machine=a.merged(a.machine(), {"metadata": {"annotations": {HOOKS: "UpdateMachine"}}})).start()
    await running.run()

    assert (await running.machine()).metadata.annotations == {HOOKS: "UpdateMachine"}
