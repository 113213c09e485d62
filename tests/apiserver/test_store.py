from __future__ import annotations

import json
import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from clusterwright.apiserver.storage.store import Entry, Event, Gone, Store, object_key


def write(store: Store, name: str, value: int, namespace: str = "ns") -> Entry:
    rv = store.next_revision()
    raw = json.dumps({"metadata": {"name": name, "labels": {"v": str(value)}}}).encode()
    entry = Entry(object_key(namespace, name), namespace, name, f"uid-{name}", rv, raw)
    store.put(store.table("things"), entry)
    return entry


def remove(store: Store, name: str, namespace: str = "ns") -> None:
    table = store.table("things")
    old = table.objects[object_key(namespace, name)]
    store.delete(table, Entry(old.key, namespace, name, old.uid, store.next_revision(), old.raw))


class Recorder:
    def __init__(self) -> None:
        self.events: list[Event] = []

    def offer(self, event: Event) -> None:
        self.events.append(event)


OPERATIONS = st.lists(st.tuples(st.sampled_from("abcdef"), st.integers(-3, 9)), max_size=60)


@given(OPERATIONS, st.integers(0, 60))
@settings(max_examples=150, deadline=None)
def test_the_past_is_as_it_was(operations: list[tuple[str, int]], when: int):
    store = Store(history=1000)
    snapshots: dict[int, list[tuple[str, bytes]]] = {}
    table = store.table("things")
    for name, value in operations:
        if value < 0 and object_key("ns", name) in table.objects:
            remove(store, name)
        elif value >= 0:
            write(store, name, value)
        snapshots[store.revision] = [(e.name, e.raw) for e in table.range()]

    revisions = sorted(snapshots)
    if revisions:
        rv = revisions[when % len(revisions)]
        assert [(e.name, e.raw) for e in table.at(rv)] == snapshots[rv]


@given(OPERATIONS, st.integers(0, 60))
@settings(max_examples=150, deadline=None)
def test_events_since_any_revision_lead_to_the_present(operations: list[tuple[str, int]], when: int):
    store = Store(history=1000)
    table = store.table("things")
    start = store.revision
    state_then: dict[str, bytes] = {}
    for number, (name, value) in enumerate(operations):
        if value < 0 and object_key("ns", name) in table.objects:
            remove(store, name)
        elif value >= 0:
            write(store, name, value)
        if number == when:
            start, state_then = store.revision, {k: e.raw for k, e in table.objects.items()}
    for event in table.since(start):
        if event.type == "DELETED":
            del state_then[event.entry.key]
        else:
            assert (event.type == "ADDED") == (event.entry.key not in state_then)
            state_then[event.entry.key] = event.entry.raw

    assert state_then == {k: e.raw for k, e in table.objects.items()}


def test_revisions_older_than_the_history_are_gone():
    store = Store(history=3)
    first = write(store, "a", 0).rv
    for value in range(1, 6):
        write(store, "a", value)
    table = store.table("things")

    with pytest.raises(Gone):
        table.since(first)
    with pytest.raises(Gone):
        list(table.at(first))
    assert len(table.since(table.floor)) == 3


def test_the_past_of_a_namespace_is_read_page_by_page():
    store = Store()
    table = store.table("things")
    for namespace in ("ns", "ns-2", "other"):
        for name in "abc":
            write(store, name, 0, namespace)
    then = store.revision
    remove(store, "b")
    write(store, "d", 1)
    write(store, "a", 1, "ns-2")

    def listed(namespace, after=""):
        return [(e.namespace, e.name) for e in table.at(then, namespace, after)]

    assert listed("ns") == [("ns", name) for name in "abc"]
    assert listed("ns-2") == [("ns-2", name) for name in "abc"]
    assert listed("nowhere") == []
    assert listed("ns", object_key("ns", "a")) == [("ns", "b"), ("ns", "c")]
    assert listed("ns", object_key("ns", "c")) == []
    everything = listed("")
    assert len(everything) == 9
    assert listed("", object_key(*everything[4])) == everything[5:]


def test_keys_are_ordered_as_etcd_orders_them():
    store = Store()
    for namespace in ("a", "a-b", "a.c"):
        write(store, "x", 0, namespace)

    assert [e.namespace for e in store.table("things").range()] == ["a-b", "a.c", "a"]
    assert [e.namespace for e in store.table("things").range("a")] == ["a"]


def test_an_observer_gets_nothing_after_its_end():
    store = Store()
    recorder = Recorder()
    end = store.table("things").observe(recorder)
    write(store, "a", 0)
    end()
    write(store, "b", 0)

    assert [e.entry.name for e in recorder.events] == ["a"]


def test_labels_of_malformed_objects_are_not_an_error():
    for raw in (b"{}", b'{"metadata":null}', b'{"metadata":{"labels":[1]}}', b'{"metadata":{"labels":null}}'):
        assert Entry("a", "", "a", "u", 1, raw).labels == {}


def test_sorted_keys_stay_sorted_under_random_writes():
    store = Store(history=10)
    chooser = random.Random(3)
    table = store.table("things")
    for _ in range(2000):
        name = f"n{chooser.randrange(200)}"
        if object_key("ns", name) in table.objects and chooser.random() < 0.4:
            remove(store, name)
        else:
            write(store, name, 1)

    assert table.keys == sorted(table.objects)
