"""etcd that stands still, an API server that is restarted, refuses everything or lags: the controllers wait, go on, and make nothing twice."""

from __future__ import annotations

import asyncio
import signal
import sys
from collections import Counter

import pytest

from clusterwright.api.core import Machine, MachineDeployment
from clusterwright.api.infrastructure import DevMachine
from clusterwright.api.meta import GroupVersionKind, Json, ObjectKey
from clusterwright.simulation.faults import FaultPlan
from real.kube import Kube, create_clusters, now, until, until_available
from real.weather import Weather

FLOW = "flowcontrol.apiserver.k8s.io/v1"
STORM = 30.0
"""Seconds."""


async def test_nothing_is_made_twice_when_etcd_stands_still_and_the_api_server_is_restarted(kube: Kube) -> None:
    await kube.install("--controllers", "*", "--no-webhooks")
    manager = await kube.manager()
    names = [f"c{n}" for n in range(3)]
    await create_clusters(kube, names, control_plane=1, workers=2)
    await asyncio.sleep(3)

    kube.send("etcd", signal.SIGSTOP)  # in the middle of it
    await asyncio.sleep(15)
    kube.send("etcd", signal.SIGCONT)
    await asyncio.sleep(3)
    await kube.end("kube-apiserver")
    await asyncio.sleep(5)
    await kube.start_server()
    await until_available(kube, names, 3)

    await kube.end("kube-apiserver")
    await kube.start_server()
    await asyncio.sleep(1)
    for name in names:
        while True:
            try:
                await kube.client.patch(MachineDeployment, ObjectKey("default", f"{name}-md"), {"spec": {"replicas": 3}})
                break
            except Exception:  # it is not back yet
                await asyncio.sleep(1)
    await until_available(kube, names, 4)
    machines = await kube.client.list(Machine)
    made = Counter(event.name for event in kube.audited() if event.resource == "machines" and event.code == 201)

    assert len(machines) == 12
    assert len(await kube.client.list(DevMachine)) == 12
    assert set(made) <= {m.metadata.name for m in machines}  # none was made in vain
    assert manager.process.returncode is None


def refusals() -> list[Json]:
    """What makes a kube-apiserver answer 429 to all that our account asks."""
    subject = {"kind": "ServiceAccount", "serviceAccount": {"namespace": "clusterwright-system", "name": "clusterwright-manager"}}
    anything = {"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"], "namespaces": ["*"], "clusterScope": True}
    limited = {"nominalConcurrencyShares": 0, "lendablePercent": 0, "borrowingLimitPercent": 0, "limitResponse": {"type": "Reject"}}
    flow = {
        "priorityLevelConfiguration": {"name": "storm"},
        "matchingPrecedence": 2,
        "rules": [{"subjects": [subject], "resourceRules": [anything]}],
    }
    return [
        {"apiVersion": FLOW, "kind": kind, "metadata": {"name": "storm"}, "spec": spec}
        for kind, spec in (("PriorityLevelConfiguration", {"type": "Limited", "limited": limited}), ("FlowSchema", flow))
    ]


async def test_a_storm_of_429_slows_everything_down_and_nothing_is_made_twice(kube: Kube, capsys: pytest.CaptureFixture[str]) -> None:
    await kube.install("--controllers", "*", "--no-webhooks")
    manager = await kube.manager()
    names = [f"c{n}" for n in range(3)]
    await create_clusters(kube, names, control_plane=1, workers=2)

    def asked(code: int = 0) -> list[float]:
        return [e.at.timestamp() for e in kube.audited() if e.credential == manager.credential and code in {0, e.code}]

    async def is_at_work() -> bool:
        return len(kube.writes([manager])) > 30

    await until(is_at_work, "ours are at work")
    for obj in refusals():
        await kube.client.create(obj)

    async def is_refused() -> bool:
        return bool(asked(429))

    await until(is_refused, "ours are refused", within=60)
    began = now().timestamp()
    await asyncio.sleep(STORM)
    for obj in reversed(refusals()):
        await kube.client.delete(GroupVersionKind.of(obj["apiVersion"], obj["kind"]), ObjectKey("", "storm"))
    ended = now().timestamp()
    refused = [at for at in asked(429) if began <= at <= ended]
    await until_available(kube, names, 3)
    took = now().timestamp() - ended
    with capsys.disabled():
        sys.stdout.write(f"\n429 for {ended - began:.0f} s: {len(refused)} requests; all available {took:.0f} s later\n")
    made = Counter(event.name for event in kube.audited() if event.resource == "machines" and event.code == 201)
    machines = await kube.client.list(Machine)

    # each of the passes that are under way may ask once a second, as the answers say; not more
    assert len(refused) < 40 * (ended - began)
    assert len(machines) == 9
    assert set(made) <= {m.metadata.name for m in machines}
    assert manager.process.returncode is None


STORMS = {
    "503": FaultPlan(unavailable=0.97, watch_refused=0.97, watch_cut=0.5),
    "lagging": FaultPlan(watch_late=1.0, latest=20.0),
    "answers are lost": FaultPlan(lost_request=0.2, lost_answer=0.3, watch_cut=0.3, watch_error=0.2),
}


@pytest.mark.parametrize("storm", STORMS)
async def test_a_storm_on_the_way_slows_everything_down_and_nothing_is_made_twice(
    kube: Kube, storm: str, capsys: pytest.CaptureFixture[str]
) -> None:
    await kube.install("--controllers", "*", "--no-webhooks")
    names = [f"c{n}" for n in range(3)]
    async with Weather(kube, seed=1) as weather:
        manager = await kube.manager(server=weather.server)
        await create_clusters(kube, names, control_plane=1, workers=2)

        async def is_at_work() -> bool:
            return len(kube.writes([manager])) > 30

        await until(is_at_work, "ours are at work")
        weather.suffer(STORMS[storm])
        await asyncio.sleep(STORM)
        weather.calm()
        told = dict(weather.answers)
        ended = now()
        await until_available(kube, names, 3)
        took = (now() - ended).total_seconds()
        await manager.stop()
    with capsys.disabled():
        sys.stdout.write(f"\n{storm} for {STORM:g} s: answers {told} (0: none); all available {took:.0f} s later\n")
    made = Counter(event.name for event in kube.audited() if event.resource == "machines" and event.code == 201)
    machines = {m.metadata.name for m in await kube.client.list(Machine)}

    assert storm != "503" or sum(told.values()) < 40 * STORM
    assert len(machines) == 9
    assert len(await kube.client.list(DevMachine)) == 9
    assert set(made) <= machines
    assert manager.process.returncode == 0
