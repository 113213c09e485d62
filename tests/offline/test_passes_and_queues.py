"""What last errors and queues tell of a cluster: live, and from the recorded file."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from clusterwright.api.meta import Json
from clusterwright.offline import glance
from clusterwright.offline.bundle import assemble
from clusterwright.offline.detectors.passes import OFTEN
from clusterwright.offline.explain import explain
from clusterwright.offline.verdict import State, Verdict
from clusterwright.offline.workings import about
from clusterwright.runtime.clock import LoopClock
from clusterwright.runtime.errors import ServerError
from clusterwright.simulation.loop import run_virtual
from clusterwright.simulation.plane import Plane, plane
from clusterwright.simulation.world import START
from offline.live import DEV_MACHINE, NAMESPACE, SUBJECT, key, lived, look, machines, recorded, whole

ERROR = "spec.backend.inMemory.vm: '<no value>s' is not a duration such as 10s or 1m30s"
Spoil = Callable[[Plane], Awaitable[None]]


def controller(p: Plane, name: str) -> Any:
    assert p.manager is not None
    return next(c for c in p.manager.controllers if c.name == name)


def failing(p: Plane, name: str, error: Exception) -> None:
    """Let the passes of a controller fail over objects whose name fits."""
    found = controller(p, name)

    class Failing:
        async def reconcile(self, _: Any) -> Any:
            raise error

    found._reconciler = Failing()


async def both(p: Plane) -> tuple[Verdict, Verdict]:
    """The verdict live, and from a file without secrets."""
    live = (await look(p)).verdict
    return live, explain(assemble(await recorded(p, keep_secrets=False)), SUBJECT).verdict


def played(make: Spoil, after: float) -> tuple[Verdict, Verdict]:
    async def main() -> tuple[Verdict, Verdict]:
        async with lived(plane(LoopClock(START))) as p:
            await make(p)
            await asyncio.sleep(after)
            return await both(p)

    return run_virtual(main())


def test_the_last_error_says_what_a_condition_leaves_to_the_log() -> None:
    async def make(p: Plane) -> None:
        failing(p, "devmachine", ServerError(ERROR))
        name = (await machines(p, control_plane=False))[0]
        silent = {"type": "VMProvisioned", "status": "False", "reason": "InternalError", "lastTransitionTime": f"{p.clock.now():%FT%TZ}"}
        said = {"conditions": [{**silent, "message": "Please check controller logs for errors", "observedGeneration": 1}]}
        await p.client.patch(DEV_MACHINE, key(name), {"status": said}, subresource="status")

    for verdict in played(make, 120):
        assert verdict.state is State.BROKEN, verdict.headline
        assert verdict.object.startswith("DevMachine/default/"), verdict.headline
        assert ERROR in verdict.brief
        assert "controller devmachine: " in verdict.what
        assert "the next begins at" in verdict.what
        assert "devmachine" in verdict.who


def test_one_failure_is_no_cause() -> None:
    bundle = [*recorded_once(), running(failures=[failure(passes=OFTEN - 1, same=OFTEN - 1)])]
    assert explain(assemble(bundle), SUBJECT).verdict.state is State.FINE


def test_a_pass_that_fails_though_no_condition_complains_is_told() -> None:
    verdict = explain(assemble([*recorded_once(), running(failures=[failure()])]), SUBJECT).verdict
    assert (verdict.state, verdict.object) == (State.BROKEN, "MachineDeployment/default/md")
    assert verdict.brief == "Broken: MachineDeployment/default/md its passes fail: quota of the rack is used up"


def test_the_error_of_another_cluster_is_left_out() -> None:
    verdict = explain(assemble([*recorded_once(), running(failures=[failure(name="of-another")])]), SUBJECT).verdict
    assert verdict.state is State.FINE


_KEPT: list[Json] = []


def recorded_once() -> list[Json]:
    """A Fine cluster in a file, without what its controllers say."""
    if not _KEPT:

        async def main() -> list[Json]:
            async with lived(plane(LoopClock(START))) as p:
                return await recorded(p, keep_secrets=False)

        _KEPT.extend(run_virtual(main()))
    return [document for document in _KEPT if document["kind"] != "Observation"]


def running(**said: Any) -> Json:
    observation = next(document for document in _KEPT if document["kind"] == "Observation")
    return {**observation, "running": {**observation["running"], "failures": [], "queues": [], **said}}


def failure(**changes: Any) -> Json:
    told = {"since": "2026-01-01T00:00:10Z", "at": "2026-01-01T00:01:10Z", "retryAt": "2026-01-01T00:02:10Z", "passes": 7, "same": 7}
    told |= {"controller": "machinedeployment", "kind": "MachineDeployment", "namespace": "default", "name": "md"}
    return {**told, "error": "quota of the rack is used up", **changes}


# ------------------------------------------------------------------------------------------------------- queues


def stuck(p: Plane, name: str, *, crowd: int) -> None:
    """Let all workers of a controller be busy with other objects for long, and let many others wait."""
    found = controller(p, name)

    class Slow:
        async def reconcile(self, _: Any) -> Any:
            await asyncio.sleep(290)

    found._reconciler = Slow()
    for n in range(crowd + found._concurrency):
        found.queue.add(key(f"other-{n}"))


def waiting(name: str, crowd: int) -> tuple[Verdict, Verdict, Verdict]:
    """The verdict live, from a file, and in a list of clusters."""

    async def main() -> tuple[Verdict, Verdict, Verdict]:
        async with plane(LoopClock(START)) as p:
            stuck(p, name, crowd=crowd)
            await p.apply(whole())
            await asyncio.sleep(100)
            listed = (await glance.read(p.client, NAMESPACE, p.clock.now())).verdict(key("c"))
            return *await both(p), listed

    return run_virtual(main())


@pytest.mark.parametrize("name", ["machinedeployment", "kubeadmcontrolplane"])
def test_a_cluster_that_waits_in_a_queue_progresses(name: str) -> None:
    for verdict in waiting(name, 212):
        assert verdict.state is State.PROGRESSING, verdict.headline
        assert f"212 objects are ahead of it in the queue of {name}" in verdict.what, verdict.headline
        assert verdict.next == "nothing: it goes on by itself"


def test_without_a_queue_an_object_that_nobody_reconciles_is_broken() -> None:
    async def main() -> tuple[Verdict, Verdict]:
        async with plane(LoopClock(START)) as p:
            found = controller(p, "kubeadmcontrolplane")

            class Idle:
                async def reconcile(self, _: Any) -> Any:
                    return None

            found._reconciler = Idle()
            await p.apply(whole())
            await asyncio.sleep(100)
            return await both(p)

    for verdict in run_virtual(main()):
        assert verdict.state is State.BROKEN, verdict.headline
        assert "nothing has reconciled it" in verdict.what


def test_a_bundle_keeps_what_is_said_of_its_cluster_only() -> None:
    said = {
        "traces": [],
        "failures": [failure(), failure(name="of-another")],
        "queues": [
            {
                "controller": "machineset",
                "kind": "MachineSet",
                "length": 7,
                "oldestSeconds": 9.0,
                "processing": 1,
                "ahead": {"default/a": 1, "default/b": 2},
                "atWork": ["default/b", "other/a"],
            }
        ],
    }
    kept = about(said, {"MachineDeployment/default/md", "MachineSet/default/a"})
    assert [f["name"] for f in kept["failures"]] == ["md"]
    assert (kept["queues"][0]["ahead"], kept["queues"][0]["atWork"], kept["queues"][0]["length"]) == ({"default/a": 1}, [], 7)
