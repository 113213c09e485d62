"""Record the events of a replica: creations, changes of specs, deletions, the progress of Machines, and conditions that tell of waits."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

import msgspec

from clusterwright.api.copying import replace
from clusterwright.apiserver.server import ApiServer
from clusterwright.apiserver.storage.store import Event
from clusterwright.offline.ownership import name_of
from clusterwright.plan.foreign import is_stand_in

MOST_STEPS: Final = 50_000
"""The most steps that are recorded; a plan with more did not converge."""
QUIET_KINDS: Final = frozenset({"Event", "Lease", "ManagedFields"})
_TOLD: Final = frozenset({"RollingOut", "ScalingUp", "ScalingDown", "TopologyReconciled", "Deleting", "MachinesCreated", "Remediating"})
"""The conditions whose messages say why something waits."""


class _Owner(msgspec.Struct):
    kind: str = ""
    name: str = ""
    controller: bool = False


class _Metadata(msgspec.Struct, rename="camel"):
    name: str = ""
    namespace: str = ""
    uid: str = ""
    generation: int = 0
    deletion_timestamp: str | None = None
    labels: dict[str, str] | None = None
    owner_references: tuple[_Owner, ...] | None = None


class Condition(msgspec.Struct):
    """A condition, as far as a plan reads it."""

    type: str = ""
    status: str = ""
    reason: str = ""
    message: str = ""


class _NodeRef(msgspec.Struct):
    name: str = ""


class _Status(msgspec.Struct, rename="camel"):
    conditions: tuple[Condition, ...] | None = None
    node_ref: _NodeRef | None = None


class Brief(msgspec.Struct, rename="camel"):
    """The facts of an object that a plan follows while time passes."""

    kind: str = ""
    metadata: _Metadata = msgspec.field(default_factory=_Metadata)
    status: _Status | None = None

    @property
    def name(self) -> str:
        """`Kind/namespace/name`."""
        return name_of(self.kind, self.metadata.namespace, self.metadata.name)

    @property
    def owner(self) -> str:
        """`Kind/namespace/name` of the controlling owner, or of the only one; empty if there is none."""
        owners = self.metadata.owner_references or ()
        found = next((o for o in owners if o.controller), owners[0] if len(owners) == 1 else None)
        return name_of(found.kind, self.metadata.namespace, found.name) if found is not None else ""

    def condition(self, type_: str) -> Condition | None:
        """Return a condition, if there is one."""
        return next((c for c in (self.status.conditions or ()) if c.type == type_), None) if self.status is not None else None

    def is_true(self, type_: str) -> bool:
        """Return whether a condition is True."""
        found = self.condition(type_)
        return found is not None and found.status == "True"


_STAND_INS: Final = (
    b'{"apiVersion":"infrastructure.cluster.x-k8s.io/v1beta2","kind":"DevMachine"',
    b'{"apiVersion":"infrastructure.cluster.x-k8s.io/v1beta2","kind":"DevCluster"',
)
_decode: Final = msgspec.json.Decoder(Brief, strict=False).decode


def brief(raw: bytes) -> Brief | None:
    """Return the facts of an object, None if it has another shape."""
    try:
        return _decode(raw)
    except msgspec.ValidationError:
        return None


@dataclass(frozen=True, slots=True)
class Step:
    """One event. `at`: virtual seconds since the change. `old` and `new` are the object as JSON."""

    at: float
    verb: str
    """create, change, delete (requested) or gone."""
    name: str
    uid: str
    owner: str
    old: bytes = b""
    new: bytes = b""


@dataclass(frozen=True, slots=True)
class MachineSeen:
    """The state of a Machine at a moment."""

    at: float
    name: str
    uid: str
    owner: str
    available: bool
    deleting: bool
    gone: bool = False


@dataclass(slots=True)
class Told:
    """A message of a condition, from its first to its last moment; `until` None: it still held at the end."""

    object: str
    type: str
    status: str
    reason: str
    message: str
    since: float
    until: float | None = None


@dataclass(slots=True)
class Recorder:
    """Follows all tables of a server. `seconds` returns the virtual time."""

    seconds: Callable[[], float]
    origin: float = 0.0
    moves: int = 0
    """How many writes of objects there were, other than Events."""
    last: float = 0.0
    """When the last of them was."""
    steps: list[Step] = field(default_factory=list)
    machines: list[MachineSeen] = field(default_factory=list)
    told: list[Told] = field(default_factory=list)
    outdated: dict[str, str] = field(default_factory=dict)
    """By the uid of a Machine: why it is not up to date."""
    open: dict[tuple[str, str], Told] = field(default_factory=dict)
    current: dict[str, Brief] = field(default_factory=dict)
    """By name: the last state of every object that has conditions or is being deleted."""
    _states: dict[str, tuple[bool, bool]] = field(default_factory=dict)

    def follow(self, server: ApiServer) -> None:
        """Record the present Machines, and everything that happens in a server from now on."""
        for resource in server.registry:
            if resource.kind not in QUIET_KINDS and resource.storage_key:
                server.store.table(resource.storage_key)
        for table in server.store.tables.values():
            if table.name == "events" or table.name.startswith(("leases.", "events.")):
                continue
            for entry in table.objects.values():
                self._see(entry.raw, 0.0)
            table.hooks.append(_Ear(self._hear))

    def follow_workload(self, server: ApiServer) -> None:
        """Count the writes of Nodes and Pods of a workload cluster as movement."""
        for name in ("nodes", "pods"):
            server.store.table(name).hooks.append(_Ear(self._moved))

    def begin(self) -> None:
        """Let the time of the steps count from now."""
        self.origin = self.last = self.seconds()

    def forget_past(self) -> None:
        """Keep only the present state: what happened so far is not part of the plan."""
        self.steps.clear()
        self.told.clear()
        latest = {one.uid: one for one in self.machines if not one.gone}
        gone = {one.uid for one in self.machines if one.gone}
        self.machines = [replace(one, at=0.0) for uid, one in latest.items() if uid not in gone]

    @property
    def elapsed(self) -> float:
        """The time from `begin` to the last movement."""
        return max(0.0, self.last - self.origin)

    def _moved(self, event: Event) -> None:
        self.moves += 1
        self.last = self.seconds()

    def _hear(self, event: Event) -> None:
        if event.entry.raw.startswith(_STAND_INS) and is_stand_in(msgspec.json.decode(event.entry.raw)):
            return
        self._moved(event)
        at = self.last - self.origin
        new = brief(event.entry.raw)
        if new is None:
            return
        if event.type == "DELETED":
            self._add(Step(at, "gone", new.name, new.metadata.uid, new.owner, event.entry.raw))
            self._forget(new, at)
            return
        old = brief(event.old.raw) if event.old is not None else None
        if old is None or old.metadata.uid != new.metadata.uid:
            self._add(Step(at, "create", new.name, new.metadata.uid, new.owner, new=event.entry.raw))
        elif old.metadata.deletion_timestamp is None and new.metadata.deletion_timestamp is not None:
            self._add(Step(at, "delete", new.name, new.metadata.uid, new.owner, new=event.entry.raw))
        elif old.metadata.generation != new.metadata.generation and event.old is not None:
            self._add(Step(at, "change", new.name, new.metadata.uid, new.owner, event.old.raw, event.entry.raw))
        self._see(event.entry.raw, at, new)

    def _add(self, step: Step) -> None:
        if len(self.steps) < MOST_STEPS:
            self.steps.append(step)

    def _see(self, raw: bytes, at: float, decoded: Brief | None = None) -> None:
        obj = decoded or brief(raw)
        if obj is None:
            return
        if obj.metadata.deletion_timestamp is not None or (obj.status is not None and obj.status.conditions):
            self.current[obj.name] = obj
        if obj.status is None or not obj.status.conditions:
            return
        if obj.kind == "Machine":
            self._see_machine(obj, at)
        for condition in obj.status.conditions:
            if condition.type in _TOLD:
                self._tell(obj, condition, at)

    def _see_machine(self, obj: Brief, at: float) -> None:
        state = (obj.is_true("Available"), obj.metadata.deletion_timestamp is not None)
        if self._states.get(obj.metadata.uid) != state:
            self._states[obj.metadata.uid] = state
            self.machines.append(MachineSeen(at, obj.name, obj.metadata.uid, obj.owner, *state))
        why = obj.condition("UpToDate")
        if why is not None and why.status == "False":
            self.outdated[obj.metadata.uid] = why.message

    def _tell(self, obj: Brief, condition: Condition, at: float) -> None:
        key = (obj.name, condition.type)
        before = self.open.get(key)
        same = before is not None and (before.status, before.reason, before.message) == (
            condition.status,
            condition.reason,
            condition.message,
        )
        if same:
            return
        if before is not None:
            before.until = at
        made = Told(obj.name, condition.type, condition.status, condition.reason, condition.message, at)
        self.open[key] = made
        if condition.message and len(self.told) < MOST_STEPS:
            self.told.append(made)

    def _forget(self, obj: Brief, at: float) -> None:
        self.current.pop(obj.name, None)
        if obj.kind == "Machine":
            self._states.pop(obj.metadata.uid, None)
            self.machines.append(MachineSeen(at, obj.name, obj.metadata.uid, obj.owner, available=False, deleting=True, gone=True))
        for type_ in _TOLD:
            told = self.open.pop((obj.name, type_), None)
            if told is not None:
                told.until = at


class _Ear:
    def __init__(self, hear: Callable[[Event], None]) -> None:
        self.offer = hear
