"""A store that is cut off anywhere, at every statement and at every page, loses nothing that was answered and shows no half of it."""

from __future__ import annotations

import asyncio
import json
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random
from typing import Any

from clusterwright.api.wire import Request, Response
from clusterwright.apiserver.server import ApiServer
from clusterwright.apiserver.storage.streams import Stream
from security.short_lives import BASE, WRITES, body


async def lives(mode: str, folder: Path, step: int = 1) -> list[dict[str, Any]]:
    script = Path(__file__).parent / "short_lives.py"
    process = await asyncio.create_subprocess_exec(
        sys.executable, str(script), mode, str(folder), str(step), stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE
    )
    out, errors = await asyncio.wait_for(process.communicate(), 300)
    assert process.returncode == 0, errors.decode()[-2000:]
    found: list[dict[str, Any]] = json.loads(out)
    return found


def lost(life: dict[str, Any]) -> bool:
    """Whether an answer was not kept, or what is kept is no state that there ever was; one write may have been under way."""
    return not any(n in (life["answered"], life["answered"] + 1) for n in life["kept_writes"])


async def test_kill_at_every_statement_of_a_short_life(tmp_path: Path) -> None:
    found = await lives("kill", tmp_path)

    assert len(found) > 5 * len(WRITES)  # a commit has that many statements at least
    assert {life["signal"] for life in found[:-1]} == {9}
    assert [life for life in found if lost(life)] == []
    assert sorted({life["answered"] for life in found}) == list(range(len(WRITES) + 1))


async def test_a_disk_that_is_full_at_every_write(tmp_path: Path) -> None:
    found = await lives("full", tmp_path, 8192)

    assert len(found) > 5
    assert [life for life in found if lost(life)] == []
    for life in found[:-1]:
        assert life["signal"] == 0
        assert life["error"] or "500" in life["failed"][0], "it is said, and not by silence"


async def test_a_file_system_that_becomes_read_only_at_any_statement(tmp_path: Path) -> None:
    found = await lives("readonly", tmp_path, 4)

    assert [life for life in found if lost(life)] == []
    for life in found[:-1]:
        assert life["error"] or "can no longer be written" in life["failed"][0] or "could not be served" in life["failed"][0]


async def test_a_clock_that_jumps_back_an_hour_does_no_harm() -> None:
    now = datetime(2026, 5, 1, 12, tzinfo=UTC)
    server = ApiServer(now=lambda: now, random=Random(1))
    server.start_controllers()

    async def send(method: str, path: str, content: bytes = b"", media: str = "application/json") -> Any:
        answer = await server.handle(Request(method=method, path=path, body=content, headers={"content-type": media}))
        assert isinstance(answer, Response)
        assert answer.status in (200, 201), answer.body
        return json.loads(answer.body)

    watch = await server.handle(Request(method="GET", path=BASE, query=(("watch", "true"),)))
    assert isinstance(watch, Stream)
    first = await send("POST", BASE, body("a", "1"))
    now -= timedelta(hours=1)
    second = await send("POST", BASE, body("b", "1"))
    third = await send("PATCH", f"{BASE}/a", b'{"data":{"k":"2"}}', "application/merge-patch+json")
    await send("DELETE", f"{BASE}/b")
    seen = [json.loads(await anext(aiter(watch))) for _ in range(4)]
    watch.close()

    versions = [int(o["metadata"]["resourceVersion"]) for o in (first, second, third)]
    assert versions == sorted(set(versions))
    assert [(e["type"], e["object"]["metadata"]["name"]) for e in seen] == [
        ("ADDED", "a"),
        ("ADDED", "b"),
        ("MODIFIED", "a"),
        ("DELETED", "b"),
    ]
    assert third["metadata"]["creationTimestamp"] == first["metadata"]["creationTimestamp"]
