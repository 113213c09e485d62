"""What happened, in the order of time."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime

from clusterwright.api.meta import Json, ObjectKey, Unstructured
from clusterwright.offline.timeline import Sort, timeline


def machine(**metadata: str) -> Unstructured:
    conditions = [
        {"type": "Ready", "status": "True", "reason": "Ready", "message": "", "lastTransitionTime": "2026-01-01T00:00:05Z"},
        {"type": "Paused", "status": "False", "reason": "NotPaused", "message": "", "lastTransitionTime": "2026-01-01T00:00:01Z"},
        {"type": "Timeless", "status": "False", "reason": "X", "message": ""},
    ]
    named = {"name": "m", "namespace": "ns", "creationTimestamp": "2026-01-01T00:00:00Z", **metadata}
    return Unstructured(
        {"apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Machine", "metadata": named, "status": {"conditions": conditions}}
    )


def event(at: str, **more: object) -> Json:
    involved = {"kind": "Machine", "namespace": "ns", "name": "m"}
    return {"kind": "Event", "involvedObject": involved, "reason": "Drained", "message": "done", "lastTimestamp": at, **more}


KEY = ObjectKey("ns", "m")


@dataclass(frozen=True)
class Decided:
    at: datetime
    rows: dict[str, str]
    kind: str = "Machine"
    key: ObjectKey = KEY


def test_objects_events_and_decisions_are_one_story() -> None:
    decided = [Decided(datetime(2026, 1, 1, 0, 0, s, tzinfo=UTC), {"Ready": r}) for s, r in ((1, "waiting"), (3, "waiting"), (5, "ready"))]
    events = [event("2026-01-01T00:00:04Z", type="Warning", count=3), event("")]

    story = timeline([machine(deletionTimestamp="2026-01-01T00:00:09Z")], events, decided)

    assert [(m.at[-3:-1], str(m.sort), m.about, m.text) for m in story] == [
        ("00", "created", "", "was created"),
        ("01", "condition", "Paused", "became False NotPaused"),
        ("01", "decision", "Ready", "row waiting fired"),
        ("04", "warning", "Drained", "done (3 times)"),
        ("05", "condition", "Ready", "became True Ready"),
        ("05", "decision", "Ready", "row ready fired"),
        ("09", "deleting", "", "is to be deleted"),
    ]
    assert {m.object for m in story} == {"Machine/ns/m"}


def test_the_same_moment_told_twice_is_one() -> None:
    told = timeline([machine(), machine()], [event("2026-01-01T00:00:04Z")] * 2)

    assert len(told) == len(set(told)) == 4
    assert Sort.EVENT in {m.sort for m in told}


def test_conditions_that_cannot_be_read_tell_nothing() -> None:
    broken = Unstructured({"kind": "Machine", "metadata": {"name": "m"}, "status": {"conditions": [{"type": 3}]}})

    assert timeline([broken]) == []
