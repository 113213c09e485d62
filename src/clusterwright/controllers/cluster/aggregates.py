"""Collect the reports of a Cluster's descendants for the condition tables. Pure.

An aggregate table has the same rows whatever it aggregates: could not be listed, nobody there, an issue, an unknown, cannot be
aggregated, all fine. `aggregate_table` makes it; the merging itself is `conditions.aggregate`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import timedelta

from clusterwright.api.core import Machine
from clusterwright.api.meta import Object
from clusterwright.conditions import Reasons, Reporter, Strategy, aggregate, get, has, plural, reporter
from clusterwright.controllers.cluster.guards import CONTROL_PLANE, Snapshot, control_plane_unreadable, descendants_listed
from clusterwright.controllers.cluster.providers import Found, Garbled
from clusterwright.controllers.cluster.snapshot import Descendants, Gathered, is_child_of
from clusterwright.controllers.kit.conditions import CHECK_LOGS
from clusterwright.tables import Guard, Message, Row, Table, Transition, unknown

NEW_MACHINE_GRACE = timedelta(seconds=10)
"""How long a new Machine may be without UpToDate before that counts; it keeps the condition from flickering."""

INTERNAL_ERROR: Transition[Snapshot] = unknown("InternalError", CHECK_LOGS)

Reporters = Callable[[Snapshot], Sequence[Reporter]]


def of(objects: Sequence[Object]) -> list[Reporter]:
    """Return objects as reporters."""
    return [reporter(o) for o in objects]


def control_plane_machines(c: Snapshot) -> Sequence[Reporter]:
    """Return all control-plane Machines."""
    return of(_descendants(c).control_plane_machines)


def worker_machines(c: Snapshot) -> Sequence[Reporter]:
    """Return worker Machines, without those of MachinePools, which report for themselves."""
    return of(_descendants(c).own_worker_machines)


def settled_control_plane_machines(c: Snapshot) -> Sequence[Reporter]:
    """Return control-plane Machines, without new ones that have not reported yet."""
    return of(_settled(c, _descendants(c).control_plane_machines))


def settled_worker_machines(c: Snapshot) -> Sequence[Reporter]:
    """Return worker Machines, without new ones that have not reported yet."""
    return of(_settled(c, _descendants(c).own_worker_machines))


def _settled(c: Snapshot, machines: Sequence[Machine]) -> list[Machine]:
    def counts(machine: Machine) -> bool:
        created = machine.metadata.creation_timestamp
        return has(machine.status.conditions, "UpToDate") or created is None or c.now - created > NEW_MACHINE_GRACE

    return [m for m in machines if counts(m)]


def workers_reporting(type: str) -> Reporters:
    """Return MachineDeployments, and MachinePools that report the condition."""

    def reporters(c: Snapshot) -> list[Reporter]:
        all_of = _descendants(c)
        return of(all_of.machine_deployments) + [r for r in of(all_of.machine_pools) if has(r.conditions, type)]

    return reporters


def scalers_reporting(type: str, *, machine_sets: bool) -> Reporters:
    """Return the control plane if it reports the condition, then the workers, then MachineSets that belong directly to the Cluster."""
    workers = workers_reporting(type)

    def reporters(c: Snapshot) -> list[Reporter]:
        found: list[Reporter] = []
        plane = c.control_plane
        if isinstance(plane, Found) and not isinstance(plane.conditions, Garbled) and has(plane.conditions, type):
            found.append(Reporter(plane.object.kind, plane.object.key.name, plane.conditions))
        found += workers(c)
        if machine_sets:
            found += of([s for s in _descendants(c).machine_sets if _is_child(c, s)])
        return found

    return reporters


def _is_child(c: Snapshot, obj: Object) -> bool:
    try:
        return is_child_of(obj.metadata, c.cluster)
    except ValueError:
        return False


def _descendants(c: Snapshot) -> Descendants:
    return c.descendants or Descendants()


def aggregate_table(
    target: str,
    source: str,
    reporters: Reporters,
    reasons: Reasons,
    *,
    who: tuple[str, str],
    nobody: Transition[Snapshot],
    about: str,
    negative: bool = False,
    control_plane: bool = False,
) -> Table[Snapshot]:
    """Return the table of `target`, which aggregates `source` over `reporters`.

    `who` names the list of reporters and one of them in guards; `nobody` is the outcome without reporters;
    `negative`: status True is the bad one; `control_plane`: an unreadable control plane makes the outcome unknown too.
    """
    listed, one_of = who
    bad, good = ("True", "False") if negative else ("False", "True")
    strategy = Strategy(reasons=reasons, negative=frozenset([source]) if negative else frozenset(), target_negative=negative)

    def gathered(c: Snapshot) -> Gathered:
        known = c.gathered.get(target)
        if known is None:  # every guard of the table asks for it
            known = c.gathered[target] = gather(c)
        return known

    def gather(c: Snapshot) -> Gathered:
        found = reporters(c)
        said = [get(r.conditions, source) for r in found]
        statuses = frozenset(one.status if one else "Unknown" for one in said)
        return Gathered(found, statuses, any(one is None or one.message for one in said))

    def statuses(c: Snapshot) -> frozenset[str]:
        return gathered(c).statuses

    def merged(c: Snapshot) -> str:
        known = gathered(c)
        if not known.has_messages and known.statuses <= {good}:
            return ""  # the usual case, told without merging
        return aggregate(known.reporters, source, target=target, strategy=strategy).message

    empty: Guard[Snapshot] = Guard(f"len({listed}) == 0", lambda c: not gathered(c).reporters)
    failing: Guard[Snapshot] = Guard("internal error during aggregation", lambda c: bool(statuses(c) - {"True", "False", "Unknown"}))
    any_bad: Guard[Snapshot] = Guard(f"any {one_of} has {source}={bad}", lambda c: bad in statuses(c))
    any_unknown: Guard[Snapshot] = Guard(f"any {one_of} has {source}=Unknown", lambda c: "Unknown" in statuses(c))
    all_good: Guard[Snapshot] = Guard(f"all {plural(one_of)} have {source}={good}", lambda c: statuses(c) <= {good})
    failed = control_plane_unreadable | ~descendants_listed if control_plane else ~descendants_listed
    return Table(
        target,
        Row("unlisted", failed, INTERNAL_ERROR),
        Row("nobody", empty, nobody),
        Row("all-fine", all_good, Transition(good, reasons.info, Message("<aggregated messages>", merged))),
        Row("issues", any_bad, Transition(bad, reasons.issue, Message("<aggregated issues>", merged))),
        Row("unknowns", any_unknown, Transition("Unknown", reasons.unknown, Message("<aggregated unknown reasons>", merged))),
        Row("aggregation-failed", failing, INTERNAL_ERROR),
        about=about,
        exactly_one=[CONTROL_PLANE] if control_plane else [],
        assuming=[empty | all_good | any_bad | any_unknown | failing, ~(all_good & (any_bad | any_unknown | failing))],
    )
