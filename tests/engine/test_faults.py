"""What is said when an engine is away, full, slow, too old or without rights. A real one cannot be made to show most of it."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from aiohttp import web

from clusterwright.engine import Conflict, Container, Denied, Engine, EngineError, Full, Missing, Slow, Unreachable, Unsupported
from clusterwright.engine import connection as connections
from clusterwright.engine.errors import unopened
from clusterwright.engine.locate import BadEngine, connect, sockets

Answer = Callable[[web.Request], Awaitable[web.StreamResponse]]
VERSION = {"Version": "20.10", "ApiVersion": "1.41", "MinAPIVersion": "1.12", "Components": [{"Name": "Engine"}]}


@asynccontextmanager
async def answering(path: Path, answer: Answer, version: Mapping[str, object] = VERSION) -> AsyncIterator[Engine]:
    """An engine that says which it is, and answers everything else in one way."""

    async def handle(request: web.Request) -> web.StreamResponse:
        return web.json_response(version) if request.path == "/version" else await answer(request)

    app = web.Application()
    app.router.add_route("*", "/{path:.*}", handle)
    runner = web.AppRunner(app)
    await runner.setup()
    await web.UnixSite(runner, str(path)).start()
    engine = Engine(path)
    try:
        yield engine
    finally:
        await engine.close()
        await runner.cleanup()


def refusing(status: int, message: str) -> Answer:
    async def answer(request: web.Request) -> web.StreamResponse:
        return web.json_response({"message": message}, status=status)

    return answer


@pytest.mark.parametrize(
    ("status", "message", "kind", "said"),
    [
        (500, "write /var/lib/docker/x: no space left on device", Full, "free space for the engine"),
        (500, "OCI runtime create failed: unable to apply caps: operation not permitted", Unsupported, "CAP_SYS_RESOURCE"),
        (500, "could not find an available, non-overlapping IPv4 address pool", Full, "docker network prune"),
        (500, "driver failed: Bind for 127.0.0.1:6443 failed: port is already allocated", Conflict, "choose another port"),
        (404, "No such image: kindest/node:v9", Missing, "No such image"),
        (409, "removal of container x is already in progress", Conflict, "in progress"),
        (500, "Get https://registry-1.docker.io/v2/: dial tcp: lookup x: no such host", Unreachable, "the registry cannot be reached"),
        (500, "inotify_init1: too many open files", Full, "fs.inotify.max_user_instances"),
        (403, "authorization denied by plugin", Denied, "denied by plugin"),
        (500, "something else", EngineError, "something else"),
        (500, "", EngineError, "answered 500"),
    ],
)
async def test_a_refusal_names_the_next_step(tmp_path: Path, status: int, message: str, kind: type[EngineError], said: str) -> None:
    async with answering(tmp_path / "s", refusing(status, message)) as engine:
        with pytest.raises(EngineError, match=said) as caught:
            await engine.create(Container(name="a", image="i"))
        assert type(caught.value) is kind
        assert "POST /v1.41/containers/create" in str(caught.value)


async def test_a_long_message_is_cut(tmp_path: Path) -> None:
    async with answering(tmp_path / "s", refusing(500, "x" * 100_000)) as engine:
        with pytest.raises(EngineError) as caught:
            await engine.start("a")
        assert len(str(caught.value)) < 1000


async def test_a_slow_engine_is_abandoned(tmp_path: Path) -> None:
    given_up = asyncio.Event()

    async def slow(request: web.Request) -> web.StreamResponse:
        await given_up.wait()
        return web.json_response([])

    async with answering(tmp_path / "s", slow) as engine:
        await engine.version()
        with pytest.raises(Slow, match="overloaded"):
            await engine._connection.call("GET", "/v1.41/containers/json", timeout=0.05)
        given_up.set()


async def test_an_answer_that_never_ends_is_cut_off(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "MAX_ANSWER", 10_000)

    async def much(request: web.Request) -> web.StreamResponse:
        return web.Response(body=b"[" + b" " * 100_000)

    async with answering(tmp_path / "s", much) as engine:
        with pytest.raises(EngineError, match="longer than"):
            await engine.containers({"a": "b"})


async def test_an_error_in_the_middle_of_a_pull_is_an_error(tmp_path: Path) -> None:
    async def pull(request: web.Request) -> web.StreamResponse:
        return web.Response(text='{"id":"a","progressDetail":{"current":1000000,"total":3000000}}\n{"error":"no space left on device"}')

    async with answering(tmp_path / "s", pull) as engine:
        progress = engine.pull("kindest/node:v1.36.1")
        assert await anext(progress) == "pulling kindest/node:v1.36.1: 1 of 3 MB"
        with pytest.raises(Full, match=r"pull kindest/node:v1\.36\.1: no space left"):
            await anext(progress)


async def test_an_engine_that_is_too_old_is_refused(tmp_path: Path) -> None:
    async with answering(tmp_path / "s", refusing(500, ""), {**VERSION, "ApiVersion": "1.40"}) as engine:
        with pytest.raises(Unsupported, match=r"serves API version 1\.40, but at least 1\.41 is needed"):
            await engine.version()


async def test_an_engine_that_has_dropped_old_versions_is_asked_in_its_own(tmp_path: Path) -> None:
    asked: list[str] = []

    async def answer(request: web.Request) -> web.StreamResponse:
        asked.append(request.path)
        return web.json_response([])

    async with answering(tmp_path / "s", answer, {**VERSION, "ApiVersion": "1.52", "MinAPIVersion": "1.44"}) as engine:
        await engine.containers({"a": "b"})
    assert asked == ["/v1.44/containers/json"]


async def test_without_a_listener_the_socket_is_named(tmp_path: Path) -> None:
    engine = Engine(tmp_path / "none.sock")
    try:
        with pytest.raises(Unreachable, match=r"no container engine at .*none\.sock: start Docker or Podman"):
            await engine.version()
    finally:
        await engine.close()


async def test_a_stale_socket_is_reported_as_stopped(tmp_path: Path) -> None:
    async with answering(tmp_path / "s", refusing(500, "")):
        pass
    (tmp_path / "s").unlink(missing_ok=True)
    import socket

    with socket.socket(socket.AF_UNIX) as left:
        left.bind(str(tmp_path / "s"))
    with pytest.raises(Unreachable, match="it is stopped"):
        await connect(f"unix://{tmp_path}/s", {})


def test_a_forbidden_socket_error_explains_how_to_get_permission() -> None:
    error = unopened("/var/run/docker.sock", PermissionError(13, "Permission denied"))

    assert isinstance(error, Denied)
    assert "add your user to the group" in str(error)


@pytest.mark.parametrize("name", ["dokcer", "tcp://1.2.3.4:2375", "unix://relative", ""])
def test_an_invalid_engine_name_is_refused(name: str) -> None:
    with pytest.raises(BadEngine, match="unix:///PATH"):
        sockets(name, {})


def test_the_environment_names_sockets_first() -> None:
    environ = {"DOCKER_HOST": "unix:///d.sock", "CONTAINER_HOST": "unix:///p.sock", "XDG_RUNTIME_DIR": "/run/user/7"}

    assert sockets("auto", environ)[0] == Path("/d.sock")
    assert sockets("podman", environ)[0] == Path("/p.sock")
    assert Path("/run/user/7/podman/podman.sock") in sockets("podman", environ)
    assert not any("podman" in str(path) for path in sockets("docker", environ))
    assert sockets("unix:///some/where", environ) == [Path("/some/where")]


async def test_the_first_engine_that_answers_is_taken(tmp_path: Path) -> None:
    async with answering(tmp_path / "s", refusing(500, "")):
        engine, version = await connect("podman", {"CONTAINER_HOST": f"unix://{tmp_path}/s"})
        await engine.close()
    assert str(version) == "Docker 20.10"


async def test_if_no_engine_answers_all_tried_sockets_are_named(tmp_path: Path) -> None:
    environ = {"CONTAINER_HOST": f"unix://{tmp_path}/none", "XDG_RUNTIME_DIR": str(tmp_path)}
    if os.path.exists("/run/podman/podman.sock"):
        pytest.skip("there is a Podman")
    with pytest.raises(Unreachable, match=r"tried .*none.*podman/podman\.sock"):
        await connect("podman", environ)
