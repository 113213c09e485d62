"""Checks of behaviour that the contract's tables do not number: order, owners, restarts, refused writes, loops, secrets."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import msgspec

from clusterwright.conformance.evidence import KEPT_LABEL, MADE, Advice, Evidence, Finding, NotSeen, Subject
from clusterwright.conformance.objects import conditions_of, identity, initialized, is_acted_on, provisioned, unchanging

_QUIET: Final = 30.0
"""One write per object in so many seconds is allowed while nothing changes."""
_TRIES: Final = 2.0
"""Writes per second that are allowed while they are refused, after the first ones."""
_FIRST_TRIES: Final = 20


def _acted(seen: Evidence, purpose: str, stage: str) -> bool:
    subject, span = seen.ran.subjects[purpose], seen.ran.span(stage)
    return any(is_acted_on(seen, s.object) for s in subject.during(span))


def waits_for_owner(seen: Evidence) -> Iterator[Finding]:
    """Check that an object without owner is not provisioned."""
    seen.ran.span("unowned")
    if _acted(seen, "unowned", "unowned"):
        yield f"{seen.ran.subjects['unowned'].name} has no owner reference, and was provisioned"


def waits_for_data(seen: Evidence) -> Iterator[Finding]:
    """Check that a machine is not made before its bootstrap data is there."""
    for purpose in ("first", "second"):
        if _acted(seen, purpose, "without-data"):
            yield f"{seen.ran.subjects[purpose].name} was provisioned before its Machine had spec.bootstrap.dataSecretName"


def finalizer_first(seen: Evidence) -> Iterator[Finding]:
    """Check that a finalizer of the provider is there before anything is reported as made."""
    for subject in seen.ran.subjects.values():
        for obj in subject.objects:
            acted = is_acted_on(seen, obj)
            own = [name for name in obj["metadata"].get("finalizers") or () if name != KEPT_LABEL]
            if acted and not own and "deletionTimestamp" not in obj["metadata"]:
                yield f"{subject.name} was made without a finalizer: deleted at this moment, it leaves everything behind"
                break


def goes_away(seen: Evidence) -> Iterator[Finding]:
    """Check that deleted objects go, and are not taken back."""
    run = seen.ran
    end = run.span("deleted")[1]
    for purpose in MADE:
        subject = run.subjects.get(purpose)
        last = subject.by(end) if subject is not None else None
        if subject is not None and last is not None:
            left = ", ".join(last["metadata"].get("finalizers") or ()) or "none"
            yield f"{subject.name} was deleted and is still there; finalizers: {left}"


def leaves_metadata(seen: Evidence) -> Iterator[Finding]:
    """Check that labels, annotations, owner references and finalizers of others stay."""
    run, problems = seen.ran, dict[str, None]()
    for purpose, subject in run.subjects.items():
        owners: set[str] = set()
        for obj in subject.objects:
            meta = obj["metadata"]
            for place in ("labels", "annotations"):
                if KEPT_LABEL not in (meta.get(place) or {}):
                    problems[f"{subject.name}: metadata.{place} of others are gone"] = None
            now = {reference["uid"] for reference in meta.get("ownerReferences") or ()}
            if owners - now:
                problems[f"{subject.name}: an owner reference is gone"] = None
            owners |= now
        if purpose == "second" and "deleted" in run.spans:
            before = [s.object for s in subject.states if s.object is not None and s.at < run.spans["deleted"][0]]
            if any(KEPT_LABEL not in (obj["metadata"].get("finalizers") or ()) for obj in before):
                problems[f"{subject.name}: a finalizer of others is gone"] = None
    yield from problems


def stays_quiet(seen: Evidence) -> Iterator[Finding]:
    """Check that while nothing changes, nothing is written."""
    run = seen.ran
    span = run.span("steady")
    allowed = 1 + (span[1] - span[0]) / _QUIET
    for purpose in ("first", "second"):
        subject = run.subjects[purpose]
        changes = len([state for state in subject.states if span[0] < state.at <= span[1]])
        if changes > allowed:
            yield f"{subject.name} changed {changes} times in {span[1] - span[0]:.0f} s although nothing happened"
        sent = _writes(seen, subject, span)
        if sent is not None and sent > allowed and changes <= allowed:
            yield f"{subject.name} was written {sent} times in {span[1] - span[0]:.0f} s with what it already had"
    if run.writes is None:
        yield Advice("writes that change nothing were not counted: give --audit-log, the file of the plane's audit log")


def _writes(seen: Evidence, subject: Subject, span: tuple[float, float]) -> int | None:
    writes = seen.ran.writes
    if writes is None:
        return None
    place = f"/{seen.kind['spec']['names']['plural']}/{subject.name}"
    return sum(span[0] < write.at <= span[1] and (f"{write.path}/").partition(place)[2].startswith("/") for write in writes)


def restarts(seen: Evidence) -> Iterator[Finding]:
    """Check that a restart loses nothing: what was made stays as it is, and what is being made is finished."""
    run = seen.ran
    if not run.could_restart:
        raise NotSeen("the provider was not restarted: give --restart-command")
    yield from unchanging(seen, identity(seen))
    subject = run.subjects["interrupted"]
    if not provisioned(seen, subject) and any(provisioned(seen, other) for other in run.subjects.values()):
        yield f"{subject.name} was being made when the provider restarted, and was never provisioned"


def recovers(seen: Evidence) -> Iterator[Finding]:
    """Check that writes that the API server refuses for a while are tried again, with increasing pauses."""
    run = seen.ran
    if not run.could_refuse:
        raise NotSeen("the plane does not take a ValidatingAdmissionPolicy")
    subject, span = run.subjects["refused"], run.span("refused")
    works = any(provisioned(seen, other) for other in run.subjects.values())
    if works and not initialized(seen, subject.at(run.span("recovered")[1])):
        yield f"writes to {subject.name}'s status were refused for {span[1] - span[0]:.0f} s, and it was never provisioned"
    sent = _writes(seen, subject, span)
    allowed = _FIRST_TRIES + _TRIES * (span[1] - span[0])
    if sent is not None and sent > allowed:
        yield f"{subject.name} was written {sent} times in {span[1] - span[0]:.0f} s while writes were refused: there is no back-off"


def keeps_secrets(seen: Evidence) -> Iterator[Finding]:
    """Check that bootstrap data is in no object of the provider and in no Event."""
    run = seen.ran
    if not run.secret:
        raise NotSeen("this kind is not given a secret")
    for subject in run.subjects.values():
        if any(run.secret.encode() in msgspec.json.encode(obj) for obj in subject.objects):
            yield f"{subject.name} shows its bootstrap data to everybody who may read it"
    for event in run.events:
        if run.secret in event.get("message", "") or run.secret in event.get("note", ""):
            yield f"an Event of {(event.get('involvedObject') or event.get('regarding') or {}).get('name', '')} shows bootstrap data"


def observes_generations(seen: Evidence) -> Iterator[Finding]:
    """Check that `observedGeneration` is never ahead of the object, and reaches it."""
    run, any_seen, problems = seen.ran, False, dict[str, None]()
    for subject in run.subjects.values():
        for obj in subject.objects:
            generation = obj["metadata"].get("generation", 0)
            for where, observed in _observed(obj):
                any_seen = True
                if observed > generation:
                    problems[f"{subject.name}: {where} observes generation {observed} of an object whose generation is {generation}"] = None
    for stage in ("resumed", "steady"):
        for purpose in ("first", "second"):
            settled = run.subjects[purpose].at(run.span(stage)[1])
            if settled is None or not initialized(seen, settled):
                continue
            generation = settled["metadata"].get("generation", 0)
            for where, observed in _observed(settled):
                if observed < generation:
                    problems[f"{run.subjects[purpose].name}: {where} still observes generation {observed} of {generation}"] = None
    yield from problems
    if not any_seen:
        raise NotSeen("no condition has observedGeneration")


def _observed(obj: dict[str, object]) -> Iterator[tuple[str, int]]:
    for condition in conditions_of(obj):
        if isinstance(condition.get("observedGeneration"), int):
            yield f"condition {condition.get('type')}", condition["observedGeneration"]


def frees_unowned(seen: Evidence) -> Iterator[Finding]:
    """Check that an object that never got an owner can be deleted."""
    subject = seen.ran.subjects["unowned"]
    last = subject.by(seen.ran.span("unowned-deleted")[1])
    if last is not None:
        left = ", ".join(last["metadata"].get("finalizers") or ())
        yield f"{subject.name} never had an owner, and cannot be deleted; finalizers: {left}"
