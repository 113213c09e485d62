"""What was answered stays: nothing is shown before it is durable, damage is noticed and named, backups are whole."""

from __future__ import annotations

import asyncio
import json
import shutil
import sqlite3
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from random import Random
from typing import Any

import pytest

from clusterwright.api.meta import ObjectKey
from clusterwright.api.wire import Request, Response
from clusterwright.apiserver.server import ApiServer
from clusterwright.apiserver.serving.serve import RunningServer, ServeOptions, start
from clusterwright.apiserver.storage import sqlite, upkeep
from clusterwright.apiserver.storage.sqlite import SqliteJournal, StoreBroken
from clusterwright.apiserver.storage.store import Event, Revisions
from clusterwright.cli.main import main
from clusterwright.inmemory.cloud import Cloud
from clusterwright.runtime.errors import ConnectionFailed
from clusterwright.runtime.keys import sample_keys

BASE = "/api/v1/namespaces/default/configmaps"


class HeldBack:
    """A journal that commits when it is told to."""

    def __init__(self) -> None:
        self.revisions = Revisions()
        self.durable_rv = 0
        self.queued: list[Event] = []
        self._callbacks: list[Callable[[int], None]] = []

    def append(self, table: str, event: Event) -> None:
        del table
        self.queued.append(event)

    def on_durable(self, callback: Callable[[int], None]) -> None:
        self._callbacks.append(callback)

    def on_failure(self, callback: Callable[[BaseException], None]) -> None:
        del callback

    def commit(self) -> None:
        if self.queued:
            self.durable_rv = self.queued[-1].entry.rv
            self.queued.clear()
            for callback in self._callbacks:
                callback(self.durable_rv)


def config_map(name: str, value: str = "x") -> bytes:
    return json.dumps({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {"k": value}}).encode()


async def send(server: ApiServer, method: str, path: str, body: bytes = b"", media: str = "application/json", **query: str) -> Response:
    answer = await server.handle(Request(method=method, path=path, body=body, query=tuple(query.items()), headers={"content-type": media}))
    assert isinstance(answer, Response)
    return answer


@pytest.fixture
def held() -> tuple[ApiServer, HeldBack]:
    journal = HeldBack()
    server = ApiServer(now=lambda: datetime(2026, 5, 1, tzinfo=UTC), random=Random(1), journal=journal)
    server.ensure_namespaces()
    journal.commit()
    return server, journal


async def later(task: asyncio.Task[Response]) -> bool:
    """Whether the answer is still outstanding after everything that can run has run."""
    for _ in range(20):
        await asyncio.sleep(0)
    return not task.done()


@pytest.mark.parametrize(
    ("method", "path", "query", "code"),
    [
        ("GET", f"{BASE}/gone", {}, 404),
        ("DELETE", f"{BASE}/gone", {}, 404),
        ("PATCH", f"{BASE}/gone", {}, 404),
        ("POST", BASE, {}, 409),
        ("PATCH", f"{BASE}/there", {"dryRun": "All"}, 200),
        ("GET", f"{BASE}/there", {}, 200),
        ("GET", BASE, {}, 200),
    ],
)
async def test_no_answer_depends_on_a_write_that_is_not_durable(
    held: tuple[ApiServer, HeldBack], method: str, path: str, query: dict[str, str], code: int
) -> None:
    server, journal = held
    creating = [asyncio.ensure_future(send(server, "POST", BASE, config_map(name))) for name in ("gone", "there")]
    await asyncio.sleep(0)
    journal.commit()
    await asyncio.gather(*creating)
    merge = "application/merge-patch+json"
    under_way = [
        asyncio.ensure_future(send(server, "DELETE", f"{BASE}/gone")),
        asyncio.ensure_future(send(server, "PATCH", f"{BASE}/there", b'{"data":{"k":"new"}}', merge)),
    ]
    await asyncio.sleep(0)
    assert len(journal.queued) == 2

    body = config_map("there") if method == "POST" else b'{"metadata":{"labels":{"a":"b"}}}' if method == "PATCH" else b""
    asked = asyncio.ensure_future(send(server, method, path, body, merge if method == "PATCH" else "application/json", **query))
    waited = await later(asked)
    journal.commit()
    answer = await asked
    await asyncio.gather(*under_way)

    assert waited, "the answer showed what a crash would have undone"
    assert answer.status == code


THINGS = "/apis/test.dev/v1/namespaces/default/things"
CRD = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "things.test.dev"},
    "spec": {
        "group": "test.dev",
        "scope": "Namespaced",
        "names": {"plural": "things", "kind": "Thing"},
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "schema": {
                    "openAPIV3Schema": {
                        "type": "object",
                        "properties": {"data": {"type": "object", "additionalProperties": {"type": "string"}}},
                    }
                },
            }
        ],
    },
}


def thing(name: str, length: int) -> bytes:
    return json.dumps({"apiVersion": "test.dev/v1", "kind": "Thing", "metadata": {"name": name}, "data": {"k": "x" * length}}).encode()


async def test_an_object_that_etcd_would_not_take_is_refused_in_its_words() -> None:
    server = ApiServer(now=lambda: datetime(2026, 5, 1, tzinfo=UTC), random=Random(1))
    server.ensure([CRD])
    before = server.store.revision

    refused = await send(server, "POST", THINGS, thing("large", 1_600_000))
    status = json.loads(refused.body)

    assert (refused.status, status.get("reason", ""), status["message"]) == (500, "", "etcdserver: request is too large")
    assert server.store.revision == before
    assert (await send(server, "POST", THINGS, thing("small", 1_500_000))).status == 201


async def test_an_object_does_not_grow_beyond_it_by_patches() -> None:
    server = ApiServer(now=lambda: datetime(2026, 5, 1, tzinfo=UTC), random=Random(1))
    server.ensure([CRD])
    await send(server, "POST", THINGS, thing("c", 1))
    codes = []
    for n in range(4):
        patch = json.dumps({"data": {f"k{n}": "x" * 500_000}}).encode()
        codes.append((await send(server, "PATCH", f"{THINGS}/c", patch, "application/merge-patch+json")).status)

    assert codes == [200, 200, 200, 500]


# ---------------------------------------------------------------------------------------------------- checksums and upkeep


async def serving(folder: Path) -> RunningServer:
    return await start(ServeOptions(listen="127.0.0.1:0", data_dir=folder, now=lambda: datetime.now(UTC), random=Random(1)))


async def filled(folder: Path, count: int = 30) -> None:
    running = await serving(folder)
    for n in range(count):
        assert (await send(running.server, "POST", BASE, config_map(f"c{n:03}", "v" * 50))).status == 201
    await running.stop()
    running.server.close()


async def names_in(running: RunningServer) -> list[str]:
    """The ConfigMaps that were written, without the one that every namespace has."""
    found = [item["metadata"]["name"] for item in json.loads((await send(running.server, "GET", BASE)).body)["items"]]
    return [name for name in found if name != "kube-root-ca.crt"]


async def test_a_store_of_the_format_before_checksums_is_taken_over(tmp_path: Path) -> None:
    await filled(tmp_path / "d")
    connection = sqlite3.connect(tmp_path / "d" / "store.sqlite")
    connection.executescript(
        """
        CREATE TABLE old (kind TEXT NOT NULL, key TEXT NOT NULL, namespace TEXT NOT NULL, name TEXT NOT NULL, uid TEXT NOT NULL,
                          rv INTEGER NOT NULL, raw BLOB NOT NULL, PRIMARY KEY (kind, key)) WITHOUT ROWID;
        INSERT INTO old SELECT kind, key, namespace, name, uid, rv, raw FROM objects;
        DROP TABLE objects;
        ALTER TABLE old RENAME TO objects;
        CREATE TABLE old_state (id INTEGER PRIMARY KEY CHECK (id = 1), revision INTEGER NOT NULL, format INTEGER NOT NULL);
        INSERT INTO old_state SELECT id, revision, 1 FROM state;
        DROP TABLE state;
        ALTER TABLE old_state RENAME TO state;
        """
    )
    connection.close()
    (tmp_path / "d" / "store.sqlite-mark").unlink()

    running = await serving(tmp_path / "d")
    found = await names_in(running)
    await running.stop()
    running.server.close()

    assert found == [f"c{n:03}" for n in range(30)]
    assert upkeep.check(tmp_path / "d" / "store.sqlite").is_sound


async def test_every_flipped_byte_is_noticed_or_does_not_matter(tmp_path: Path) -> None:
    """Of 60 flips, 4 were silently wrong and 4 made every list of the kind unreadable before rows had checksums."""
    await filled(tmp_path / "d")
    path = tmp_path / "d" / "store.sqlite"
    sound = path.read_bytes()
    journal = SqliteJournal(path)
    expected = {(kind, entry.key): entry.raw for kind, entry in journal.entries()}
    journal.close()
    random = Random(7)
    wrong: list[int] = []
    for _ in range(300):
        position = random.randrange(len(sound))
        (tmp_path / "x.sqlite").write_bytes(
            sound[:position] + bytes([sound[position] ^ (1 << random.randrange(8))]) + sound[position + 1 :]
        )
        for suffix in ("-wal", "-shm"):
            (tmp_path / f"x.sqlite{suffix}").unlink(missing_ok=True)
        try:
            journal = SqliteJournal(tmp_path / "x.sqlite")
        except StoreBroken:
            continue
        try:
            if {(kind, entry.key): entry.raw for kind, entry in journal.entries()} != expected:
                wrong.append(position)
        except StoreBroken:
            pass
        finally:
            journal.close()

    assert wrong == []


async def damage(path: Path) -> None:
    data = path.read_bytes()
    at = data.rindex(b'"name":"c007"')
    path.write_bytes(data[: at + 9] + b"X" + data[at + 10 :])


async def test_a_damaged_row_is_named_at_start_and_put_aside_by_repair(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    await filled(tmp_path / "d")
    await damage(tmp_path / "d" / "store.sqlite")

    with pytest.raises(StoreBroken, match=r"1 damaged: configmaps default/c007; .*store repair"):
        await serving(tmp_path / "d")
    assert main(["store", "check", "--data-dir", str(tmp_path / "d")]) == 1
    assert "damaged: configmaps default/c007" in capsys.readouterr().out
    assert main(["store", "repair", "--data-dir", str(tmp_path / "d")]) == 1
    assert "the damaged file is kept as" in capsys.readouterr().err
    assert main(["store", "check", "--data-dir", str(tmp_path / "d"), "-o", "json"]) == 0
    assert [r["sound"] for r in json.loads(capsys.readouterr().out)] == [True]
    running = await serving(tmp_path / "d")
    names = await names_in(running)
    await running.stop()
    running.server.close()
    assert names == [f"c{n:03}" for n in range(30) if n != 7]


async def test_a_row_that_vanished_is_noticed(tmp_path: Path) -> None:
    await filled(tmp_path / "d")
    connection = sqlite3.connect(tmp_path / "d" / "store.sqlite")
    connection.execute("DELETE FROM objects WHERE key = 'default/c003'")
    connection.commit()
    connection.close()

    with pytest.raises(StoreBroken, match=r"holds \d+ objects where \d+ were written"):
        await serving(tmp_path / "d")


async def test_a_backup_is_taken_while_serving_and_restored(tmp_path: Path) -> None:
    running = await serving(tmp_path / "d")
    written: list[str] = []
    stop = False

    async def write() -> None:
        while not stop:
            name = f"w{len(written):05}"
            assert (await send(running.server, "POST", BASE, config_map(name))).status == 201
            written.append(name)

    writer = asyncio.ensure_future(write())
    while len(written) < 50:  # noqa: ASYNC110 - it writes in its own time
        await asyncio.sleep(0.01)
    before = len(written)
    status = await asyncio.to_thread(main, ["store", "backup", "--data-dir", str(tmp_path / "d"), str(tmp_path / "b")])
    stop = True
    await writer
    revision = running.server.store.revision
    await running.stop()
    running.server.close()

    assert status == 0
    assert main(["store", "restore", "--data-dir", str(tmp_path / "r"), str(tmp_path / "b")]) == 0
    again = await serving(tmp_path / "r")
    names = await names_in(again)
    assert names == written[: len(names)]
    assert len(names) >= before
    assert again.server.store.revision > revision, "what clients saw after the backup must not be seen again"
    await again.stop()
    again.server.close()
    assert main(["store", "restore", "--data-dir", str(tmp_path / "r"), str(tmp_path / "b")]) == 1  # not empty


async def test_a_backup_that_was_changed_is_not_restored(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    await filled(tmp_path / "d")
    assert main(["store", "backup", "--data-dir", str(tmp_path / "d"), str(tmp_path / "b")]) == 0
    await damage(tmp_path / "b" / "store.sqlite")

    assert main(["store", "restore", "--data-dir", str(tmp_path / "r"), str(tmp_path / "b")]) == 1
    assert "not as it was when the backup was taken" in capsys.readouterr().err
    assert not (tmp_path / "r").exists()


async def test_repair_does_not_touch_a_store_that_is_in_use(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    running = await serving(tmp_path / "d")

    assert main(["store", "repair", "--data-dir", str(tmp_path / "d")]) == 1
    assert "in use by another process" in capsys.readouterr().err
    await running.stop()
    running.server.close()
    shutil.rmtree(tmp_path / "d")


async def test_a_workload_cluster_whose_store_breaks_does_not_end_in_silence(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    told = asyncio.Event()
    cloud = Cloud(now=lambda: datetime.now(UTC), random=Random(1), keys=sample_keys(), data_dir=tmp_path)
    cloud.on_failure(told.set)
    cluster = await cloud.ensure(ObjectKey("default", "c1"))
    await cluster.server.store.settled()
    connection = sqlite3.connect(tmp_path / "clusters.sqlite")
    connection.execute("DROP TABLE objects")
    connection.commit()
    connection.close()

    answer = await send(cluster.server, "POST", BASE, config_map("c"))
    await asyncio.wait_for(told.wait(), 30)
    await cloud.close()

    assert answer.status == 500
    assert "the store of the workload clusters can no longer be written" in cloud.broken
    assert any("workload clusters" in record.getMessage() for record in caplog.records if record.levelname == "CRITICAL")


async def test_a_workload_cluster_whose_store_is_damaged_says_so(tmp_path: Path) -> None:
    cloud = Cloud(now=lambda: datetime.now(UTC), random=Random(1), keys=sample_keys(), data_dir=tmp_path)
    cluster = await cloud.ensure(ObjectKey("default", "c1"))
    assert (await send(cluster.server, "POST", BASE, config_map("c007"))).status == 201
    await cloud.close()
    await damage(tmp_path / "clusters.sqlite")

    again = Cloud(now=lambda: datetime.now(UTC), random=Random(1), keys=sample_keys(), data_dir=tmp_path)
    with pytest.raises(ConnectionFailed, match="configmaps default/c007"):
        await again.ensure(ObjectKey("default", "c1"))


def test_a_file_that_is_not_a_database_leaves_no_connection_open(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "store.sqlite"
    path.write_bytes(b"not a database" * 1000)
    opened: list[sqlite3.Connection] = []

    class Noted(sqlite3.Connection):
        def __init__(self, *given: Any, **options: Any) -> None:
            super().__init__(*given, **options)
            opened.append(self)

    def noted(*given: Any, connect: Any = sqlite3.connect, **options: Any) -> sqlite3.Connection:
        made: sqlite3.Connection = connect(*given, factory=Noted, **options)
        return made

    monkeypatch.setattr(sqlite3, "connect", noted)
    with pytest.raises(sqlite3.DatabaseError):
        sqlite.connect(path)

    (connection,) = opened
    with pytest.raises(sqlite3.ProgrammingError, match="closed"):
        connection.execute("SELECT 1")
