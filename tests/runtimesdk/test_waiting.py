"""Who an extension failed is tried again as soon as extensions are registered."""

from __future__ import annotations

import pytest

from clusterwright.api.meta import ObjectKey
from clusterwright.runtime.errors import ApiError
from clusterwright.runtime.reconcile import Result
from clusterwright.runtimesdk.registry import Registry
from clusterwright.runtimesdk.waiting import WokenByExtensions
from clusterwright.topology.extensions import ExtensionError
from support.extension import extension_config

ONE, TWO = ObjectKey("ns", "one"), ObjectKey("ns", "two")


class Failing:
    """A reconciler whose passes fail as they are told; None: they do not."""

    def __init__(self) -> None:
        self.errors: dict[ObjectKey, Exception | None] = {}

    async def reconcile(self, key: ObjectKey) -> Result:
        error = self.errors.get(key)
        if error is not None:
            raise error
        return Result.await_change()


def caused(cause: Exception) -> Exception:
    error = ApiError("the pass failed")
    error.__cause__ = cause
    return error


@pytest.mark.parametrize(
    ("error", "waits"),
    [
        (ExtensionError("no"), True),
        (caused(caused(ExtensionError("no"))), True),
        (caused(ExceptionGroup("several", [ApiError("other"), caused(ExtensionError("no"))])), True),
        (caused(ApiError("other")), False),
        (None, False),
    ],
)
async def test_only_passes_failed_by_an_extension_are_woken_once(error: Exception | None, waits: bool) -> None:
    woken: list[ObjectKey] = []
    registry, inner = Registry(), Failing()
    registry.warm_up([])
    reconciler = WokenByExtensions(inner, registry, lambda key, _reason: woken.append(key))
    inner.errors = {ONE: error}
    for key in (ONE, TWO):
        try:
            await reconciler.reconcile(key)
        except (ApiError, ExtensionError):
            assert key == ONE

    registry.add(extension_config("ext", "https://h/", "", {"h": "BeforeClusterCreate"}))
    first = list(woken)
    registry.add(extension_config("ext", "https://h/", "", {"h": "BeforeClusterCreate"}))

    assert first == woken == ([ONE] if waits else [])


async def test_a_pass_that_went_well_since_is_left_alone() -> None:
    woken: list[ObjectKey] = []
    registry, inner = Registry(), Failing()
    registry.warm_up([])
    reconciler = WokenByExtensions(inner, registry, lambda key, _reason: woken.append(key))
    inner.errors = {ONE: ExtensionError("no")}
    with pytest.raises(ExtensionError):
        await reconciler.reconcile(ONE)
    inner.errors = {}
    await reconciler.reconcile(ONE)
    registry.add(extension_config("ext", "https://h/"))

    assert woken == []
