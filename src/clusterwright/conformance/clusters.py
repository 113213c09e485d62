"""Checks of an InfraCluster's own fields."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from clusterwright.api.contract import Value
from clusterwright.api.wellknown import MANAGED_BY_ANNOTATION
from clusterwright.conformance import definitions
from clusterwright.conformance.evidence import Evidence, Finding, NotSeen
from clusterwright.conformance.objects import is_set, latch, malformed, provisioned, unchanging

_PORTS: Final = range(1, 65536)
_LONGEST_HOST: Final = 512


def endpoint(seen: Evidence) -> Iterator[Finding]:
    """Check that an endpoint is whole, is set no later than the flag, and never changes."""
    path = seen.paths.infra_cluster.endpoint  # a ControlPlane has it at the same place
    yield from definitions.field(seen, path, ("object",), needed=False)
    for part, kind in (("host", "string"), ("port", "integer")):
        schema = definitions.lookup(definitions.schema_of(seen.kind), (*path.steps, part))
        if schema and schema.get("type", kind) != kind:
            yield f"the schema of {path}.{part} is of type {schema['type']}; {kind} is expected"
    run, problems, any_seen = seen.ran, dict[str, None](), False
    yield from malformed(path, run)
    for subject in run.subjects.values():
        states = provisioned(seen, subject)
        values = [found.value for obj in states if isinstance(found := path.read(obj), Value) and (found.value.host or found.value.port)]
        any_seen = any_seen or bool(values)
        for value in values:
            if not value.host or len(value.host) > _LONGEST_HOST:
                problems[f"{subject.name}: {path}.host is {value.host[:80]!r}; 1 to {_LONGEST_HOST} characters are expected"] = None
            if value.port not in _PORTS:
                problems[f"{subject.name}: {path}.port is {value.port}; 1 to 65535 is expected"] = None
        if values and not is_set(path, states[0]):
            problems[f"{subject.name}: {path} came after {latch(seen)}: the Cluster may never get it"] = None
    yield from problems
    yield from unchanging(seen, path)
    if not any_seen:
        raise NotSeen(f"no object has {path}: somebody else must provide the endpoint")


def failure_domains(seen: Evidence) -> Iterator[Finding]:
    """Check that failure domains have the contract's form, with unique names."""
    path = seen.paths.infra_cluster.failure_domains
    is_map = seen.contract == "v1beta1"
    found = definitions.lookup(definitions.schema_of(seen.kind), path.steps)
    if found and found.get("type", "") not in ("", "object" if is_map else "array"):
        wanted = "an object, by name" if is_map else "an array"
        yield f"the schema of {path} is of type {found['type']}; contract {seen.contract} has {wanted}"
    run, problems, any_seen = seen.ran, dict[str, None](), False
    yield from malformed(path, run)
    for subject in run.subjects.values():
        for obj in subject.objects:
            read = path.read(obj)
            names = [domain.name for domain in read.value] if isinstance(read, Value) else []
            any_seen = any_seen or bool(names)
            if not all(names):
                problems[f"{subject.name}: a failure domain has no name"] = None
            problems.update(
                dict.fromkeys(f"{subject.name}: failure domain {n} is listed twice" for n in sorted(names) if names.count(n) > 1)
            )
    yield from problems
    if not any_seen:
        raise NotSeen(f"no object has {path}: machines are not spread")


def externally_managed(seen: Evidence) -> Iterator[Finding]:
    """Check that the provider does not touch an object with the annotation cluster.x-k8s.io/managed-by."""
    run = seen.ran
    span, subject = run.span("managed"), run.subjects["managed"]
    states = [state.object for state in subject.during(span) if state.object is not None]
    if not states:
        raise NotSeen("the object with the annotation was not created")
    for part in ("spec", "status"):
        if any((obj.get(part) or {}) != (states[0].get(part) or {}) for obj in states) or (part == "status" and states[-1].get(part)):
            yield f"{subject.name} has the annotation {MANAGED_BY_ANNOTATION}, and its {part} was written"
    if any(obj["metadata"].get("finalizers") for obj in states):
        yield f"{subject.name} has the annotation {MANAGED_BY_ANNOTATION}, and a finalizer was added"
