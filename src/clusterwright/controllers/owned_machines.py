"""Facts, tables and texts that the owners of Machines share: MachineSets and MachineDeployments. Pure."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from datetime import datetime, timedelta
from typing import Any, Final, Protocol

from clusterwright.api.core import Machine
from clusterwright.api.meta import Condition
from clusterwright.api.wellknown import (
    PENDING_ACKNOWLEDGE_MOVE_ANNOTATION,
    PENDING_HOOKS_ANNOTATION,
    UPDATE_IN_PROGRESS_ANNOTATION,
)
from clusterwright.conditions import Reasons, Reporter, Strategy, aggregate, get, has, is_false, is_true, names_with_limit, reporter
from clusterwright.controllers.kit.conditions import CHECK_LOGS
from clusterwright.controllers.kit.lookup import core_subject
from clusterwright.tables import OTHERWISE, Guard, Message, Row, Subject, Table, Transition, false, true, unknown

INTERNAL_ERROR: Final[Transition[Any]] = unknown("InternalError", CHECK_LOGS)
UPDATE_MACHINE_HOOK: Final = "UpdateMachine"
YOUNG: Final = timedelta(seconds=10)
"""How old a Machine must be before a missing UpToDate counts, because it is set shortly after creation."""
MOST_CREATED: Final = 50
"""The largest number of Machines that an owner creates within CREATION_WAIT, whatever the user asks for; later passes create the rest."""
CREATION_WAIT: Final = timedelta(seconds=1)
STALE_AFTER: Final = timedelta(minutes=15)
_DRAIN_STALE_AFTER: Final = timedelta(minutes=5)
_MOST_NAMES: Final = 3
_DRAIN_CAUSES: Final = (
    ("PodDisruptionBudgets", "cannot evict pod as it would violate the pod's disruption budget."),
    ("Pods not terminating", "deletionTimestamp set, but still not removed from the Node"),
    ("Pod eviction errors", "failed to evict Pod"),
    ("Pods not completed yet", "waiting for completion"),
)


def creation_budget(created: Iterable[datetime | None], now: datetime) -> int:
    """Return how many Machines an owner may create now; `created` are the creation timestamps of those that exist.

    Created Machines requeue their owner at once: without a wait between two batches a huge number would keep the process busy.
    """
    recent = sum(moment is not None and abs(now - moment) < CREATION_WAIT for moment in created)
    return max(MOST_CREATED - recent, 0)


# ---------------------------------------------------------------------------------------------- one Machine


def is_deleting(machine: Machine) -> bool:
    """Return whether its deletion was requested."""
    return machine.metadata.deletion_timestamp is not None


def pending_hooks(machine: Machine) -> list[str]:
    """Return the hooks that are still to be called for it."""
    return [h for h in machine.metadata.annotations.get(PENDING_HOOKS_ANNOTATION, "").split(",") if h]


def is_marked_for_update(machine: Machine) -> bool:
    """Return whether an in-place update of it was started."""
    return UPDATE_IN_PROGRESS_ANNOTATION in machine.metadata.annotations


def is_updating(machine: Machine) -> bool:
    """Return whether an in-place update is in progress, from its first mark to its last."""
    return is_marked_for_update(machine) or UPDATE_MACHINE_HOOK in pending_hooks(machine)


def awaits_acknowledgement(machine: Machine) -> bool:
    """Return whether it was moved here from another MachineSet and the MachineDeployment has not counted it yet."""
    return PENDING_ACKNOWLEDGE_MOVE_ANNOTATION in machine.metadata.annotations


def is_unhealthy(machine: Machine) -> bool:
    """Return whether a health check found it unhealthy."""
    return is_false(machine.status.conditions, "HealthCheckSucceeded")


def is_to_be_remediated(machine: Machine) -> bool:
    """Return whether it is unhealthy and its owner was asked to replace it."""
    return is_unhealthy(machine) and is_false(machine.status.conditions, "OwnerRemediated")


# ------------------------------------------------------------------------------------------- many Machines


def names_of(machines: Iterable[Machine]) -> list[str]:
    """Return their names, sorted."""
    return sorted(m.metadata.name for m in machines)


def stale_text(machines: Iterable[Machine], now: datetime) -> str:
    """Return which Machines take too long to delete, and the likely cause; empty if none."""
    stale = [m for m in machines if m.metadata.deletion_timestamp is not None and now - m.metadata.deletion_timestamp > STALE_AFTER]
    if not stale:
        return ""
    reported = [deleting.message for m in stale if (deleting := _draining(m, now)) is not None]
    causes = [cause for cause, text in _DRAIN_CAUSES if any(text in message for message in reported)]
    head = "Machine" if len(stale) == 1 else "Machines"
    text = f"{head} {names_with_limit(names_of(stale), _MOST_NAMES)} {'is' if len(stale) == 1 else 'are'} in deletion since more than 15m"
    return f"{text}, delay likely due to {', '.join(causes)}" if causes else text


def _draining(machine: Machine, now: datetime) -> Condition | None:
    """Return its Deleting condition, if it has been draining for long."""
    deleting = get(machine.status.conditions, "Deleting")
    since = machine.status.deletion.node_drain_start_time if machine.status.deletion else None
    if deleting is None or deleting.status != "True" or deleting.reason != "DrainingNode" or since is None:
        return None
    return deleting if now - since > _DRAIN_STALE_AFTER else None


def unhealthy_text(machines: Iterable[Machine], remark: str) -> str:
    """Return which Machines are unhealthy, and a remark; empty if none."""
    names = names_of(m for m in machines if is_unhealthy(m))
    if not names:
        return ""
    one = len(names) == 1
    return f"Machine{'' if one else 's'} {names_with_limit(names, _MOST_NAMES)} {'is' if one else 'are'} not healthy ({remark})"


def missing_text(kinds: Sequence[str]) -> str:
    """Return which templates do not exist; empty if all do."""
    if not kinds:
        return ""
    return f"{' and '.join(kinds)} {'does' if len(kinds) == 1 else 'do'} not exist"


# ------------------------------------------------------------------------------------------ shared tables


class Owner(Protocol):
    """The fields of a snapshot that the shared tables read."""

    @property
    def now(self) -> datetime: ...  # noqa: D102
    @property
    def machines(self) -> tuple[Machine, ...] | None:
        """The Machines; None: they could not be listed."""


def _machines(o: Owner) -> tuple[Machine, ...]:
    return o.machines or ()


def _judged(o: Owner) -> list[Machine]:
    """Return the Machines that report UpToDate, or should by now."""
    return [m for m in _machines(o) if has(m.status.conditions, "UpToDate") or not _is_young(m, o.now)]


def _is_young(machine: Machine, now: datetime) -> bool:
    created = machine.metadata.creation_timestamp
    return created is not None and now - created <= YOUNG


unlisted: Guard[Owner] = Guard("Machines could not be listed", lambda o: o.machines is None)
no_machines: Guard[Owner] = Guard("there are no Machines", lambda o: not _machines(o))
none_judged: Guard[Owner] = Guard("no Machine reports UpToDate or is older than 10s", lambda o: not _judged(o))


def _about(which: Callable[[Machine], bool]) -> Callable[[Owner], tuple[Subject, ...]]:
    """Return the subjects of a guard: the Machines that match a predicate."""
    return lambda o: tuple(core_subject("Machine", m.key) for m in _machines(o) if which(m))


def _is_not(type: str) -> Callable[[Machine], bool]:
    return lambda m: not is_true(m.status.conditions, type)


def _aggregated(machines: Collection[Machine], type: str, reasons: Reasons) -> Condition:
    return aggregate([reporter(m) for m in machines], type, strategy=Strategy(reasons=reasons))


def _ready(o: Owner) -> Condition | None:
    machines = _machines(o)
    return _aggregated(machines, "Ready", Reasons("NotReady", "ReadyUnknown", "Ready")) if machines else None


def _up_to_date(o: Owner) -> Condition | None:
    machines = _judged(o)
    return _aggregated(machines, "UpToDate", Reasons("NotUpToDate", "UpToDateUnknown", "UpToDate")) if machines else None


def _status(condition: Condition | None) -> str:
    return condition.status if condition else ""


any_not_ready: Guard[Owner] = Guard("a Machine is not Ready", lambda o: _status(_ready(o)) == "False", about=_about(_is_not("Ready")))
any_ready_unknown: Guard[Owner] = Guard(
    "Ready of a Machine is unknown, none is False", lambda o: _status(_ready(o)) == "Unknown", about=_about(_is_not("Ready"))
)
any_outdated: Guard[Owner] = Guard(
    "a Machine is not UpToDate", lambda o: _status(_up_to_date(o)) == "False", about=_about(_is_not("UpToDate"))
)
any_up_to_date_unknown: Guard[Owner] = Guard(
    "UpToDate of a Machine is unknown, none is False", lambda o: _status(_up_to_date(o)) == "Unknown", about=_about(_is_not("UpToDate"))
)
_ready_message: Message[Owner] = Message("<aggregated Ready>", lambda o: c.message if (c := _ready(o)) else "")
_up_to_date_message: Message[Owner] = Message("<aggregated UpToDate>", lambda o: c.message if (c := _up_to_date(o)) else "")


def _unlisted_row(*, may_be_unlisted: bool) -> tuple[Row[Any], ...]:
    return (Row("unlisted", unlisted, INTERNAL_ERROR),) if may_be_unlisted else ()


def machines_ready(*, may_be_unlisted: bool) -> Table[Any]:
    """Return the table of `MachinesReady`: the Machines' Ready, aggregated."""
    return Table(
        "MachinesReady",
        *_unlisted_row(may_be_unlisted=may_be_unlisted),
        Row("none", no_machines, true("NoReplicas")),
        Row("not-ready", any_not_ready, false("NotReady", _ready_message)),
        Row("unknown", any_ready_unknown, unknown("ReadyUnknown", _ready_message)),
        Row("ready", OTHERWISE, true("Ready", _ready_message)),
        about="The Ready conditions of the Machines, aggregated.",
        assuming=[
            ~(any_not_ready & any_ready_unknown),
            ~(no_machines & (any_not_ready | any_ready_unknown)),
            *([~unlisted | no_machines] if may_be_unlisted else []),
        ],
    )


def machines_up_to_date(*, may_be_unlisted: bool) -> Table[Any]:
    """Return the table of `MachinesUpToDate`: the Machines' UpToDate, aggregated."""
    return Table(
        "MachinesUpToDate",
        *_unlisted_row(may_be_unlisted=may_be_unlisted),
        Row("none", none_judged, true("NoReplicas")),
        Row("outdated", any_outdated, false("NotUpToDate", _up_to_date_message)),
        Row("unknown", any_up_to_date_unknown, unknown("UpToDateUnknown", _up_to_date_message)),
        Row("up-to-date", OTHERWISE, true("UpToDate", _up_to_date_message)),
        about="The UpToDate conditions of the Machines, aggregated. A Machine that was just made has a moment to report its own.",
        assuming=[
            ~(any_outdated & any_up_to_date_unknown),
            ~(none_judged & (any_outdated | any_up_to_date_unknown)),
            *([~unlisted | none_judged] if may_be_unlisted else []),
        ],
    )


any_to_be_remediated: Guard[Owner] = Guard(
    "a Machine has HealthCheckSucceeded False and OwnerRemediated False",
    lambda o: any(map(is_to_be_remediated, _machines(o))),
    about=_about(is_to_be_remediated),
)


def _remediations(o: Owner) -> str:
    reporters: list[Reporter] = [reporter(m) for m in _machines(o) if is_to_be_remediated(m)]
    return aggregate(reporters, "OwnerRemediated").message if reporters else ""


def remediating(remark: str, *, may_be_unlisted: bool) -> Table[Any]:
    """Return the table of `Remediating`: unhealthy Machines that are being replaced; `remark` is added for those that are not."""
    unhealthy: Message[Owner] = Message(f"Machine(s) <names> is/are not healthy ({remark})", lambda o: unhealthy_text(_machines(o), remark))
    return Table(
        "Remediating",
        *_unlisted_row(may_be_unlisted=may_be_unlisted),
        Row("remediating", any_to_be_remediated, true("Remediating", Message("<aggregated OwnerRemediated>", _remediations))),
        Row("not-remediating", OTHERWISE, false("NotRemediating", unhealthy)),
        about="Machines that a health check found unhealthy and whose owner must replace them.",
        assuming=[~(unlisted & any_to_be_remediated)] if may_be_unlisted else [],
    )
