"""Checks of fields in all states of objects, for every role."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from clusterwright.api.contract import ABSENT, CONDITIONS, CONTRACTS, FAILURE_MESSAGE, FAILURE_REASON, Malformed, Path, Value
from clusterwright.api.meta import Json
from clusterwright.conformance import definitions
from clusterwright.conformance.evidence import IN_PLACE, SCALED, Advice, Evidence, Finding, NotSeen, Run, Subject

_ONE_PASS: Final = 2.0
"""Seconds between two patches of one pass, with room for a busy machine."""
_STATUSES: Final = frozenset({"True", "False", "Unknown"})


def latch(seen: Evidence) -> Path[bool]:
    """Return the path of the field that says that initialization is complete."""
    paths = seen.paths
    return {
        "InfraMachine": paths.infra_machine.provisioned,
        "InfraMachinePool": paths.infra_machine_pool.provisioned,
        "InfraCluster": paths.infra_cluster.provisioned,
        "BootstrapConfig": paths.bootstrap_config.data_secret_created,
        "ControlPlane": paths.control_plane.initialized,
    }[seen.role]


def _latches(seen: Evidence) -> tuple[Path[bool], ...]:
    """Return the paths of the flag. Core controllers read that of the older contract of every InfraMachinePool."""
    older = CONTRACTS["v1beta1"].infra_machine_pool.provisioned
    return (latch(seen), older) if seen.role == "InfraMachinePool" and older != latch(seen) else (latch(seen),)


def initialized(seen: Evidence, obj: Json | None) -> bool:
    """Return whether an object says that its initialization is complete."""
    return any(is_set(path, obj) for path in _latches(seen))


def identity(seen: Evidence) -> Path[Any]:
    """Return the path of what an object may never change once it is provisioned."""
    paths = seen.paths
    fields: dict[str, Path[Any]] = {
        "InfraMachine": paths.infra_machine.provider_id,
        "InfraMachinePool": paths.infra_machine_pool.provider_id_list,
        "InfraCluster": paths.infra_cluster.endpoint,
        "BootstrapConfig": paths.bootstrap_config.data_secret_name,
        "ControlPlane": paths.control_plane.endpoint,
    }
    return fields[seen.role]


def is_set(path: Path[Any], obj: Json | None) -> bool:
    """Return whether a field has a value other than false."""
    if obj is None:
        return False
    found = path.read(obj)
    return isinstance(found, Value) and bool(found.value)


def is_acted_on(seen: Evidence, obj: Json | None) -> bool:
    """Return whether an object shows that the provider has made something for it."""
    return initialized(seen, obj) or (not seen.ran.is_identity_given and is_set(identity(seen), obj))


def provisioned(seen: Evidence, subject: Subject) -> list[Json]:
    """Return the states since the object was provisioned first, without those of its deletion."""
    states = subject.objects
    first = next((i for i, obj in enumerate(states) if initialized(seen, obj)), len(states))
    return [obj for obj in states[first:] if "deletionTimestamp" not in obj["metadata"]]


def malformed(path: Path[Any], run: Run) -> Iterator[Finding]:
    """Yield each problem that reading the path meets, once."""
    problems = {
        str(found) for subject in run.subjects.values() for obj in subject.objects if isinstance(found := path.read(obj), Malformed)
    }
    yield from sorted(problems)


def initialization(seen: Evidence) -> Iterator[Finding]:
    """Check that the flag is in the schema, is set, and is never taken back."""
    path, (_, *others) = latch(seen), _latches(seen)
    schema = definitions.schema_of(seen.kind)
    is_older = definitions.lookup(schema, path.steps) is None and any(definitions.lookup(schema, p.steps) is not None for p in others)
    if is_older:
        yield Advice(f"the schema has no {path}: set it together with {' or '.join(map(str, others))}, which older core controllers read")
    yield from definitions.field(seen, path, ("boolean",), needed=not is_older)
    run = seen.ran
    yield from malformed(path, run)
    if not any(provisioned(seen, subject) for subject in run.subjects.values()):
        yield f"no object ever set {path}"
    for purpose, subject in run.subjects.items():
        if not all(initialized(seen, obj) for obj in provisioned(seen, subject)):
            text = f"{subject.name}: {path} was true and later was not"
            yield Advice(f"{text}, while it was scaled: its MachinePool says the same") if purpose == SCALED else text


def conditions(seen: Evidence) -> Iterator[Finding]:
    """Check that conditions are a list of unique types with valid statuses; Ready does not say more than the flag."""
    for steps in CONDITIONS:
        found = definitions.lookup(definitions.schema_of(seen.kind), steps)
        if found and found.get("type") not in (None, "array"):
            yield f"the schema of {'.'.join(steps)} is of type {found['type']}; an array is expected"
    run, any_seen, problems = seen.ran, False, dict[str, None]()
    for subject in run.subjects.values():
        for obj in subject.objects:
            listed = list(conditions_of(obj))
            any_seen = any_seen or bool(listed)
            problems.update(dict.fromkeys(_problems(listed)))
        if seen.role != "ControlPlane" and _is_early(seen, subject):
            problems[f"{subject.name}: Ready is True although {latch(seen)} is not set"] = None
    yield from problems
    if not any_seen:
        yield Advice("no object has conditions: users see that it is not provisioned, but not why")


def _is_early(seen: Evidence, subject: Subject) -> bool:
    """Return whether Ready was True for longer than a pass takes, before the object was initialized."""
    since: float | None = None
    for state in subject.states:
        obj = state.object
        says_more = obj is not None and not initialized(seen, obj) and "deletionTimestamp" not in obj["metadata"] and _is_ready(obj)
        if since is not None and state.at - since > _ONE_PASS:
            return True
        since = (since if since is not None else state.at) if says_more else None
    return since is not None and "steady" in seen.ran.spans  # it was never initialized


def _is_ready(obj: Json) -> bool:
    return any(c.get("type") == "Ready" and c.get("status") == "True" for c in conditions_of(obj))


def conditions_of(obj: Json) -> Iterator[Mapping[str, Any]]:
    """Yield the conditions of an object, of the list that core controllers read."""
    status = obj.get("status") or {}
    newer = (status.get("v1beta2") or {}).get("conditions") if isinstance(status.get("v1beta2"), Mapping) else None
    listed = newer if newer is not None else status.get("conditions")
    yield from listed if isinstance(listed, list) else ()


def _problems(listed: list[Mapping[str, Any]]) -> Iterator[Finding]:
    types = [condition.get("type") for condition in listed]
    for condition in listed:
        if not condition.get("type"):
            yield "a condition has no type"
        if condition.get("status") not in _STATUSES:
            yield f"condition {condition.get('type')} has status {condition.get('status')!r}; True, False or Unknown is expected"
    yield from (f"there are several conditions of type {one}" for one in sorted({str(t) for t in types if types.count(t) > 1}))


def terminal_failures(seen: Evidence) -> Iterator[Finding]:
    """Check that failures are texts, and are not told of objects that work."""
    for path in (FAILURE_REASON, FAILURE_MESSAGE):
        yield from definitions.field(seen, path, ("string",), needed=False)
    run = seen.ran
    for path in (FAILURE_REASON, FAILURE_MESSAGE):
        yield from malformed(path, run)
    if "steady" in run.spans:
        for subject in run.subjects.values():
            if initialized(seen, obj := subject.at(run.spans["steady"][1])) and is_set(FAILURE_REASON, obj):
                yield f"{subject.name} is provisioned and works, but has {FAILURE_REASON}: users take it for lost"


def pausing(seen: Evidence) -> Iterator[Finding]:
    """Check that nothing is created, and nothing is removed, while the object or its Cluster is paused; afterwards it continues."""
    run = seen.ran
    works = any(provisioned(seen, subject) for subject in run.subjects.values())
    for stage, purpose, how in (
        ("paused-object", "first", "the object has the annotation cluster.x-k8s.io/paused"),
        ("paused-cluster", "second", "its Cluster has spec.paused"),
    ):
        span = run.span(stage)
        subject = run.subjects[purpose]
        if any(is_acted_on(seen, s.object) for s in subject.during(span)):
            yield f"{subject.name} was provisioned while {how}"
        elif works and not initialized(seen, subject.at(run.span("resumed")[1])):
            yield f"{subject.name} was paused ({how}) and never continued"
    if "paused-deletion" in run.spans:
        subject, (begin, end) = run.subjects["first"], run.spans["paused-deletion"]
        before = subject.at(begin)
        if before is not None and before["metadata"].get("finalizers") and subject.at(end) is None:  # others do not ask the provider
            yield f"{subject.name} was removed while it had the annotation cluster.x-k8s.io/paused"


def in_place(seen: Evidence) -> Iterator[Finding]:
    """Check that labels and annotations that are added to a provisioned object stay, and its identity does too."""
    run = seen.ran
    span = run.span("touched")
    subject = run.subjects["second"]
    if not provisioned(seen, subject):
        raise NotSeen("the object was never provisioned")
    now = subject.at(span[1])
    for place in ("labels", "annotations"):
        if now is not None and IN_PLACE not in (now["metadata"].get(place) or {}):
            yield f"{subject.name}: metadata.{place} that were added in place are gone"


def dry_run(seen: Evidence) -> Iterator[Finding]:
    """Check that a dry run of a changed template is accepted."""
    if seen.template is None:
        raise NotSeen("there is no template")
    if seen.ran.dry_run is None:
        raise NotSeen("no template was given")
    if seen.ran.dry_run:
        yield f"a server-side apply with dryRun and the annotation topology.cluster.x-k8s.io/dry-run was refused: {seen.ran.dry_run}"


def unchanging(seen: Evidence, path: Path[Any]) -> Iterator[Finding]:
    """Yield objects whose field changed after they were provisioned. A list may still be empty then, and one that is scaled may change."""
    for purpose, subject in seen.ran.subjects.items():
        found = [path.read(obj) for obj in provisioned(seen, subject) if purpose != SCALED]
        values = [repr(one.value) for one in found if isinstance(one, Value) and one.value != ()]
        if len(set(values)) > 1:
            yield f"{subject.name}: {path} changed from {values[0][:80]} to {next(v for v in values if v != values[0])[:80]}"


def absent(path: Path[Any], obj: Json) -> bool:
    """Return whether a field is absent or empty."""
    found = path.read(obj)
    return found is ABSENT or (isinstance(found, Value) and not found.value)
