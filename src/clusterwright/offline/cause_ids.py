"""Stable identifiers of causes, for programs: those with a remedy of their own, and the classes of all others."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from clusterwright.offline.complaints import Complaint, Tier
from clusterwright.offline.remedies import REMEDIES

UNSEEN: Final = "rights.unseen"
PROGRESS: Final = "progress"
_CLASSES: Final[Mapping[Tier, str]] = {
    Tier.MISSING: "object.missing",
    Tier.PAUSED: "object.paused",
    Tier.DELETING: "object.deleting",
    Tier.HELD: "object.held",
    Tier.ERROR: "object.error",
    Tier.UNRECONCILED: "object.unreconciled",
    Tier.UNHEALTHY: "object.unhealthy",
    Tier.WAITING: "object.waiting",
    Tier.SILENT: "object.silent",
    Tier.UNKNOWN: "object.unknown",
    Tier.PROGRESS: PROGRESS,
}
CLASSES: Final[Mapping[str, str]] = {
    "object.missing": "an object that others name does not exist",
    "object.paused": "an object is paused",
    "object.deleting": "an object is being deleted, and something holds it",
    "object.held": "an extension, a hook or an annotation holds the object",
    "object.error": "an object reports an error",
    "object.unreconciled": "no controller reconciles the object",
    "object.unhealthy": "an object is unhealthy",
    "object.waiting": "an object waits for longer than is usual",
    "object.silent": "an object does not report anything",
    "object.unknown": "the state of an object is not known",
    UNSEEN: "objects could not be read",
    PROGRESS: "the cluster is being made, changed or deleted",
}
"""The causes without a remedy of their own: identifier and meaning."""


def cause_id(complaint: Complaint) -> str:
    """Return the identifier of a cause."""
    return complaint.cause or _CLASSES[complaint.tier]


def known_ids() -> frozenset[str]:
    """Return every identifier that a verdict can have."""
    return frozenset(REMEDIES) | frozenset(CLASSES)


def as_markdown() -> str:
    """Return the list of all causes, for the documentation."""
    told = "Rendered from the code by `make docs`; do not edit. `explain -o json` and the metrics name causes by these identifiers."
    lines = ["# Causes", "", told, ""]
    lines += ["| Cause | Who must act | What helps |", "|---|---|---|"]
    for name, remedy in sorted(REMEDIES.items()):
        lines.append(f"| `{name}` | {_cell(remedy.who)} | {_cell(remedy.next)} |")
    lines += ["", "All other causes have the identifier of their class:", "", "| Cause | Meaning |", "|---|---|"]
    lines += [f"| `{name}` | {meaning} |" for name, meaning in CLASSES.items()]
    return "\n".join([*lines, ""])


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("{", "*").replace("}", "*")
