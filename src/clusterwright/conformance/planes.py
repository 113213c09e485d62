"""Checks of a ControlPlane's own fields, and of the kubeconfig that it makes."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final

from clusterwright.api.contract import Path, Value
from clusterwright.api.wellknown import CLUSTER_NAME_LABEL
from clusterwright.conformance import definitions
from clusterwright.conformance.evidence import Evidence, Finding, NotSeen
from clusterwright.conformance.objects import malformed, provisioned

_VERSION: Final = re.compile(r"^v?(\d+)\.(\d+)\.(\d+)")
IS_KUBECONFIG: Final = "isKubeconfig"
"""Whether the kubeconfig of a Secret can be read, in the evidence."""


def _counters(seen: Evidence) -> tuple[Path[int], ...]:
    fields = seen.paths.control_plane
    found = (
        fields.status_replicas,
        fields.ready_replicas,
        fields.up_to_date_replicas,
        fields.available_replicas,
        fields.unavailable_replicas,
    )
    return tuple(path for path in found if path is not None)


def replicas(seen: Evidence) -> Iterator[Finding]:
    """Check that a control plane with spec.replicas reports all counters and a selector."""
    fields = seen.paths.control_plane
    for counter in (fields.spec_replicas, *_counters(seen)):
        yield from definitions.field(seen, counter, ("integer",), needed=False)
    yield from definitions.field(seen, fields.selector, ("string",), needed=False)
    run, asked = seen.ran, False
    wanted: tuple[Path[Any], ...] = (*_counters(seen), fields.selector)
    for path in wanted:
        yield from malformed(path, run)
    for subject in run.subjects.values():
        settled = subject.at(run.span("steady")[1])
        if settled is None or not provisioned(seen, subject) or not isinstance(fields.spec_replicas.read(settled), Value):
            continue
        asked = True
        missing = [str(path) for path in wanted if not isinstance(path.read(settled), Value)]
        if missing:
            yield f"{subject.name} has spec.replicas, but no {', '.join(missing)}"
    if not asked:
        raise NotSeen("no object has spec.replicas")


def version(seen: Evidence) -> Iterator[Finding]:
    """Check that a control plane with spec.version reports the versions that run, the oldest first."""
    fields = seen.paths.control_plane
    for path in (fields.spec_version, fields.status_version):
        yield from definitions.field(seen, path, ("string",), needed=False)
    run, asked, problems = seen.ran, False, dict[str, None]()
    for wrong in (fields.status_version, fields.status_versions):
        yield from malformed(wrong, run)
    for subject in run.subjects.values():
        for obj in subject.objects:
            listed = fields.status_versions.read(obj)
            told = [_parsed(one.version) for one in listed.value] if isinstance(listed, Value) else []
            if told != sorted(told):
                problems[f"{subject.name}: {fields.status_versions} is not ordered from the oldest to the newest"] = None
        settled = subject.at(run.span("steady")[1])
        if settled is None or not provisioned(seen, subject) or not isinstance(fields.spec_version.read(settled), Value):
            continue
        asked = True
        if not any(isinstance(path.read(settled), Value) for path in (fields.status_version, fields.status_versions)):
            problems[f"{subject.name} has spec.version, but neither {fields.status_versions} nor {fields.status_version}"] = None
    yield from problems
    if not asked and not problems:
        raise NotSeen("no object has spec.version")


def _parsed(text: str) -> tuple[int, ...]:
    match = _VERSION.match(text)
    return tuple(map(int, match.groups())) if match else ()


def kubeconfig(seen: Evidence) -> Iterator[Finding]:
    """Check that there is a Secret <cluster>-kubeconfig with a kubeconfig and the cluster's label."""
    run = seen.ran
    run.span("steady")
    made = [subject for subject in run.subjects.values() if provisioned(seen, subject)]
    if not made:
        raise NotSeen("no object was ever initialized")
    for subject in made:
        name = f"{subject.name}-kubeconfig"
        secret = run.secrets.get(subject.name)
        if secret is None:
            yield f"{subject.name} is initialized, but there is no Secret {name}"
            continue
        if (secret["metadata"].get("labels") or {}).get(CLUSTER_NAME_LABEL) != subject.name:
            yield f"Secret {name} has no label {CLUSTER_NAME_LABEL}={subject.name}: `clusterctl move` leaves it behind"
        if not secret[IS_KUBECONFIG]:
            yield f"Secret {name} has no kubeconfig under the key value"
