"""Plays the gallery against a server of its own process, while a second client asks for something small, again and again.

What counts is how much CPU time the thread of the server's event loop used while the second client waited for one answer: that is how
long a request, or an object, kept everybody from being served. A busy machine makes every wait long, but does not make the loop work.
An attack that seems to stall the server is played a few times, because a client that is not let run reads its answer late.
"""

from __future__ import annotations

import asyncio
import contextlib
import io
import json
import os
import re
import ssl
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any, NamedTuple

import aiohttp
import pytest
import pytest_asyncio
from yarl import URL

from clusterwright.runtime.http import ssl_context
from clusterwright.runtime.kubeconfig import Kubeconfig
from security import attacks
from security.attacks import CONFIG_MAPS, CRDS, NAMESPACE, THING, Attack, _config_map, _crd
from security.further_attacks import FURTHER, LONG_SERIES, RBAC, SERIES, Send, _of
from security.raw_attacks import PIPELINED, SMUGGLED, STREAMS
from support.patience import PATIENCE

ATTACKS = attacks.ATTACKS + FURTHER
CONNECTIONS = {**attacks.CONNECTIONS, **STREAMS}

LEAST = 0.05
"""Seconds of CPU time that the event loop may use while the second client waits for one answer."""
PAUSE = 0.015
"""Seconds between its requests: to ask without end is work for the server, too."""
TRIES = 5
Series = Callable[[Send], Awaitable[None]]
MEMORY = 400 * 1024
"""kB that the server may hold after everything."""


class Wait(NamedTuple):
    """How long the second client waited for an answer, and how much CPU time the event loop used meanwhile."""

    seconds: float
    worked: float


class Target:
    """A server in a process of its own, and three ways to be known to it."""

    def __init__(
        self, process: asyncio.subprocess.Process, url: str, clients: dict[str, aiohttp.ClientSession], trust: ssl.SSLContext
    ) -> None:
        self.process, self.url, self.clients, self.trust = process, url, clients, trust
        self.known = trust
        """With the administrator's certificate."""

    async def send(
        self, who: str, method: str, path: str, body: bytes = b"", media: str = "application/json", **headers: str
    ) -> tuple[int, bytes]:
        url = URL(self.url + path, encoded=True)
        named = {"Content-Type": media, **headers}
        async with self.clients[who].request(method, url, data=io.BytesIO(body) if body else None, headers=named) as answer:
            return answer.status, await answer.read()

    async def waits(self, until: Awaitable[Any]) -> list[Wait]:
        """Each small request of the second client while something was under way."""
        under_way, found = asyncio.ensure_future(until), []
        while not under_way.done():
            started, worked = time.perf_counter(), self.worked
            status, _ = await self.send("second", "GET", f"{CONFIG_MAPS}/seed")
            found.append(Wait(time.perf_counter() - started, self.worked - worked))
            assert status == 200
            await asyncio.sleep(PAUSE)
        await under_way
        return found

    def stalls(self, waits: list[Wait]) -> list[Wait]:
        """Return those in which the event loop worked for too long."""
        return [w for w in waits if w.worked >= LEAST]

    @property
    def worked(self) -> float:
        """Seconds of CPU time that the thread of the event loop has used."""
        return int(Path(f"/proc/{self.process.pid}/task/{self.process.pid}/schedstat").read_text().split()[0]) / 1e9

    @property
    def resident(self) -> int:
        """kB of memory that the server holds."""
        lines = Path(f"/proc/{self.process.pid}/status").read_text().splitlines()
        return next(int(line.split()[1]) for line in lines if line.startswith("VmRSS:"))


async def new_account(target: Target, name: str) -> str:
    """Make a service account and return a token of it."""
    assert (await target.send("admin", "POST", f"{NAMESPACE}/serviceaccounts", _of("v1", "ServiceAccount", name)))[0] == 201
    request = b'{"apiVersion":"authentication.k8s.io/v1","kind":"TokenRequest","spec":{}}'
    status, answer = await target.send("admin", "POST", f"{NAMESPACE}/serviceaccounts/{name}/token", request)
    assert status == 201
    return str(json.loads(answer)["status"]["token"])


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def target(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Target]:
    folder = tmp_path_factory.mktemp("gallery")
    flags = ["--no-controllers", "--garbage-collection", "--in-memory", "--kubeconfig", str(folder / "config"), "--log-level", "error"]
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "clusterwright.cli.main", "up", *flags, stdout=asyncio.subprocess.PIPE, cwd=folder, env=dict(os.environ)
    )
    assert process.stdout is not None
    await asyncio.wait_for(process.stdout.readline(), PATIENCE)
    connection = Kubeconfig.load([folder / "config"]).resolve()
    trust = ssl_context(connection, None)
    known = ssl_context(connection, (connection.client_certificate, connection.client_key))

    def session(context: ssl.SSLContext, **headers: str) -> aiohttp.ClientSession:
        return aiohttp.ClientSession(connector=aiohttp.TCPConnector(ssl=context), headers=headers, timeout=aiohttp.ClientTimeout(PATIENCE))

    clients = {"nobody": session(trust), "admin": session(known), "second": session(known)}
    found = Target(process, connection.server, clients, trust)
    found.known = known
    try:
        for name in ("anybody", "tenant"):
            clients[name] = session(trust, Authorization=f"Bearer {await new_account(found, name)}")
        role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "admin"}
        subject = {"kind": "ServiceAccount", "name": "tenant", "namespace": "default"}
        binding = _of("rbac.authorization.k8s.io/v1", "RoleBinding", "tenant", roleRef=role, subjects=[subject])
        assert (await found.send("admin", "POST", f"{RBAC}/namespaces/default/rolebindings", binding))[0] == 201
        assert (await found.send("admin", "POST", CONFIG_MAPS, _config_map({"a": "b"}, generateName=None, name="seed")))[0] == 201
        assert (await found.send("admin", "POST", CRDS, _crd("things", THING)))[0] == 201
        yield found
    finally:
        for client in clients.values():
            await client.close()
        process.kill()
        await process.wait()


async def play(target: Target, attack: Attack) -> tuple[int, list[Wait]]:
    body = attack.body()
    headers = {} if attack.who == "nobody" and not attack.headers else dict(attack.headers)
    outcome = asyncio.ensure_future(target.send(attack.who, attack.method, attack.path, body, attack.media, **headers))
    waits = await target.waits(asyncio.wait([outcome]))
    try:
        status = outcome.result()[0]
    except (aiohttp.ClientError, OSError):  # it was cut off while it was still sending
        status = 0
    return status, target.stalls(waits)


@pytest.mark.asyncio(loop_scope="module")
@pytest.mark.parametrize("attack", ATTACKS, ids=[a.name for a in ATTACKS])
async def test_one_request_neither_stops_the_server_nor_succeeds(target: Target, attack: Attack) -> None:
    found: list[list[Wait]] = []
    while len(found) < TRIES and all(found):
        status, stalls = await play(target, attack)
        assert status in (*attack.codes, 0), status
        found.append(stalls)

    assert not all(found), f"the second client waited: {found}"


@pytest.mark.asyncio(loop_scope="module")
@pytest.mark.parametrize("name", CONNECTIONS)
async def test_connections_that_do_not_behave_leave_the_others_alone(target: Target, name: str) -> None:
    host, port = URL(target.url).host or "", URL(target.url).port or 0
    found: list[list[Wait]] = []
    while len(found) < TRIES and all(found):
        found.append(target.stalls(await target.waits(CONNECTIONS[name](host, port, target.trust))))

    assert not all(found), f"the second client waited: {found}"


async def siege(target: Target, name: str, series: Series) -> None:
    found: list[list[Wait]] = []
    while len(found) < TRIES and all(found):
        found.append(target.stalls(await target.waits(series(target.send))))
    assert not all(found), f"the second client waited: {found}"


@pytest.mark.asyncio(loop_scope="module")
@pytest.mark.parametrize("name", SERIES)
async def test_many_requests_leave_the_others_alone(target: Target, name: str) -> None:
    await siege(target, name, SERIES[name])


@pytest.mark.soak
@pytest.mark.asyncio(loop_scope="module")
@pytest.mark.parametrize("name", LONG_SERIES)
async def test_very_many_requests_leave_the_others_alone(target: Target, name: str) -> None:
    await siege(target, name, LONG_SERIES[name])


async def answers(target: Target, text: bytes) -> list[bytes]:
    """Send something as an administrator; the status of each answer."""
    reader, writer = await asyncio.open_connection(URL(target.url).host, URL(target.url).port, ssl=target.known)
    answer = b""
    with contextlib.suppress(TimeoutError, OSError):
        writer.write(text)
        async with asyncio.timeout(PATIENCE):
            while more := await reader.read(65536):
                answer += more
    writer.close()
    return re.findall(rb"HTTP/1\.[01] (\d+)", answer)


@pytest.mark.asyncio(loop_scope="module")
@pytest.mark.parametrize("name", SMUGGLED)
async def test_no_request_hides_behind_an_ambiguous_one(target: Target, name: str) -> None:
    assert await answers(target, SMUGGLED[name]) == [b"400"]


@pytest.mark.asyncio(loop_scope="module")
async def test_a_request_behind_a_plain_one_is_answered(target: Target) -> None:
    """Otherwise the test above would say nothing."""
    assert await answers(target, PIPELINED) == [b"422", b"200"]


@pytest.mark.asyncio(loop_scope="module")
async def test_paths_that_are_not_served_make_no_metrics(target: Target) -> None:
    for n in range(300):
        await target.send("nobody", "GET", f"/apis/group{n}/v1/things{n}")
        await target.send("admin", "GET", f"/apis/x%22%7D%201%0Aforged_{n}/v1/y")
    _, text = await target.send("admin", "GET", "/metrics")

    assert b"group1" not in text
    assert b"forged" not in text
    assert len(text) < 500_000


@pytest.mark.asyncio(loop_scope="module")
async def test_the_server_is_still_whole_after_all_that(target: Target) -> None:
    assert target.process.returncode is None
    assert (await target.send("admin", "POST", CONFIG_MAPS, _config_map({"still": "here"})))[0] == 201
    assert target.resident < MEMORY


def test_the_gallery_is_as_large_as_it_claims_to_be() -> None:
    assert len(ATTACKS) + len(CONNECTIONS) + len(SERIES) + len(SMUGGLED) >= 240
    assert len({a.name for a in ATTACKS}) == len(ATTACKS)
