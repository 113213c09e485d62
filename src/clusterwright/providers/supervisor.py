"""All providers of a plane: one keeper for each record in the data directory. A change of a Provider makes it look at its record."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from clusterwright.api.meta import ObjectKey, ObjectMeta
from clusterwright.api.providers import Provider
from clusterwright.api.wellknown import CLUSTERCTL_CORE_LABEL, CLUSTERCTL_LABEL, PROVIDER_LABEL
from clusterwright.providers.installing import Installing, Ours
from clusterwright.providers.keeper import Keeper
from clusterwright.providers.placing import Placing, Server
from clusterwright.providers.records import BadRecord, Place, Record, place, places
from clusterwright.providers.status import Report, concluded
from clusterwright.runtime.clock import Clock
from clusterwright.runtime.errors import AlreadyExists, ApiError, NotFound
from clusterwright.runtime.logging import get_logger
from clusterwright.runtime.manager import Manager
from clusterwright.runtime.models import to_json
from clusterwright.runtime.reconcile import Result
from clusterwright.runtime.rest import RestClient

log = get_logger(__name__)
RECORD_ANNOTATION = "providers.clusterwright.dev/record"
"""The digest of a new record, on the Provider: its change makes the plane read the record. It starts nothing by itself."""


@dataclass(frozen=True, slots=True)
class _Kept:
    """A provider that is run: by which record, and its task."""

    record: Record
    mark: tuple[int, int, int]
    task: asyncio.Task[None]


class Supervisor:
    """Runs the providers that the data directory records."""

    def __init__(self, data_dir: Path, client: RestClient, clock: Clock, server: Server, ours: Ours) -> None:
        self._data_dir, self._client, self._clock, self._server, self._ours = data_dir, client, clock, server, ours
        self._keepers: dict[str, _Kept] = {}
        self._turns: dict[str, asyncio.Lock] = {}
        self._is_running = False

    async def run(self) -> None:
        """Run all providers until cancelled; then end them side by side."""
        self._is_running = True
        try:
            for one in places(self._data_dir):
                await self.look(one.name)
            await asyncio.Event().wait()
        finally:
            self._is_running = False
            await asyncio.gather(*(self._end(name) for name in list(self._keepers)), return_exceptions=True)

    async def reconcile(self, key: ObjectKey) -> Result:
        """Look at the record of a Provider."""
        with suppress(BadRecord):  # no record has such a name
            await self.look(place(self._data_dir, key.name).name)
        return Result.await_change()

    async def look(self, name: str) -> None:
        """Act on the record of a provider: start it, restart it because the record is new, or end it because there is none."""
        one = place(self._data_dir, name)
        if not self._is_running or (name not in self._keepers and not one.is_recorded):
            return  # nothing is kept of names that tenants choose
        async with self._turns.setdefault(name, asyncio.Lock()):
            current = self._keepers.get(name)
            try:
                mark = one.mark()
                if current is not None and current.mark == mark and not current.task.done():
                    await self._restored(current.record)
                    return
                record, digest = await asyncio.to_thread(one.read)
            except FileNotFoundError:
                await self._end(name)
                return
            except (BadRecord, OSError) as error:
                log.error("A provider is not run", provider=name, error=str(error))
                await self._end(name)
                await self._complain(name, str(error))
                return
            await self._end(name)
            if self._is_running:
                task = self._begun(one, record, digest)
                self._keepers[name] = _Kept(record, mark, task)

    def _begun(self, one: Place, record: Record, digest: str) -> asyncio.Task[None]:
        keeper = Keeper(
            one,
            record,
            digest,
            Placing(one.folder, self._client, self._clock, self._server),
            Installing(one.folder, self._client, self._ours),
            self._clock,
            self._say,
        )
        return asyncio.create_task(self._kept(keeper, record), name=f"provider {one.name}")

    async def _kept(self, keeper: Keeper, record: Record) -> None:
        try:
            await keeper.run()
        except Exception as error:
            log.error("A provider is given up", cause=error, provider=record.name)
            return
        if record.removal is not None:
            with suppress(NotFound, ApiError):
                await self._client.delete(Provider, ObjectKey(record.namespace, record.name))

    async def _end(self, name: str) -> None:
        kept = self._keepers.pop(name, None)
        if kept is not None:
            kept.task.cancel()
            await asyncio.wait([kept.task])

    async def _complain(self, name: str, problem: str) -> None:
        """Say in the status of every Provider of a name why no process runs for it: the record would say which one it is."""
        with suppress(ApiError):
            for found in await self._client.list(Provider):
                if found.metadata.name == name and found.status.record:
                    await self._write(found, Report(reason="NotStarted", message=problem))

    async def _restored(self, record: Record) -> None:
        """Create a Provider again that somebody deleted: the record is what counts."""
        if await self._client.find(Provider, ObjectKey(record.namespace, record.name)) is None:
            await self._create(record)

    async def _say(self, record: Record, report: Report) -> None:
        """Write the status of a provider. A failure is only logged: the next report says more."""
        key = ObjectKey(record.namespace, record.name)
        try:
            found = await self._client.find(Provider, key)
            if found is None:
                await self._create(record)
                found = await self._client.find(Provider, key)
            if found is not None:
                await self._write(found, report)
        except ApiError as error:
            log.warning("The state of a provider could not be written", provider=record.name, error=str(error))

    async def _write(self, found: Provider, report: Report) -> None:
        status = concluded(found.status, report, generation=found.metadata.generation, now=self._clock.now())
        if status != found.status:
            whole = dict.fromkeys(("nextStart", "lastExit")) | to_json(Provider(status=status))["status"]
            await self._client.patch(Provider, found.key, {"status": whole}, subresource="status")

    async def _create(self, record: Record) -> None:
        labels = {CLUSTERCTL_LABEL: "", CLUSTERCTL_CORE_LABEL: "inventory", PROVIDER_LABEL: record.name}
        with suppress(AlreadyExists, NotFound):  # its namespace is installed with the other objects
            await self._client.create(
                Provider(
                    metadata=ObjectMeta(name=record.name, namespace=record.namespace, labels=labels),
                    provider_name=record.provider,
                    type=record.type,
                    version=record.version,
                )
            )


def add(manager: Manager, data_dir: Path, server: Server, ours: Ours) -> Supervisor:
    """Add the supervision of providers to a manager."""
    supervisor = Supervisor(data_dir, manager.rest, manager.clock, server, ours)
    manager.add_controller("providers", Provider, lambda _: supervisor, concurrency=10, everywhere=True)
    manager.add_part("providers", supervisor.run)
    return supervisor
