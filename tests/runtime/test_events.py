import asyncio
from datetime import datetime
from random import Random

import pytest

from clusterwright.api.kubernetes import Builtin, BuiltinObject, ObjectReference
from clusterwright.api.meta import ObjectMeta
from clusterwright.apiserver.server import ApiServer
from clusterwright.apiserver.serving.inprocess import InProcessTransport
from clusterwright.runtime.clock import LoopClock
from clusterwright.runtime.events import Recorder
from clusterwright.runtime.rest import RestClient
from clusterwright.simulation.loop import run_virtual
from clusterwright.simulation.sample import Parent
from clusterwright.simulation.world import START

from .conftest import failure


class EventSource(Builtin):
    component: str = ""


class Event(BuiltinObject):
    api_version: str = "v1"
    kind: str = "Event"
    involved_object: ObjectReference = ObjectReference()
    reason: str = ""
    message: str = ""
    source: EventSource = EventSource()
    first_timestamp: datetime | None = None
    last_timestamp: datetime | None = None
    count: int = 0
    type: str = ""


@pytest.fixture
async def ada(world):
    key = await world.make()
    return await world.user.get(Parent, key)


@pytest.fixture
def recorder(world):
    return Recorder(world.client, world.clock, "test-controller")


async def events(world):
    return sorted(await world.user.list(Event), key=lambda e: e.message)


async def test_an_event_names_its_object_and_its_source(world, recorder, ada):
    recorder.record(ada, "Normal", "Created", "made it")
    await recorder.flush()

    (event,) = await events(world)
    assert (event.type, event.reason, event.message, event.count) == ("Normal", "Created", "made it", 1)
    reference = event.involved_object
    assert (reference.kind, reference.name, reference.namespace, reference.uid) == ("Parent", "ada", "default", ada.metadata.uid)
    assert event.source.component == "test-controller"
    assert event.first_timestamp == event.last_timestamp == world.clock.now()


async def test_a_repeated_event_is_counted_and_after_ten_minutes_sent_again(world, recorder, ada):
    for _ in range(3):
        recorder.record(ada, "Warning", "Failed", "no")
        await recorder.flush()
        await world.clock.sleep(30)
    (event,) = await events(world)
    assert event.count == 3
    assert (event.last_timestamp - event.first_timestamp).total_seconds() == 60

    await world.clock.sleep(700)
    recorder.record(ada, "Warning", "Failed", "no")
    await recorder.flush()
    assert sorted(e.count for e in await events(world)) == [1, 3]


def test_quickly_repeated_events_are_counted_and_the_count_is_written_once():
    async def scenario():
        clock = LoopClock(START)
        server = ApiServer(now=clock.now, random=Random(1))
        server.ensure_namespaces()
        client = RestClient(InProcessTransport(server), clock=clock)
        recorder = Recorder(client, clock, "test-controller")
        running = asyncio.create_task(recorder.run())
        obj = BuiltinObject(api_version="v1", kind="ConfigMap", metadata=ObjectMeta(name="ada", namespace="default"))
        for _ in range(5):
            recorder.record(obj, "Warning", "Failed", "no")
            await asyncio.sleep(1)
        (event,), before = await client.list(Event), server.store.revision
        assert event.count == 1  # the others are owed
        await asyncio.sleep(10)
        (event,) = await client.list(Event)
        assert event.count == 5
        assert (event.last_timestamp - event.first_timestamp).total_seconds() == 4
        assert server.store.revision == before + 1
        recorder.record(obj, "Warning", "Failed", "no")
        running.cancel()
        await recorder.flush()  # whoever stops leaves nothing untold
        assert (await client.list(Event))[0].count == 6

    run_virtual(scenario())


async def test_many_that_differ_only_in_their_message_become_one(world, recorder, ada):
    for n in range(15):
        recorder.record(ada, "Warning", "Failed", f"attempt {n}")
    await recorder.flush()

    found = await events(world)
    assert len(found) == 11
    assert found[0].message == "(combined from similar events): attempt 0"
    assert found[0].count == 5


async def test_only_objects_with_too_many_events_are_limited(world, recorder, ada):
    for n in range(100):
        recorder.record(ada, "Normal", f"Reason{n}", "m")
    other = await world.user.get(Parent, await world.make("bob"))
    recorder.record(other, "Normal", "Fine", "m")
    await recorder.flush()

    found = await events(world)
    assert len([e for e in found if e.involved_object.name == "ada"]) == 25
    assert len([e for e in found if e.involved_object.name == "bob"]) == 1


async def test_an_event_that_has_expired_is_made_again(world, recorder, ada):
    recorder.record(ada, "Normal", "A", "m")
    await recorder.flush()
    (event,) = await events(world)
    await world.user.delete(Event, event.key)
    await world.clock.sleep(15)

    recorder.record(ada, "Normal", "A", "m")
    await recorder.flush()

    assert len(await events(world)) == 1


async def test_a_failed_event_does_not_stop_the_next_one(world, recorder, ada):
    async def refuse(request):
        return failure(403, "Forbidden")

    world.transport.before = refuse
    recorder.record(ada, "Normal", "A", "m")
    await recorder.flush()
    world.transport.before = None
    recorder.record(ada, "Normal", "B", "m" * 5000)
    await recorder.flush()

    (event,) = await events(world)
    assert event.reason == "B"
    assert len(event.message) == 1024
