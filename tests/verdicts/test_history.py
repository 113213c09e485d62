"""The history of verdicts: what is remembered, how much of it, and since when a cluster is not fine."""

from __future__ import annotations

import os
import sqlite3
from datetime import timedelta
from pathlib import Path

import pytest

from clusterwright.api.meta import ObjectKey
from clusterwright.offline.verdict import State, Verdict
from clusterwright.offline.verdict_times import moments, since_left
from clusterwright.simulation.world import START
from clusterwright.verdicts.history import LONGEST, MOST_CLUSTERS, MOST_ENTRIES, History
from clusterwright.verdicts.store import FILE, Store

KEY = ObjectKey("default", "c")
SUBJECT = "Cluster/default/c"


def fine() -> Verdict:
    return Verdict(SUBJECT, State.FINE, "nothing is wrong")


def broken(cause: str = "object.error", obj: str = "Machine/default/m", since: str = "", what: str = "it is down") -> Verdict:
    return Verdict(SUBJECT, State.BROKEN, what, obj, since=since, cause=cause)


def test_since_is_when_the_cluster_ceased_to_be_fine_not_when_its_cause_was_renamed() -> None:
    history = History()
    history.note(KEY, "1", fine(), START)
    dead = START + timedelta(minutes=15)
    first = history.note(KEY, "1", broken("object.unhealthy", since=f"{dead:%Y-%m-%dT%H:%M:%SZ}"), dead + timedelta(seconds=20))
    renamed = history.note(KEY, "1", broken("object.error", since="2026-01-01T00:20:00Z"), dead + timedelta(minutes=5))
    assert first.since == renamed.since == f"{dead:%Y-%m-%dT%H:%M:%SZ}"

    again = history.note(KEY, "1", fine(), dead + timedelta(minutes=6))
    assert again.since == ""
    later = history.note(KEY, "1", broken(since="2026-01-01T00:00:00Z"), dead + timedelta(minutes=9))
    assert later.since == f"{dead + timedelta(minutes=6):%Y-%m-%dT%H:%M:%SZ}", "it was fine six minutes after"


def test_only_another_state_cause_or_object_is_an_entry() -> None:
    history = History()
    for n, verdict in enumerate([fine(), fine(), broken(), broken(what="it is still down"), broken(obj="Machine/default/n"), fine()]):
        history.note(KEY, "1", verdict, START + timedelta(seconds=n))
    assert [(e.state, e.object) for e in history.of(KEY)] == [
        ("fine", ""),
        ("broken", "Machine/default/m"),
        ("broken", "Machine/default/n"),
        ("fine", ""),
    ]


def test_what_could_not_be_seen_is_not_remembered() -> None:
    history = History()
    history.note(KEY, "1", fine(), START)
    history.note(KEY, "1", Verdict(SUBJECT, State.UNSEEN, "could not read Machines: not listed yet"), START + timedelta(seconds=5))
    history.note(KEY, "1", fine(), START + timedelta(seconds=9))
    assert [e.state for e in history.of(KEY)] == ["fine"]


def test_a_cluster_of_the_same_name_begins_anew() -> None:
    history = History()
    history.note(KEY, "1", broken(), START)
    noted = history.note(KEY, "2", broken(), START + timedelta(hours=1))
    assert noted.since == "2026-01-01T01:00:00Z"
    assert len(history.of(KEY)) == 1


def test_it_is_bounded_in_number_and_in_age(tmp_path: Path) -> None:
    store = Store(tmp_path)
    history = History(store)
    for n in range(2 * MOST_ENTRIES):
        noted = history.note(KEY, "1", broken(obj=f"Machine/default/m{n}"), START + timedelta(seconds=n))
    assert len(history.of(KEY)) == MOST_ENTRIES
    assert noted.since == f"{START:%Y-%m-%dT%H:%M:%SZ}", "what was forgotten still counts"
    assert len(list(store.load())) <= MOST_ENTRIES

    history.note(KEY, "1", fine(), START + LONGEST + timedelta(days=1))
    assert [e.state for e in history.of(KEY)] == ["fine"]
    assert len(list(store.load())) == 1


def test_of_too_many_clusters_the_first_are_forgotten() -> None:
    history = History()
    for n in range(MOST_CLUSTERS + 2):
        history.note(ObjectKey("ns", f"c{n}"), "1", fine(), START)
    assert len(history.clusters) == MOST_CLUSTERS
    assert ObjectKey("ns", "c0") not in history.clusters


def test_it_survives_a_restart(tmp_path: Path) -> None:
    first = History(Store(tmp_path))
    first.note(KEY, "1", fine(), START)
    first.note(KEY, "1", broken(), START + timedelta(minutes=1))
    first.note(ObjectKey("default", "gone"), "2", broken(), START)
    first.forget(ObjectKey("default", "gone"))
    first.close()

    second = History(Store(tmp_path))
    assert second.of(KEY) == first.of(KEY)
    assert second.clusters == [KEY]
    assert second.note(KEY, "1", broken(cause="object.missing"), START + timedelta(hours=1)).since == "2026-01-01T00:01:00Z"
    second.close()


def test_its_file_is_private_and_a_damaged_one_is_begun_again(tmp_path: Path) -> None:
    file = tmp_path / FILE
    file.write_bytes(b"this is no database at all" * 100)
    history = History(Store(tmp_path))
    history.note(KEY, "1", broken(), START)
    history.close()
    assert os.stat(file).st_mode & 0o077 == 0
    assert len(History(Store(tmp_path)).of(KEY)) == 1

    with sqlite3.connect(file) as connection:
        connection.execute("UPDATE verdicts SET entry = ?", (b"{",))
    assert History(Store(tmp_path)).of(KEY) == ()


def test_a_full_disk_ends_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = Store(tmp_path)
    history = History(store)
    assert store._connection is not None
    store._connection.close()
    history.note(KEY, "1", broken(), START)
    assert len(history.of(KEY)) == 1


def test_a_verdict_of_explain_takes_its_since_from_the_history() -> None:
    history = History()
    history.note(KEY, "1", fine(), START)
    history.note(KEY, "1", broken(since="2026-01-01T00:10:00Z"), START + timedelta(minutes=10))
    past = {"default/c": history.of(KEY)}
    assert since_left(broken(since="2026-01-01T00:20:00Z"), past).since == "2026-01-01T00:10:00Z"
    assert since_left(fine(), past).since == ""
    assert since_left(broken(since="x"), {}).since == "x"
    assert since_left(broken(since="x"), {"default/c": history.of(KEY)[:1]}).since == "x", "it was fine when it was last judged"
    told = [(m.at, m.sort, m.about, m.text) for m in moments(SUBJECT, history.of(KEY))]
    assert told == [
        ("2026-01-01T00:00:00Z", "verdict", "", "Fine: nothing is wrong"),
        ("2026-01-01T00:10:00Z", "verdict", "object.error", "Broken: Machine/default/m it is down"),
    ]
