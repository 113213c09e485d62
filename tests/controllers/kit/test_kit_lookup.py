"""Whom an object concerns that is referred to and that nobody owns yet."""

from __future__ import annotations

import asyncio
from typing import Any

from clusterwright.api.meta import ObjectKey, Unstructured
from clusterwright.controllers.kit.lookup import Awaited, Expectations

CLUSTER, OTHER = ObjectKey("ns", "c"), ObjectKey("ns", "other")
AWAITED = Awaited("infra.example.com", "Thing", ObjectKey("ns", "t"))


def woken(expectations: Expectations, name: str = "t", version: str = "v1") -> set[ObjectKey]:
    """Who hears of the object."""
    json = {"apiVersion": f"infra.example.com/{version}", "kind": "Thing", "metadata": {"namespace": "ns", "name": name}}
    reader: Any = None
    return set(asyncio.run(expectations.referrers(Unstructured(json), reader)))


def test_an_object_wakes_its_waiting_referrers_in_any_version() -> None:
    expectations = Expectations()
    expectations.expect(CLUSTER, AWAITED)
    expectations.expect(OTHER, AWAITED)

    assert woken(expectations) == {CLUSTER, OTHER}
    assert woken(expectations, version="v2") == {CLUSTER, OTHER}
    assert woken(expectations, name="another") == set()


def test_a_referrer_that_met_its_object_or_is_gone_is_not_woken() -> None:
    expectations = Expectations()
    expectations.expect(CLUSTER, AWAITED)
    expectations.expect(OTHER, AWAITED)

    expectations.met(CLUSTER, AWAITED)
    assert woken(expectations) == {OTHER}

    expectations.forget(OTHER)
    assert woken(expectations) == set()
