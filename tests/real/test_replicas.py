"""Several replicas on a real kube-apiserver: a leader that stands still, three that share the work, one of them killed."""

from __future__ import annotations

import asyncio
import os
import signal
from collections import Counter, defaultdict

from clusterwright.api.core import Cluster, Machine, MachineDeployment
from clusterwright.api.meta import ObjectKey
from real.kube import Kube, Manager, create_clusters, now, until, until_available

SHARED = int(os.environ.get("REAL_SHARED_CLUSTERS", "100"))
LEASE = float(os.environ.get("REAL_LEASE_SECONDS", "15"))
"""Seconds after which a replica that is not heard of is given up; more on a machine on which the API server itself takes seconds to answer."""
TIMES = ("--leader-elect-lease-duration", f"{LEASE:g}s", "--leader-elect-renew-deadline", f"{LEASE * 2 / 3:g}s")


async def provider(kube: Kube) -> Manager:
    """Machines are made by a process of their own: they outlive whoever asks for them."""
    return await kube.manager("--controllers", "dev*")


async def leader(kube: Kube, among: list[Manager], since: object = None) -> Manager:
    """Who of them writes."""

    async def found() -> Manager | None:
        seen = [e.credential for m in among for e in kube.writes([m], since)]  # type: ignore[arg-type]
        return next((m for m in among if m.credential in seen), None)

    return await until(found, "somebody leads")


async def test_a_leader_that_lost_its_lease_never_writes_again(kube: Kube) -> None:
    await kube.install("--controllers", "*", "--no-webhooks")
    await provider(kube)
    managers = [await kube.manager("--controllers", "*,-dev*", "--leader-elect", *TIMES) for _ in range(2)]
    names = [f"c{n}" for n in range(4)]
    await create_clusters(kube, names, control_plane=1, workers=1)
    first = await leader(kube, managers)
    (second,) = [m for m in managers if m is not first]

    first.send(signal.SIGSTOP)  # in the middle of it
    stopped = now()
    await create_clusters(kube, ["late"], control_plane=1, workers=1)
    await leader(kube, [second], stopped)
    await asyncio.sleep(max(0.0, max(60.0, 2 * LEASE) - (now() - stopped).total_seconds()))
    resumed = now()
    first.send(signal.SIGCONT)

    assert await asyncio.wait_for(first.process.wait(), 60) == 1
    assert "LeadershipLost" in first.log.read_text()
    await until_available(kube, [*names, "late"], 2)
    assert kube.writes([first], resumed) == []
    assert len(await kube.client.list(Machine)) == 10


async def test_a_leader_that_is_told_to_stop_hands_over_within_seconds(kube: Kube) -> None:
    await kube.install("--controllers", "*", "--no-webhooks")
    await provider(kube)
    managers = [await kube.manager("--controllers", "*,-dev*", "--leader-elect", *TIMES) for _ in range(2)]
    await create_clusters(kube, ["c"], control_plane=1, workers=1)
    first = await leader(kube, managers)
    (second,) = [m for m in managers if m is not first]
    await until_available(kube, ["c"], 2)

    told = now()
    first.send(signal.SIGTERM)
    await kube.client.patch(MachineDeployment, ObjectKey("default", "c-md"), {"spec": {"replicas": 2}})
    await leader(kube, [second], told)

    begun = min(e.at for e in kube.writes([second], told))
    assert await asyncio.wait_for(first.process.wait(), 60) == 0
    assert (begun - told).total_seconds() < 5
    await until_available(kube, ["c"], 3)


def owners(kube: Kube, shards: list[Manager]) -> dict[str, list[str]]:
    """Who wrote each Cluster's status, in turn."""
    turns: dict[str, list[str]] = defaultdict(list)
    ours = {m.credential: f"shard-{n}" for n, m in enumerate(shards)}
    for event in sorted(kube.writes(shards), key=lambda e: e.at):
        if event.resource == "clusters/status" and (not turns[event.name] or turns[event.name][-1] != ours[event.credential]):
            turns[event.name].append(ours[event.credential])
    return turns


async def supervise(kube: Kube, shards: list[Manager], killed: set[Manager]) -> None:
    """Start again what ended by itself, as a kubelet would: on a machine that is too busy a replica may miss its renewals. It is a new one."""
    while True:
        await asyncio.sleep(2)
        for manager in [m for m in shards if m.process.returncode == 1 and m not in killed]:
            killed.add(manager)
            shards.append(await kube.manager("--controllers", "*,-dev*", "--shard", *TIMES))


async def test_three_share_the_clusters_and_one_that_is_killed_is_taken_over(kube: Kube) -> None:
    await kube.install("--controllers", "*", "--no-webhooks")
    await provider(kube)
    shards = [await kube.manager("--controllers", "*,-dev*", "--shard", *TIMES) for _ in range(3)]

    async def settled() -> bool:
        texts = [m.log.read_text() for m in shards]
        return all("members=3" in text for text in texts)

    await until(settled, "three members know each other")
    ended: set[Manager] = set()
    supervisor = asyncio.create_task(supervise(kube, shards, ended))
    names = [f"c{n}" for n in range(SHARED)]
    await create_clusters(kube, names, control_plane=1, workers=0)
    await until_available(kube, names, 1)
    undisturbed = not ended
    before = owners(kube, shards)
    shares = Counter(turns[0] for turns in before.values())

    victim = next(n for n, m in enumerate(shards) if m not in ended)
    killed = now()
    ended.add(shards[victim])
    await shards[victim].stop(signal.SIGKILL)
    await asyncio.sleep(0.5)
    for name in names:
        await kube.client.delete(Cluster, ObjectKey("default", name))

    async def gone() -> bool:
        return not await kube.client.list(Cluster)

    await until(gone, "the others finish the killed one's work")
    supervisor.cancel()
    after = owners(kube, shards)

    # each life takes a Cluster over at most once; where nobody came back, only the dead are followed, and by nobody twice
    assert {name: turns for name, turns in after.items() if len(turns) > len(shards)} == {}
    if len(shards) == 3:
        assert {name: turns for name, turns in after.items() if len(set(turns)) != len(turns)} == {}
    if undisturbed:
        assert min(shares[shard] for shard in ("shard-0", "shard-1", "shard-2")) > SHARED / 3 / 3
    others = [m for n, m in enumerate(shards) if n != victim]
    theirs = {name for name, turns in before.items() if turns[-1] == f"shard-{victim}"}
    taken = [e.at for e in kube.writes(others, killed) if e.name in theirs and e.resource == "clusters/status"]
    assert taken
    assert (min(taken) - killed).total_seconds() < 4 * LEASE  # its lease time, a retry, and what a busy machine adds
