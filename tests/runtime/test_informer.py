import json
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from clusterwright.api.meta import ObjectKey
from clusterwright.api.scheme import gvk_of
from clusterwright.api.selectors import InvalidSelector, field_requirements, parse_labels
from clusterwright.runtime.informer import Informer
from clusterwright.simulation.sample import GROUP, Parent


def an_object(name="a", rv=1, uid="", namespace="ns", labels=None, owners=(), finalizers=(), deleting=False, **more):
    metadata = {"namespace": namespace, "name": name, "uid": uid or f"uid-{name}", "resourceVersion": str(rv)}
    if labels:
        metadata["labels"] = labels
    if owners:
        metadata["ownerReferences"] = [{"apiVersion": "v1", "kind": "K", "name": "o", "uid": owner} for owner in owners]
    if finalizers:
        metadata["finalizers"] = list(finalizers)
    if deleting:
        metadata["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    return msgspec.json.encode({"apiVersion": f"{GROUP}/v1", "kind": "Parent", "metadata": metadata, **more})


def key(name="a"):
    return ObjectKey("ns", name)


@pytest.fixture
def informer():
    made: Any = Informer(gvk_of(Parent))
    made.listing()
    made.listed()
    made.told = []
    made.subscribe(lambda old, new, initial: made.told.append((old and old.resource_version, new and new.resource_version, initial)))
    return made


def test_events_replace_and_remove_objects_and_handlers_are_called_once(informer):
    informer.applied(an_object(rv=1))
    informer.applied(an_object(rv=2))
    informer.applied(an_object(rv=2))
    informer.deleted(an_object(rv=3))
    informer.deleted(an_object(rv=3))

    assert informer.told == [(None, "1", False), ("1", "2", False), ("3", None, False)]
    assert informer.find(key()) is None


def test_an_older_state_never_replaces_a_newer_one(informer):
    informer.applied(an_object(rv=10))
    informer.applied(an_object(rv=9))

    assert informer.find(key()).resource_version == "10"


def test_a_relist_reports_only_changes(informer):
    for name, rv in (("same", 1), ("changed", 2), ("gone", 3), ("replaced", 4)):
        informer.applied(an_object(name, rv))
    informer.told.clear()

    informer.listing()
    for name, rv, uid in (("same", 1, ""), ("changed", 5, ""), ("replaced", 6, "another"), ("new", 7, "")):
        informer.item(an_object(name, rv, uid))
    informer.listed()

    assert sorted(informer.told, key=str) == sorted(
        [("3", None, False), ("2", "5", False), ("4", None, False), (None, "6", False), (None, "7", False)], key=str
    )


def test_a_late_subscriber_gets_the_existing_objects(informer):
    informer.applied(an_object("x", 1))
    told = []

    informer.subscribe(lambda old, new, initial: told.append((new.key.name, initial)))

    assert told == [("x", True)]


def test_objects_that_cannot_be_read_are_left_out(informer):
    informer.listing()
    informer.item(b'{"metadata": 7}')
    informer.item(b"{")
    informer.item(an_object())
    informer.listed()

    assert [entry.key.name for entry in informer.entries()] == ["a"]


def test_own_writes_show_before_their_event_and_in_every_selection(informer):
    informer.applied(an_object("a", 1, labels={"x": "1"}, owners=["o1"], spec={"children": 1}))
    informer.select(labels=parse_labels({"x": "1"}))  # the index exists now
    informer.select(fields="spec.children=1")

    informer.wrote(key(), an_object("a", 2, labels={"x": "2"}, owners=["o2"], spec={"children": 2}), deleted=False)
    informer.wrote(key("b"), an_object("b", 3, labels={"x": "2"}, owners=["o2"]), deleted=False)

    assert informer.find(key()).resource_version == "2"
    assert informer.select(labels=parse_labels({"x": "1"})) == []
    assert [e.key.name for e in informer.select(labels=parse_labels({"x": "2"}))] == ["a", "b"]
    assert informer.select(owner="o1") == []
    assert [e.key.name for e in informer.select(owner="o2")] == ["a", "b"]
    assert informer.select(fields="spec.children=1") == []
    assert [e.key.name for e in informer.select(fields="spec.children=2")] == ["a"]
    # handlers hear of it when the watch tells, once
    assert informer.told == [(None, "1", False)]
    informer.applied(an_object("a", 2, labels={"x": "2"}, owners=["o2"], spec={"children": 2}))
    assert informer.told[-1] == ("1", "2", False)


def test_a_selection_takes_what_matches_in_every_respect(informer):
    for namespace in ("ns", "other"):
        informer.applied(
            an_object("both", 1, f"{namespace}-both", namespace, labels={"x": "1", "y": "1"}, owners=["o"], spec={"children": 1})
        )
        informer.applied(an_object("x-only", 1, f"{namespace}-x", namespace, labels={"x": "1"}, owners=["o"], spec={"children": 1}))
        informer.applied(an_object("y-only", 1, f"{namespace}-y", namespace, labels={"y": "1"}))
        for name in ("own", "own-x-only"):
            labels = {"x": "1"} if name == "own-x-only" else {"x": "1", "y": "1"}
            written = an_object(name, 2, f"{namespace}-{name}", namespace, labels=labels, owners=["o"], spec={"children": 1})
            informer.wrote(ObjectKey(namespace, name), written, deleted=False)

    def found(**asked):
        return [str(entry.key) for entry in informer.select(**asked)]

    every = [str(ObjectKey(namespace, name)) for namespace in ("ns", "other") for name in ("both", "own")]
    with_both = parse_labels({"x": "1", "y": "1"})
    assert found(labels=with_both) == every
    assert found(labels=with_both, namespace="ns") == every[:2]
    assert found(labels=with_both, namespace="other") == every[2:]
    assert found(labels=with_both, namespace="nowhere") == []
    assert found(labels=parse_labels({"y": "1"}), owner="o") == every
    assert found(labels=parse_labels({"y": "1"}), fields="spec.children=1") == every
    assert found(fields="metadata.name=both,spec.children=1") == every[::2]
    assert len(found(namespace="ns")) == 5


def test_a_late_event_does_not_hide_an_own_write(informer):
    informer.applied(an_object(rv=1))
    informer.wrote(key(), an_object(rv=5), deleted=False)

    informer.applied(an_object(rv=3))
    assert informer.find(key()).resource_version == "5"

    informer.applied(an_object(rv=7))
    assert informer.find(key()).resource_version == "7"


def test_answers_that_overtake_each_other_leave_the_newest(informer):
    informer.wrote(key(), an_object(rv=6), deleted=False)
    informer.wrote(key(), an_object(rv=5), deleted=False)

    assert informer.find(key()).resource_version == "6"


@pytest.mark.parametrize(
    "answer",
    [an_object(rv=4), b'{"kind":"Status","metadata":{},"status":"Success","details":{"name":"a","uid":"uid-a"}}'],
    ids=["last-state", "status"],
)
def test_an_own_deletion_hides_the_object_at_once_and_late_events_do_not_bring_it_back(informer, answer):
    informer.applied(an_object(rv=1))

    informer.wrote(key(), answer, deleted=True)

    assert informer.find(key()) is None
    assert informer.select() == []
    informer.applied(an_object(rv=3))
    assert informer.find(key()) is None
    informer.deleted(an_object(rv=4))
    assert informer.find(key()) is None
    informer.applied(an_object(rv=9, uid="successor"))
    assert informer.find(key()).uid == "successor"


def test_an_incomplete_answer_is_recognised(informer):
    informer.applied(an_object(rv=1))

    assert not informer.wrote(key(), b'{"kind":"Status","metadata":{},"status":"Success"}', deleted=True)
    assert not informer.wrote(key(), b"{", deleted=False)
    assert informer.find(key()) is not None


@pytest.mark.parametrize("answer", [an_object(rv=2), an_object(rv=2, deleting=True), an_object(rv=2, deleting=True, finalizers=["f"])])
@pytest.mark.parametrize("deleted", [False, True])
def test_a_late_answer_does_not_restore_a_deleted_object(informer, answer, deleted):
    informer.applied(an_object(rv=1))
    informer.deleted(an_object(rv=5))

    informer.wrote(key(), answer, deleted=deleted)

    assert informer.find(key()) is None
    informer.applied(an_object(rv=9, uid="successor"))
    informer.wrote(key(), answer, deleted=deleted)
    assert informer.find(key()).uid == "successor"


def test_deleting_an_object_that_replaced_another_hides_it(informer):
    informer.applied(an_object(rv=1, uid="predecessor"))
    informer.wrote(key(), an_object(rv=1, uid="predecessor"), deleted=True)
    informer.wrote(key(), an_object(rv=5, uid="ours"), deleted=False)
    assert informer.find(key()).uid == "ours"

    informer.wrote(key(), an_object(rv=6, uid="ours"), deleted=True)

    assert informer.find(key()) is None
    informer.deleted(an_object(rv=3, uid="predecessor"))
    informer.applied(an_object(rv=5, uid="ours"))
    assert informer.find(key()) is None
    informer.deleted(an_object(rv=6, uid="ours"))
    assert informer.find(key()) is None


def test_a_deletion_of_an_unknown_object_is_recognised(informer):
    informer.applied(an_object(rv=1, uid="known"))

    assert not informer.wrote(key(), an_object(rv=6, uid="unknown"), deleted=True)


@pytest.mark.parametrize(
    ("known", "written", "deleted", "understood"),
    [
        (None, None, "a", True),
        (None, "a", "a", True),
        (None, "a", "b", True),
        ("a", None, "a", True),
        ("a", None, "b", False),
        ("a", "b", "a", True),
        ("a", "b", "b", True),
        ("a", "b", "c", False),
    ],
)
def test_a_deletion_hides_only_the_known_or_written_object(informer, known, written, deleted, understood):
    if known:
        informer.applied(an_object(rv=1, uid=known))
    if written:
        informer.wrote(key(), an_object(rv=5, uid=written), deleted=False)
    shown = informer.find(key())

    assert informer.wrote(key(), an_object(rv=6, uid=deleted), deleted=True) == understood

    assert informer.find(key()) is (None if understood else shown)
    if understood and known != deleted:
        informer.applied(an_object(rv=5, uid=deleted))  # told late, of before its end
        assert informer.find(key()) is None


@pytest.mark.parametrize("known", [None, "predecessor"])
def test_an_answer_does_not_restore_an_object_that_was_already_gone(informer, known):
    if known:
        informer.applied(an_object(rv=1, uid=known))

    informer.deleted(an_object(rv=7, uid="ours"))

    assert informer.wrote(key(), an_object(rv=5, uid="ours"), deleted=False)
    assert informer.find(key()) is None


def test_an_answer_to_an_older_write_does_not_undo_a_deletion(informer):
    informer.applied(an_object(rv=1))
    informer.wrote(key(), an_object(rv=4), deleted=True)

    informer.wrote(key(), an_object(rv=3), deleted=False)

    assert informer.find(key()) is None


def test_a_successor_of_a_deleted_object_shows_without_a_deletion_event(informer):
    informer.applied(an_object(rv=1))
    informer.wrote(key(), an_object(rv=4), deleted=True)

    informer.applied(an_object(rv=9, uid="successor"))

    assert informer.find(key()).uid == "successor"


def test_a_deletion_that_waits_for_finalizers_shows_the_deleting_object(informer):
    informer.applied(an_object(rv=1, finalizers=["f"]))

    informer.wrote(key(), an_object(rv=2, finalizers=["f"], deleting=True), deleted=True)

    assert b"deletionTimestamp" in informer.find(key()).raw


@pytest.mark.parametrize("rv", [2, 3], ids=["version-before", "new-version"])
def test_taking_the_last_finalizer_away_hides_the_object(informer, rv):
    informer.applied(an_object(rv=2, finalizers=["f"], deleting=True))

    informer.wrote(key(), an_object(rv=rv, deleting=True), deleted=False)

    assert informer.find(key()) is None


def test_a_list_that_began_after_the_write_settles_it_and_one_that_began_before_does_not(informer):
    informer.applied(an_object("a", 1))
    informer.listing()
    informer.wrote(key("b"), an_object("b", 9), deleted=False)
    informer.item(an_object("a", 1))
    informer.listed()
    assert informer.find(key("b")) is not None

    informer.listing()
    informer.listed()  # deleted by somebody else meanwhile
    assert informer.find(key("b")) is None


def test_versions_that_are_not_numbers_are_compared_only_for_equality(informer):
    informer.applied(an_object(rv="x1"))
    informer.wrote(key(), an_object(rv="x2"), deleted=False)
    assert informer.find(key()).resource_version == "x2"

    informer.applied(an_object(rv="x0"))
    assert informer.find(key()).resource_version == "x2"
    informer.applied(an_object(rv="x2"))
    informer.applied(an_object(rv="x3"))
    assert informer.find(key()).resource_version == "x3"


MANAGED = [{"manager": "m", "fieldsV1": {"f:metadata": {}}}]


@pytest.mark.parametrize("place", ["first", "middle", "last", "only"])
@pytest.mark.parametrize(
    "spec", [{"a": 1}, {"managedFields": MANAGED}, {"text": '"managedFields":[{}]'}], ids=["plain", "namesake", "in-text"]
)
@pytest.mark.parametrize("spaced", [False, True])
@pytest.mark.parametrize("spec_first", [False, True])
def test_managed_fields_are_dropped_and_nothing_else(informer, place, spec, spaced, spec_first):
    others = {"name": "a", "namespace": "ns", "resourceVersion": "5"}
    managed: dict[str, Any] = {"managedFields": MANAGED}
    metadata: Any = {
        "first": {**managed, **others},
        "middle": {"name": "a", **managed, "namespace": "ns", "resourceVersion": "5"},
        "last": {**others, **managed},
        "only": managed,
    }[place]
    parts = [("metadata", metadata), ("spec", spec)]
    whole = dict(reversed(parts) if spec_first else parts)
    raw = json.dumps(whole, separators=None if spaced else (",", ":")).encode()

    informer.applied(raw)

    (entry,) = informer.entries()
    assert msgspec.json.decode(entry.raw) == {"metadata": {k: v for k, v in metadata.items() if k != "managedFields"}, "spec": spec}


def test_the_same_entry_gives_the_same_model_and_a_new_one_another(informer):
    informer.applied(an_object(rv=1, spec={"children": 1}))
    first = informer.decode(Parent, informer.find(key()))
    assert informer.decode(Parent, informer.find(key())) is first

    informer.applied(an_object(rv=2, spec={"children": 2}))
    assert informer.decode(Parent, informer.find(key())).spec.children == 2


def test_changing_an_untyped_object_changes_nothing_for_others(informer):
    informer.applied(an_object(rv=1, spec={"children": 1}))

    informer.decode(gvk_of(Parent), informer.find(key())).json["spec"]["children"] = 9

    assert informer.decode(gvk_of(Parent), informer.find(key())).at("spec", "children") == 1


@pytest.mark.parametrize(
    ("selector", "labels", "matches"),
    [
        ("a=1", {"a": "1"}, True), ("a==1,b!=2", {"a": "1"}, True), ("b!=2", {"b": "2"}, False), ("a in (1, 2)", {"a": "2"}, True),
        ("a in (1,2)", {}, False), ("a notin (1)", {}, True), ("a", {"a": ""}, True), ("!a", {"a": ""}, False), ("!a", {}, True),
        ("n>3", {"n": "4"}, True), ("n<3", {"n": "4"}, False), ("n>3", {"n": "x"}, False), ("", {"a": "1"}, True), ("a=", {"a": ""}, True),
        ("example.com/x-y=z.1_2", {"example.com/x-y": "z.1_2"}, True), ("in=notin", {"in": "notin"}, True),
    ],
)  # fmt: skip
def test_label_selectors_select_objects(selector, labels, matches):
    assert parse_labels(selector).matches(labels) is matches


@pytest.mark.parametrize("selector", ["a=b=c", "a in b", "(a)", "a=1;b=2", "=1"])
def test_invalid_label_selectors_are_refused(selector):
    with pytest.raises(InvalidSelector):
        parse_labels(selector)


def test_field_selectors_select_objects():
    assert field_requirements("a.b=1,c!=2") == (("a.b", True, "1"), ("c", False, "2"))
    with pytest.raises(InvalidSelector):
        field_requirements("a")


objects = st.tuples(st.integers(0, 3), st.sampled_from(["", "1", "2"]), st.sampled_from([(), ("o1",), ("o1", "o2")]))


@settings(max_examples=200, deadline=None)
@given(st.lists(st.tuples(st.sampled_from(["apply", "delete", "own", "own-delete", "relist"]), objects), min_size=5, max_size=25))
def test_indexes_always_agree_with_a_full_scan(steps):
    informer = Informer(gvk_of(Parent))
    informer.listing()
    informer.listed()
    store, lives = {}, {}
    for rv, (step, (n, label, owners)) in enumerate(steps, 1):
        name = f"n{n}"
        if name not in store and step != "delete":
            lives[name] = rv  # a new object of the name has a new uid
        uid = f"{name}-{lives.get(name)}"
        raw = an_object(name, rv, uid, labels={"l": label} if label else None, owners=owners, spec={"children": n})
        match step:
            case "apply":
                store[name] = raw
                informer.applied(raw)
            case "delete":
                if store.pop(name, None):
                    informer.deleted(raw)
            case "own":
                store[name] = raw
                informer.wrote(key(name), raw, deleted=False)
            case "own-delete":
                if store.pop(name, None):
                    informer.wrote(key(name), raw, deleted=True)
            case "relist":
                informer.listing()
                for item in store.values():
                    informer.item(item)
                informer.listed()
        expected = {name: msgspec.json.decode(raw) for name, raw in store.items()}

        def names(entries):
            return [entry.key.name for entry in entries]

        assert names(informer.select()) == sorted(expected)
        assert names(informer.select(labels=parse_labels({"l": "1"}))) == sorted(
            k for k, v in expected.items() if v["metadata"].get("labels", {}).get("l") == "1"
        )
        assert names(informer.select(owner="o2")) == sorted(
            k for k, v in expected.items() if any(r["uid"] == "o2" for r in v["metadata"].get("ownerReferences", ()))
        )
        assert names(informer.select(fields="spec.children=2")) == sorted(k for k, v in expected.items() if v["spec"]["children"] == 2)
