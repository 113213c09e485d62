"""Run one provider: install it, start its process, watch it, start it again, and end it.

Everything that fails is reported in the status of the Provider and tried again after a pause: nothing that a provider does ends the plane.
"""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from clusterwright.providers import probing
from clusterwright.providers.deployment import Probe
from clusterwright.providers.installing import Installing, KindsTaken
from clusterwright.providers.output import Output
from clusterwright.providers.placing import NotPlaced, Placing, Start
from clusterwright.providers.process import NotStarted, Process, end_leftover
from clusterwright.providers.records import Place, Record
from clusterwright.providers.status import STEADY, Reason, Report, pause
from clusterwright.runtime.clock import Clock
from clusterwright.runtime.errors import ApiError
from clusterwright.runtime.failures import told
from clusterwright.runtime.logging import get_logger

log = get_logger(__name__)
_SETTLED: Final = 3.0
"""Seconds that a process without probes must run to count as running."""
_CERTIFICATES: Final = 3600.0
"""Seconds between two looks at the serving certificate."""

Say = Callable[[Record, Report], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class _Failed(Exception):
    """The provider does not run; `reason` and `message` are reported."""

    reason: Reason
    message: str
    last_exit: str = ""


class Keeper:
    """Runs the provider of one record, until it is cancelled. `say` publishes a report."""

    def __init__(self, place: Place, record: Record, digest: str, placing: Placing, installing: Installing, clock: Clock, say: Say) -> None:
        self.digest = digest
        self._place, self._record, self._placing, self._installing = place, record, placing, installing
        self._clock, self._say = clock, say
        self._restarts = 0
        self._failures = 0
        self._last_exit = ""

    async def run(self) -> None:
        """Run the provider until cancelled, or until it is removed."""
        await end_leftover(self._place.folder)
        if self._record.removal is not None:
            await self._removed()
            return
        while True:
            begin = self._clock.monotonic()
            try:
                await self._once()
            except _Failed as failure:
                failed = failure
            except Exception as error:
                log.error("A provider could not be run", cause=error, provider=self._place.name)
                failed = _Failed("NotStarted", told(error))
            if self._clock.monotonic() - begin > STEADY:
                self._failures = 0
            await self._wait(failed)
            self._restarts += 1 if failed.reason in {"Crashed", "Unresponsive"} else 0

    async def _wait(self, failed: _Failed) -> None:
        seconds = pause(self._failures)
        self._failures += 1
        self._last_exit = failed.last_exit or self._last_exit
        log.warning("A provider does not run", provider=self._place.name, reason=failed.reason, again_in=f"{seconds:.0f} s")
        await self._report(failed.reason, failed.message, next_start=self._clock.now() + timedelta(seconds=seconds))
        await self._clock.sleep(seconds)

    async def _report(self, reason: Reason, message: str = "", next_start: datetime | None = None) -> None:
        report = Report(
            reason=reason,
            message=message,
            restarts=self._restarts,
            last_exit=self._last_exit,
            next_start=next_start,
            record=self.digest,
            notes=self._record.notes,
        )
        await self._say(self._record, report)

    async def _once(self) -> None:
        """Install the provider and run its process once; raises _Failed when it ends."""
        port = self._placing.webhook_port(self._record)
        try:
            certificate = await self._placing.certificate()
            await self._installing.install(self._record, self.digest, port, certificate.bundle)
            due = await self._placing.token(self._record)
            start = await self._placing.prepare(self._record, port)
        except KindsTaken as error:
            raise _Failed("KindsTaken", str(error)) from None
        except (ApiError, OSError) as error:
            raise _Failed("NotInstalled", told(error)) from None
        except NotPlaced as error:
            raise _Failed("NotStarted", str(error)) from None
        output = Output(self._place.log, self._clock.now)
        try:
            process = await Process.start(start.command, start.env, self._place.folder, output, self._clock)
        except NotStarted as error:
            raise _Failed("NotStarted", str(error)) from None
        await self._report("Starting")
        try:
            await self._watched(process, start, due, port)
        finally:
            await asyncio.shield(process.stop(self._record.program.grace))

    async def _watched(self, process: Process, start: Start, due: datetime, port: int) -> None:
        """Watch a process until it ends or does not answer any more; raises _Failed."""
        tasks = {
            asyncio.create_task(process.ended(), name="end"),
            asyncio.create_task(self._probed(start), name="probes"),
            asyncio.create_task(self._renewed(due, port), name="credentials"),
        }
        try:
            done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
        ended = next((task for task in done if task.get_name() == "end"), None)
        if ended is not None:
            how = ended.result() or ""
            last = process.last_output
            raise _Failed("Crashed", f"the process ended: {how}" + (f"; its last output:\n{last}" if last else ""), how)
        problem = next(iter(done)).result() or ""
        raise _Failed("Unresponsive", f"the process was ended, because it does not answer: {problem}", problem)

    async def _probed(self, start: Start) -> str:
        """Report readiness, and return why the process does not answer any more. Without probes, never return."""
        ready, live = start.readiness, start.liveness
        if ready is None:
            await self._clock.sleep(_SETTLED)
            await self._report("Running")
        if live is None and ready is None:
            await asyncio.Event().wait()
        begin, failures, said = self._clock.monotonic(), 0, "Running" if ready is None else "Starting"
        while True:
            if ready is not None:
                problem = await probing.problem(ready)
                now: Reason = "Running" if not problem else "Starting" if said == "Starting" else "NotReady"
                if now != said:
                    await self._report(now, problem)
                    said = now
            if live is not None and self._clock.monotonic() - begin >= live.initial_delay:
                problem = await probing.problem(live)
                failures = failures + 1 if problem else 0
                if failures >= live.failures:
                    return problem
            await self._clock.sleep(_interval(ready, live, is_starting=said == "Starting"))

    async def _renewed(self, due: datetime, port: int) -> str:
        """Renew token and certificate whenever they are due."""
        while True:
            left = (due - self._clock.now()).total_seconds()
            await self._clock.sleep(min(max(left, 1.0), _CERTIFICATES))
            try:
                if self._clock.now() >= due:
                    due = await self._placing.token(self._record)
                certificate = await self._placing.certificate()
                if certificate.is_new:
                    await self._installing.install(self._record, self.digest, port, certificate.bundle)
            except (ApiError, OSError, KindsTaken) as error:
                log.warning("Credentials of a provider could not be renewed", provider=self._place.name, error=told(error))
                await self._clock.sleep(30.0)

    async def _removed(self) -> None:
        """Delete the provider's objects and its folder."""
        while True:
            try:
                await self._report("Removing")
                await self._installing.disconnect(self._record)
                await self._installing.remove(self._record)
                await asyncio.to_thread(shutil.rmtree, self._place.folder)
                return
            except (ApiError, OSError) as error:
                await self._report("Removing", told(error))
                await self._clock.sleep(10.0)


def _interval(ready: Probe | None, live: Probe | None, *, is_starting: bool) -> float:
    """Return the seconds until the next probes: a process that starts is asked often."""
    periods = [probe.period for probe in (ready, live) if probe is not None]
    return 0.5 if is_starting else min(periods)
