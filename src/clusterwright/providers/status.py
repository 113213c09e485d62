"""Compute the conditions of a provider's process, and the pauses between its restarts. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Final, Literal

from clusterwright.api.meta import Condition
from clusterwright.api.providers import ProviderProcessStatus
from clusterwright.conditions import set_condition
from clusterwright.runtime.failures import MOST_TEXT

FIRST_PAUSE: Final = 1.0
LONGEST_PAUSE: Final = 300.0
STEADY: Final = 600.0
"""Seconds after which a process that runs counts as healthy: its next restart is quick again, as with a kubelet."""

Reason = Literal["Running", "Starting", "NotReady", "Crashed", "Unresponsive", "NotStarted", "NotInstalled", "KindsTaken", "Removing"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """The state of one provider."""

    reason: Reason
    message: str = ""
    restarts: int = 0
    last_exit: str = ""
    next_start: datetime | None = None
    record: str = ""
    notes: tuple[str, ...] = ()


def pause(attempts: int) -> float:
    """Return the seconds before the next start after so many failures in a row."""
    return min(FIRST_PAUSE * 2.0 ** min(attempts, 30), LONGEST_PAUSE)


def concluded(before: ProviderProcessStatus, report: Report, *, generation: int, now: datetime) -> ProviderProcessStatus:
    """Return the status that says what the report says. A condition keeps its time while its status is the same."""
    running = "True" if report.reason == "Running" else "Unknown" if report.reason in {"Starting", "Removing"} else "False"
    installed = "False" if report.reason in {"NotInstalled", "KindsTaken"} else "True"
    found = before.conditions
    for condition in (
        Condition(
            type="Installed",
            status=installed,
            reason=report.reason if installed == "False" else "Installed",
            message=_short(report.message) if installed == "False" else "",
        ),
        Condition(type="Running", status=running, reason=report.reason, message=_short(report.message)),
        Condition(
            type="ContractKept",
            status="False" if report.notes else "True",
            reason="Gaps" if report.notes else "NoGaps",
            message="\n".join(f"* {note}" for note in report.notes[:20]),
        ),
    ):
        found = set_condition(found, condition, generation=generation, now=now)
    return ProviderProcessStatus(
        conditions=found,
        restarts=report.restarts,
        last_exit=report.last_exit,
        next_start=report.next_start,
        record=report.record,
    )


def _short(text: str) -> str:
    return text if len(text) <= 2 * MOST_TEXT else f"{text[: 2 * MOST_TEXT - 3]}..."
