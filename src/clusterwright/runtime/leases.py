"""Leases: a held lease is renewed until that fails for too long, and at most one of several candidates leads.

As in client-go, the holder renews well before the lease expires; others take over when they have seen no renewal for the lease's duration
on their own clock (clocks are never compared); every write has a resourceVersion, so that one of two candidates loses. A holder that cannot
renew before the deadline stops before another can start: its fence is closed by then, so that pending writes do not leave even if it had
stood still for a minute.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from random import Random
from typing import Any

from clusterwright.api.meta import GroupVersionKind, Json, ObjectKey, Unstructured
from clusterwright.runtime.client import Client
from clusterwright.runtime.clock import Clock
from clusterwright.runtime.errors import ApiError
from clusterwright.runtime.fence import Fence
from clusterwright.runtime.logging import get_logger

LEASE = GroupVersionKind("coordination.k8s.io", "v1", "Lease")

_log = get_logger("leases")


class LeadershipLost(Exception):
    """The lease could not be renewed in time, or is no longer ours: stop, because another process may be active now."""


def new_identity(host: str, process: int, random: Random) -> str:
    """Return a readable, unique identity of a candidate. Containers and cloned machines share host names and process ids."""
    return f"{host}-{process}-{random.getrandbits(64):016x}"


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaseTimes:
    """Times in seconds, with duration > renew_deadline > retry."""

    duration: float = 15.0
    renew_deadline: float = 10.0
    retry: float = 2.0


class HeldLease:
    """One Lease and the state that this process knows. The fence is open exactly as long as the Lease is certainly held.

    `take` creates or takes it; `keep` renews it. Run one of them at a time, on any event loop; the fence may be checked on another.
    """

    def __init__(
        self,
        client: Client,
        clock: Clock,
        key: ObjectKey,
        identity: str,
        times: LeaseTimes,
        fence: Fence,
        labels: Mapping[str, str] | None = None,
    ) -> None:
        if not times.duration > times.renew_deadline > times.retry > 0:
            raise ValueError("lease times must satisfy duration > renew deadline > retry > 0")
        if not identity:
            raise ValueError("a candidate needs a unique identity")
        self.client = client
        self.key = key
        self.identity = identity
        self.times = times
        self.seen: Unstructured | None = None
        """The Lease as it was last read or written."""
        self.is_ours = False
        self._clock = clock
        self._fence = fence
        self._labels = dict(labels or {})
        self._asked = self._renewed = 0.0
        self._fence.close()

    @property
    def holder(self) -> str:
        """The last known holder."""
        return str((self.seen is not None and self.seen.at("spec", "holderIdentity")) or "")

    async def read(self) -> None:
        """Read the Lease; return None if it does not exist."""
        self.seen = await self.client.live.find(LEASE, self.key)

    async def take(self) -> None:
        """Write our identity over the state that was read; raises Conflict if that has changed."""
        # the answer counts from when it was asked for: the lease is not younger than that
        asked = self._asked = self._clock.monotonic()
        await self._write(self.identity, self.times.duration)
        self.is_ours = True
        self._renewed = asked
        self._fence.open_until(asked + self.times.renew_deadline)

    def give_up(self) -> None:
        """Treat the Lease as lost, whatever the API server has: write nothing from now on."""
        self.is_ours = False
        self._fence.close()

    async def hand_over(self) -> None:
        """Remove the holder on the API server."""
        await self._write("", 1.0)

    async def keep(self) -> None:
        """Renew until the Lease is lost, or renewals fail for too long; then raise LeadershipLost, with the fence closed."""
        try:
            while True:
                # from one question to the next: of a slow answer nothing more is to be waited for
                due = self._asked + self.times.retry - self._clock.monotonic()
                await self._clock.sleep(max(0.0, min(due, self._left)))
                left = self._left
                if left <= 0:
                    raise LeadershipLost(f"lease {self.key} could not be renewed within {self.times.renew_deadline:g} s")
                try:
                    async with asyncio.timeout(left):
                        await self._renew()
                except (ApiError, TimeoutError) as error:
                    _log.warning("Lease could not be renewed", lease=str(self.key), error=str(error))
        except LeadershipLost:
            self.give_up()
            raise

    @property
    def _left(self) -> float:
        return self._renewed + self.times.renew_deadline - self._clock.monotonic()

    async def _renew(self) -> None:
        try:
            await self.take()
            return
        except ApiError as error:
            # an answer of ours was lost, somebody annotated it, it is another's, or it is gone. For the last, API servers say that they
            # do not find it, that it is another one, or (as a PUT may make a Lease, but not with a resourceVersion) that something broke
            if error.code not in {404, 409, 500}:
                raise
        await self.read()
        if self.seen is None:
            raise LeadershipLost(f"lease {self.key} was deleted")
        if self.holder != self.identity:
            raise LeadershipLost(f"lease {self.key} is held by another")
        await self.take()

    async def _write(self, holder: str, duration: float) -> None:
        now, old = micro_time(self._clock.now()), self.seen
        before = self.holder
        transitions = (old.at("spec", "leaseTransitions") or 0) + (holder not in {"", before}) if old is not None else 0
        made = {"namespace": self.key.namespace, "name": self.key.name, **({"labels": self._labels} if self._labels else {})}
        lease: Json = {
            "apiVersion": LEASE.api_version,
            "kind": LEASE.kind,
            "metadata": made if old is None else dict(old.at("metadata") or {}),
            "spec": {
                "holderIdentity": holder,
                "leaseDurationSeconds": max(1, round(duration)),
                "acquireTime": old.at("spec", "acquireTime") if old is not None and before == holder else now,
                "renewTime": now,
                "leaseTransitions": transitions,
            },
        }
        self.seen = await (self.client.create(lease) if old is None else self.client.update(lease))


class LeaderElector:
    """One candidate. `acquire` until it leads, then `hold` as long as it does, then `release`."""

    def __init__(
        self,
        client: Client,
        clock: Clock,
        random: Random,
        key: ObjectKey,
        identity: str,
        times: LeaseTimes | None = None,
        fence: Fence | None = None,
    ) -> None:
        self._clock = clock
        self._random = random
        self._lease = HeldLease(client, clock, key, identity, times or LeaseTimes(), fence or Fence(clock))
        self._observed: tuple[Any, ...] = ()
        self._observed_at = 0.0

    @property
    def is_leader(self) -> bool:
        """Whether this candidate leads by the last known state; the fence decides whether it may write."""
        return self._lease.is_ours

    async def acquire(self) -> None:
        """Return when this candidate leads; the holder that it waits for is logged once."""
        waits_for = ""
        lease = self._lease
        while True:
            try:
                await lease.read()
                if self._is_free():
                    await lease.take()
                    _log.info("Leading", lease=str(lease.key), identity=lease.identity)
                    return
                if lease.holder != waits_for:
                    # a warning: somebody looks at this process and sees it do nothing
                    waits_for = lease.holder
                    _log.warning("Waiting for the lease", lease=str(lease.key), held_by=waits_for, identity=lease.identity)
            except ApiError as error:
                _log.warning("Lease could not be acquired", lease=str(lease.key), error=str(error))
            await self._clock.sleep(lease.times.retry * (1 + 0.2 * self._random.random()))

    async def hold(self) -> None:
        """Renew until that fails for too long; then raise LeadershipLost."""
        await self._lease.keep()

    async def release(self) -> None:
        """Release the Lease, so that the next candidate need not wait for its expiry. Failures are harmless. `hold` must have ended."""
        if not self._lease.is_ours:
            return
        self._lease.give_up()
        try:
            await self._lease.hand_over()
        except ApiError as error:
            _log.warning("Lease could not be released", lease=str(self._lease.key), error=str(error))

    def _is_free(self) -> bool:
        """Return whether the Lease, as just read, may be taken: without holder, or without renewal for its whole duration."""
        seen, holder = self._lease.seen, self._lease.holder
        if seen is None:
            return True
        record = (holder, seen.at("spec", "renewTime"), seen.at("metadata", "resourceVersion"))
        now = self._clock.monotonic()
        if record != self._observed:
            self._observed, self._observed_at = record, now
        duration = float(seen.at("spec", "leaseDurationSeconds") or self._lease.times.duration)
        return holder in {"", self._lease.identity} or now >= self._observed_at + duration


def micro_time(at: datetime) -> str:
    """Return a time in the format of Leases."""
    return at.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
