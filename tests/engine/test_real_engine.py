"""The client against the engines of this machine."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from clusterwright.engine import Conflict, Container, Engine, EngineError, Missing, Mount, PortMapping, Slow
from clusterwright.engine.archive import archive
from support import engines
from support.engines import IMAGE, TEST_LABEL

engines.demand()


class Bench:
    """An engine, and containers with a name of this test."""

    def __init__(self, engine: Engine, mark: str) -> None:
        self.engine, self.mark = engine, mark
        self.labels = {TEST_LABEL: mark}

    def name(self, part: str = "a") -> str:
        return f"cw-test-{self.mark}-{part}"

    async def look(self, name: str) -> dict[str, Any]:
        seen = await self.engine.inspect(name)
        assert seen is not None
        return seen

    async def sleeper(self, part: str = "a", **more: Any) -> str:
        """A container that runs."""
        spec: dict[str, Any] = {"entrypoint": ["/bin/sh", "-c", "trap 'exit 0' TERM; while :; do sleep 1 & wait $!; done"], **more}
        await self.engine.create(Container(name=self.name(part), image=IMAGE, labels=self.labels, **spec))
        await self.engine.start(self.name(part))
        return self.name(part)


@pytest.fixture(params=engines.names())
async def bench(request: pytest.FixtureRequest) -> AsyncIterator[Bench]:
    async with engines.engine_for_tests(Path(request.param)) as (engine, mark):
        yield Bench(engine, mark)


async def test_the_engine_reports_its_type_and_version(bench: Bench) -> None:
    version = await bench.engine.version()

    assert version.name in {"Docker", "Podman"}
    assert version.api >= (1, 41)
    assert (await bench.engine.info())["OSType"] == "linux"


async def test_a_container_lives_and_goes(bench: Bench) -> None:
    name = await bench.sleeper(hostname="node-1")
    await bench.engine.start(name)
    seen = await bench.look(name)
    assert (seen["State"]["Running"], seen["Config"]["Hostname"]) == (True, "node-1")
    assert [c["Names"] for c in await bench.engine.containers(bench.labels)] == [[f"/{name}"]]
    assert len(await bench.engine.containers({TEST_LABEL: ""})) >= 1

    await bench.engine.stop(name, 2)
    await bench.engine.stop(name, 2)
    assert (await bench.look(name))["State"]["Running"] is False
    assert await bench.engine.remove(name) is True
    assert await bench.engine.remove(name) is False
    assert await bench.engine.inspect(name) is None


async def test_a_name_is_given_once(bench: Bench) -> None:
    await bench.sleeper()

    with pytest.raises(Conflict, match="already in use"):
        await bench.engine.create(Container(name=bench.name(), image=IMAGE, command=["/bin/true"]))


async def test_an_image_that_is_missing_is_named(bench: Bench) -> None:
    with pytest.raises(Missing, match="localhost/nowhere"):
        await bench.engine.create(Container(name=bench.name(), image="localhost/nowhere:1", command=["/bin/true"], labels=bench.labels))
    assert not await bench.engine.has_image("localhost/nowhere:1")


async def test_a_pull_that_fails_says_why(bench: Bench) -> None:
    with pytest.raises(EngineError, match="localhost:1"):
        async for _ in bench.engine.pull("localhost:1/nowhere:v1"):
            pass


async def test_commands_return_code_and_output(bench: Bench) -> None:
    name = await bench.sleeper()

    ended = await bench.engine.run(name, ["/bin/sh", "-c", "echo out; echo err >&2; exit 7"])
    assert (ended.code, sorted(ended.text.split())) == (7, ["err", "out"])


async def test_input_of_any_length_reaches_a_command(bench: Bench) -> None:
    name = await bench.sleeper()
    content = bytes(range(256)) * 8192

    ended = await bench.engine.run(name, ["/bin/sh", "-c", "cat > /tmp/copy && stat -c %s /tmp/copy"], input=content)
    assert ended.text.strip() == str(len(content))
    copied = await bench.engine.run(name, ["/bin/cat", "/tmp/copy"], most=1 << 22)
    assert copied.output == content


async def test_a_command_may_end_before_its_input(bench: Bench) -> None:
    name = await bench.sleeper()

    ended = await bench.engine.run(name, ["/bin/sh", "-c", "head -c 3; exit 4"], input=b"abcdef" * 400_000)
    assert ended.code == 4
    if (await bench.engine.version()).name == "Docker":  # Podman resets the connection, with the output that was on its way
        assert ended.output == b"abc"


async def test_the_end_of_long_output_is_kept(bench: Bench) -> None:
    name = await bench.sleeper()

    ended = await bench.engine.run(name, ["/bin/sh", "-c", "head -c 300000 /dev/zero; echo; echo the end"], most=1000)
    assert len(ended.output) <= 1000
    assert ended.text.endswith("the end\n")


async def test_a_command_that_takes_too_long_is_abandoned(bench: Bench) -> None:
    name = await bench.sleeper()

    with pytest.raises(Slow, match="within 1 s"):
        await bench.engine.run(name, ["/bin/sleep", "300"], timeout=1)


async def test_files_reach_a_container_that_does_not_run(bench: Bench) -> None:
    await bench.engine.create(
        Container(
            name=bench.name(), image=IMAGE, labels=bench.labels, entrypoint=["/bin/sleep"], command=["300"], mounts=[Mount(target="/var")]
        )
    )
    await bench.engine.put(bench.name(), "/var", archive({"lib/seed/user-data": b"secret"}))
    assert await bench.engine.has_path(bench.name(), "/var/lib/seed/user-data")
    assert not await bench.engine.has_path(bench.name(), "/usr/bin/cloud-init")

    await bench.engine.start(bench.name())
    ended = await bench.engine.run(bench.name(), ["/bin/sh", "-c", "stat -c '%a %u' /var/lib/seed/user-data; cat /var/lib/seed/user-data"])
    assert ended.text == "600 0\nsecret"


async def test_networks_and_volumes_carry_labels_and_go(bench: Bench) -> None:
    engine, name = bench.engine, bench.name()
    for _ in range(2):
        await engine.create_network(name, bench.labels)
        await engine.create_volume(name, bench.labels)
    inside = await bench.sleeper(network=name, mounts=[Mount(target="/data", source=name)])
    seen = await bench.look(inside)
    assert seen["NetworkSettings"]["Networks"][name]["IPAddress"]
    assert [n["Name"] for n in await engine.networks(bench.labels)] == [name]
    assert [v["Name"] for v in await engine.volumes(bench.labels)] == [name]

    await engine.remove(inside)
    for _ in range(2):
        await engine.remove_network(name)
        await engine.remove_volume(name)
    assert await engine.network(name) is None
    assert await engine.volumes(bench.labels) == []


async def test_a_port_is_opened_on_the_host(bench: Bench) -> None:
    name = await bench.sleeper(ports=[PortMapping(container_port=6443)])

    seen = await bench.look(name)
    [binding] = seen["NetworkSettings"]["Ports"]["6443/tcp"]
    assert binding["HostIp"] == "127.0.0.1"
    assert int(binding["HostPort"]) > 0


async def test_a_stopped_or_removed_container_is_reported_at_once(bench: Bench) -> None:
    since = await bench.engine.now()
    name = await bench.sleeper()
    events = bench.engine.events(bench.labels, since)

    async def until(*actions: str) -> None:
        async for event in events:
            if event["Action"] in actions:
                return

    async with asyncio.timeout(60):
        await until("start")
        await bench.engine.kill(name, "KILL")
        await until("die", "died")
        await bench.engine.remove(name)
        await until("destroy", "remove")
    await events.aclose()
