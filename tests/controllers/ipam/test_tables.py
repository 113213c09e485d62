"""The tables of the IPAM provider, row by row."""

from __future__ import annotations

from datetime import UTC, datetime
from ipaddress import IPv4Address
from typing import Any

import pytest

from clusterwright.api.copying import replace
from clusterwright.api.ipam import IPAddress, IPAddressClaim, IPAddressClaimReference, IPAddressClaimSpec, IPAddressSpec, IPPoolReference
from clusterwright.api.ippools import InClusterIPPool, InClusterIPPoolSpec
from clusterwright.api.meta import ObjectMeta
from clusterwright.controllers.ipam.facts import PoolFacts
from clusterwright.controllers.ipam.plan import CLAIM, POOL, READY, Answer, ClaimDone, Fate, PoolSnapshot

NOW = datetime(2026, 5, 1, 12, tzinfo=UTC)
REF = IPPoolReference(api_group="ipam.cluster.x-k8s.io", kind="InClusterIPPool", name="pool")
ANOTHER_POOL = replace(REF, name="another")
THERE = PoolFacts.of(
    InClusterIPPool(metadata=ObjectMeta(name="pool", uid="u"), spec=InClusterIPPoolSpec(addresses=("10.0.0.9",), prefix=24))
)


def an_address(claim: str = "one", pool: IPPoolReference = REF) -> IPAddress:
    spec = IPAddressSpec(address="10.0.0.9", claim_ref=IPAddressClaimReference(name=claim), pool_ref=pool)
    return IPAddress(metadata=ObjectMeta(name="one", namespace="default"), spec=spec)


def a_claim(*, deleting: bool = False, **facts: Any) -> ClaimDone:
    """Return a claim whose pool is there and has a free address, but for what `facts` say."""
    metadata = ObjectMeta(name="one", namespace="default", deletion_timestamp=NOW if deleting else None)
    claim = IPAddressClaim(metadata=metadata, spec=IPAddressClaimSpec(pool_ref=REF))
    usual: dict[str, Any] = {"pool": THERE, "pool_error": "", "address": None, "free": IPv4Address("10.0.0.9")}
    return ClaimDone(now=NOW, object=claim, **(usual | facts))


@pytest.mark.parametrize(
    ("row", "claim", "answer"),
    [
        ("deleting", a_claim(deleting=True), Answer.RELEASE),
        ("deleting", a_claim(deleting=True, pool=None, address=an_address("another")), Answer.RELEASE),
        ("foreign", a_claim(address=an_address("another")), Answer.REFUSE),
        ("foreign", a_claim(address=an_address(pool=ANOTHER_POOL), pool=None), Answer.REFUSE),
        ("pool-gone", a_claim(pool=None), Answer.WAIT),
        ("pool-gone", a_claim(pool=None, address=an_address()), Answer.WAIT),
        ("answered", a_claim(address=an_address(), free=None), Answer.KEEP),
        ("pool-unusable", a_claim(pool_error="spec.prefix: 33 is too long", free=None), Answer.WAIT),
        ("exhausted", a_claim(free=None), Answer.WAIT),
        ("free", a_claim(), Answer.ASSIGN),
    ],
)
def test_a_claim_is_answered(row: str, claim: ClaimDone, answer: Answer) -> None:
    decision = CLAIM.decide(claim)
    assert (decision.row, decision.act) == (row, answer)


@pytest.mark.parametrize(
    ("row", "claim", "condition"),
    [
        (
            "foreign",
            a_claim(address=an_address("another")),
            ("False", "AllocationFailed", "IPAddress one exists already and belongs to another claim or pool"),
        ),
        ("pool-gone", a_claim(pool=None), ("False", "PoolNotReady", "InClusterIPPool pool does not exist")),
        (
            "failed",
            a_claim(error="failed to create IPAddress one: quota"),
            ("False", "AllocationFailed", "failed to create IPAddress one: quota"),
        ),
        ("answered", a_claim(address=an_address()), ("True", "Ready", "")),
        ("pool-unusable", a_claim(pool_error="E", free=None), ("False", "PoolNotReady", "InClusterIPPool pool cannot be used: E")),
        ("exhausted", a_claim(free=None), ("False", "PoolExhausted", "All addresses of InClusterIPPool pool are in use")),
        ("assigned", a_claim(), ("True", "Ready", "")),
    ],
)
def test_a_claim_says_whether_it_has_an_address(row: str, claim: ClaimDone, condition: tuple[str, str, str]) -> None:
    decision = READY.decide(claim)
    assert decision.row == row
    assert decision.outcome is not None
    assert (decision.outcome.status, decision.outcome.reason, decision.outcome.message) == condition


@pytest.mark.parametrize(
    ("row", "deleting", "taken", "fate"),
    [
        ("in-use", True, (an_address(),), Fate.WAITS),
        ("deleting", True, (), Fate.GOES),
        ("there", False, (an_address(),), Fate.STAYS),
        ("there", False, (), Fate.STAYS),
    ],
)
def test_a_pool_stays_while_addresses_are_in_use(row: str, deleting: bool, taken: tuple[IPAddress, ...], fate: Fate) -> None:
    metadata = ObjectMeta(name="pool", deletion_timestamp=NOW if deleting else None)
    decision = POOL.decide(PoolSnapshot(now=NOW, object=InClusterIPPool(metadata=metadata), taken=taken))
    assert (decision.row, decision.act) == (row, fate)
