"""In-place updates: what is done next, and what the conditions say.

Numbers are those of the Machine's list of edges, those with an x of the list for runtime extensions.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

MARK = "in-place-updates.internal.cluster.x-k8s.io/update-in-progress"
HOOKS = "runtime.cluster.x-k8s.io/pending-hooks"
MARKED = {"metadata": {"annotations": {MARK: ""}}}
PENDING = {"metadata": {"annotations": {MARK: "", HOOKS: "UpdateMachine"}}}
GATE = {"InPlaceUpdates": True, "RuntimeSDK": True}
DONE = {"response": {"status": "Success", "retryAfterSeconds": 0}}
BUSY = {"response": {"status": "Success", "retryAfterSeconds": 7, "message": "kernel"}}


def config(*handlers: str, policy: str = "Fail") -> dict[str, Any]:
    hook = {"apiVersion": "hooks.runtime.cluster.x-k8s.io/v1alpha1", "hook": "UpdateMachine"}
    found = [{"name": f"{h}.ext", "requestHook": hook, "timeoutSeconds": 10, "failurePolicy": policy} for h in handlers]
    return {
        "apiVersion": "runtime.cluster.x-k8s.io/v1beta2",
        "kind": "ExtensionConfig",
        "metadata": {"name": "ext"},
        "spec": {"clientConfig": {"url": "https://ext.example.com/"}, "namespaceSelector": {}},
        "status": {"handlers": found},
    }


def world(
    a: Any, *answers: Any, machine: Any = PENDING, infra: Any = MARKED, bootstrap: Any = MARKED, policy: str = "Fail", **parts: Any
) -> Any:
    canned = {f"update-{n}": answer for n, answer in enumerate(answers)}
    observation = {"features": GATE, "runtimeExtensions": canned, **parts.pop("observation", {})}
    made = {
        "infra": a.infra(**infra) if infra is not None else None,
        "bootstrap": a.bootstrap(**bootstrap) if bootstrap is not None else None,
    }
    configured = {"more": [config(*canned, policy=policy)]} if canned else {}
    return a.Build(machine=a.merged(a.machine(), machine), observation=observation, **made, **configured, **parts)


async def run(a: Any, *answers: Any, **parts: Any) -> Any:
    """A pass with extensions that answer so: the result or the error, and the running world."""
    running = world(a, *answers, **parts).start()
    try:
        return await running.run(), running
    except Exception as error:
        return error, running


async def updating(running: Any) -> tuple[str, str, str]:
    found = next(c for c in (await running.machine()).status.conditions if c.type == "Updating")
    return found.status, found.reason, found.message


@pytest.mark.parametrize("count", [0, 2], ids=["35-none", "35-two"])
async def test_exactly_one_extension_must_be_registered(a: Any, count: int) -> None:
    result, running = await run(a, *[DONE] * count)

    assert isinstance(result, Exception)
    assert await updating(running) == ("True", "InPlaceUpdateFailed", "UpdateMachine hook failed: please check controller logs for errors")


async def test_an_orphaned_hook_is_cleaned_up(a: Any) -> None:
    _, running = await run(a, machine={"metadata": {"annotations": {HOOKS: "Other,UpdateMachine"}}})
    machine = await running.machine()

    assert machine.metadata.annotations == {HOOKS: "Other"}
    assert {x[:2] for x in running.actions} == {("patch", "GenericInfrastructureMachine"), ("patch", "GenericBootstrapConfig")}
    assert (await updating(running))[0] == "False"


async def test_without_infrastructure_no_update_is_possible(a: Any) -> None:
    result, running = await run(a, DONE, infra=None)

    assert isinstance(result, Exception)
    assert await updating(running) == ("True", "InPlaceUpdateFailed", "In-place update not possible: InfraMachine not found")


async def test_an_unfinished_update_is_requested_again(a: Any) -> None:
    result, running = await run(a, BUSY)

    assert result.requeue_after == timedelta(seconds=7)
    assert await updating(running) == ("True", "InPlaceUpdating", "In-place update in progress: kernel")
    assert (await running.machine()).status.phase == "Updating"


async def test_an_extension_is_not_called_before_its_retry_time(a: Any) -> None:
    _, running = await run(a, BUSY)
    early = await running.run(seconds=3)
    called_early = len(running.world.canned.calls)
    await running.run(seconds=4)

    assert (early.requeue_after, called_early) == (timedelta(seconds=4), 1)
    assert await updating(running) == ("True", "InPlaceUpdating", "In-place update in progress: kernel")
    assert len(running.world.canned.calls) == 2


async def test_the_extension_gets_the_objects_without_status(a: Any) -> None:
    _, running = await run(a, BUSY)
    (call,) = running.world.canned.calls
    desired = call["body"]["desired"]

    assert call["url"] == "https://ext.example.com/hooks.runtime.cluster.x-k8s.io/v1alpha1/updatemachine/update-0?timeout=10s"
    assert {part: (obj["kind"], sorted(obj)) for part, obj in desired.items()} == {
        "machine": ("Machine", ["apiVersion", "kind", "metadata", "spec"]),
        "infrastructureMachine": ("GenericInfrastructureMachine", ["apiVersion", "kind", "metadata", "spec"]),
        "bootstrapConfig": ("GenericBootstrapConfig", ["apiVersion", "kind", "metadata", "spec"]),
    }
    assert set(desired["machine"]["metadata"]) == {"name", "namespace", "labels", "annotations"}


async def test_the_extension_gets_the_machine_with_the_changes_of_this_pass(a: Any) -> None:
    _, running = await run(a, BUSY, infra=a.merged(MARKED, {"spec": {"failureDomain": "b"}}))
    (call,) = running.world.canned.calls

    assert (await running.machine()).spec.failure_domain == "b"
    assert call["body"]["desired"]["machine"]["spec"]["failureDomain"] == "b"


async def test_a_missing_bootstrap_config_does_not_block_the_update(a: Any) -> None:
    _, running = await run(a, DONE, bootstrap=None)

    assert [sorted(call["body"]["desired"]) for call in running.world.canned.calls] == [["infrastructureMachine", "machine"]]
    assert (await updating(running))[1] == "NotUpdating"


async def test_an_unreadable_bootstrap_config_is_waited_for(a: Any) -> None:
    unreadable = {"unreadable": [{"kind": "GenericBootstrapConfig", "namespace": "ns1", "name": "m1"}]}
    result, running = await run(a, DONE, observation=unreadable)

    assert isinstance(result, Exception)
    assert running.world.canned.calls == []


async def test_marks_that_could_not_be_removed_are_removed_later_without_another_call(a: Any) -> None:
    refusing = {"unwritable": [{"verb": "patch", "kind": "GenericInfrastructureMachine"}]}
    result, running = await run(a, DONE, observation=refusing)
    between = (await running.machine()).metadata.annotations
    running.world.client._faults = type(running.world.client._faults)()
    await running.run(seconds=1)

    assert isinstance(result, Exception)
    assert between == {HOOKS: "UpdateMachine"}
    assert (await running.machine()).metadata.annotations == {}
    assert {x[:2] for x in running.actions} == {("patch", "GenericInfrastructureMachine"), ("patch", "GenericBootstrapConfig")}
    assert len(running.world.canned.calls) == 1


@pytest.mark.parametrize("policy", ["Fail", "Ignore"])
@pytest.mark.parametrize(
    "answer",
    [
        pytest.param({"response": {"status": "Failure", "message": "no quota left"}}, id="failure"),
        pytest.param({"response": {"message": "no quota left"}}, id="no-status"),
        pytest.param({"response": {"status": "Success", "retryAfterSeconds": -1}}, id="negative"),
        pytest.param({"code": 500, "text": "oops"}, id="code"),
        pytest.param({"error": "connection refused"}, id="unreachable"),
    ],
)
async def test_a_failing_extension_fails_the_update_whatever_its_policy(a: Any, answer: Any, policy: str) -> None:
    result, running = await run(a, answer, policy=policy)

    assert isinstance(result, Exception)
    assert await updating(running) == ("True", "InPlaceUpdateFailed", "UpdateMachine hook failed: please check controller logs for errors")


async def test_when_an_update_is_done_all_marks_go(a: Any) -> None:
    _, running = await run(a, DONE)
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
    result, running = await run(a, DONE, **parts)

    assert result.requeue_after is None
    assert running.world.canned.calls == []
    assert await updating(running) == ("True", "InPlaceUpdating", "In-place update in progress")


async def test_with_the_gate_off_nothing_is_done(a: Any) -> None:
    running = a.Build(machine=a.merged(a.machine(), {"metadata": {"annotations": {HOOKS: "UpdateMachine"}}})).start()
    await running.run()

    assert (await running.machine()).metadata.annotations == {HOOKS: "UpdateMachine"}
