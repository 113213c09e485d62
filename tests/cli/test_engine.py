"""`engine list|prune` and `load image`, on a real engine and beside a plane that runs."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from cli.conftest import Run
from clusterwright.containers import naming
from clusterwright.engine import Container, Engine
from support import engines
from support.engines import IMAGE, TEST_LABEL

engines.demand()
STAYS = ("/bin/sh", "-c", "trap 'exit 0' TERM; while :; do sleep 1 & wait $!; done")


class Host:
    """An engine with containers of planes."""

    def __init__(self, socket: str, mark: str) -> None:
        self.socket, self.mark, self.flag = socket, mark, f"--engine=unix://{socket}"

    @asynccontextmanager
    async def engine(self) -> AsyncIterator[Engine]:
        engine = Engine(Path(self.socket))
        try:
            yield engine
        finally:
            await engine.close()

    def has(self, name: str, plane: str, *, kind: str = "DevMachine", object: str, cluster: str = "kept") -> str:
        """Start a container that a plane labelled."""
        labels = {
            TEST_LABEL: self.mark,
            naming.PLANE_LABEL: plane,
            naming.NAMESPACE_LABEL: "default",
            naming.CLUSTER_LABEL: cluster,
            naming.KIND_LABEL: kind,
            naming.OBJECT_LABEL: object,
            naming.ROLE_LABEL: naming.WORKER if kind == "DevMachine" else naming.LOAD_BALANCER,
        }
        return asyncio.run(self._start(f"cw-{self.mark}-{name}", labels))

    async def _start(self, name: str, labels: Mapping[str, str]) -> str:
        async with self.engine() as engine:
            await engine.create(Container(name=name, image=IMAGE, labels=labels, entrypoint=STAYS))
            await engine.start(name)
        return name

    def names(self) -> set[str]:
        async def ask() -> set[str]:
            async with self.engine() as engine:
                return {c["Names"][0].lstrip("/") for c in await engine.containers({TEST_LABEL: self.mark})}

        return asyncio.run(ask())

    def output(self, name: str, command: str) -> str:
        async def ask() -> str:
            async with self.engine() as engine:
                return (await engine.run(name, ["/bin/sh", "-c", command])).text

        return asyncio.run(ask())


@pytest.fixture(params=engines.names())
def host(request: pytest.FixtureRequest) -> Iterator[Host]:
    with asyncio.Runner() as runner:
        entered = engines.engine_for_tests(Path(request.param))
        _, mark = runner.run(entered.__aenter__())
        yield Host(request.param, mark)
        runner.run(entered.__aexit__(None, None, None))


def uid(plane: Run) -> str:
    found: str = json.loads(plane("get", "namespace", "kube-system", "-o", "json").stdout)["metadata"]["uid"]
    return found


def test_prune_removes_only_containers_without_an_object(plane: Run, host: Host) -> None:
    name = f"kept-{host.mark}"
    assert plane("create", "cluster", name, "--infrastructure", "docker").returncode == 0
    mine = uid(plane)
    kept = host.has("kept", mine, kind="DevCluster", object=name)
    lost = host.has("lost", mine, object="lost")
    foreign = host.has("foreign", f"other-{host.mark}", object="lost")

    listed = {line.split()[0]: line for line in plane("engine", "list", host.flag).stdout.splitlines()}
    assert f"DevCluster/{name}" in listed[kept]
    assert listed[lost].endswith("none")
    assert listed[foreign].endswith("another plane")

    refused = plane("engine", "prune", host.flag)
    assert (refused.returncode, host.names()) == (1, {kept, lost, foreign}), "no answer is no"
    assert "nothing was removed" in refused.stdout
    pruned = plane("engine", "prune", host.flag, "--yes")
    assert (pruned.returncode, host.names()) == (0, {kept, foreign}), pruned.stderr
    alive = plane("engine", "prune", host.flag, "--plane", mine, "--yes")
    assert (alive.returncode, host.names()) == (1, {kept, foreign})
    assert "is running: delete its clusters" in alive.stderr
    assert plane("engine", "prune", host.flag, "--plane", f"other-{host.mark}", "--yes").returncode == 0
    assert host.names() == {kept}


def test_without_a_plane_only_a_named_one_is_pruned(alone: Run, host: Host) -> None:
    lost = host.has("lost", f"other-{host.mark}", object="lost")

    refused = alone("engine", "prune", host.flag, "--yes")
    assert (refused.returncode, host.names()) == (1, {lost})
    assert "--plane UID" in refused.stderr
    assert alone("engine", "prune", host.flag, "--yes", "--plane", f"other-{host.mark}").returncode == 0
    assert host.names() == set()


def test_an_image_is_loaded_into_the_nodes_of_one_cluster(alone: Run, host: Host) -> None:
    cluster = f"c-{host.mark}"
    node = host.has("node", "p", object="w0", cluster=cluster)
    other = host.has("other", "p", object="w1", cluster="another")
    host.has("balancer", "p", kind="DevCluster", object="c", cluster=cluster)

    loaded = alone("load", "image", cluster, IMAGE, host.flag)
    assert (loaded.returncode, loaded.stderr) == (0, "")
    assert loaded.stdout == f"{IMAGE}: loaded into {node}\n"
    assert "images import" in host.output(node, "cat /var/imported")
    assert host.output(other, "ls /var") == ""
    for words, said in (
        ((cluster, "localhost/nowhere:1"), "the container engine has no image localhost/nowhere:1"),
        ((f"none-{host.mark}", IMAGE), "has no running node"),
        ((cluster,), "an image is expected"),
    ):
        failed = alone("load", "image", *words, host.flag)
        assert failed.returncode in {1, 2}
        assert said in failed.stderr
