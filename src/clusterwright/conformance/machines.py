"""Checks of an InfraMachine's own fields."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from clusterwright.api.contract import Value
from clusterwright.conformance import definitions
from clusterwright.conformance.evidence import Advice, Evidence, Finding, NotSeen
from clusterwright.conformance.objects import absent, malformed, provisioned, unchanging

_ADDRESS_TYPES: Final = frozenset({"Hostname", "ExternalIP", "InternalIP", "ExternalDNS", "InternalDNS"})
_LONGEST_ID: Final = 512
_LONGEST_DOMAIN: Final = 256


def provider_id(seen: Evidence) -> Iterator[Finding]:
    """Check that the provider ID is set no later than the flag, is unique, and never changes."""
    path = seen.paths.infra_machine.provider_id
    yield from definitions.field(seen, path, ("string",), needed=True)
    run, taken = seen.ran, dict[str, str]()
    yield from malformed(path, run)
    for subject in run.subjects.values():
        states = provisioned(seen, subject)
        if states and absent(path, states[0]):
            yield f"{subject.name} was provisioned without {path}"
        value = next((str(found.value) for obj in states if isinstance(found := path.read(obj), Value) and found.value), "")
        if len(value) > _LONGEST_ID:
            yield f"{subject.name}: {path} has {len(value)} characters; a Machine takes {_LONGEST_ID}"
        if value and value in taken:
            yield f"{subject.name} and {taken[value]} have the same {path}, {value[:80]}"
        taken.setdefault(value, subject.name)
    yield from unchanging(seen, path)


def failure_domain(seen: Evidence) -> Iterator[Finding]:
    """Check that the machine is in the failure domain that its Machine asks for."""
    fields = seen.paths.infra_machine
    yield from definitions.field(seen, fields.failure_domain, ("string",), needed=False)
    run = seen.ran
    yield from malformed(fields.failure_domain, run)
    told = {
        subject.name: found.value
        for subject in run.subjects.values()
        for obj in provisioned(seen, subject)
        if isinstance(found := fields.failure_domain.read(obj), Value)
    }
    for name, domain in told.items():
        if len(domain) > _LONGEST_DOMAIN:
            yield f"{name}: {fields.failure_domain} has {len(domain)} characters; a Machine takes {_LONGEST_DOMAIN}"
    if not run.failure_domain:
        raise NotSeen("no failure domain was asked for: give --failure-domain, or a Cluster whose infrastructure has some")
    for name, domain in told.items():
        if domain != run.failure_domain:
            yield f"{name} is in failure domain {domain!r}; its Machine asks for {run.failure_domain!r}"
    if not told:
        yield Advice(f"no object tells its failure domain in {fields.failure_domain}")


def addresses(seen: Evidence) -> Iterator[Finding]:
    """Check that addresses have a known type and a value."""
    path = seen.paths.infra_machine.addresses
    yield from definitions.field(seen, path, ("array",), needed=False, items=("object",))
    run, problems, any_seen = seen.ran, dict[str, None](), False
    for subject in run.subjects.values():
        for obj in subject.objects:
            found = path.read(obj)
            for address in found.value if isinstance(found, Value) else ():
                any_seen = True
                if address.type not in _ADDRESS_TYPES:
                    problems[f"{path}: type {address.type!r}; {', '.join(sorted(_ADDRESS_TYPES))} are known"] = None
                if not address.address:
                    problems[f"{path}: an address of type {address.type} is empty"] = None
    bad = list(malformed(path, run))
    yield from bad
    yield from problems
    if not any_seen and not bad:
        raise NotSeen(f"no object has {path}; users see it on the Machine")
