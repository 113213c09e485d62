"""Leader election on a Lease: of several processes, at most one leads.

As client-go does it: the holder renews well before the lease runs out; others take over when they have seen no renewal for the
lease's duration on their own clock (clocks are never compared); every write is locked by resourceVersion, so that of two
candidates one loses. A holder that cannot renew before the deadline stops leading before anyone else can begin: it ends, and
its fence is closed by then, so that what it was about to write does not leave even if it had stood still for a minute.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from datetime import UTC, datetime
from random import Random
from typing import Any

from clusterwright.api.meta import GroupVersionKind, Json, ObjectKey, Unstructured
from clusterwright.runtime.client import Client
from clusterwright.runtime.clock import Clock
from clusterwright.runtime.errors import ApiError, NotFound
from clusterwright.runtime.fence import Fence
from clusterwright.runtime.logging import get_logger

LEASE = GroupVersionKind("coordination.k8s.io", "v1", "Lease")

_log = get_logger("leases")


class LeadershipLost(Exception):
    """The lease could not be renewed in time: stop, somebody else may lead now."""


def new_identity(host: str, process: int, random: Random) -> str:
    """Who a candidate is: readable, and never the same twice. Containers and cloned machines share host names and process ids."""
    return f"{host}-{process}-{random.getrandbits(64):016x}"


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaseTimes:
    """Seconds. duration > renew_deadline > retry."""

    duration: float = 15.0
    renew_deadline: float = 10.0
    retry: float = 2.0


class LeaderElector:
    """One candidate. `acquire` until it leads, then `hold` for as long as it does, then `release`."""

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
        self._client = client
        self._clock = clock
        self._random = random
        self._key = key
        self._identity = identity
        self._times = times or LeaseTimes()
        if not self._times.duration > self._times.renew_deadline > self._times.retry > 0:
            raise ValueError("lease times must satisfy duration > renew deadline > retry > 0")
        if not identity:
            raise ValueError("a candidate needs an identity that nobody else has")
        self._fence = fence or Fence(clock)
        self._fence.close()
        self._renewed = 0.0
        self._observed: tuple[Any, ...] = ()
        self._observed_at = 0.0
        self._lease: Unstructured | None = None
        self.is_leader = False

    async def acquire(self) -> None:
        """Return when this candidate leads; whom it waits for is told once."""
        waits_for = ""
        while True:
            try:
                if await self._try():
                    _log.info("Leading", lease=str(self._key), identity=self._identity)
                    return
                holder = str((self._lease and self._lease.at("spec", "holderIdentity")) or "")
                if holder and holder != waits_for:
                    # a warning: somebody looks at this process and sees it do nothing
                    _log.warning("Waiting for the lease", lease=str(self._key), held_by=holder, identity=self._identity)
                    waits_for = holder
            except ApiError as error:
                _log.warning("Lease could not be acquired", lease=str(self._key), error=str(error))
            await self._clock.sleep(self._times.retry * (1 + 0.2 * self._random.random()))

    async def hold(self) -> None:
        """Renew until that fails for too long; then raise LeadershipLost."""
        while True:
            left = self._renewed + self._times.renew_deadline - self._clock.monotonic()
            await self._clock.sleep(min(self._times.retry, max(left, 0.0)))
            left = self._renewed + self._times.renew_deadline - self._clock.monotonic()
            if left <= 0:
                self.is_leader = False
                self._fence.close()
                raise LeadershipLost(f"lease {self._key} could not be renewed within {self._times.renew_deadline:g} s")
            try:
                async with asyncio.timeout(left):
                    if not await self._try():
                        raise LeadershipLost(f"lease {self._key} is held by another")
            except (ApiError, TimeoutError) as error:
                _log.warning("Lease could not be renewed", lease=str(self._key), error=str(error))

    async def release(self) -> None:
        """Let go, so that the next one need not wait for the lease to run out. Failures are harmless."""
        if not self.is_leader or self._lease is None:
            return
        self.is_leader = False
        self._fence.close()
        try:
            await self._write(holder="", duration=1, transitions=self._lease.at("spec", "leaseTransitions") or 0)
        except ApiError as error:
            _log.warning("Lease could not be released", lease=str(self._key), error=str(error))

    async def _try(self) -> bool:
        """One attempt to take or renew the lease; whether this candidate holds it now."""
        if self.is_leader and self._lease is not None:
            # fast path: we hold what we last wrote; a conflict says otherwise
            try:
                await self._take(transitions=self._lease.at("spec", "leaseTransitions") or 0)
                return True
            except ApiError as error:
                if error.code != 409:
                    raise
        try:
            self._lease = await self._client.live.get(LEASE, self._key)
        except NotFound:
            self._lease = None
            await self._take(transitions=0)
            return True
        holder = self._lease.at("spec", "holderIdentity") or ""
        record = (holder, self._lease.at("spec", "renewTime"), self._lease.at("metadata", "resourceVersion"))
        now = self._clock.monotonic()
        if record != self._observed:
            self._observed, self._observed_at = record, now
        duration = float(self._lease.at("spec", "leaseDurationSeconds") or self._times.duration)
        if holder and holder != self._identity and now < self._observed_at + duration:
            self.is_leader = False
            self._fence.close()
            return False
        transitions = (self._lease.at("spec", "leaseTransitions") or 0) + (holder != self._identity)
        await self._take(transitions=transitions)
        return True

    async def _take(self, *, transitions: int) -> None:
        # the answer counts from when it was asked for: the lease is not younger than that
        asked = self._clock.monotonic()
        await self._write(holder=self._identity, duration=self._times.duration, transitions=transitions)
        self.is_leader = True
        self._renewed = asked
        self._fence.open_until(asked + self._times.renew_deadline)

    async def _write(self, *, holder: str, duration: float, transitions: int) -> None:
        now = micro_time(self._clock.now())
        old = self._lease
        acquired = old.at("spec", "acquireTime") if old is not None and old.at("spec", "holderIdentity") == holder else now
        lease: Json = {
            "apiVersion": LEASE.api_version,
            "kind": LEASE.kind,
            "metadata": dict(old.at("metadata") or {}) if old is not None else {"namespace": self._key.namespace, "name": self._key.name},
            "spec": {
                "holderIdentity": holder,
                "leaseDurationSeconds": max(1, round(duration)),
                "acquireTime": acquired,
                "renewTime": now,
                "leaseTransitions": transitions,
            },
        }
        self._lease = await (self._client.create(lease) if old is None else self._client.update(lease))


def micro_time(at: datetime) -> str:
    """As Leases write times."""
    return at.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
