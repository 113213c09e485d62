"""Several processes share the work: each key has one owner at a time, and moves when processes come and go.

Keys fall into a fixed number of slots. Every process (member) keeps its own Lease; one more Lease, the table, records which member holds
which slot. Rendezvous hashing over the living members decides which member should hold a slot, so that a new or lost member moves only its
share. These rules keep two members from working on one slot:

- The table changes only under its resourceVersion, and only in two ways: a holder gives up its own slot, or somebody takes one
  that is free. A slot is free when its holder gave it up, or has no Lease any more.
- A member's Lease is made once, under a name that is never used again, and is renewed by its member only. A member that has seen no
  renewal for the whole duration deletes it, on condition that it is still the version that was seen; a member whose Lease is
  gone is dead and ends. By then its own fence, which falls sooner, has kept it from writing.
- A slot is given up only when no pass is under way in it. Once a holder has begun to give it up, only another write of the
  table makes it its own again: an earlier write that is still on its way cannot take effect after that.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections import Counter
from collections.abc import Awaitable, Callable, Collection, Mapping
from dataclasses import dataclass, field
from random import Random
from typing import Final

import msgspec

from clusterwright.api.meta import GroupVersionKind, Json, ObjectKey, Unstructured
from clusterwright.api.scheme import Resource
from clusterwright.runtime.clock import Clock
from clusterwright.runtime.errors import AlreadyExists, ApiError, Conflict, NotFound
from clusterwright.runtime.fence import Fence
from clusterwright.runtime.informer import Informer
from clusterwright.runtime.lease_thread import LeasePlace
from clusterwright.runtime.leases import LEASE, HeldLease, LeaseTimes, micro_time
from clusterwright.runtime.logging import get_logger
from clusterwright.runtime.rest import RestClient
from clusterwright.runtime.watcher import Watcher

SLOTS: Final = 256
GROUP_LABEL: Final = "shards.clusterwright.dev/group"
SETTLED_LOOK: Final = 30.0
"""Seconds after which the table is read again without an event, in case the watch of members misses one."""
HOLDERS: Final = "shards.clusterwright.dev/holders"
"""The annotation of the table: a JSON object, slots by the name of their holder's Lease."""

_log = get_logger("shards")

BelongsTo = Callable[[GroupVersionKind, ObjectKey, bytes], str]
"""Returns the group of an object from its kind, key and bytes; empty: it belongs to no group yet."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ShardOptions:
    """The settings for sharing work."""

    group: ObjectKey
    """The name of the table; processes with the same name share the work."""
    belongs_to: BelongsTo
    identity: str
    """The readable identity in the Lease."""
    times: LeaseTimes = field(default_factory=LeaseTimes)


def slot_of(name: str) -> int:
    """Return the slot of a group."""
    return int.from_bytes(hashlib.blake2b(name.encode(), digest_size=8).digest(), "big") % SLOTS


def preferred(slot: int, members: Collection[str]) -> str:
    """Return the member that should hold the slot."""
    return max(members, key=lambda member: hashlib.blake2b(f"{member}/{slot}".encode(), digest_size=8).digest())


class Shards:
    """One member. `join`, then `run`, then `depart`; meanwhile passes call `enter` and `leave`."""

    def __init__(self, client: RestClient, clock: Clock, random: Random, options: ShardOptions, fence: Fence, keeping: LeasePlace) -> None:
        self._client = client
        self._clock = clock
        self._random = random
        self._options = options
        self._keeping = keeping
        self.name = f"{options.group.name}-{random.getrandbits(64):016x}"
        labels = {GROUP_LABEL: options.group.name}
        self._lease = HeldLease(keeping.client, clock, self._key(self.name), options.identity, options.times, fence, labels)
        self._resource: Resource | None = None
        self.held: frozenset[int] = frozenset()
        """The slots in which passes may start."""
        self._active: Counter[int] = Counter()
        self._members = Informer(LEASE, namespace=options.group.namespace)
        self._seen: dict[str, tuple[str, float]] = {}
        self._watcher: Watcher | None = None
        self._settled_for: set[str] | None = None
        """The members for which the balance was reached."""
        self._settled_at = 0.0
        self._wake = asyncio.Event()
        self.on_gain: list[Callable[[frozenset[int]], None]] = []
        """Called with the slots that have become ours."""
        self.on_loss: list[Callable[[frozenset[int]], Awaitable[None]]] = []
        """Awaited with slots that have no running pass any more, before another member gets them."""

    # Passes.

    def slot(self, kind: GroupVersionKind, key: ObjectKey, raw: bytes) -> int | None:
        """Return the slot of an object; None: it has none."""
        name = self._options.belongs_to(kind, key, raw)
        return slot_of(name) if name else None

    def enter(self, slot: int) -> bool:
        """Return whether a pass in the slot may start; if so, `leave` must follow."""
        if slot not in self.held:
            return False
        self._active[slot] += 1
        return True

    def leave(self, slot: int) -> None:
        """Record the end of a pass in the slot."""
        self._active[slot] -= 1
        if not self._active[slot]:
            del self._active[slot]
            if slot not in self.held:
                self._wake.set()

    # Life.

    async def join(self) -> None:
        """Become a member; return when the API server has recorded it."""
        while True:
            try:
                self._resource = await self._client.resources.of(LEASE)
                await self._keeping.run(self._make_lease)
                break
            except ApiError as error:
                _log.warning("Cannot join", group=str(self._options.group), error=str(error))
            await self._clock.sleep(self._pause)
        _log.info("Joined", group=str(self._options.group), member=self.name)

    async def _make_lease(self) -> None:
        try:
            await self._lease.take()
        except AlreadyExists:  # it was made, though the answer was lost; it may be old by now
            await self._lease.read()
            await self._lease.take()

    async def run(self) -> None:
        """Maintain the Lease and the balance; raises LeadershipLost when this member may count as dead."""
        self._members.subscribe(lambda old, new, initial: self._noticed(old is None or new is None))
        assert self._resource is not None, "that has not joined"
        labels = f"{GROUP_LABEL}={self._options.group.name}"
        namespace = self._options.group.namespace
        self._watcher = Watcher(self._client, self._resource, self._members, random=self._random, namespace=namespace, labels=labels)
        async with asyncio.TaskGroup() as group:
            group.create_task(self._watcher.run(), name="members")
            group.create_task(self._keep(), name="lease")
            group.create_task(self._balance(), name="balance")

    async def depart(self) -> None:
        """Give up all slots, so that others need not wait: call this when no pass is running. Failures are harmless."""
        self.held = frozenset()
        self._lease.give_up()
        try:
            table = await self._table()
            if table is not None:
                holders = {slot: holder for slot, holder in _holders(table).items() if holder != self.name}
                await self._client.update(self._as_table(table, holders))
        except ApiError as error:
            _log.info("Slots could not be given up", error=str(error))
        try:
            await self._client.delete(LEASE, self._key(self.name))
        except ApiError as error:
            _log.info("Lease could not be given up", error=str(error))

    @property
    def _pause(self) -> float:
        return self._options.times.retry * (1 + 0.2 * self._random.random())

    def _noticed(self, matters: bool) -> None:
        if matters:
            self._wake.set()

    async def _keep(self) -> None:
        try:
            await self._keeping.run(self._lease.keep)
        finally:
            self.held = frozenset()

    def _key(self, name: str) -> ObjectKey:
        return ObjectKey(self._options.group.namespace, name)

    # The others.

    async def _living(self) -> set[str]:
        """Return the known living members; delete the Leases of those that were silent for too long."""
        now, found = self._clock.monotonic(), {self.name}
        entries = {entry.key.name: entry for entry in self._members.entries()}
        self._seen = {name: seen for name, seen in self._seen.items() if name in entries}
        for name, entry in entries.items():
            if name == self.name:
                continue
            version, since = self._seen.get(name, ("", now))
            if version != entry.resource_version:
                self._seen[name] = (entry.resource_version, now)
            elif now - since > _duration(entry.raw, self._options.times.duration) and await self._bury(name, version):
                continue
            found.add(name)
        return found

    async def _bury(self, name: str, version: str) -> bool:
        """Delete the Lease of a silent member; return whether it is gone."""
        try:
            await self._client.delete(LEASE, self._key(name), resource_version=version)
        except NotFound:
            return True
        except Conflict:
            # it was renewed: it is us who see nothing
            if self._watcher is not None:
                self._watcher.doubt()
            return False
        except ApiError as error:
            _log.warning("A member is silent, and its Lease cannot be deleted", member=name, error=str(error))
            return False
        _log.warning("A member is silent; taking over its work", member=name)
        return True

    async def _is_gone(self, name: str) -> bool:
        return await self._client.find(LEASE, self._key(name)) is None

    # The table.

    async def _balance(self) -> None:
        while True:
            woken = self._wake.is_set()
            self._wake.clear()
            if self._members.is_synced:
                try:
                    await self._look(woken)
                except (Conflict, AlreadyExists):
                    continue  # somebody else was faster: look again
                except ApiError as error:
                    _log.warning("Cannot balance slots", error=str(error))
            try:
                async with asyncio.timeout(self._pause):
                    await self._wake.wait()
            except TimeoutError:
                pass

    async def _look(self, woken: bool) -> None:
        """Check the balance. Once it is reached, read the table rarely until members change: no member has a reason to write it."""
        living, now = await self._living(), self._clock.monotonic()
        if not woken and living == self._settled_for and now < self._settled_at + SETTLED_LOOK:
            return
        self._settled_for = None
        if await self._step(living):
            self._settled_for, self._settled_at = living, now

    async def _step(self, living: set[str]) -> bool:
        """Give up and take slots; return whether nothing is left to do while the members stay the same."""
        table = await self._table()
        holders = _holders(table) if table is not None else {}
        wanted = {slot for slot in range(SLOTS) if preferred(slot, living) == self.name}
        ours = {slot for slot, holder in holders.items() if holder == self.name}
        self.held &= wanted & ours
        idle = frozenset(slot for slot in ours - wanted if not self._active[slot])
        if idle:
            for tell in self.on_loss:
                await tell(idle)
        dead = {name for name in set(holders.values()) - living if await self._is_gone(name)}
        # what is written to be ours but is not worked on, because an answer was lost, is taken like what is free
        taken = {slot for slot in wanted - self.held if holders.get(slot, self.name) in {self.name, *dead}}
        if not idle and not taken:
            return self.held == wanted and ours <= wanted
        kept = {slot: holder for slot, holder in holders.items() if slot not in idle}
        now = {**kept, **dict.fromkeys(taken, self.name)}
        if table is None:
            await self._client.create(self._as_table(None, now))
        else:
            await self._client.update(self._as_table(table, now))
        self.held |= taken
        _log.info("Slots balanced", member=self.name, held=len(self.held), gained=len(taken), given_up=len(idle), members=len(living))
        if taken:
            for gained in self.on_gain:
                gained(frozenset(taken))
        return False

    async def _table(self) -> Unstructured | None:
        found: Unstructured | None = await self._client.find(LEASE, self._options.group)
        return found

    def _as_table(self, old: Unstructured | None, holders: Mapping[int, str]) -> Json:
        slots: dict[str, list[int]] = {}
        for slot, holder in sorted(holders.items()):
            slots.setdefault(holder, []).append(slot)
        annotations = {HOLDERS: msgspec.json.encode(slots).decode()}
        if old is None:
            key = self._options.group
            metadata: Json = {"namespace": key.namespace, "name": key.name, "annotations": annotations}
        else:
            metadata = {**dict(old.at("metadata") or {}), "annotations": {**(old.at("metadata", "annotations") or {}), **annotations}}
        # the time makes every write a change: one that is still on its way must find another version
        spec = {"renewTime": micro_time(self._clock.now()), "holderIdentity": self.name}
        return {"apiVersion": LEASE.api_version, "kind": LEASE.kind, "metadata": metadata, "spec": spec}


def _holders(table: Unstructured) -> dict[int, str]:
    """Return the holder of each slot. Raises ApiError if that cannot be read: then nothing moves."""
    try:
        slots = msgspec.json.decode(table.at("metadata", "annotations", HOLDERS) or "", type=dict[str, list[int]])
    except (msgspec.DecodeError, TypeError) as error:
        raise ApiError(f"Lease {table.key}: annotation {HOLDERS} cannot be read: {error}") from None
    return {slot: holder for holder, held in slots.items() for slot in held}


class _Spec(msgspec.Struct, rename="camel"):
    lease_duration_seconds: int | None = None


class _Lease(msgspec.Struct):
    spec: _Spec = msgspec.field(default_factory=_Spec)


def _duration(raw: bytes, default: float) -> float:
    try:
        return float(msgspec.json.decode(raw, type=_Lease).spec.lease_duration_seconds or default)
    except msgspec.DecodeError:
        return default
