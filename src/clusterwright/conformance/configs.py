"""Checks of a BootstrapConfig's own fields, and of the Secret that it makes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from clusterwright.api.contract import Value
from clusterwright.api.wellknown import CLUSTER_NAME_LABEL
from clusterwright.conformance import definitions
from clusterwright.conformance.evidence import Advice, Evidence, Finding, NotSeen, Subject
from clusterwright.conformance.objects import absent, malformed, provisioned, unchanging

SENTINEL: Final = "bootstrap-success.complete"
"""The name of the file that bootstrap data create when they are done."""
_LONGEST_NAME: Final = 253


def data_secret(seen: Evidence) -> Iterator[Finding]:
    """Check that the Secret is named no later than the flag, never changes its name, and has the contract's form."""
    path = seen.paths.bootstrap_config.data_secret_name
    yield from definitions.field(seen, path, ("string",), needed=True)
    run = seen.ran
    yield from malformed(path, run)
    for subject in run.subjects.values():
        states = provisioned(seen, subject)
        if not states:
            continue
        if absent(path, states[0]):
            yield f"{subject.name} reported its Secret without {path}"
        names = [str(found.value) for obj in states if isinstance(found := path.read(obj), Value) and found.value]
        if names and len(names[0]) > _LONGEST_NAME:
            yield f"{subject.name}: {path} has {len(names[0])} characters; a Machine takes {_LONGEST_NAME}"
        if names and "steady" in run.spans:
            yield from _secret(seen, subject, names[-1])
    yield from unchanging(seen, path)


def _secret(seen: Evidence, subject: Subject, name: str) -> Iterator[Finding]:
    secret, last = seen.ran.secrets.get(subject.name), subject.objects[-1]
    if secret is None:
        yield f"{subject.name}: there is no Secret {name}"
        return
    meta = secret["metadata"]
    if not (meta.get("labels") or {}).get(CLUSTER_NAME_LABEL):
        yield f"Secret {name} has no label {CLUSTER_NAME_LABEL}: `clusterctl move` leaves it behind"
    if not any(owner.get("controller") and owner["uid"] == last["metadata"]["uid"] for owner in meta.get("ownerReferences") or ()):
        yield f"Secret {name} has no controller owner reference to {subject.name}: it is never deleted"
    if not (secret.get("data") or {}).get("value"):
        yield f"Secret {name} has no data under the key value; it has {', '.join(sorted(secret.get('data') or {})) or 'nothing'}"


def sentinel(seen: Evidence) -> Iterator[Finding]:
    """Check that the data create the file by which infrastructure providers see that the machine has booted."""
    told = [secret[SENTINEL] for secret in seen.ran.secrets.values()]
    if not told:
        raise NotSeen("no Secret was found")
    if not all(told):
        yield Advice(f"the data do not create /run/cluster-api/{SENTINEL}: infrastructure providers cannot see whether the boot succeeded")
