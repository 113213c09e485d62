"""Finds objects over which the passes of a controller fail, and objects that wait in the queue of a busy controller."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from typing import Final

from clusterwright.api.contract import crd_name
from clusterwright.api.copying import replace
from clusterwright.api.meta import Unstructured
from clusterwright.offline.complaints import LOGS_ONLY, Complaint, Tier
from clusterwright.offline.known import Found, Known
from clusterwright.offline.unreconciled import observed_generation
from clusterwright.offline.workings import Failing, Queue

FAILS: Final = "pass.fails"
WAITS: Final = "queue.waits"
OFTEN: Final = 3
"""The number of passes in a row that must have failed before this is more than a hiccup."""
LONG: Final = timedelta(seconds=10)
BUSY: Final = 5.0
"""Seconds that the oldest object of a queue has waited if the controller does not keep up."""
_REPORTED: Final = frozenset({"clustercache"})
"""Controllers that report every failure as a condition of its own kind: RemoteConnectionProbe."""
_FORBIDDEN: Final = " is forbidden: User "
"""In errors about rights, for which there is advice of its own."""
_SAYS_NOTHING: Final = frozenset({Tier.UNRECONCILED, Tier.SILENT, Tier.WAITING, Tier.UNKNOWN})


def failing_passes(known: Known) -> Iterator[Found]:
    """Yield the objects whose passes have failed for a while, with the last error."""
    for failing in known.running.failures if known.running is not None else ():
        obj = known.objects.get(failing.object)
        if failing.controller in _REPORTED or obj is None or failing.same < OFTEN or failing.at - failing.since < LONG:
            continue
        complaints = known.complaints.get(failing.object, ())
        if any(failing.error in complaint.raw for complaint in complaints):
            continue  # it says so itself
        complaint = _failure(failing, obj)
        if any(c.tier is Tier.UNRECONCILED for c in complaints):
            yield Found(object=failing.object, complaint=complaint)
            continue
        mute = next((c for c in complaints if LOGS_ONLY in (c.raw or c.text)), None)
        if mute is not None:
            told = replace(complaint, since=mute.since or complaint.since, path=mute.path, about=mute.about)
            yield Found(object=failing.object, complaint=told)
        else:
            # what an object says of itself comes before what the process says of it
            own = min((c.tier for c in complaints), default=Tier.ERROR) if obj.at("status") else Tier.ERROR
            yield Found(object=failing.object, complaint=replace(complaint, tier=max(own, Tier.ERROR), secondary=bool(complaints)))


def _failure(failing: Failing, obj: Unstructured) -> Complaint:
    again = f"the next begins at {failing.retry_at:%H:%M:%S}" if failing.retry_at is not None else "it is not tried again by itself"
    since = f"{failing.since:%Y-%m-%dT%H:%M:%SZ}"
    often = f"controller {failing.controller}: {failing.passes} passes in a row failed since {since}, {again}"
    facts = {"object": f"{obj.kind} {obj.key.name}", "controller": failing.controller, "namespace": obj.key.namespace}
    facts["resource"] = f"{crd_name(obj.gvk.group, obj.kind)}/{obj.key.name}"
    return Complaint(
        Tier.ERROR,
        f"its passes fail: {failing.error}\n{often}",
        since,
        raw=failing.error,
        cause="" if _FORBIDDEN in failing.error else FAILS,
        facts=facts,
    )


def queues(known: Known) -> Iterator[Found]:
    """Yield the objects that nobody has looked at because their controller has not come to them yet."""
    busy = [q for q in (known.running.queues if known.running is not None else ()) if q.oldest_seconds >= BUSY]
    for queue in busy:
        for name, obj in known.of_kind(queue.kind):
            complaints = known.complaints.get(name, ())
            is_behind = any(c.tier is Tier.UNRECONCILED for c in complaints) or _is_behind(obj)
            place = queue.ahead.get(str(obj.key))
            is_at_work = str(obj.key) in queue.at_work
            if any(c.tier not in _SAYS_NOTHING for c in complaints) or not (is_behind or (complaints and place is not None)):
                continue
            yield Found(object=name, complaint=_wait(queue, place, is_at_work=is_at_work), is_all=True)


def _wait(queue: Queue, place: int | None, *, is_at_work: bool) -> Complaint:
    if is_at_work:
        text = f"controller {queue.controller} is at work on it"
    elif place is None:
        text = f"{_objects(queue.length)} in the queue of {queue.controller}"
    else:
        text = f"{_objects(place)} ahead of it in the queue of {queue.controller}"
    return Complaint(Tier.WAITING, text, path="status", cause=WAITS, facts={"controller": queue.controller})


def _objects(number: int) -> str:
    return "1 object is" if number == 1 else f"{number} objects are"


def _is_behind(obj: Unstructured) -> bool:
    """Return whether no controller has reported on the object since it was made or changed."""
    observed, generation = observed_generation(obj), obj.at("metadata", "generation")
    if not obj.at("status"):
        return True
    return observed is not None and isinstance(generation, int) and observed < generation
