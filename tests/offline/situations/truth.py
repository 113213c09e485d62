"""What a situation is, and whether a verdict tells the truth about it."""

from __future__ import annotations

import fnmatch
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

import msgspec

from clusterwright.api.meta import Json
from clusterwright.offline.bundle import assemble
from clusterwright.offline.explain import explain
from clusterwright.offline.orphans import namespace_bundle
from clusterwright.offline.verdict import State, Verdict
from clusterwright.runtime.clock import LoopClock, SystemClock
from clusterwright.simulation.loop import run_virtual
from clusterwright.simulation.plane import Plane, plane
from clusterwright.simulation.world import START
from offline.faulty import BAD, Stage
from offline.live import NAMESPACE, SUBJECT, lived, recorded
from support.moments import Moment

Make = Callable[[Plane], Awaitable[None]]
FINE: Final = frozenset({State.FINE})
BROKEN: Final = frozenset({State.BROKEN})
WAITING: Final = frozenset({State.WAITING})
PROGRESSING: Final = frozenset({State.PROGRESSING})


class _Read(SystemClock):
    """The time at which files of others are read: days after what they tell of."""

    def now(self) -> datetime:
        """Return it."""
        return datetime(2026, 11, 19, 20, 0, tzinfo=UTC)


READ: Final = _Read()
NONE: Final = "none"
"""The pattern of a field that a cause does not have."""
DONE: Final = frozenset({State.FINE, State.PROGRESSING})


@dataclass(frozen=True, kw_only=True)
class Situation:
    """What is done, and what is then true. Patterns have alternatives by `|`; an empty one asks for nothing."""

    name: str
    make: Make
    object: str = ""
    """Kind/name."""
    field: str = ""
    who: str = ""
    next: str = ""
    what: str = ""
    never: str = ""
    """Words that no part of the verdict may have, by `|`."""
    states: frozenset[State] = BAD
    after: float = 600
    """Virtual seconds after it was done."""
    subject: str = SUBJECT
    needs_cluster: bool = True
    """Whether a cluster of one and one must be up first."""
    leaders: int = 1
    """How many Machines its control plane has; one of three has no workers."""
    stage: Stage = plane
    is_long: bool = False
    """Whether it is played in soak only."""
    is_lost: bool = False
    """Whether the subject names a Cluster that does not exist."""
    file: tuple[Json, ...] = ()
    """The objects of a bundle that somebody else made: nothing is played then."""


def faults_of(situation: Situation, verdict: Verdict) -> list[str]:
    """Return what is not true in a verdict, one line each."""
    kind, _, rest = verdict.object.partition("/")
    short = f"{kind}/{rest.rpartition('/')[2]}"
    told = " ".join((verdict.headline, verdict.who, verdict.next, verdict.command)).lower()
    wrong = [] if verdict.state in situation.states else [f"state {verdict.state}"]
    for name, value, pattern in (("object", short, situation.object), ("field", verdict.field, situation.field)):
        pattern = "" if pattern == NONE and not value else pattern
        if pattern and not any(fnmatch.fnmatchcase(value, one.replace("[", "[[]")) for one in pattern.split("|")):
            wrong.append(f"{name} {value!r}, not {pattern!r}")
    for name in ("who", "next", "what"):
        value, pattern = getattr(verdict, name), getattr(situation, name)
        if pattern and not any(one.lower() in value.lower() for one in pattern.split("|")):
            wrong.append(f"{name} {value!r} without {pattern!r}")
    wrong += [f"says {one!r}" for one in situation.never.split("|") if one and one.lower() in told]
    return wrong


def played(situation: Situation, settled: Moment[Plane], three: Moment[Plane]) -> tuple[Verdict, Verdict]:
    """Return the verdicts on a situation: of the live plane, and of the file that `record` makes of it."""
    if situation.file:
        told = explain(assemble(list(situation.file), clock=READ), situation.subject).verdict
        return told, told

    async def seen(p: Plane, *, keep_secrets: bool) -> list[Json]:
        if situation.is_lost:  # as the command line does it
            return await namespace_bundle(p.client, NAMESPACE, p.clock.now(), keep_secrets=keep_secrets)
        return await recorded(p, keep_secrets=keep_secrets)

    async def play(p: Plane) -> tuple[Verdict, Verdict]:
        await situation.make(p)
        await p.clock.sleep(situation.after)
        live = explain(assemble(await seen(p, keep_secrets=True)), situation.subject).verdict
        saved: list[Json] = msgspec.json.decode(msgspec.json.encode(await seen(p, keep_secrets=False)))
        return live, explain(assemble(saved), situation.subject).verdict

    async def all_of_it() -> tuple[Verdict, Verdict]:
        stage = situation.stage(LoopClock(START))
        async with lived(stage) if situation.needs_cluster else stage as p:
            return await play(p)

    if situation.needs_cluster and situation.stage is plane:
        return (three if situation.leaders == 3 else settled).then(play)
    return run_virtual(all_of_it())
