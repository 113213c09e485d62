"""Plays the gallery against a server of its own process, while a second client asks for something small, again and again.

What counts is how much CPU time the thread of the server's event loop used while the second client waited for one answer: that is how
long a request, or an object, kept everybody from being served. A busy machine makes every wait long, but does not make the loop work.
An attack that seems to stall the server is played a few times, because a client that is not let run reads its answer late.
"""

from __future__ import annotations

import asyncio
import contextlib
import re
from collections.abc import AsyncIterator, Awaitable, Callable

import aiohttp
import pytest
import pytest_asyncio
from yarl import URL

from security import attacks
from security.attacks import CONFIG_MAPS, Attack, _config_map
from security.further_attacks import FURTHER, LONG_SERIES, SERIES, Send
from security.raw_attacks import PIPELINED, SMUGGLED, STREAMS
from security.target import Target, Wait, started
from support.patience import PATIENCE

ATTACKS = attacks.ATTACKS + FURTHER
CONNECTIONS = {**attacks.CONNECTIONS, **STREAMS}

TRIES = 5
Series = Callable[[Send], Awaitable[None]]
MEMORY = 400 * 1024
"""kB that the server may hold after everything."""


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def target(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Target]:
    async with started(tmp_path_factory.mktemp("gallery"), "--no-controllers", "--garbage-collection") as found:
        yield found


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
async def test_misbehaving_connections_do_not_affect_others(target: Target, name: str) -> None:
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
async def test_many_requests_do_not_affect_others(target: Target, name: str) -> None:
    await siege(target, name, SERIES[name])


@pytest.mark.soak
@pytest.mark.asyncio(loop_scope="module")
@pytest.mark.parametrize("name", LONG_SERIES)
async def test_very_many_requests_do_not_affect_others(target: Target, name: str) -> None:
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
