import msgspec
import pytest

from clusterwright.api.copying import replace
from clusterwright.api.meta import Condition, OwnerReference
from clusterwright.api.scheme import gvk_of
from clusterwright.conditions import ConditionConflict, set_condition
from clusterwright.runtime.errors import ApiError, Conflict, ConnectionFailed, NotFound
from clusterwright.runtime.patch import Patcher
from clusterwright.simulation.sample import Parent, ParentSpec, ParentStatus

from .conftest import NOW, failure

PARENT = gvk_of(Parent)


def a_condition(type="Ready", status="True", reason="Ok", message=""):
    return Condition(type=type, status=status, reason=reason, message=message, last_transition_time=NOW)


def with_status(parent, **changes):
    return replace(parent, status=replace(parent.status or ParentStatus(), **changes))


def with_condition(parent, condition):
    status = parent.status or ParentStatus()
    return replace(parent, status=replace(status, conditions=set_condition(status.conditions, condition, generation=1, now=NOW)))


def with_meta(parent, **changes):
    return replace(parent, metadata=replace(parent.metadata, **changes))


def body(request):
    return msgspec.json.decode(request.body)


@pytest.fixture
def patcher(world):
    return Patcher(world.client, world.clock)


async def test_nothing_changed_costs_no_request(world, patcher):
    key = await world.make(spec={"children": 2})
    original = await world.client.read(Parent, key)
    world.transport.sent.clear()

    assert await patcher.patch(original, original.object, observed_generation=True) is None
    assert world.transport.sent == []


async def test_an_empty_list_in_place_of_a_missing_one_costs_no_request(world, patcher):
    key = await world.make(spec={"children": 2})
    original = await world.client.read(Parent, key)
    world.transport.sent.clear()

    await patcher.patch(original, replace(original.object, status=ParentStatus()), observed_generation=True)

    assert world.transport.writes == []


async def test_spec_and_status_are_one_request_each_and_unknown_fields_survive(world, patcher):
    key = await world.make(
        spec={"children": 2, "unknown": {"deep": [1]}},
        metadata={"annotations": {"a": "b"}},
        status={
            "children": 1,
            "unknown": "kept",
            "conditions": [{"type": "Odd", "status": "True", "reason": "R", "message": "", "extra": 1}],
        },
    )
    original = await world.client.read(Parent, key)
    world.transport.sent.clear()
    after = with_status(replace(original.object, spec=ParentSpec(children=3)), children=2)

    await patcher.patch(original, after, observed_generation=True)

    assert [(r.method, r.path.rsplit("/", 1)[1]) for r in world.transport.sent] == [("PATCH", "ada"), ("PATCH", "status")]
    json = await world.json()
    assert json["spec"] == {"children": 3, "unknown": {"deep": [1]}}
    assert json["metadata"]["annotations"] == {"a": "b"}
    assert json["status"]["children"] == 2
    assert json["status"]["unknown"] == "kept"
    assert json["status"]["conditions"][0]["extra"] == 1
    assert json["status"]["observedGeneration"] == json["metadata"]["generation"] > original.object.metadata.generation


async def test_a_pass_speaks_for_the_generation_that_its_own_patch_has_made(world, patcher):
    others = {"type": "Theirs", "status": "True", "reason": "R", "message": "", "observedGeneration": 1}
    key = await world.make(spec={"children": 2}, status={"conditions": [others]})
    original = await world.client.read(Parent, key)
    after = replace(original.object, spec=ParentSpec(children=3))
    after = with_condition(after, a_condition("Ours"))

    await patcher.patch(original, after, owned_conditions=("Ours",), observed_generation=True)

    json = await world.json()
    generations = {c["type"]: c["observedGeneration"] for c in json["status"]["conditions"]}
    assert (json["metadata"]["generation"], json["status"]["observedGeneration"], generations) == (2, 2, {"Theirs": 1, "Ours": 2})


async def test_a_generation_changed_by_another_client_was_not_observed(world, patcher):
    key = await world.make(spec={"children": 2})
    original = await world.client.read(Parent, key)
    await world.user.patch(PARENT, key, {"spec": {"children": 7}})
    after = with_status(with_meta(original.object, labels={"a": "b"}), children=2)

    await patcher.patch(original, after, observed_generation=True)

    json = await world.json()
    assert (json["metadata"]["generation"], json["status"]["observedGeneration"]) == (2, 1)


async def test_observed_generation_moves_only_when_asked(world, patcher):
    key = await world.make()
    original = await world.client.read(Parent, key)
    await patcher.patch(original, with_status(original.object, children=1))
    assert "observedGeneration" not in (await world.json())["status"]

    original = await world.client.read(Parent, key)
    await patcher.patch(original, with_status(original.object, children=2), observed_generation=True)
    assert (await world.json())["status"]["observedGeneration"] == 1


async def test_a_status_without_condition_changes_is_not_locked(world, patcher):
    key = await world.make(status={"children": 1})
    original = await world.client.read(Parent, key)
    await world.user.patch(PARENT, key, {"status": {"other": "theirs"}}, subresource="status")

    await patcher.patch(original, with_status(original.object, children=2))

    assert "resourceVersion" not in body(world.transport.writes[0])["metadata"]
    assert len(world.transport.writes) == 1
    assert (await world.json())["status"] == {"children": 2, "other": "theirs"}


async def test_conditions_and_status_go_in_one_locked_request(world, patcher):
    key = await world.make()
    original = await world.client.read(Parent, key)

    await patcher.patch(original, with_condition(with_status(original.object, children=2), a_condition()), owned_conditions=["Ready"])

    (request,) = world.transport.writes
    assert body(request)["metadata"]["resourceVersion"] == original.object.metadata.resource_version
    assert set(body(request)["status"]) == {"children", "conditions"}


async def test_a_condition_added_elsewhere_meanwhile_survives(world, patcher):
    key = await world.make()
    original = await world.client.read(Parent, key)
    theirs = {"type": "Theirs", "status": "True", "reason": "R", "message": "m", "lastTransitionTime": "2026-05-01T00:00:00Z"}
    await world.user.patch(PARENT, key, {"status": {"conditions": [theirs]}}, subresource="status")

    await patcher.patch(original, with_condition(original.object, a_condition()), owned_conditions=["Ready"])

    assert [c["type"] for c in (await world.json())["status"]["conditions"]] == ["Ready", "Theirs"]


async def test_unknown_fields_survive_in_rewritten_conditions(world, patcher):
    mine = {
        "type": "Ready",
        "status": "False",
        "reason": "R",
        "message": "",
        "lastTransitionTime": "2026-05-01T00:00:00Z",
        "extra": {"a": 1},
    }
    other = {**mine, "type": "Other", "extra": 2}
    key = await world.make(status={"conditions": [mine, other]})
    original = await world.client.read(Parent, key)

    await patcher.patch(original, with_condition(original.object, a_condition()), owned_conditions=["Ready"])

    found = {c["type"]: c for c in (await world.json())["status"]["conditions"]}
    assert (found["Ready"]["status"], found["Ready"]["extra"], found["Other"]) == ("True", {"a": 1}, other)


async def test_an_owned_condition_changed_elsewhere_is_ours_again_and_another_is_a_conflict(world, patcher):
    key = await world.make()
    original = await world.client.read(Parent, key)
    theirs = {"type": "Ready", "status": "Unknown", "reason": "Theirs", "message": "", "lastTransitionTime": "2026-05-01T00:00:00Z"}
    await world.user.patch(PARENT, key, {"status": {"conditions": [theirs]}}, subresource="status")
    after = with_condition(original.object, a_condition(reason="Ours"))

    with pytest.raises(ConditionConflict):
        await patcher.patch(original, after)
    assert (await world.json())["status"]["conditions"][0]["reason"] == "Theirs"

    await patcher.patch(original, after, owned_conditions=["Ready"])
    assert (await world.json())["status"]["conditions"][0]["reason"] == "Ours"


async def test_five_conflicts_in_a_row_are_given_up(world, patcher):
    key = await world.make()
    original = await world.client.read(Parent, key)
    world.transport.sent.clear()

    async def refuse(request):
        return failure(409, "Conflict") if request.method == "PATCH" else None

    world.transport.before = refuse
    with pytest.raises(Conflict):
        await patcher.patch(original, with_condition(original.object, a_condition()), owned_conditions=["Ready"])
    assert len(world.transport.writes) == 5


async def test_finalizers_added_elsewhere_survive_ours_being_taken_away(world, patcher):
    key = await world.make(metadata={"finalizers": ["a/b", "ours/x"]})
    original = await world.client.read(Parent, key)
    await world.user.patch(PARENT, key, {"metadata": {"finalizers": ["a/b", "ours/x", "late/y"]}})

    await patcher.patch(original, with_meta(original.object, finalizers=("a/b",)))

    assert (await world.json())["metadata"]["finalizers"] == ["a/b", "late/y"]


async def test_finalizers_taken_away_elsewhere_do_not_come_back(world, patcher):
    key = await world.make(metadata={"finalizers": ["a/b"]})
    original = await world.client.read(Parent, key)
    await world.user.patch(PARENT, key, {"metadata": {"finalizers": []}})

    await patcher.patch(original, with_meta(original.object, finalizers=("a/b", "ours/x")))

    assert (await world.json())["metadata"]["finalizers"] == ["ours/x"]


async def test_owner_references_merge_by_uid(world, patcher):
    reference = {"apiVersion": "v1", "kind": "K", "name": "n"}
    key = await world.make(metadata={"ownerReferences": [{**reference, "uid": "1"}, {**reference, "uid": "2"}]})
    original = await world.client.read(Parent, key)
    three = [{**reference, "uid": u} for u in "123"]
    await world.user.patch(PARENT, key, {"metadata": {"ownerReferences": three}})
    one, two = original.object.metadata.owner_references
    new = OwnerReference(api_version="v1", kind="K", name="n", uid="4")

    await patcher.patch(original, with_meta(original.object, owner_references=(replace(one, controller=True), new)))

    found = (await world.json())["metadata"]["ownerReferences"]
    assert [(r["uid"], r.get("controller")) for r in found] == [("1", True), ("3", None), ("4", None)]
    assert two.uid == "2"


async def test_taking_the_last_finalizer_away_writes_status_first_and_tolerates_the_end(world, patcher):
    key = await world.make(metadata={"finalizers": ["ours/x"]})
    await world.user.delete(PARENT, key)
    original = await world.client.read(Parent, key)
    world.transport.sent.clear()

    await patcher.patch(original, with_status(with_meta(original.object, finalizers=()), children=0))

    assert [r.path.rsplit("/", 1)[1] for r in world.transport.writes] == ["status", "ada"]
    assert await world.user.find(Parent, key) is None

    await patcher.patch(original, with_status(with_meta(original.object, finalizers=()), children=0))  # gone already: fine


async def test_a_vanished_object_is_an_error_unless_it_may_go(world, patcher):
    key = await world.make()
    original = await world.client.read(Parent, key)
    await world.user.delete(PARENT, key)

    with pytest.raises(NotFound):
        await patcher.patch(original, with_status(original.object, children=2))


async def test_a_new_object_of_the_same_name_is_not_taken_for_the_old_one(world, patcher):
    key = await world.make()
    original = await world.client.read(Parent, key)
    await world.user.delete(PARENT, key)
    await world.make()

    with pytest.raises(ApiError):
        await patcher.patch(original, replace(original.object, spec=ParentSpec(children=3)))
    with pytest.raises(NotFound):
        await patcher.patch(original, with_condition(original.object, a_condition()), owned_conditions=["Ready"])
    assert "status" not in await world.json()

    # an unlocked status write is found out by its answer, and the pass is run again
    with pytest.raises(NotFound):
        await patcher.patch(original, with_status(original.object, children=2))


async def test_both_requests_are_attempted_and_both_failures_are_raised(world, patcher):
    key = await world.make()
    original = await world.client.read(Parent, key)
    after = with_status(replace(original.object, spec=ParentSpec(children=3)), children=2)
    attempted = []

    async def refuse(request):
        attempted.append(request.path)
        if request.path.endswith("ada"):
            return failure(403, "Forbidden")
        raise ConnectionFailed("gone")

    world.transport.before = refuse
    with pytest.raises(ExceptionGroup) as caught:
        await patcher.patch(original, after)
    assert len(attempted) == 2
    assert {type(e).__name__ for e in caught.value.exceptions} == {"Forbidden", "ConnectionFailed"}


async def test_one_failure_is_raised_as_itself_after_the_other_request_was_made(world, patcher):
    key = await world.make()
    original = await world.client.read(Parent, key)

    async def refuse(request):
        return failure(403, "Forbidden") if request.path.endswith("ada") else None

    world.transport.before = refuse
    with pytest.raises(ApiError, match="no"):
        await patcher.patch(
            original, with_status(replace(original.object, spec=ParentSpec(children=3)), children=2), observed_generation=True
        )
    assert (await world.json())["status"] == {"children": 2}  # the generation was not dealt with
