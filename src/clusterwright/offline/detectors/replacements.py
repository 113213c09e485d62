"""Finds Machines that are replaced again and again, because none of them comes up in time."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from clusterwright.api.meta import Unstructured
from clusterwright.offline.complaints import Complaint, Tier, time_of
from clusterwright.offline.known import Found, Known
from clusterwright.offline.ownership import selects

OFTEN: Final = 3
"""The number of Machines that come and go before this is more than an accident."""


def replacements(known: Known) -> Iterator[Found]:
    """Yield the newest Machine of each MachineSet whose Machines come and go."""
    for name, owner in known.of_kind("MachineSet"):
        told = sorted((time_of(e), str(e.get("reason"))) for e in known.events.get(name, ()))
        gone = [at for at, reason in told if reason == "SuccessfulDelete"]
        again = [at for at, reason in told if reason == "SuccessfulCreate" and gone and at >= gone[0]]
        if len(gone) < OFTEN or len(again) < OFTEN:
            continue
        below = [(n, m) for n, m in known.of_kind("Machine") if known.owner(m, "MachineSet") is owner and not m.at("status", "nodeRef")]
        if not below:
            continue
        newest, machine = max(below, key=lambda item: (str(item[1].at("metadata", "creationTimestamp")), item[0]))
        check = next((o for _, o in known.of_kind("MachineHealthCheck") if selects(o.at("spec", "selector"), machine)), None)
        yield Found(object=newest, complaint=_complaint(known, machine, check, gone), is_all=True, explains={name: "replaces it"})


def _complaint(known: Known, machine: Unstructured, check: Unstructured | None, gone: list[str]) -> Complaint:
    by = f"MachineHealthCheck {check.key.name}" if check is not None else "its MachineSet"
    text = f"has no Node yet, and {len(gone)} Machines before it were replaced by {by} without one"
    limit = f", or raise spec.checks.nodeStartupTimeoutSeconds of {by}, if they only take longer" if check is not None else ""
    kind = known.named(machine, "spec.infrastructureRef").partition("/")[0] or "its machine"
    facts = {"machine": machine.key.name, "namespace": machine.key.namespace, "kind": kind, "limit": limit}
    return Complaint(Tier.UNHEALTHY, text, gone[0], "NodeHealthy", text, path="status.nodeRef", cause="machine.replaced-again", facts=facts)
