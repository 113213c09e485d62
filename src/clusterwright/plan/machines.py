"""Machines in a plan: which ones replace which, in what order, and how many are there and available while it happens. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from clusterwright.api.meta import Json, Unstructured
from clusterwright.offline.complaints import references
from clusterwright.offline.ownership import name_of
from clusterwright.plan.differences import Field, fields
from clusterwright.plan.recorder import MachineSeen, Step

_GROUPS: Final = ("KubeadmControlPlane", "MachineDeployment", "MachineSet", "MachinePool")
MOST_POINTS: Final = 2_000


@dataclass(frozen=True, slots=True)
class Turn:
    """A Machine that goes, comes, or both: `old` is replaced by `new`."""

    owner: str
    old: str = ""
    new: str = ""
    why: str = ""
    started: float = 0.0
    ended: float | None = None

    def to_json(self) -> Json:
        """Return the form of the schema."""
        made: Json = {"old": self.old or None, "new": self.new or None, "startedSeconds": round(self.started, 1)}
        made["endedSeconds"] = None if self.ended is None else round(self.ended, 1)
        return made | ({"why": self.why} if self.why else {})


@dataclass(slots=True)
class Rollout:
    """The Machines of one owner that change."""

    owner: str
    desired_before: int | None
    desired_after: int | None
    turns: list[Turn] = field(default_factory=list)
    fields: tuple[Field, ...] = ()
    """The fields of the owner and its templates that make the Machines not up to date."""
    points: list[tuple[float, int, int]] = field(default_factory=list)
    """Seconds, Machines, available Machines: whenever one of the numbers changes."""

    @property
    def replaced(self) -> list[Turn]:
        """The Machines that are replaced."""
        return [t for t in self.turns if t.old and t.new]

    @property
    def reasons(self) -> list[str]:
        """Why Machines are replaced, each reason once."""
        lines = (line.removeprefix("* ") for t in self.replaced for line in t.why.splitlines())
        return [line for line in dict.fromkeys(lines) if line]

    @property
    def surge(self) -> int:
        """How many more Machines there are than are wanted, at most."""
        limit = max(self.desired_before or 0, self.desired_after or 0)
        return max([0, *(total - limit for _, total, _ in self.points)])

    @property
    def unavailable(self) -> int:
        """How many fewer Machines are available than were at the start, or than are wanted at the end, at most."""
        if not self.points:
            return 0
        least = min(self.points[0][2], self.points[-1][2] if self.desired_after else 0)
        return max([0, *(least - available for _, _, available in self.points)])

    def to_json(self) -> Json:
        """Return the form of the schema."""
        return {
            "owner": self.owner,
            "replicasBefore": self.desired_before,
            "replicasAfter": self.desired_after,
            "reasons": self.reasons,
            "fields": [f.to_json() for f in self.fields],
            "machines": [t.to_json() for t in self.turns],
            "surge": self.surge,
            "unavailable": self.unavailable,
            "overTime": [{"seconds": round(at, 1), "machines": total, "available": ready} for at, total, ready in self.points],
        }


def rollouts(
    before: Mapping[str, Mapping[str, Any]],
    after: Mapping[str, Mapping[str, Any]],
    steps: Sequence[Step],
    seen: Sequence[MachineSeen],
    outdated: Mapping[str, str],
) -> list[Rollout]:
    """Return the owners whose Machines change, in the order in which they begin."""
    owners = _owners(before, after, steps)
    created = {s.uid: s for s in steps if s.verb == "create" and s.name.startswith("Machine/")}
    going = {s.uid: s for s in reversed(steps) if s.verb in {"delete", "gone"} and s.name.startswith("Machine/")}
    ended = {s.uid: s.at for s in steps if s.verb == "gone" and s.name.startswith("Machine/")}
    available: dict[str, float] = {}
    for one in seen:
        if one.available:
            available.setdefault(one.uid, one.at)
    comers: dict[str, list[Step]] = defaultdict(list)
    leavers: dict[str, list[Step]] = defaultdict(list)
    for uid, step in created.items():
        if uid not in going:
            comers[_root(step.owner, owners)].append(step)
    for uid, step in going.items():
        if uid not in created:
            leavers[_root(_owner_before(before, step), owners)].append(step)
    found = []
    for owner in dict.fromkeys([*comers, *leavers]):
        made = Rollout(owner, _replicas(before.get(owner)), _replicas(after.get(owner)))
        ins, outs = sorted(comers[owner], key=_time), sorted(leavers[owner], key=_time)
        for index in range(max(len(ins), len(outs))):
            came, went = ins[index] if index < len(ins) else None, outs[index] if index < len(outs) else None
            ends = [*([available.get(came.uid)] if came else []), *([ended.get(went.uid)] if went else [])]
            made.turns.append(
                Turn(
                    owner,
                    went.name if went else "",
                    came.name if came else "",
                    outdated.get(went.uid, "") if went and came else "",
                    min(s.at for s in (came, went) if s is not None),
                    None if None in ends else max(e for e in ends if e is not None),
                )
            )
        made.fields = causes(before, after, owner) if made.replaced else ()
        made.points = list(_points(owner, seen, owners))
        found.append(made)
    return sorted(found, key=lambda r: min((t.started for t in r.turns), default=0.0))


def _points(owner: str, seen: Iterable[MachineSeen], owners: Mapping[str, str]) -> Iterable[tuple[float, int, int]]:
    """Yield the numbers of Machines and of available ones at the start, and whenever they change."""
    states: dict[str, tuple[bool, bool]] = {}
    last: tuple[float, int, int] | None = None
    count = 0
    for one in seen:
        if _root(one.owner, owners) != owner:
            continue
        if one.gone:
            states.pop(one.uid, None)
        else:
            states[one.uid] = (True, one.available and not one.deleting)
        point = (max(0.0, one.at), len(states), sum(available for _, available in states.values()))
        if last is not None and last[0] != point[0]:
            yield last
            count += 1
            if count == MOST_POINTS:
                return
        last = point
    if last is not None:
        yield last


def causes(before: Mapping[str, Mapping[str, Any]], after: Mapping[str, Mapping[str, Any]], owner: str) -> tuple[Field, ...]:
    """Return the fields of an owner's spec and of its templates that differ. A field of a template begins with the template's kind."""
    old, new = before.get(owner), after.get(owner)
    if old is None or new is None:
        return ()
    found = [f for f in fields(old, new) if f.path.startswith("spec.") and not f.path.endswith(_NOT_OF_MACHINES)]
    templates = _templates(new)
    for place, name in _templates(old).items():
        one, other = before.get(name), after.get(templates.get(place, ""))
        if one is not None and other is not None:
            kind = name.partition("/")[0]
            found += [Field(f"{kind}: {f.path}", f.old, f.new) for f in fields(one, other) if f.path.startswith("spec.")]
    return tuple(found)


_NOT_OF_MACHINES: Final = (".replicas", "Ref.name")


def _templates(owner: Mapping[str, Any]) -> dict[str, str]:
    """Return the templates that an owner of Machines refers to, by the path of the reference."""
    namespace = str(owner["metadata"].get("namespace") or "")
    return {r.path: name_of(r.kind, namespace, r.name) for r in references(owner.get("spec"))}


def _time(step: Step) -> tuple[float, str]:
    return step.at, step.name


def _owner_before(before: Mapping[str, Mapping[str, Any]], step: Step) -> str:
    obj = before.get(step.name)
    return owner_of(obj) if obj is not None else step.owner


def owner_of(obj: Mapping[str, Any]) -> str:
    """Return the controlling owner of an object, or its only one; empty if there is none."""
    one = Unstructured(obj)
    references = one.metadata.owner_references
    found = next((o for o in references if o.controller), references[0] if len(references) == 1 else None)
    return name_of(found.kind, one.key.namespace, found.name) if found is not None else ""


def _owners(before: Mapping[str, Any], after: Mapping[str, Any], steps: Iterable[Step]) -> dict[str, str]:
    """Return the owner of every MachineSet, by name."""
    found = {s.name: s.owner for s in steps if s.verb == "create" and s.name.startswith("MachineSet/")}
    found |= {name: owner_of(obj) for objects in (before, after) for name, obj in objects.items() if name.startswith("MachineSet/")}
    return found


def _root(owner: str, owners: Mapping[str, str]) -> str:
    """Return the MachineDeployment of a MachineSet, else the owner itself."""
    above = owners.get(owner, "")
    return above if above.startswith(_GROUPS) else owner


def _replicas(obj: Mapping[str, Any] | None) -> int | None:
    found = (obj.get("spec") or {}).get("replicas") if obj is not None else None
    return found if isinstance(found, int) else None
