"""Short lives of a server that end badly, again and again: `python short_lives.py MODE FOLDER [STEP]`.

Each life is a fork, so that what Python takes to start is paid once. A life makes ten writes one after the other and tells (in a
file that it syncs) of each answer before it makes the next. MODE says how it ends: `kill` with SIGKILL before the n-th statement
that its store executes, for every n; `full` with a disk that is full after n bytes, for every STEP bytes; `readonly` with a file
system that takes no more writes from the n-th statement on. Prints what was found as JSON.
"""

from __future__ import annotations

import asyncio
import json
import os
import resource
import signal
import sqlite3
import sys
from datetime import UTC, datetime
from pathlib import Path
from random import Random
from typing import Any

from clusterwright.api.wire import Request, Response
from clusterwright.apiserver.server import ApiServer
from clusterwright.apiserver.storage.sqlite import SqliteJournal

BASE = "/api/v1/namespaces/default/configmaps"
MERGE = "application/merge-patch+json"


def body(name: str, value: str) -> bytes:
    """A ConfigMap."""
    return json.dumps({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {"k": value}}).encode()


WRITES: list[tuple[str, str, bytes, dict[str, str | None]]] = [
    ("POST", BASE, body("a", "1" * 3000), {"a": "1" * 3000}),
    ("POST", BASE, body("b", "1"), {"b": "1"}),
    ("PATCH", f"{BASE}/a", b'{"data":{"k":"2"}}', {"a": "2"}),
    ("DELETE", f"{BASE}/b", b"", {"b": None}),
    ("POST", BASE, body("c", "x" * 9000), {"c": "x" * 9000}),
    ("PATCH", f"{BASE}/c", b'{"data":{"k":"3"}}', {"c": "3"}),
    ("POST", BASE, body("b", "again"), {"b": "again"}),
    ("DELETE", f"{BASE}/a", b"", {"a": None}),
    ("PATCH", f"{BASE}/b", b'{"data":{"k":"last"}}', {"b": "last"}),
    ("POST", BASE, body("d", "y" * 5000), {"d": "y" * 5000}),
]
"""Each write, and what it changes: names to values, None for what is gone."""


def states() -> list[dict[str, str]]:
    """What there is after none, one, two, ... of the writes."""
    found: list[dict[str, str]] = [{}]
    for *_, change in WRITES:
        after: dict[str, str | None] = {**found[-1], **change}
        found.append({k: v for k, v in after.items() if v is not None})
    return found


class Doomed(sqlite3.Connection):
    """A connection that something happens to at its n-th statement."""

    count = 0
    at = 0
    happens: Any = None

    def execute(self, *arguments: Any) -> sqlite3.Cursor:
        """Count, and let it happen."""
        Doomed.count += 1
        if Doomed.at and Doomed.count >= Doomed.at:
            Doomed.happens()
        return super().execute(*arguments)


def opened(folder: Path) -> tuple[ApiServer, SqliteJournal]:
    """A server on what is kept in a folder."""
    journal = SqliteJournal(folder / "store.sqlite")
    server = ApiServer(now=lambda: datetime(2026, 5, 1, tzinfo=UTC), random=Random(1), journal=journal)
    server.recover(journal.entries(), journal.revision)
    return server, journal


async def live(folder: Path) -> None:
    """Make the writes; tell of each that was answered."""
    server, journal = opened(folder)
    journal.start()
    server.ensure_namespaces()
    await server.store.settled()
    told = os.open(folder / "told", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    for number, (method, path, content, _) in enumerate(WRITES):
        media = MERGE if method == "PATCH" else "application/json"
        answer = await server.handle(Request(method=method, path=path, body=content, headers={"content-type": media}))
        assert isinstance(answer, Response)
        os.write(told, f"{number} {answer.status} {answer.body[:300].decode()!r}\n".encode())
        os.fsync(told)
        if answer.status >= 300:
            break
    os._exit(0)


def one(folder: Path, mode: str, at: int) -> dict[str, Any]:
    """One life and what it left."""
    folder.mkdir()
    child = os.fork()
    if child == 0:
        if mode == "full":
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
            resource.setrlimit(resource.RLIMIT_FSIZE, (at, at))
        else:
            connect = sqlite3.connect

            def doomed(*arguments: Any, **named: Any) -> sqlite3.Connection:
                return connect(*arguments, **named, factory=Doomed)

            setattr(sqlite3, "connect", doomed)  # noqa: B010 - the module that the store asks, too
            Doomed.at, Doomed.count = at, 0
            Doomed.happens = staticmethod(_kill if mode == "kill" else _refuse)
        try:
            asyncio.run(live(folder))
        except BaseException as error:
            (folder / "error").write_text(f"{type(error).__name__}: {error}")
        os._exit(1)
    _, status = os.waitpid(child, 0)
    lines = (folder / "told").read_text().splitlines() if (folder / "told").exists() else []
    answered = sum(1 for line in lines if line.split()[1] in ("200", "201"))
    failed = [line for line in lines if line.split()[1] not in ("200", "201")]
    server, journal = opened(folder)
    kept = {e.name: json.loads(e.raw)["data"]["k"] for e in server.store.table("configmaps").objects.values()}
    journal.close()
    return {
        "at": at,
        "signal": os.WTERMSIG(status) if os.WIFSIGNALED(status) else 0,
        "answered": answered,
        "failed": failed,
        "kept_writes": [n for n, state in enumerate(states()) if state == kept],
        "error": (folder / "error").read_text() if (folder / "error").exists() else "",
    }


def _kill() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def _refuse() -> None:
    raise sqlite3.OperationalError("attempt to write a readonly database")


def main(mode: str, folder: Path, step: int) -> list[dict[str, Any]]:
    """All lives of a mode: until one gets through."""
    found: list[dict[str, Any]] = []
    at = step
    while True:
        found.append(one(folder / f"{mode}-{at}", mode, at))
        if found[-1]["answered"] == len(WRITES):
            return found
        at += step


if __name__ == "__main__":
    print(json.dumps(main(sys.argv[1], Path(sys.argv[2]), int(sys.argv[3]) if len(sys.argv) > 3 else 1)))  # noqa: T201 - its result
