"""Claims are answered from InClusterIPPools: on a whole plane, in virtual time, with admission."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from clusterwright.api.core import Cluster
from clusterwright.api.ipam import IPAddress, IPAddressClaim
from clusterwright.api.ippools import InClusterIPPool
from clusterwright.api.meta import ObjectKey
from clusterwright.conditions import get
from clusterwright.controllers.ipam.plan import CLAIM, POOL, READY
from clusterwright.simulation import samples
from clusterwright.simulation.plane import Plane
from clusterwright.tables import gaps, unreachable
from support.ippools import IPAM, claim, played, pool


def key(name: str, namespace: str = "default") -> ObjectKey:
    return ObjectKey(namespace, name)


async def ready(p: Plane, name: str, namespace: str = "default") -> str:
    """Return the reason of the claim's condition Ready; empty: it has none."""
    found = await p.client.get(IPAddressClaim, key(name, namespace))
    condition = get(found.status.conditions, "Ready")
    return "" if condition is None else condition.reason


async def until_reason(p: Plane, name: str, reason: str, within: float = 5.0) -> None:
    async def holds() -> bool:
        return await ready(p, name) == reason

    await p.until(holds, f"{name} is {reason}", within=within)


async def address(p: Plane, name: str, namespace: str = "default") -> str:
    return (await p.client.get(IPAddress, key(name, namespace))).spec.address


def test_a_claim_gets_the_lowest_free_address() -> None:
    async def body(p: Plane) -> tuple[IPAddress, IPAddressClaim]:
        await p.client.create(pool())
        await p.client.create(claim("one"))
        await until_reason(p, "one", "Ready")
        return await p.client.get(IPAddress, key("one")), await p.client.get(IPAddressClaim, key("one"))

    made, answered = played(body)
    assert (made.spec.address, made.spec.prefix, made.spec.gateway) == ("10.0.0.10", 24, "10.0.0.1")
    assert (made.spec.claim_ref.name, made.spec.pool_ref) == ("one", answered.spec.pool_ref)
    assert made.metadata.finalizers == ("ipam.cluster.x-k8s.io/ProtectAddress",)
    assert [(o.kind, o.name, o.controller, o.block_owner_deletion) for o in made.metadata.owner_references] == [
        ("IPAddressClaim", "one", True, True),
        ("InClusterIPPool", "pool", False, True),
    ]
    assert answered.status.address_ref is not None
    assert answered.status.address_ref.name == "one"
    assert answered.metadata.finalizers == ("ipam.cluster.x-k8s.io/ReleaseAddress",)


def test_claims_at_once_get_different_addresses_and_a_released_one_goes_to_who_waits() -> None:
    async def body(p: Plane) -> tuple[set[str], str]:
        await p.client.create(pool())
        await asyncio.gather(*(p.client.create(claim(name)) for name in ("a", "b", "c", "d")))
        await asyncio.sleep(5)
        reasons = {name: await ready(p, name) for name in ("a", "b", "c", "d")}
        (waiting,) = (name for name, reason in reasons.items() if reason == "PoolExhausted")
        given = {await address(p, name) for name in reasons if name != waiting}
        gone = next(name for name in reasons if name != waiting)
        freed = await address(p, gone)
        await p.client.delete(IPAddressClaim, key(gone))
        await until_reason(p, waiting, "Ready", within=2)  # far below the safety net of 30 s
        assert await address(p, waiting) == freed
        return given, freed

    given, freed = played(body)
    assert given == {"10.0.0.10", "10.0.0.11", "10.0.0.12"}
    assert freed in given


def test_a_claim_waits_for_its_pool() -> None:
    async def body(p: Plane) -> str:
        await p.client.create(claim("early"))
        await until_reason(p, "early", "PoolNotReady")
        await p.client.create(pool())
        await until_reason(p, "early", "Ready", within=2)
        return await address(p, "early")

    assert played(body) == "10.0.0.10"


def test_a_larger_pool_serves_who_waits() -> None:
    async def body(p: Plane) -> str:
        await p.client.create(pool(addresses=["10.0.0.10"]))
        await p.client.create(claim("a"))
        await until_reason(p, "a", "Ready")
        await p.client.create(claim("b"))
        await until_reason(p, "b", "PoolExhausted")
        await p.client.patch(InClusterIPPool, key("pool"), {"spec": {"addresses": ["10.0.0.10", "10.0.0.20"]}})
        await until_reason(p, "b", "Ready", within=2)
        return await address(p, "b")

    assert played(body) == "10.0.0.20"


def test_a_global_pool_serves_all_namespaces() -> None:
    async def body(p: Plane) -> set[str]:
        await p.client.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "other"}})
        await p.client.create(pool(kind="GlobalInClusterIPPool"))
        await p.client.create(claim("a", kind="GlobalInClusterIPPool"))
        await p.client.create(claim("a", kind="GlobalInClusterIPPool", namespace="other"))
        await asyncio.sleep(3)
        return {await address(p, "a"), await address(p, "a", "other")}

    assert played(body) == {"10.0.0.10", "10.0.0.11"}


def test_the_address_of_a_claim_comes_back_when_it_is_deleted_only_with_the_claim() -> None:
    async def body(p: Plane) -> tuple[str, bool]:
        await p.client.create(pool())
        await p.client.create(claim("a"))
        await until_reason(p, "a", "Ready")
        await p.client.delete(IPAddress, key("a"))
        await asyncio.sleep(2)
        held = await address(p, "a")
        await p.client.delete(IPAddressClaim, key("a"))
        await asyncio.sleep(2)
        gone = [kind for kind in (IPAddress, IPAddressClaim) if await p.client.find(kind, key("a")) is None]
        return held, len(gone) == 2

    assert played(body) == ("10.0.0.10", True)


def test_what_protects_an_address_is_put_back() -> None:
    async def body(p: Plane) -> tuple[tuple[str, ...], int]:
        await p.client.create(pool())
        await p.client.create(claim("a"))
        await until_reason(p, "a", "Ready")
        await p.client.patch(IPAddress, key("a"), {"metadata": {"finalizers": None, "ownerReferences": None}})
        await asyncio.sleep(2)
        metadata = (await p.client.get(IPAddress, key("a"))).metadata
        return metadata.finalizers, len(metadata.owner_references)

    assert played(body) == (("ipam.cluster.x-k8s.io/ProtectAddress",), 2)


def test_an_address_of_somebody_else_is_left_alone() -> None:
    async def body(p: Plane) -> tuple[str, str]:
        await p.client.create(pool())
        taken = {"address": "192.0.2.1", "prefix": 24, "claimRef": {"name": "b"}, "poolRef": claim("x", "other")["spec"]["poolRef"]}
        await p.client.create(
            {"apiVersion": f"{IPAM}/v1beta2", "kind": "IPAddress", "metadata": {"name": "a", "namespace": "default"}, "spec": taken}
        )
        await p.client.create(claim("a"))
        await until_reason(p, "a", "AllocationFailed")
        await p.client.delete(IPAddressClaim, key("a"))
        await asyncio.sleep(2)
        gone = await p.client.find(IPAddressClaim, key("a"))
        return await address(p, "a"), "" if gone is None else "there"

    assert played(body) == ("192.0.2.1", "")


def test_claims_of_other_providers_are_left_alone() -> None:
    async def body(p: Plane) -> IPAddressClaim:
        other = claim("a", kind="InfobloxIPPool")
        await p.client.create(other)
        await asyncio.sleep(35)
        return await p.client.get(IPAddressClaim, key("a"))

    left = played(body)
    assert left.metadata.finalizers == ()
    assert left.status.conditions == ()


@pytest.mark.parametrize("by", ["cluster", "claim", "pool"])
def test_a_pause_holds_the_claim(by: str) -> None:
    paused = {"cluster.x-k8s.io/paused": ""}

    async def body(p: Plane) -> tuple[IPAddress | None, str]:
        cluster = samples.cluster("c") if by == "cluster" else []
        for obj in cluster if isinstance(cluster, list) else [cluster]:
            await p.client.create(obj)
        made, wanted = pool(), claim("a", **({"clusterName": "c"} if by == "cluster" else {}))
        if by == "cluster":
            await p.client.patch(Cluster, key("c"), {"spec": {"paused": True}})
        for obj in (made,) if by == "pool" else (wanted,) if by == "claim" else ():
            obj["metadata"]["annotations"] = paused
        await p.client.create(made)
        await p.client.create(wanted)
        await asyncio.sleep(3)
        before = await p.client.find(IPAddress, key("a"))
        match by:
            case "cluster":
                await p.client.patch(Cluster, key("c"), {"spec": {"paused": False}})
            case "pool":
                await p.client.patch(InClusterIPPool, key("pool"), {"metadata": {"annotations": {"cluster.x-k8s.io/paused": None}}})
            case _:
                await p.client.patch(IPAddressClaim, key("a"), {"metadata": {"annotations": {"cluster.x-k8s.io/paused": None}}})
        await until_reason(p, "a", "Ready", within=5)
        return before, await address(p, "a")

    assert played(body) == (None, "10.0.0.10")


def test_a_settled_claim_costs_no_write() -> None:
    async def body(p: Plane) -> bool:
        await p.client.create(pool())
        await p.client.create(claim("a"))
        await asyncio.sleep(5)
        before = [(await p.client.get(kind, key(name))).metadata.resource_version for kind, name in KEPT]
        await asyncio.sleep(1300)  # two resyncs
        return before == [(await p.client.get(kind, key(name))).metadata.resource_version for kind, name in KEPT]

    assert played(body)


KEPT: list[tuple[Any, str]] = [(IPAddressClaim, "a"), (IPAddress, "a"), (InClusterIPPool, "pool")]


@pytest.mark.parametrize("table", [CLAIM, READY, POOL], ids=lambda t: t.name)
def test_a_table_has_no_gap_and_no_row_that_cannot_fire(table: Any) -> None:
    assert not gaps(table)
    assert not unreachable(table)
