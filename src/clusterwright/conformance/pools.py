"""Checks of an InfraMachinePool's own fields, and of the machines that it shows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from clusterwright.api.contract import Path, Value
from clusterwright.api.meta import Json
from clusterwright.api.wellknown import CLUSTER_NAME_LABEL, MACHINE_POOL_NAME_LABEL
from clusterwright.conformance import definitions
from clusterwright.conformance.evidence import SCALED, Evidence, Finding, NotSeen, Subject
from clusterwright.conformance.objects import absent, malformed, provisioned, unchanging

_LONGEST_ID: Final = 512
_INSTANCES: Final = ("status", "instances")
SIZES: Final = (("scaled-up", 2), ("scaled-down", 1))
"""The stages in which a pool is scaled, with the wanted number of machines."""


def listed(seen: Evidence, obj: Json | None) -> list[str]:
    """Return the provider IDs that a pool lists."""
    found = seen.paths.infra_machine_pool.provider_id_list.read(obj) if obj is not None else None
    return list(found.value) if isinstance(found, Value) else []


def is_whole(seen: Evidence, obj: Json | None, size: int) -> bool:
    """Return whether a pool shows this number of machines, in its list and in its count."""
    return len(listed(seen, obj)) == size == _count(seen, obj)


def _count(seen: Evidence, obj: Json | None) -> int | None:
    found = seen.paths.infra_machine_pool.replicas.read(obj) if obj is not None else None
    return found.value if isinstance(found, Value) else None


def _settled(seen: Evidence) -> Iterator[tuple[Subject, Json]]:
    """Yield the pools of one machine that were provisioned, as they were at the end of the quiet time."""
    end = seen.ran.span("steady")[1]
    for purpose, subject in seen.ran.subjects.items():
        settled = subject.at(end)
        if purpose != SCALED and settled is not None and provisioned(seen, subject):
            yield subject, settled


def _sizes(seen: Evidence) -> Iterator[tuple[Subject, Json, int, str]]:
    """Yield each pool of which the number of machines is known, with that number, and when that was."""
    for subject, settled in _settled(seen):
        yield subject, settled, 1, "after it was provisioned"
    subject = seen.ran.subjects[SCALED]
    for stage, size in SIZES:
        last = subject.at(seen.ran.span(stage)[1])
        if last is not None and provisioned(seen, subject):
            yield subject, last, size, f"after its MachinePool was scaled to {size}"


def provider_id_list(seen: Evidence) -> Iterator[Finding]:
    """Check that the list has an ID for each machine, follows the size of the pool, and otherwise never changes."""
    path = seen.paths.infra_machine_pool.provider_id_list
    yield from definitions.field(seen, path, ("array",), needed=True, items=("string",))
    run, taken, problems = seen.ran, dict[str, str](), dict[str, None]()
    yield from malformed(path, run)
    for subject, obj, size, when in _sizes(seen):
        ids = listed(seen, obj)
        if len(ids) != size:
            problems[f"{subject.name}: {path} has {len(ids)} entries {when}; its MachinePool asks for {size}"] = None
        problems.update(dict.fromkeys(f"{subject.name}: {path} has {one[:80]!r} twice" for one in sorted(ids) if ids.count(one) > 1))
        problems.update(
            dict.fromkeys(
                f"{subject.name}: an entry of {path} has {len(one)} characters; 1 to {_LONGEST_ID} are expected"
                for one in ids
                if not 0 < len(one) <= _LONGEST_ID
            )
        )
        for one in ids:
            if taken.setdefault(one, subject.name) != subject.name:
                problems[f"{subject.name} and {taken[one]} both list {one[:80]}"] = None
    yield from problems
    yield from unchanging(seen, path)


def replicas(seen: Evidence) -> Iterator[Finding]:
    """Check that the number of machines is reported, and follows the size of the pool."""
    path = seen.paths.infra_machine_pool.replicas
    yield from definitions.field(seen, path, ("integer",), needed=True)
    yield from malformed(path, seen.ran)
    for subject, obj, size, when in _sizes(seen):
        count = _count(seen, obj)
        if count is None:
            yield f"{subject.name} has no {path} {when}"
        elif count != size:
            yield f"{subject.name}: {path} is {count} {when}; its MachinePool asks for {size}"


def provider_id(seen: Evidence) -> Iterator[Finding]:
    """Check that the ID of the pool itself is a text that never changes."""
    path: Path[str] = seen.paths.infra_machine.provider_id  # a pool has it at the same place
    yield from definitions.field(seen, path, ("string",), needed=False)
    run, any_seen = seen.ran, False
    yield from malformed(path, run)
    for subject in run.subjects.values():
        last = next(reversed(provisioned(seen, subject)), None)
        if last is None or absent(path, last):
            continue
        any_seen = True
        found = path.read(last)
        if isinstance(found, Value) and len(found.value) > _LONGEST_ID:
            yield f"{subject.name}: {path} has {len(found.value)} characters; 1 to {_LONGEST_ID} are expected"
    yield from unchanging(seen, path)
    if not any_seen:
        raise NotSeen(f"no object has {path}")


def instances(seen: Evidence) -> Iterator[Finding]:
    """Check that details of machines are a list of objects, and show no other machine than the list of IDs."""
    schema, where = definitions.lookup(definitions.schema_of(seen.kind), _INSTANCES), ".".join(_INSTANCES)
    if schema and schema.get("type", "array") != "array":
        yield f"the schema of {where} is of type {schema['type']}; array is expected"
    elif schema and (element := schema.get("items") or {}).get("type", "object") != "object":
        yield f"the elements of {where} are of type {element['type']}; object is expected"
    any_seen = False
    for subject, settled in _settled(seen):
        found = (settled.get("status") or {}).get("instances")
        shown = [one for one in found if isinstance(one, Mapping)] if isinstance(found, list) else []
        any_seen = any_seen or bool(shown)
        ids = listed(seen, settled)
        for one in shown:
            if one.get("providerID") and ids and one["providerID"] not in ids:
                yield f"{subject.name}: {where} shows {str(one['providerID'])[:80]}, which spec.providerIDList does not have"
    if not any_seen:
        raise NotSeen(f"no object has {where}")


def machines(seen: Evidence) -> Iterator[Finding]:
    """Check that a pool that names the kind of its machines makes one object of that kind for each."""
    path = seen.paths.infra_machine_pool.infrastructure_machine_kind
    yield from definitions.field(seen, path, ("string",), needed=False)
    yield from malformed(path, seen.ran)
    any_seen = False
    for subject, settled in _settled(seen):
        kind = path.read(settled)
        if not isinstance(kind, Value) or not kind.value:
            continue
        any_seen = True
        made: list[Any] = list(seen.ran.machines.get(subject.name) or ())
        if len(made) != _count(seen, settled):
            wanted = f"{CLUSTER_NAME_LABEL} and {MACHINE_POOL_NAME_LABEL}"
            yield f"{subject.name} names {kind.value} as the kind of its machines, and {len(made)} have the labels {wanted}; 1 is expected"
    if not any_seen:
        raise NotSeen(f"no object has {path}: machines of the pool are not drained, and have no health checks")
