"""Whole control planes in virtual time, with everything going wrong that can. Etcd never loses its quorum by an act of ours."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest

from clusterwright.api.kubernetes import ConfigMap
from clusterwright.api.meta import ObjectKey
from clusterwright.apiserver.serving.inprocess import InProcessTransport
from clusterwright.conditions import get
from clusterwright.inmemory.loopback import LoopbackTransport
from clusterwright.runtime.rest import RestClient
from clusterwright.simulation import samples
from clusterwright.simulation.faults import ALL_FAULTS, NO_FAULTS
from clusterwright.simulation.world import Violation

from .scenario import KEY, KUBEADM_CONFIG, ControlPlane, Peace, Story, play

NEXT_MINOR = "v1.35.0"


def scale_through(*sizes: int) -> Story:
    async def story(control_plane: ControlPlane) -> None:
        await control_plane.until_settled(1)
        for size in sizes:
            await control_plane.change({"replicas": size})
            await control_plane.until_settled(size, within=7200)

    return story


async def upgrade(control_plane: ControlPlane) -> None:
    """Every Machine is replaced, one more than wanted at most, and the workload cluster follows."""
    await control_plane.until_settled(3)
    old = {m.metadata.uid for m in await control_plane.machines()}
    control_plane.most_machines = 0
    await control_plane.change({"version": NEXT_MINOR})
    await control_plane.until_settled(3, NEXT_MINOR, within=14400)
    new = {m.metadata.uid for m in await control_plane.machines()}
    if old & new:
        raise Violation("a Machine of the old version survived the upgrade")
    if control_plane.most_machines > 4:
        raise Violation(f"{control_plane.most_machines} Machines at once while upgrading three")
    cluster = control_plane.cloud.find(KEY)
    assert cluster is not None
    config = await RestClient(InProcessTransport(cluster.server)).get(ConfigMap, ObjectKey("kube-system", "kubeadm-config"))
    if f"kubernetesVersion: {NEXT_MINOR}" not in config.data["ClusterConfiguration"]:
        raise Violation("kubeadm-config still has the old version")


async def certificates_expire(control_plane: ControlPlane) -> None:
    """Machines whose certificates are about to expire are replaced, the others are not."""
    await control_plane.until_settled(3)
    machines = await control_plane.machines()
    old, kept = machines[0], {m.metadata.uid for m in machines[1:]}
    soon = (control_plane.world.clock.now() + timedelta(days=5)).strftime("%Y-%m-%dT%H:%M:%SZ")
    mark = {"metadata": {"annotations": {"machine.cluster.x-k8s.io/certificates-expiry": soon}}}
    await control_plane.world.client.patch(KUBEADM_CONFIG, ObjectKey(KEY.namespace, old.metadata.name), mark)
    await control_plane.change({"rollout": {"before": {"certificatesExpiryDays": 30}}})

    async def replaced() -> bool:
        return old.metadata.uid not in {m.metadata.uid for m in await control_plane.machines()} and await control_plane.settled(3)

    await control_plane.until(replaced, within=14400, what="the Machine with the old certificate is replaced")
    if not kept <= {m.metadata.uid for m in await control_plane.machines()}:
        raise Violation("a Machine with a good certificate was replaced")


async def remediate_each_in_turn(control_plane: ControlPlane) -> None:
    """Each of three members fails once and is replaced; the others stay."""
    await control_plane.until_settled(3)
    for sick in await control_plane.machines():
        name, uid = sick.metadata.name, sick.metadata.uid
        others = {m.metadata.uid for m in await control_plane.machines()} - {uid}
        await control_plane.break_machine(name, "etcd-stops", "kubelet-stops")
        await control_plane.mark_unhealthy(name)

        async def replaced(old: str = uid) -> bool:
            # by uid: once it is gone, its name may be given again
            return old not in {m.metadata.uid for m in await control_plane.machines()} and await control_plane.settled(3)

        await control_plane.until(replaced, within=14400, what=f"{name} is replaced")
        if not others <= {m.metadata.uid for m in await control_plane.machines()}:
            raise Violation(f"a healthy Machine was deleted while {name} was remediated")


async def lose_two_of_three(control_plane: ControlPlane) -> None:
    """Without quorum nothing may be removed, and that is said; when the members come back, all is well again."""
    await control_plane.until_settled(3)
    machines = await control_plane.machines()
    for machine in machines[:2]:
        await control_plane.break_machine(machine.metadata.name, "etcd-stops")

    async def stopped() -> bool:
        return sum(m.is_stopped for m in control_plane.etcd) == 2

    # only then: a single sick Machine among two healthy ones would rightly be replaced
    await control_plane.until(stopped, within=3600, what="two members stop")
    for machine in machines[:2]:
        await control_plane.mark_unhealthy(machine.metadata.name)

    async def unavailable() -> bool:
        available = get((await control_plane.get()).status.conditions, "Available")
        return available is not None and available.status != "True"

    await control_plane.until(unavailable, within=900, what="the loss is noticed")
    await control_plane.world.clock.sleep(1800)
    now = await control_plane.machines()
    if {m.metadata.uid for m in now} != {m.metadata.uid for m in machines} or any(m.metadata.deletion_timestamp for m in now):
        raise Violation("a Machine was deleted while etcd had no quorum")
    if control_plane.watchman.removed or len(control_plane.etcd) != 3:
        raise Violation("a member was removed while etcd had no quorum")


STORIES: dict[str, tuple[int, Story]] = {
    "1 to 3 to 5 to 3 to 1": (1, scale_through(3, 5, 3, 1)),
    "upgrade across a minor version": (3, upgrade),
    "certificates expire": (3, certificates_expire),
    "each member is remediated in turn": (3, remediate_each_in_turn),
    "two of three members are lost": (3, lose_two_of_three),
}


@pytest.fixture(scope="module")
def peace() -> Iterator[Peace]:
    made = Peace()
    yield made
    made.close()


@pytest.mark.parametrize("name", STORIES)
def test_scenario_on_a_good_day(name: str, peace: Peace, monkeypatch: pytest.MonkeyPatch) -> None:
    replicas, story = STORIES[name]

    if replicas == 3:
        _, violation = peace.play(story, monkeypatch)
    else:
        violation = play(1, story, replicas=replicas, plan=NO_FAULTS, monkeypatch=monkeypatch).violation

    assert violation is None


SLICE = [
    ("1 to 3 to 5 to 3 to 1", 290),  # a worker that was cancelled while its pass failed lived on
    ("upgrade across a minor version", 2),
]


@pytest.mark.parametrize(("name", "seed"), SLICE)
def test_scenario_while_everything_goes_wrong(name: str, seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    replicas, story = STORIES[name]

    outcome = play(seed, story, replicas=replicas, plan=ALL_FAULTS, monkeypatch=monkeypatch)

    assert outcome.violation is None


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(2000))
def test_scenarios_over_many_seeds(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each seed plays one of the stories under all faults; the watchman looks at every membership change."""
    name = sorted(STORIES)[seed % len(STORIES)]
    replicas, story = STORIES[name]

    outcome = play(seed, story, replicas=replicas, plan=ALL_FAULTS, monkeypatch=monkeypatch)

    assert outcome.violation is None, f"{name}, seed {seed}"


def test_the_same_seed_gives_the_same_run(monkeypatch: pytest.MonkeyPatch) -> None:
    digests = {play(7, scale_through(), replicas=1, plan=ALL_FAULTS, monkeypatch=monkeypatch).digest for _ in range(2)}

    assert len(digests) == 1


async def delete_a_healthy_machine_beside_a_dead_member(control_plane: ControlPlane) -> None:
    await control_plane.until_settled(3)
    machines = await control_plane.machines()
    await control_plane.break_machine(machines[0].metadata.name, "etcd-stops")
    await control_plane.world.clock.sleep(60)
    await control_plane.world.client.delete(type(machines[1]), machines[1].key)
    await control_plane.world.clock.sleep(600)
    control_plane.check()


def test_a_removal_that_costs_the_quorum_is_caught(peace: Peace, monkeypatch: pytest.MonkeyPatch) -> None:
    """The watchman itself: with the projection and the last question taken out, losing two of three ends in a violation."""
    from clusterwright.controllers.kubeadmcontrolplane import guards
    from clusterwright.controllers.kubeadmcontrolplane.etcd import removal
    from clusterwright.controllers.kubeadmcontrolplane.etcd.membership import Membership
    from clusterwright.controllers.kubeadmcontrolplane.etcd.quorum import Projection

    async def unasked(*_: Any) -> None: ...

    monkeypatch.setattr(Membership, "_require_quorum", unasked)
    monkeypatch.setattr(removal, "project_etcd", lambda *_, **__: Projection(3, 0, 0))
    monkeypatch.setattr(guards, "control_plane_survives", lambda *_, **__: True)

    _, violation = peace.play(delete_a_healthy_machine_beside_a_dead_member, monkeypatch)

    assert violation is not None
    assert "quorum" in str(violation)


def test_with_the_final_quorum_check_nothing_is_removed_despite_the_projection(peace: Peace, monkeypatch: pytest.MonkeyPatch) -> None:
    from clusterwright.controllers.kubeadmcontrolplane import guards
    from clusterwright.controllers.kubeadmcontrolplane.etcd import removal
    from clusterwright.controllers.kubeadmcontrolplane.etcd.quorum import Projection

    monkeypatch.setattr(removal, "project_etcd", lambda *_, **__: Projection(3, 0, 0))
    monkeypatch.setattr(guards, "control_plane_survives", lambda *_, **__: True)

    _, violation = peace.play(delete_a_healthy_machine_beside_a_dead_member, monkeypatch)

    assert violation is None


def test_rollout_after_is_noticed_when_its_time_comes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing happens for an hour but the passing of time."""

    async def wait(control_plane: ControlPlane) -> None:
        await control_plane.until_settled(1)
        [old] = await control_plane.machines()
        due = control_plane.world.clock.now() + timedelta(hours=1)
        await control_plane.change({"rollout": {"after": due.strftime("%Y-%m-%dT%H:%M:%SZ")}})
        await control_plane.world.clock.sleep(3500)
        if [m.metadata.uid for m in await control_plane.machines()] != [old.metadata.uid]:
            raise Violation("rolled out too early")

        async def replaced() -> bool:
            return [m.metadata.uid for m in await control_plane.machines()] != [old.metadata.uid] and await control_plane.settled(1)

        await control_plane.until(replaced, within=400, what="the Machine is rolled out")

    assert play(1, wait, replicas=1, plan=NO_FAULTS, monkeypatch=monkeypatch).violation is None


def test_a_settled_control_plane_costs_no_write_and_remote_calls_only_to_probe_and_to_look_each_minute(
    peace: Peace, monkeypatch: pytest.MonkeyPatch
) -> None:
    remote: list[tuple[str, str]] = []
    send = LoopbackTransport.send

    async def counted(self: LoopbackTransport, request: Any) -> Any:
        remote.append((request.method, request.path))
        return await send(self, request)

    monkeypatch.setattr(LoopbackTransport, "send", counted)

    async def rest(control_plane: ControlPlane) -> tuple[list[str], list[tuple[str, str]]]:
        await control_plane.until_settled(3)
        await control_plane.world.clock.sleep(120)
        trace = control_plane.world.trace
        trace.note("judge", "settled")
        before = trace.requests
        remote.clear()
        await control_plane.world.clock.sleep(3600)
        lines = trace.lines
        marker = next(n for n, line in enumerate(lines) if line.endswith("judge settled"))
        local = [line for line in lines[marker + 1 :] if not line.endswith("event")]
        assert trace.requests - before == len(local)
        return local, remote

    told, violation = peace.play(rest, monkeypatch)

    assert violation is None
    local, remote = told
    assert [line for line in local if "watch=true" not in line] == []
    assert {method for method, _ in remote} == {"GET"}
    calls = Counter(path for _, path in remote)
    assert 300 <= calls.pop("/") <= 400
    assert max(calls.values()) <= 24  # what no watch reports is looked at about every five minutes, spread


assert samples.VERSION != NEXT_MINOR
