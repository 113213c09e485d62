import pytest

from clusterwright.api.copying import replace
from clusterwright.api.scheme import gvk_of
from clusterwright.api.wellknown import PAUSED_ANNOTATION
from clusterwright.runtime.finalizers import Finalization, ensure_finalizer, without_finalizer
from clusterwright.runtime.patch import Patcher
from clusterwright.runtime.paused import ensure_paused_condition
from clusterwright.simulation.sample import Parent

PARENT = gvk_of(Parent)


@pytest.fixture
def patcher(world):
    return Patcher(world.client, world.clock)


async def pass_(world, patcher, key, *, cluster_paused=False):
    original = await world.client.read(Parent, key)
    world.transport.sent.clear()
    return original, await ensure_paused_condition(patcher, world.clock, original, cluster_paused=cluster_paused)


@pytest.mark.parametrize(
    ("finalizers", "deleting", "case", "writes"),
    [
        ([], False, Finalization.ADDED, 1),
        (["ours/x"], False, Finalization.PRESENT, 0),
        (["ours/x", "other/y"], True, Finalization.CLEANUP, 0),
        (["other/y"], True, Finalization.ABSENT, 0),
    ],
)
async def test_the_four_cases_of_a_finalizer_are_distinguished(world, patcher, finalizers, deleting, case, writes):
    key = await world.make(metadata={"finalizers": finalizers})
    if deleting:
        await world.user.delete(PARENT, key)
    original = await world.client.read(Parent, key)
    world.transport.sent.clear()

    assert await ensure_finalizer(patcher, original, "ours/x") is case

    assert len(world.transport.writes) == writes
    if case is Finalization.ADDED:
        assert (await world.json())["metadata"]["finalizers"] == ["ours/x"]


async def test_without_a_finalizer_leaves_the_others(world):
    key = await world.make(metadata={"finalizers": ["ours/x", "other/y"]})
    parent = await world.client.get(Parent, key)

    assert without_finalizer(parent, "ours/x").metadata.finalizers == ("other/y",)


async def test_the_final_patch_of_a_new_object_sets_paused_to_false(world, patcher):
    key = await world.make()

    original, check = await pass_(world, patcher, key)

    assert not check.is_paused
    assert world.transport.writes == []
    await patcher.patch(original, check.object, owned_conditions=["Paused"])
    (condition,) = (await world.json())["status"]["conditions"]
    assert (condition["type"], condition["status"], condition["reason"], condition["message"]) == ("Paused", "False", "NotPaused", "")
    assert condition["observedGeneration"] == 1


async def test_unchanged_and_not_paused_changes_nothing(world, patcher):
    key = await world.make()
    original, check = await pass_(world, patcher, key)
    await patcher.patch(original, check.object, owned_conditions=["Paused"])

    original, check = await pass_(world, patcher, key)

    assert not check.is_paused
    assert check.object == original.object
    assert world.transport.writes == []


async def test_where_only_the_generation_is_behind_the_last_patch_carries_it(world, patcher):
    key = await world.make()
    original, check = await pass_(world, patcher, key)
    await patcher.patch(original, check.object, owned_conditions=["Paused"])
    await world.user.patch(PARENT, key, {"spec": {"children": 9}})

    original, check = await pass_(world, patcher, key)

    assert not check.is_paused
    assert world.transport.writes == []
    await patcher.patch(original, check.object, owned_conditions=["Paused"])
    assert (await world.json())["status"]["conditions"][0]["observedGeneration"] == 2


@pytest.mark.parametrize(
    ("cluster_paused", "annotated", "message"),
    [
        (True, False, "Cluster spec.paused is set to true"),
        (False, True, f"Parent has the {PAUSED_ANNOTATION} annotation"),
        (True, True, f"Cluster spec.paused is set to true, Parent has the {PAUSED_ANNOTATION} annotation"),
    ],
)
async def test_the_paused_condition_lists_its_causes(world, patcher, cluster_paused, annotated, message):
    key = await world.make(metadata={"annotations": {PAUSED_ANNOTATION: ""}} if annotated else {})

    _, check = await pass_(world, patcher, key, cluster_paused=cluster_paused)

    assert check.is_paused
    (condition,) = (await world.json())["status"]["conditions"]
    assert (condition["status"], condition["reason"], condition["message"]) == ("True", "Paused", message)

    _, check = await pass_(world, patcher, key, cluster_paused=cluster_paused)
    assert check.is_paused
    assert world.transport.writes == []


async def test_the_paused_condition_of_a_new_generation_is_written_at_once(world, patcher):
    key = await world.make()
    await pass_(world, patcher, key, cluster_paused=True)
    await world.user.patch(PARENT, key, {"spec": {"children": 9}})

    _, check = await pass_(world, patcher, key, cluster_paused=True)

    assert check.is_paused
    assert (await world.json())["status"]["conditions"][0]["observedGeneration"] == 2


async def test_the_final_patch_of_a_resumed_object_sets_paused_to_false(world, patcher):
    key = await world.make()
    await pass_(world, patcher, key, cluster_paused=True)

    original, check = await pass_(world, patcher, key)

    assert not check.is_paused
    assert world.transport.writes == []
    assert replace(original.object) == original.object
    await patcher.patch(original, check.object, owned_conditions=["Paused"])
    assert (await world.json())["status"]["conditions"][0]["status"] == "False"
