"""Load balancers that are containers, on the engines of this machine: TLS servers stand for API servers behind them."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from clusterwright.api.copying import replace
from clusterwright.api.core import Cluster, Machine
from clusterwright.api.infrastructure import DevCluster, DevClusterBackend, DevClusterSpec, DevMachine, DockerClusterBackend
from clusterwright.api.meta import ObjectMeta
from clusterwright.api.wellknown import LOAD_BALANCER_WEIGHT_ANNOTATION as WEIGHT
from clusterwright.containers import loadbalancer, naming
from clusterwright.containers.clusters import DevLoadBalancers
from clusterwright.containers.site import Site
from clusterwright.engine import Container, Engine
from clusterwright.provider import ProvisionFailed
from clusterwright.provider import Site as Infrastructure
from support import engines
from support.certificates import server_context
from support.engines import HAPROXY_IMAGE, IMAGE

from .test_machines import INIT, Objects

engines.demand()


class Story:
    """One cluster, and the provider of load balancers."""

    def __init__(self, engine: Engine, mark: str) -> None:
        self.engine, self.mark = engine, mark
        self.objects = Objects(mark)
        client: Any = self.objects
        site = Site(engine, client, network=f"cw-test-{mark}", load_balancer_image=HAPROXY_IMAGE)
        self.provider = DevLoadBalancers(client, site)
        spec = DevClusterSpec(backend=DevClusterBackend(docker=DockerClusterBackend()))
        self.obj = DevCluster(metadata=ObjectMeta(name=f"cw-{mark}", namespace="default"), spec=spec)
        self.cluster = Cluster(metadata=ObjectMeta(name=f"cw-{mark}", namespace="default"))
        self.name = f"cw-{mark}-lb"

    async def up(self) -> Infrastructure:
        async with asyncio.timeout(60):
            while True:
                found = await self.provider.provision(self.obj, self.cluster)
                if isinstance(found, Infrastructure):
                    return found
                await asyncio.sleep(0.05)

    async def node(self, name: str) -> str:
        """A container that counts as one of the control plane's; its address."""
        labels = naming.Place(self.mark, self.cluster.key).labels | {naming.ROLE_LABEL: naming.CONTROL_PLANE}
        spec = Container(name=f"{self.name}-{name}", image=IMAGE, entrypoint=INIT, labels=labels, network=f"cw-test-{self.mark}")
        await self.engine.create(spec)
        await self.engine.start(spec.name)
        seen = await self.engine.inspect(spec.name)
        assert seen is not None
        return str(seen["NetworkSettings"]["Networks"][spec.network]["IPAddress"])

    def member(self, name: str, *, is_deleted: bool) -> list[Any]:
        """A Machine of the control plane and its DevMachine."""
        deleted = datetime(2026, 5, 1, tzinfo=UTC) if is_deleted else None
        machine = Machine(metadata=ObjectMeta(name=name, namespace="default", deletion_timestamp=deleted))
        reference = replace(machine.spec.infrastructure_ref, name=name, kind="DevMachine")
        machine = replace(machine, spec=replace(machine.spec, infrastructure_ref=reference))
        return [machine, DevMachine(metadata=ObjectMeta(name=name, namespace="default"))]

    async def configuration(self) -> str:
        return (await self.engine.run(self.name, ["cat", loadbalancer.PATH])).text


@pytest.fixture(params=engines.names())
async def story(request: pytest.FixtureRequest) -> AsyncIterator[Story]:
    async with engines.engine_for_tests(Path(request.param)) as (engine, mark):
        await engines.have_haproxy(engine)
        yield Story(engine, mark)


async def test_a_cluster_gets_a_load_balancer_and_gives_it_back(story: Story) -> None:
    found = await story.up()

    assert found.port == 6443
    assert found.host.count(".") == 3
    [listed] = await story.engine.containers({naming.PLANE_LABEL: story.mark})
    assert listed["Labels"][naming.ROLE_LABEL] == "load-balancer"
    assert await story.provider.remove(story.obj, None) is True
    assert await story.engine.inspect(story.name) is None
    assert await story.provider.remove(story.obj, None) is True


async def test_it_knows_the_control_planes_containers_that_run(story: Story) -> None:
    await story.up()
    first, second = await story.node("cp-0"), await story.node("cp-1")
    await story.up()
    assert await story.configuration() == loadbalancer.configuration({f"{story.name}-cp-0": first, f"{story.name}-cp-1": second})

    await story.engine.remove(f"{story.name}-cp-0")
    await story.up()
    assert await story.configuration() == loadbalancer.configuration({f"{story.name}-cp-1": second})


async def test_a_server_whose_machine_is_deleted_gets_no_new_connections(story: Story) -> None:
    names = [f"{story.name}-cp-0", f"{story.name}-cp-1"]
    await story.up()
    servers = {name: await story.node(name.removeprefix(f"{story.name}-")) for name in names}

    for deleted, leaving in (({names[0]}, {names[0]}), (set(names), set[str]())):
        story.objects.listed = [one for name in names for one in story.member(name, is_deleted=name in deleted)]
        await story.up()
        assert await story.configuration() == loadbalancer.configuration(servers, leaving=leaving)
        weights = {o.metadata.name: o.metadata.annotations[WEIGHT] for o in story.objects.listed if isinstance(o, DevMachine)}
        assert weights == {name: "0" if name in leaving else "100" for name in names}

    story.objects.listed = story.member(names[0], is_deleted=True)
    await story.up()
    assert await story.configuration() == loadbalancer.configuration(servers), "the last one goes on until it is gone"


async def test_a_change_drops_no_connection(story: Story) -> None:
    found = await story.up()
    gateway = await _gateway(story)
    async with api_server(gateway) as port:
        text = loadbalancer.configuration({"a": gateway}).replace(f"{gateway}:6443", f"{gateway}:{port}")
        await story.provider._configure(story.name, text)
        open_connection = await connected(found.host)

        await story.provider._configure(story.name, text + f"  server b {gateway}:{port} check check-ssl verify none\n")
        late = await connected(found.host)
        for reader, writer in (open_connection, late):
            assert await asked(reader, writer) == b"ok"
            writer.transport.abort()


async def test_a_load_balancer_that_was_removed_is_made_again(story: Story) -> None:
    await story.up()
    await story.engine.remove(story.name)

    await story.up()
    assert await story.engine.inspect(story.name) is not None


async def test_a_foreign_container_is_left_alone(story: Story) -> None:
    await story.engine.create(Container(name=story.name, image=IMAGE, entrypoint=INIT, labels={engines.TEST_LABEL: story.mark}))

    with pytest.raises(ProvisionFailed, match="is taken by a container of another plane"):
        await story.up()
    assert await story.provider.remove(story.obj, story.cluster) is True
    assert await story.engine.inspect(story.name) is not None


# ---------------------------------------------------------------------------------------------------- behind it


async def _gateway(story: Story) -> str:
    network = await story.engine.network(f"cw-test-{story.mark}")
    assert network is not None
    return str(network["IPAM"]["Config"][0]["Gateway"])


@asynccontextmanager
async def api_server(host: str) -> AsyncIterator[int]:
    """A server on this machine that answers every request over TLS."""

    async def answer(request: web.Request) -> web.Response:
        return web.Response(text="ok")

    app = web.Application()
    app.router.add_route("*", "/{path:.*}", answer)
    runner = web.AppRunner(app)
    await runner.setup()
    site = web.TCPSite(runner, host, 0, ssl_context=server_context())
    await site.start()
    try:
        yield site._server.sockets[0].getsockname()[1]
    finally:
        await runner.cleanup()


async def connected(host: str) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """A connection through the load balancer, as soon as it knows a server that answers."""
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    async with asyncio.timeout(60):
        while True:
            with suppress(OSError):
                return await asyncio.open_connection(host, loadbalancer.PORT, ssl=context)
            await asyncio.sleep(0.1)


async def asked(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bytes:
    writer.write(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
    head = await reader.readuntil(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 200")
    return await reader.readexactly(2)
