"""The states of the objects of a run, from one watch of their kind."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from types import TracebackType

from clusterwright.api.meta import Json
from clusterwright.api.scheme import Resource
from clusterwright.conformance.evidence import State, Subject
from clusterwright.runtime.following import states
from clusterwright.runtime.rest import RestClient


def now() -> float:
    """Return the event loop's time."""
    return asyncio.get_running_loop().time()


class Recorder:
    """Records every state of the subjects while its context is open."""

    def __init__(self, client: RestClient, resource: Resource, namespace: str) -> None:
        self._client, self._path = client, resource.path(namespace)
        self._subjects: dict[str, Subject] = {}
        self._changed = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    def add(self, subject: Subject) -> Subject:
        """Record this object, too."""
        self._subjects[subject.name] = subject
        return subject

    async def __aenter__(self) -> Recorder:
        """Begin."""
        self._task = asyncio.create_task(self._record())
        self._task.add_done_callback(lambda _: self._changed.set())
        return self

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        """End."""
        assert self._task is not None
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)

    async def _record(self) -> None:
        async for present in states(self._client, self._path):
            found = {name: obj for (_, name), obj in present.items()}
            for subject in self._subjects.values():
                self._see(subject, found.get(subject.name))

    def _see(self, subject: Subject, obj: Json | None) -> None:
        version = obj and obj["metadata"]["resourceVersion"]
        last = subject.last
        if (last and last["metadata"]["resourceVersion"]) != version and (obj is not None or subject.states):
            subject.states.append(State(now(), obj))
            self._changed.set()

    async def until(self, holds: Callable[[], bool], within: float) -> bool:
        """Wait until a predicate of the subjects holds; return whether it does in time. Raises what the watch raises."""
        deadline = now() + within
        while not holds():
            assert self._task is not None
            if self._task.done():
                self._task.result()
            left = deadline - now()
            if left <= 0:
                return False
            self._changed.clear()
            try:
                await asyncio.wait_for(self._changed.wait(), left)
            except TimeoutError:
                return holds()
        return True
