"""The functions that actions on Machines share: conditions to set on Machines, and their write."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import partial

import msgspec

from clusterwright.api.controlplane import KubeadmControlPlane
from clusterwright.api.copying import replace
from clusterwright.api.core import Machine
from clusterwright.api.meta import Unstructured
from clusterwright.controllers.applying import Applier
from clusterwright.controllers.kit.conditions import with_outcome, with_v1beta1_outcome
from clusterwright.controllers.kit.passing import Pass, PassFailed
from clusterwright.controllers.kubeadmcontrolplane.etcd.membership import Membership
from clusterwright.controllers.kubeadmcontrolplane.snapshot import ControlPlaneDone, ControlPlaneSnapshot
from clusterwright.controllers.unconfirmed import Unconfirmed
from clusterwright.controllers.wiring import Dependencies
from clusterwright.runtime.client import Original
from clusterwright.runtime.errors import NotFound
from clusterwright.runtime.models import decode
from clusterwright.runtime.patch import Patcher
from clusterwright.runtime.reports import is_report
from clusterwright.tables import Decision, Outcome

Run = Pass[KubeadmControlPlane, ControlPlaneSnapshot, ControlPlaneDone]


def say(run: Run, name: str, type: str, outcome: Outcome | None, v1beta1: Outcome | None = None) -> None:
    """Set a condition of a Machine, in both forms, to be written by `MachineWriter.patch`; None keeps it."""
    machine = run.done.machine(name)
    obj = with_v1beta1_outcome(with_outcome(machine.object, type, outcome, run.seen.now), type, v1beta1, run.seen.now)
    if obj is not machine.object:
        run.done = run.done.with_machine(replace(machine, object=obj))


def say_decided(run: Run, name: str, type: str, decision: Decision) -> None:
    """Set a condition of a Machine as a table decided it."""
    say(run, name, type, decision.outcome, decision.v1beta1)


def annotate(run: Run, annotations: Mapping[str, str | None]) -> None:
    """Set annotations of the control plane; None removes one."""
    metadata = run.object.metadata
    kept = {k: v for k, v in {**metadata.annotations, **annotations}.items() if v is not None}
    run.become(replace(run.object, metadata=replace(metadata, annotations=kept)))


@dataclass(frozen=True, slots=True)
class MachineWriter:
    """Writes the Machines of a control plane, and their dependent objects, during a pass."""

    deps: Dependencies
    patcher: Patcher
    applier: Applier
    unconfirmed: Unconfirmed

    def replace_machine(self, run: Run, name: str, answer: Unstructured) -> None:
        """Replace a Machine by the API server's answer; the findings of this pass are kept."""
        raw = msgspec.json.encode(answer.json)
        original: Original[Machine] = Original(decode(Machine, raw), raw)
        run.done = run.done.with_machine(run.done.machine(name).answered(original))

    async def patch(self, run: Run, which: Iterable[str], owned: tuple[str, ...]) -> None:
        """Write the conditions that were set on Machines; try all, and raise the failures together. A deleted Machine is not a failure.

        Writes that only report state are delayed, like those of the control plane itself.
        """
        failures: list[str] = []
        for name in which:
            machine = run.done.machine(name)
            original = machine.original
            if original is None or machine.object == original.object:
                continue
            write = partial(self.patcher.patch, original, machine.object, owned_conditions=owned, owned_v1beta1_conditions=owned)
            if is_report(original.object, machine.object):
                run.reports.append(write)
                continue
            try:
                answer = await write()
            except NotFound:
                continue
            except Exception as error:
                if not _all_not_found(error):
                    failures.append(f"failed to patch Machine {name}: {error}")
                continue
            if answer is not None:
                self.replace_machine(run, name, answer)
        if failures:
            raise PassFailed("; ".join(failures))

    def membership(self, run: Run) -> Membership:
        """Return the etcd cluster, reached through the existing Nodes."""
        return Membership(self.deps.workload, run.seen.cluster.key, sorted(run.done.inspection.nodes))


def _all_not_found(error: Exception) -> bool:
    return isinstance(error, ExceptionGroup) and error.split(NotFound)[1] is None
