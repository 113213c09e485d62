"""Durability: what was answered is there after kill -9, at whatever moment it came."""

from __future__ import annotations

import asyncio
import json
import os
import random
import signal
import sqlite3
import ssl
import stat
import subprocess
import sys
import textwrap
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from apiserver.apiserver_testing import CRDS, WIDGETS, Api, configmap, make_server, widget, widget_crds
from clusterwright.apiserver.identity import ADMIN
from clusterwright.apiserver.serving.serve import ServeOptions, start
from clusterwright.apiserver.storage.sqlite import SqliteJournal, StoreBroken
from clusterwright.apiserver.storage.store import Revisions

CONFIGMAPS = "/api/v1/namespaces/default/configmaps"

PROGRAM = textwrap.dedent("""
    import asyncio, random, sys
    from datetime import UTC, datetime
    from pathlib import Path
    from clusterwright.apiserver.identity import ADMIN
    from clusterwright.apiserver.serving.serve import ServeOptions, serve

    sys.exit(asyncio.run(serve(ServeOptions(
        listen="127.0.0.1:0", data_dir=Path(sys.argv[1]), kubeconfig=Path(sys.argv[1]) / "kubeconfig", tokens={"admin": ADMIN},
        now=lambda: datetime.now(UTC), random=random.SystemRandom()))))
""")


class Process:
    """A server in a process of its own."""

    def __init__(self, folder: Path) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-c", PROGRAM, str(folder)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        assert self.process.stdout is not None
        self.line = self.process.stdout.readline()
        if "ready at" not in self.line:
            _, errors = self.process.communicate()
            raise AssertionError(self.line + errors)
        self.url = self.line.split("ready at ")[1].split()[0]
        self.context = ssl.create_default_context(cafile=str(folder / "ca.crt"))

    @asynccontextmanager
    async def session(self) -> AsyncIterator[aiohttp.ClientSession]:
        connector = aiohttp.TCPConnector(ssl=self.context, limit=0)
        async with aiohttp.ClientSession(self.url, connector=connector, headers={"Authorization": "Bearer admin"}) as session:
            yield session
        await asyncio.sleep(0.2)  # aiohttp closes TLS transports a moment later

    def kill(self) -> None:
        self.process.send_signal(signal.SIGKILL)
        self.process.communicate()

    def terminate(self) -> tuple[int, str]:
        self.process.send_signal(signal.SIGTERM)
        _, errors = self.process.communicate(timeout=600)
        return self.process.returncode, errors


@pytest.fixture
def processes(tmp_path: Path) -> Iterator[Any]:
    started: list[Process] = []

    def run() -> Process:
        started.append(Process(tmp_path / "data"))
        return started[-1]

    yield run
    for process in started:
        if process.process.poll() is None:
            process.kill()


async def test_everything_that_was_answered_survives_kill_9(processes: Any):
    first = processes()
    answered: dict[str, int] = {}
    deleted: set[str] = set()
    enough = asyncio.Event()
    async with first.session() as session:

        async def writer(number: int) -> None:
            turn = 0
            while True:
                name = f"w{number}-{turn}"
                async with session.post(CONFIGMAPS, json=configmap(name, data={"n": "0"})) as response:
                    assert response.status == 201
                    answered[name] = int((await response.json())["metadata"]["resourceVersion"])
                patch = json.dumps({"data": {"n": "1"}}).encode()
                headers = {"Content-Type": "application/merge-patch+json"}
                async with session.patch(f"{CONFIGMAPS}/{name}", data=patch, headers=headers) as response:
                    answered[name] = int((await response.json())["metadata"]["resourceVersion"])
                if len(answered) > 50:
                    enough.set()
                if turn % 3 == 0:
                    async with session.delete(f"{CONFIGMAPS}/{name}") as response:
                        await response.read()
                        deleted.add(name)
                turn += 1

        writers = [asyncio.create_task(writer(n)) for n in range(16)]
        await asyncio.wait([*writers, asyncio.create_task(enough.wait())], return_when=asyncio.FIRST_COMPLETED)
        killer = threading.Thread(target=first.kill)  # while writes are under way
        killer.start()
        await asyncio.gather(*writers, return_exceptions=True)
        killer.join()
    assert len(answered) > 50
    highest = max(answered.values())

    second = processes()
    async with second.session() as session:
        async with session.get(CONFIGMAPS) as response:
            listed = await response.json()
        found = {i["metadata"]["name"]: int(i["metadata"]["resourceVersion"]) for i in listed["items"]}
        async with session.post(CONFIGMAPS, json=configmap("after")) as response:
            after = int((await response.json())["metadata"]["resourceVersion"])

    missing = [n for n in answered if n not in found and n not in deleted]
    # a writer's last request was under way: a deletion may have happened, unanswered
    assert all(int(n.split("-")[1]) % 3 == 0 for n in missing)
    assert len(missing) <= 16
    assert all(found[n] >= rv for n, rv in answered.items() if n in found)
    assert not deleted & set(found)
    assert after > highest


async def test_a_watch_resumes_over_a_restart_or_gets_an_error(processes: Any):
    first = processes()
    async with first.session() as session:
        async with session.post(CONFIGMAPS, json=configmap("old")) as response:
            old = (await response.json())["metadata"]["resourceVersion"]
        async with session.post(CONFIGMAPS, json=configmap("last")) as response:
            await response.read()
        async with session.get(CONFIGMAPS) as response:
            last = (await response.json())["metadata"]["resourceVersion"]
    first.kill()

    second = processes()
    async with second.session() as session:
        async with session.get(CONFIGMAPS, params={"watch": "1", "resourceVersion": old, "timeoutSeconds": "2"}) as response:
            forgotten = json.loads(await response.content.readline())
        watch = await session.get(CONFIGMAPS, params={"watch": "1", "resourceVersion": last, "timeoutSeconds": "5"})
        async with session.post(CONFIGMAPS, json=configmap("new")) as response:
            assert response.status == 201
        resumed = json.loads(await watch.content.readline())
        watch.close()

    assert (forgotten["type"], forgotten["object"]["code"]) == ("ERROR", 410)
    assert (resumed["type"], resumed["object"]["metadata"]["name"]) == ("ADDED", "new")


async def test_sigterm_ends_it_cleanly_and_definitions_are_served_again(processes: Any, tmp_path: Path):
    first = processes()
    assert first.line.startswith("clusterwright API server is ready at https://127.0.0.1:")
    async with first.session() as session:
        for crd in widget_crds():
            async with session.post(CRDS, json=crd) as response:
                assert response.status == 201
        async with session.post(WIDGETS, json=widget("w")) as response:
            assert response.status == 201
        token = (await (await session.get("/api/v1/namespaces/default")).json())["metadata"]["uid"]
    code, errors = first.terminate()

    second = processes()
    async with second.session() as session:
        async with session.get(f"{WIDGETS}/w") as response:
            kept = await response.json()
        same = (await (await session.get("/api/v1/namespaces/default")).json())["metadata"]["uid"]

    assert (code, errors) == (0, "")
    assert kept["spec"] == {"color": "red", "replicas": 1}
    assert same == token


async def test_objects_older_than_their_definition_are_fitted_to_it_after_a_restart(tmp_path: Path):
    def start_server() -> tuple[SqliteJournal, Api]:
        journal = SqliteJournal(tmp_path / "store.sqlite")
        server = make_server(journal=journal)
        server.recover(journal.entries(), journal.revision)
        journal.start()
        server.ensure_namespaces()
        return journal, Api.of(server)

    journal, api = start_server()
    crd = widget_crds()[0]
    await api.post(CRDS, crd)
    await api.post(WIDGETS, widget("old", title="t"))
    for version in crd["spec"]["versions"]:
        properties = version["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]
        del properties["title"]
        properties["size"]["default"] = 7
    changed = await api.merge(f"{CRDS}/{crd['metadata']['name']}", {"spec": {"versions": crd["spec"]["versions"]}})
    assert changed.status == 200, changed
    await api.post(WIDGETS, widget("new", size=1))
    journal.close()

    journal, api = start_server()
    old, new = (await api.get(f"{WIDGETS}/old"))["spec"], (await api.get(f"{WIDGETS}/new"))["spec"]
    journal.close()

    assert old == {"color": "red", "replicas": 1, "size": 7}
    assert new == {"color": "red", "replicas": 1, "size": 1}


def test_the_files_are_private(tmp_path: Path):
    journal = SqliteJournal(tmp_path / "data" / "store.sqlite")
    try:
        assert stat.S_IMODE((tmp_path / "data" / "store.sqlite").stat().st_mode) == 0o600
        assert stat.S_IMODE((tmp_path / "data").stat().st_mode) == 0o700
    finally:
        journal.close()


def test_two_servers_cannot_have_the_same_store(tmp_path: Path):
    journal = SqliteJournal(tmp_path / "store.sqlite")
    try:
        with pytest.raises(StoreBroken, match="in use by another process"):
            SqliteJournal(tmp_path / "store.sqlite")
    finally:
        journal.close()


def test_a_file_that_is_not_a_store_is_refused(tmp_path: Path):
    (tmp_path / "store.sqlite").write_bytes(b"this is not a database" * 100)

    with pytest.raises(StoreBroken, match="not a database"):
        SqliteJournal(tmp_path / "store.sqlite")


def test_a_store_of_another_format_is_refused(tmp_path: Path):
    journal = SqliteJournal(tmp_path / "store.sqlite")
    journal.close()
    connection = sqlite3.connect(tmp_path / "store.sqlite")
    connection.execute("INSERT OR REPLACE INTO state VALUES (1, 5, 99, 0, 0, 0)")
    connection.commit()
    connection.close()

    with pytest.raises(StoreBroken, match="format 99"):
        SqliteJournal(tmp_path / "store.sqlite")


class SlowJournal:
    """Makes nothing durable until told to."""

    def __init__(self) -> None:
        self.revisions = Revisions()
        self.durable_rv = 0
        self.pending: list[int] = []
        self._callbacks: list[Any] = []
        self._failures: list[Any] = []

    def append(self, table: str, event: Any) -> None:
        self.pending.append(event.entry.rv)

    def on_durable(self, callback: Any) -> None:
        self._callbacks.append(callback)

    def on_failure(self, callback: Any) -> None:
        self._failures.append(callback)

    def flush(self) -> None:
        if self.pending:
            self.durable_rv = self.pending[-1]
            self.pending.clear()
            for callback in self._callbacks:
                callback(self.durable_rv)

    def fail(self) -> None:
        for callback in self._failures:
            callback(OSError("disk full"))


async def settle() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


async def test_nothing_that_is_not_durable_is_answered_read_listed_or_watched():
    journal = SlowJournal()
    server = make_server(journal=journal)
    server.ensure_namespaces()
    journal.flush()
    api = Api.of(server)
    watch = await api.watch(CONFIGMAPS)
    event = asyncio.ensure_future(watch.next())
    write = asyncio.ensure_future(api.post(CONFIGMAPS, configmap("a")))
    await settle()
    get = asyncio.ensure_future(api.get(f"{CONFIGMAPS}/a"))
    listing = asyncio.ensure_future(api.get(CONFIGMAPS))
    await settle()

    assert not any(f.done() for f in (write, get, listing, event))
    journal.flush()
    assert (await write).status == 201
    assert (await get).status == 200
    assert (await listing).names == ["a"]
    assert (await event)[0] == "ADDED"
    await watch.close()


async def test_a_watch_that_starts_while_a_write_is_under_way_sees_it_once():
    journal = SlowJournal()
    server = make_server(journal=journal)
    server.ensure_namespaces()
    journal.flush()
    api = Api.of(server)
    rv = server.store.revision
    write = asyncio.ensure_future(api.post(CONFIGMAPS, configmap("a")))
    await settle()
    resumed, fresh = await api.watch(CONFIGMAPS, resourceVersion=rv), await api.watch(CONFIGMAPS)
    journal.flush()
    await write
    second = asyncio.ensure_future(api.post(CONFIGMAPS, configmap("b")))
    await settle()
    journal.flush()
    await second

    assert await resumed.names(2) == [("ADDED", "a"), ("ADDED", "b")]
    assert await fresh.names(2) == [("ADDED", "a"), ("ADDED", "b")]


async def test_a_broken_store_answers_500_and_is_reported(caplog: pytest.LogCaptureFixture):
    journal = SlowJournal()
    server = make_server(journal=journal)
    server.ensure_namespaces()
    journal.flush()
    api = Api.of(server)
    write = asyncio.ensure_future(api.post(CONFIGMAPS, configmap("a")))
    await settle()

    journal.fail()

    assert (await write).status == 500
    assert (await api.post(CONFIGMAPS, configmap("b"))).status == 500


async def test_a_full_disk_ends_the_process_instead_of_lying(tmp_path: Path):
    options = ServeOptions(
        listen="127.0.0.1:0", data_dir=tmp_path, tokens={"admin": ADMIN}, now=lambda: datetime.now(UTC), random=random.Random(1)
    )
    running = await start(options)
    assert running.journal is not None
    running.journal._connection.execute("PRAGMA query_only = 1")
    api = Api.of(running.server)

    answers = [await api.post(CONFIGMAPS, configmap(f"c{n}", data={"x": "y" * 50_000})) for n in range(3)]

    assert {a.status for a in answers} <= {201, 500}
    assert answers[-1].status == 500
    with pytest.raises(sqlite3.Error):
        await asyncio.wait_for(running.broken, 600)
    await running.stop()


@pytest.mark.skipif(os.name != "posix", reason="signals")
async def test_many_writes_share_a_commit(tmp_path: Path):
    journal = SqliteJournal(tmp_path / "store.sqlite")
    commits: list[int] = []
    server = make_server(journal=journal)
    journal.on_durable(commits.append)
    journal.start()
    server.ensure_namespaces()
    api = Api.of(server)
    await asyncio.gather(*(api.post(CONFIGMAPS, configmap(f"c{n}")) for n in range(300)))
    journal.close()

    assert len(commits) < 150
