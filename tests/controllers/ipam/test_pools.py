"""Pools count their addresses, stay as long as any is in use, and refuse what makes no sense."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from clusterwright.api.ipam import IPAddressClaim
from clusterwright.api.ippools import GlobalInClusterIPPool, InClusterIPPool
from clusterwright.api.meta import Json, ObjectKey
from clusterwright.runtime.errors import ApiError
from clusterwright.simulation.plane import Plane
from support.ippools import claim, played, pool

KEY = ObjectKey("default", "pool")


async def counted(p: Plane) -> tuple[int, int, int, int]:
    """Return total, used, free and out of range."""
    found = (await p.client.get(InClusterIPPool, KEY)).status.ip_addresses
    assert found is not None
    return found.total, found.used, found.free, found.out_of_range


@pytest.mark.parametrize(
    ("spec", "total"),
    [
        ({}, 3),
        ({"addresses": ["10.0.0.0/24"]}, 253),  # without the network's, the broadcast address and the gateway
        ({"addresses": ["10.0.0.0/24"], "gateway": ""}, 254),
        ({"addresses": ["10.0.0.0/24"], "allocateReservedIPAddresses": True}, 255),
        ({"addresses": ["10.0.0.0/24"], "excludedAddresses": ["10.0.0.128/25", "10.0.0.9"]}, 125),
        ({"addresses": ["10.0.0.5", "10.0.0.4-10.0.0.6"]}, 3),
        ({"addresses": ["fd00::/120"], "prefix": 120, "gateway": "fd00::1"}, 254),
        ({"addresses": ["fd00::/8"], "prefix": 8, "gateway": "fd00::1"}, 2**63 - 1),
    ],
)
def test_the_addresses_of_a_pool_are_counted(spec: Json, total: int) -> None:
    async def body(p: Plane) -> tuple[int, int, int, int]:
        await p.client.create(pool(**spec))
        await asyncio.sleep(3)
        return await counted(p)

    assert played(body) == (total, 0, total, 0)


def test_addresses_in_use_are_counted() -> None:
    async def body(p: Plane) -> list[tuple[int, int, int, int]]:
        await p.client.create(pool())
        await p.client.create(claim("a"))
        await asyncio.sleep(3)
        before = await counted(p)
        await p.client.delete(IPAddressClaim, ObjectKey("default", "a"))
        await asyncio.sleep(3)
        return [before, await counted(p)]

    assert played(body) == [(3, 1, 2, 0), (3, 0, 3, 0)]


@pytest.mark.parametrize("kind", [InClusterIPPool, GlobalInClusterIPPool])
def test_a_pool_in_use_is_not_deleted(kind: type[Any]) -> None:
    """Rule IPP-12."""
    at = ObjectKey("default" if kind is InClusterIPPool else "", "pool")

    async def body(p: Plane) -> tuple[str, bool, bool]:
        await p.client.create(pool(kind=kind.__name__))
        await p.client.create(claim("a", kind=kind.__name__))
        await asyncio.sleep(3)
        with pytest.raises(ApiError) as refused:
            await p.client.delete(kind, at)
        await p.client.patch(kind, at, {"metadata": {"annotations": {"ipam.cluster.x-k8s.io/skip-validate-delete-webhook": ""}}})
        await p.client.delete(kind, at)
        await asyncio.sleep(3)
        held = await p.client.find(kind, at) is not None
        await p.client.delete(IPAddressClaim, ObjectKey("default", "a"))
        await asyncio.sleep(3)
        return str(refused.value), held, await p.client.find(kind, at) is None

    text, held, gone = played(body)
    assert "Cannot delete Pool until all IPAddresses have been removed" in text
    assert held
    assert gone


def test_addresses_in_use_stay_in_the_pool() -> None:
    """Rule IPP-11."""

    async def body(p: Plane) -> str:
        await p.client.create(pool())
        await p.client.create(claim("a"))
        await asyncio.sleep(3)
        with pytest.raises(ApiError) as refused:
            await p.client.patch(InClusterIPPool, KEY, {"spec": {"addresses": ["10.0.0.11-10.0.0.12"]}})
        await p.client.patch(InClusterIPPool, KEY, {"spec": {"addresses": ["10.0.0.10-10.0.0.11"]}})
        return str(refused.value)

    assert "spec: Forbidden: pool addresses do not contain allocated addresses: 10.0.0.10" in played(body)


@pytest.mark.parametrize(
    ("rule", "spec", "says"),
    [
        ("IPP-1", {"addresses": []}, "spec.addresses: Invalid value: null: addresses is required"),
        (
            "IPP-2",
            {"addresses": ["10.0.0.5", "x"]},
            'spec.addresses[1]: Invalid value: "x": provided address is not a valid IP, range, nor',
        ),
        ("IPP-3", {"addresses": ["10.0.0.5", "fd00::1"]}, "provided addresses are of mixed IP families"),
        ("IPP-4", {"prefix": 33}, "spec.prefix: Invalid value: 33: provided prefix is not valid"),
        (
            "IPP-5",
            {"addresses": ["10.0.0.5", "10.0.1.5"]},
            'addresses[1]: Invalid value: "10.0.1.5": provided address belongs to a different',
        ),
        ("IPP-6", {"gateway": "x"}, 'spec.gateway: Invalid value: "x": not a valid IP address'),
        ("IPP-7", {"gateway": "fd00::1"}, "provided gateway and addresses are of mixed IP families"),
        ("IPP-8", {"excludedAddresses": ["10.0.0.300"]}, "spec.excludedAddresses[0]"),
        ("IPP-9", {"excludedAddresses": ["10.0.0.3", "fd00::1"]}, "spec.excludedAddresses"),
        ("IPP-10", {"excludedAddresses": ["fd00::1"]}, "addresses and excluded addresses are of mixed IP families"),
    ],
)
def test_a_pool_that_makes_no_sense_is_refused(rule: str, spec: Json, says: str) -> None:
    async def body(p: Plane) -> str:
        with pytest.raises(ApiError) as refused:
            await p.client.create(pool(**spec))
        return str(refused.value)

    assert says in played(body), rule


def test_a_pool_has_a_bound_on_its_entries() -> None:
    async def body(p: Plane) -> str:
        with pytest.raises(ApiError) as refused:
            await p.client.create(pool(addresses=[f"10.0.{n // 256}.{n % 256}" for n in range(1001)], prefix=16))
        return str(refused.value)

    assert "spec.addresses: Too many: 1001: must have at most 1000 items" in played(body)
