"""Last errors and queues: what the report of a manager says of objects whose passes fail, and of those that wait."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import Any

import pytest

from clusterwright.api.meta import ObjectKey
from clusterwright.runtime.clock import LoopClock
from clusterwright.runtime.errors import Conflict, ServerError, Terminal
from clusterwright.runtime.failures import MOST_TEXT, Failures, told
from clusterwright.runtime.traces import UnknownSelector
from clusterwright.runtime.workqueue import Priority, WorkQueue
from clusterwright.simulation.loop import run_virtual
from clusterwright.simulation.world import START

from .test_controller import Bench

KEY = ObjectKey("default", "ada")


class Failing:
    """Passes that end in `error` as long as there is one."""

    def __init__(self, error: Exception | None) -> None:
        self.error = error

    async def __call__(self, key: ObjectKey) -> None:
        if self.error is not None:
            raise self.error


def test_the_last_error_is_reported_until_a_pass_succeeds() -> None:
    async def main() -> tuple[Any, Any, Any]:
        failing = Failing(ServerError("the image acme-17 does not exist"))
        bench = await Bench().start(failing)
        await bench.make()
        await asyncio.sleep(10)
        first = bench.manager.report({})["failures"]
        others = bench.manager.report({"name": "somebody-else"})["failures"]
        failing.error = None
        await asyncio.sleep(60)
        last = bench.manager.report({})["failures"]
        await bench.stop()
        return first, others, last

    (failure,), others, last = run_virtual(main())
    assert failure["error"] == "the image acme-17 does not exist"
    assert (failure["controller"], failure["kind"], failure["namespace"], failure["name"]) == ("test", "Parent", "default", "ada")
    assert failure["passes"] == failure["same"] > 3
    assert failure["since"] < failure["at"] < failure["retryAt"]
    assert others == [] == last


def test_an_error_that_is_expected_is_not_kept() -> None:
    async def main() -> Any:
        error = Conflict("somebody else was faster")
        error.is_expected = True
        bench = await Bench().start(Failing(error))
        await bench.make()
        await asyncio.sleep(10)
        found = bench.manager.report({})["failures"]
        await bench.stop()
        return found

    assert run_virtual(main()) == []


def test_a_pass_that_is_not_tried_again_has_no_next_try() -> None:
    async def main() -> Any:
        bench = await Bench().start(Failing(Terminal("spec.size is not a number")))
        await bench.make()
        await asyncio.sleep(1)
        found = bench.manager.report({})["failures"]
        await bench.stop()
        return found

    (failure,) = run_virtual(main())
    assert (failure["error"], failure["retryAt"]) == ("spec.size is not a number", None)


def test_an_object_that_is_gone_has_no_last_error() -> None:
    async def main() -> Any:
        bench: Bench

        async def act(key: ObjectKey) -> None:
            from clusterwright.simulation.sample import Parent

            if await bench.user.find(Parent, key) is not None:
                raise ServerError("no")

        bench = Bench()
        await bench.start(act)
        key = await bench.make()
        await asyncio.sleep(5)
        before = len(bench.manager.report({})["failures"])
        from clusterwright.simulation.sample import Parent

        await bench.user.delete(Parent, key)
        await asyncio.sleep(30)
        after = bench.manager.report({})["failures"]
        await bench.stop()
        return before, after

    assert run_virtual(main()) == (1, [])


def test_a_kept_error_has_no_secrets_and_a_bounded_length() -> None:
    encoded = "LS0tLS1CRUdJTiBDRVJUSUZJQ0FURS0tLS0tCk1JSUN5REND"
    words = f"token abcdef.0123456789abcdef and {encoded}== were refused by https://eve:pass@acme.io"
    assert told(ValueError(words)) == "token <redacted> and <redacted> were refused by https://<redacted>@acme.io"
    assert told(ValueError("controlplaneendpoint of kubeadmcontrolplanetemplates-in-some-namespace")).startswith("controlplaneendpoint")
    assert len(told(ValueError("no " * 5000))) == MOST_TEXT
    assert told(ExceptionGroup("both", [ValueError("a"), ValueError("b"), ValueError("a")])) == "a; b"


def test_a_bounded_number_of_objects_is_remembered_and_equal_errors_are_counted() -> None:
    async def main() -> None:
        failures = Failures(LoopClock(START), objects=2)
        for name in "abc":
            failures.failed("c", "Machine", ObjectKey("ns", name), ValueError("no"), 1.0)
        assert [f.key.name for f in failures.selected()] == ["b", "c"]
        failures.failed("c", "Machine", ObjectKey("ns", "b"), ValueError("resource version 17 is old"), 1.0)
        failures.failed("c", "Machine", ObjectKey("ns", "b"), ValueError("resource version 18 is old"), 1.0)
        (b,) = failures.selected(name="b")
        assert (b.passes, b.same, b.retry_at) == (3, 2, START + timedelta(seconds=1))
        assert failures.selected(kind="Cluster") == []

    run_virtual(main())


def test_a_queue_reports_how_many_keys_precede_a_key() -> None:
    async def main() -> None:
        queue = WorkQueue("q")
        for name in "abcd":
            queue.add(ObjectKey("ns", name), priority=Priority.LOW if name == "a" else Priority.NORMAL)
        await asyncio.sleep(3)
        queue.add(ObjectKey("other", "e"))
        assert (await queue.get()).key.name == "b"
        queue.add(ObjectKey("ns", "b"))  # it comes again when its pass is done

        backlog = queue.backlog()
        assert (backlog.length, backlog.oldest, backlog.processing) == (4, 3.0, 1)
        assert {key.name: ahead for key, ahead in backlog.ahead.items()} == {"c": 0, "d": 1, "e": 2, "a": 3}
        assert [key.name for key in backlog.at_work] == ["b"]
        assert [key.name for key in queue.backlog(lambda key: key.namespace == "other").ahead] == ["e"]
        assert len(queue.backlog(most=2).ahead) == 2

    run_virtual(main())


def test_a_manager_reports_waiting_keys() -> None:
    async def main() -> tuple[Any, Any]:
        async def slow(key: ObjectKey) -> None:
            await asyncio.sleep(100)

        bench = await Bench().start(slow, concurrency=1)
        for name in ("a", "b", "c"):
            await bench.make(name)
        await asyncio.sleep(5)
        asked = bench.manager.report({"name": "c"})["queues"], bench.manager.report({"kind": "Machine"})["queues"]
        bench.task.cancel()
        await asyncio.gather(bench.task, return_exceptions=True)
        return asked

    (queue,), others = run_virtual(main())
    assert (queue["controller"], queue["kind"], queue["length"], queue["processing"]) == ("test", "Parent", 2, 1)
    assert (queue["ahead"], queue["atWork"]) == ({"default/c": 1}, [])
    assert 4 < queue["oldestSeconds"] <= 5
    assert others == []


def test_earlier_decisions_can_be_left_out() -> None:
    async def main() -> tuple[Any, Any]:
        bench = await Bench().start(Failing(ServerError("no")))
        bench.manager.add_witness("verdicts", lambda query: {"default/c": [dict(query)]})
        await bench.make()
        await asyncio.sleep(20)
        with pytest.raises(UnknownSelector):
            bench.manager.report({"colour": "red"})
        everything, now = bench.manager.report({"cluster": "c"}), bench.manager.report({"only": "now"})
        await bench.stop()
        return everything, now

    everything, now = run_virtual(main())
    assert everything["verdicts"] == {"default/c": [{"cluster": "c"}]}
    assert len(everything["failures"]) == len(now["failures"]) == 1
    assert now["traces"] == []
    assert now["verdicts"] == {"default/c": [{"only": "now"}]}
