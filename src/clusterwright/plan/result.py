"""The result of a plan, and its documented form for programs (`plan --schema`). Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from clusterwright.api.meta import Json
from clusterwright.plan.changes import Refused
from clusterwright.plan.differences import Field
from clusterwright.plan.machines import Rollout, Turn


class Outcome(Enum):
    """The plan as a whole in one word, with the exit status of the command."""

    NOTHING = ("nothing", 0)
    CHANGES = ("changes", 2)
    REPLACEMENTS = ("replacements", 3)
    REFUSED = ("refused", 1)


@dataclass(frozen=True, slots=True)
class Touched:
    """An object that is created, changed or deleted. `at`: seconds after the change."""

    name: str
    at: float = 0.0
    owner: str = ""
    fields: tuple[Field, ...] = ()
    parts: tuple[str, ...] = ()
    """Objects that come and go with it: those of a Machine."""
    anyway: bool = False
    """The controllers would do this without the change, too."""

    def to_json(self) -> Json:
        """Return the form of the schema."""
        made: Json = {"object": self.name, "seconds": round(self.at, 1)}
        made |= {"owner": self.owner} if self.owner else {}
        made |= {"fields": [f.to_json() for f in self.fields]} if self.fields else {}
        made |= {"parts": list(self.parts)} if self.parts else {}
        return made | ({"anyway": True} if self.anyway else {})


@dataclass(frozen=True, slots=True)
class Wait:
    """Something that holds the change up for a while, or without end (`until` None)."""

    object: str
    kind: str
    """drain, hold or check."""
    why: str
    since: float
    until: float | None

    def to_json(self) -> Json:
        """Return the form of the schema."""
        until = None if self.until is None else round(self.until, 1)
        return {"object": self.object, "kind": self.kind, "why": self.why, "sinceSeconds": round(self.since, 1), "untilSeconds": until}


@dataclass(frozen=True, slots=True)
class Hook:
    """A call of a runtime extension. `assumed`: its answer was made up, because extensions were not to be called."""

    hook: str
    handler: str
    at: float
    assumed: bool

    def to_json(self) -> Json:
        """Return the form of the schema."""
        return {"hook": self.hook, "handler": self.handler, "seconds": round(self.at, 1), "assumed": self.assumed}


@dataclass(frozen=True, slots=True)
class Stuck:
    """An object that does not reach what its spec says, with the verdict of `explain` on its Cluster."""

    object: str
    why: str
    verdict: str = ""

    def to_json(self) -> Json:
        """Return the form of the schema."""
        return {"object": self.object, "why": self.why, "verdict": self.verdict}


@dataclass(frozen=True, slots=True)
class Duration:
    """How long it should take, in seconds: the median of some runs, and their range. None: it does not end."""

    median: float | None
    low: float | None = None
    high: float | None = None
    runs: int = 1

    def to_json(self) -> Json:
        """Return the form of the schema."""
        low, high = (None if x is None else round(x, 1) for x in (self.low, self.high))
        return {"median": None if self.median is None else round(self.median, 1), "low": low, "high": high, "runs": self.runs}


@dataclass(slots=True)
class Plan:
    """The effects of a change."""

    refused: list[Refused] = field(default_factory=list)
    created: list[Touched] = field(default_factory=list)
    changed: list[Touched] = field(default_factory=list)
    deleted: list[Touched] = field(default_factory=list)
    rollouts: list[Rollout] = field(default_factory=list)
    waits: list[Wait] = field(default_factory=list)
    hooks: list[Hook] = field(default_factory=list)
    stuck: list[Stuck] = field(default_factory=list)
    duration: Duration = field(default_factory=lambda: Duration(0.0))
    trace: list[Json] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    clusters: list[Json] = field(default_factory=list)
    """The effects on each Cluster, if there are several."""
    objects: Mapping[str, Mapping[str, Any]] = field(default_factory=dict, repr=False)
    """The objects of the replica at the end, by name. Certificates, keys and kubeconfigs are stand-ins."""
    denied: list[str] = field(default_factory=list)
    """The rules of a policy that the plan breaks."""

    @property
    def replaced(self) -> list[Turn]:
        """The Machines that are replaced, in the order in which that begins."""
        return sorted((t for r in self.rollouts for t in r.replaced), key=lambda t: t.started)

    @property
    def outcome(self) -> Outcome:
        """The plan as a whole in one word."""
        if self.refused:
            return Outcome.REFUSED
        if self.replaced:
            return Outcome.REPLACEMENTS
        return Outcome.CHANGES if self.created or self.changed or self.deleted else Outcome.NOTHING

    def to_json(self) -> Json:
        """Return the documented form."""
        return {
            "outcome": self.outcome.value[0],
            "refused": [r.to_json() for r in self.refused],
            "created": [t.to_json() for t in self.created],
            "changed": [t.to_json() for t in self.changed],
            "replaced": [{"owner": t.owner, **t.to_json()} for t in self.replaced],
            "deleted": [t.to_json() for t in self.deleted],
            "rollouts": [r.to_json() for r in self.rollouts],
            "waits": [w.to_json() for w in self.waits],
            "hooks": [h.to_json() for h in self.hooks],
            "notConverging": [s.to_json() for s in self.stuck],
            "durationSeconds": self.duration.to_json(),
            "trace": self.trace,
            "clusters": self.clusters,
            "notes": self.notes,
            "denied": self.denied,
        }
