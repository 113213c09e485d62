"""API servers and planes for tests in any language or style: real ones, over HTTPS, each on a thread with an event loop of its own.

    with served_plane() as plane:
        subprocess.run(["my-operator"], env={"KUBECONFIG": str(plane.kubeconfig)})

`clusterwright.testing.with_plane` is faster and deterministic, for tests that are coroutines of Python themselves.
"""

from __future__ import annotations

import asyncio
import base64
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator, Mapping
from concurrent.futures import Future
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager
from pathlib import Path
from random import SystemRandom
from tempfile import TemporaryDirectory
from typing import Any, TypeVar

from clusterwright import admission
from clusterwright.api.crds import crds as our_crds
from clusterwright.api.crds import embedded_crds
from clusterwright.api.meta import GroupVersionKind, Json, ObjectKey
from clusterwright.apiserver.serving import serve
from clusterwright.apiserver.serving.inprocess import InProcessTransport
from clusterwright.apiserver.serving.tls import write_private
from clusterwright.controllers.kit.features import EMBEDDED_FEATURES
from clusterwright.inmemory.listener import TlsListener
from clusterwright.kubeadm.certificates import Purpose, secret_name
from clusterwright.runtime.client import Client
from clusterwright.runtime.clock import SystemClock
from clusterwright.runtime.manager import Manager
from clusterwright.runtime.rest import RestClient
from clusterwright.simulation import samples
from clusterwright.simulation.plane import NAMESPACE, Plane, plane
from clusterwright.webhooks import embedded

T = TypeVar("T")

_START = 60.0
"""Seconds after which a server that has not started is given up."""


class Served:
    """A server that runs on a thread of its own: where it is, and a way to run coroutines there."""

    def __init__(self, loop: asyncio.AbstractEventLoop, url: str, kubeconfig: Path, client: Client) -> None:
        self._loop = loop
        self.url = url
        """`https://127.0.0.1:PORT`."""
        self.kubeconfig = kubeconfig
        """A file with the credentials of an administrator."""
        self._client = client

    def run(self, body: Callable[[], Awaitable[T]], within: float = 120.0) -> T:
        """Run a coroutine function on the server's event loop, and return its result. Raises what it raises, and TimeoutError."""

        async def whole() -> T:
            return await body()

        running: Future[T] = asyncio.run_coroutine_threadsafe(whole(), self._loop)
        try:
            return running.result(within)
        except TimeoutError:
            running.cancel()
            raise

    def apply(self, *objects: Json) -> list[Json]:
        """Create objects, in this order, and return them as the server answered."""

        async def create() -> list[Json]:
            return [dict((await self._client.create(obj)).json) for obj in objects]

        return self.run(create)

    def get(self, api_version: str, kind: str, name: str, namespace: str = NAMESPACE) -> Json:
        """Return an object. Raises NotFound, ApiError."""
        gvk = GroupVersionKind.of(api_version, kind)
        return dict(self.run(lambda: self._client.get(gvk, ObjectKey(namespace, name))).json)


class ServedPlane(Served):
    """An API server with all controllers and simulated machines. `plane` is for coroutines that `run` runs."""

    def __init__(self, loop: asyncio.AbstractEventLoop, url: str, kubeconfig: Path, made: Plane) -> None:
        super().__init__(loop, url, kubeconfig, made.client)
        self.plane = made

    def until_available(self, name: str, *, control_plane: int = 1, workers: int = 0, within: float = 120.0) -> None:
        """Wait until a Cluster is Available with so many Machines. Raises Overdue."""
        self.run(lambda: self.plane.until_available(name, control_plane=control_plane, workers=workers, within=within), within + 5)

    def workload_cluster(self, name: str = "workload", *, workers: int = 1) -> WorkloadCluster:
        """Create a cluster with one control-plane node, and return it when it is Available."""
        objects = [*samples.cluster(name, has_control_plane_object=True), *samples.control_plane(name, replicas=1)]
        if workers:
            objects += samples.workers(name, f"{name}-md-0", replicas=workers)
        self.apply(*objects)
        self.until_available(name, control_plane=1, workers=workers)
        secret = self.get("v1", "Secret", secret_name(name, Purpose.KUBECONFIG))
        file = self.kubeconfig.with_name(f"{name}.kubeconfig")
        write_private(file, base64.b64decode(secret["data"]["value"]))
        return WorkloadCluster(name, file)


class WorkloadCluster:
    """A simulated workload cluster."""

    def __init__(self, name: str, kubeconfig: Path) -> None:
        self.name = name
        self.kubeconfig = kubeconfig
        """A file with the credentials of an administrator of this cluster."""


@contextmanager
def served_api_server(*, crds: Iterable[Json] = ()) -> Iterator[Served]:
    """Serve a Kubernetes API without any kind of Cluster API, but with `crds`. It forgets everything at the end."""
    definitions = tuple(crds)

    @asynccontextmanager
    async def life(folder: Path) -> AsyncIterator[Served]:
        clock = SystemClock()
        running = await _serving(folder, clock, crds=definitions)
        try:
            client = RestClient(InProcessTransport(running.server), clock=clock)
            yield Served(asyncio.get_running_loop(), running.url, folder / "kubeconfig", client)
        finally:
            await running.stop()

    with _on_a_thread(life) as made:
        yield made


@contextmanager
def served_plane(
    *, features: Mapping[str, bool] | None = None, crds: Iterable[Json] = (), setup: Callable[[Manager], None] | None = None
) -> Iterator[ServedPlane]:
    """Serve a whole management plane, as `up` does: our kinds and `crds`, admission, controllers, simulated machines on the network.

    `features`: gates that differ from those of `up`. `setup` gets the manager before it runs, to add controllers.
    """
    gates = {**EMBEDDED_FEATURES, **(features or {})}
    definitions = (*our_crds(), *embedded_crds(), *crds)

    @asynccontextmanager
    async def life(folder: Path) -> AsyncIterator[ServedPlane]:
        clock = SystemClock()
        chain = admission.chain(gates)
        running = await _serving(folder, clock, crds=definitions, admission=tuple(chain), converters=embedded.converters)
        try:
            async with plane(clock, listener=TlsListener(), server=running.server, docker=True, features=gates, setup=setup) as made:
                yield ServedPlane(asyncio.get_running_loop(), running.url, folder / "kubeconfig", made)
        finally:
            await running.stop()

    with _on_a_thread(life) as made:
        yield made


async def _serving(folder: Path, clock: SystemClock, **options: Any) -> serve.RunningServer:
    return await serve.start(
        serve.ServeOptions(listen="127.0.0.1:0", kubeconfig=folder / "kubeconfig", now=clock.now, random=SystemRandom(), **options)
    )


@contextmanager
def _on_a_thread(life: Callable[[Path], AbstractAsyncContextManager[T]]) -> Iterator[T]:
    """Keep an asynchronous context open on a thread of its own, with a folder for its files. Raises what it raises."""
    started: Future[T] = Future()
    loop = asyncio.new_event_loop()
    ended = asyncio.Event()

    async def main(folder: Path) -> None:
        try:
            async with life(folder) as made:
                started.set_result(made)
                await ended.wait()
        except BaseException as error:
            if not started.done():
                started.set_exception(error)
                return
            raise

    with TemporaryDirectory(prefix="clusterwright-test-") as folder:
        failures: list[BaseException] = []

        def run() -> None:
            with asyncio.Runner(loop_factory=lambda: loop) as runner:
                try:
                    runner.run(main(Path(folder)))
                except BaseException as error:
                    failures.append(error)

        thread = threading.Thread(target=run, name="clusterwright-test", daemon=True)
        thread.start()
        try:
            yield started.result(_START)
        finally:
            if thread.is_alive() and started.done():
                loop.call_soon_threadsafe(ended.set)
            thread.join(_START)
        if failures:
            raise failures[0]
