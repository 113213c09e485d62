"""No flipped bit is silent: whatever file of a data directory it hits, the start is refused with a cause, or everything is as it was."""

from __future__ import annotations

import os
import shutil
import struct
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from pathlib import Path
from random import Random
from typing import Any

import pytest
import pytest_asyncio

from clusterwright.api.meta import ObjectKey
from clusterwright.api.wire import Request, Response
from clusterwright.apiserver.serving import datadir
from clusterwright.apiserver.serving.serve import RunningServer, ServeOptions, start
from clusterwright.apiserver.storage import mark, upkeep, wal
from clusterwright.apiserver.storage.sqlite import SqliteJournal, StoreBroken
from clusterwright.apiserver.storage.store import Entry, Event
from clusterwright.cli.main import main
from clusterwright.inmemory.cloud import Cloud
from clusterwright.runtime.keys import sample_keys
from security.test_store import BASE, config_map, send

STORES = ("store.sqlite", "workload/clusters.sqlite")


def now() -> datetime:
    return datetime.now(UTC)


async def serving(folder: Path) -> RunningServer:
    return await start(ServeOptions(listen="127.0.0.1:0", data_dir=folder, now=now, random=Random(1), controllers=False))


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def killed(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Path]:
    """A data directory with a workload cluster, as kill -9 leaves it: copied while everything is open, with objects in pages and log."""
    folder, copy = tmp_path_factory.mktemp("live"), tmp_path_factory.mktemp("killed") / "d"
    for life in "ab":
        running = await serving(folder)
        cloud = Cloud(now=now, random=Random(1), keys=sample_keys(), data_dir=folder / "workload")
        cluster = await cloud.ensure(ObjectKey("default", "c1"))
        for server in (running.server, cluster.server):
            for n in range(16):
                assert (await send(server, "POST", BASE, config_map(f"{life}{n:03}", "v" * 500))).status == 201
            for n in range(0, 16, 4):
                await send(server, "DELETE", f"{BASE}/{life}{n:03}")
        if life == "b":
            shutil.copytree(folder, copy)
        await cloud.close()
        await running.stop()
        running.server.close()
    yield copy


def contents(path: Path) -> tuple[int, dict[tuple[str, str], bytes]]:
    journal = SqliteJournal(path)
    try:
        return journal.revision, {(kind, entry.key): entry.raw for kind, entry in journal.entries()}
    finally:
        journal.close()


def served(folder: Path) -> Any:
    """Everything that a start reads; raises StoreBroken."""
    datadir.demand_private(folder)
    keys = datadir.identity(folder, pytest.fail, pytest.fail)
    return keys, datadir.kept_port(folder), [contents(folder / store) for store in STORES]


def flipped(source: Path, target: Path, random: Random) -> str:
    """Make a copy in which one bit of one file is another."""
    shutil.rmtree(target, ignore_errors=True)
    shutil.copytree(source, target)
    path = random.choice(sorted(f for f in target.rglob("*") if f.is_file() and f.stat().st_size))
    content = bytearray(path.read_bytes())
    at = random.randrange(len(content))
    content[at] ^= 1 << random.randrange(8)
    path.write_bytes(content)
    return f"{path.relative_to(target)} byte {at}"


def silent(killed: Path, folder: Path, count: int, seed: int) -> tuple[list[str], int]:
    """Which flips were neither refused nor harmless, and how many were refused."""
    shutil.copytree(killed, folder / "expected")
    expected, random, wrong, refused = served(folder / "expected"), Random(seed), [], 0
    for _ in range(count):
        what = flipped(killed, folder / "x", random)
        try:
            if served(folder / "x") != expected or served(folder / "x") != expected:
                wrong.append(what)
        except StoreBroken as error:
            refused += 1
            if str(folder / "x") not in str(error):
                wrong.append(f"{what}: {error}")
    return wrong, refused


@pytest.mark.parametrize("seed", range(2))
def test_no_flip_of_forty_is_silent(killed: Path, tmp_path: Path, seed: int) -> None:
    wrong, refused = silent(killed, tmp_path, 20, seed)

    assert wrong == []
    assert refused > 5


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(10, 15))
def test_no_flip_of_a_thousand_is_silent(killed: Path, tmp_path: Path, seed: int) -> None:
    wrong, _ = silent(killed, tmp_path, 200, seed)

    assert wrong == []


@pytest.mark.parametrize("store", STORES)
@pytest.mark.parametrize("part", [0, 0.001, 0.3, 0.7, 0.999])
def test_a_flip_in_the_log_is_found_by_check_and_repaired(
    killed: Path, tmp_path: Path, store: str, part: float, capsys: pytest.CaptureFixture[str]
) -> None:
    """SQLite took the first bad frame for the end of the log: acknowledged objects were gone and nothing was said."""
    folder = tmp_path / "d"
    shutil.copytree(killed, folder)
    log = folder / f"{store}-wal"
    content = bytearray(log.read_bytes())
    content[int(part * (len(content) - 1))] ^= 4
    log.write_bytes(content)
    before = {f.name: f.read_bytes() for f in log.parent.iterdir() if f.is_file() and not f.name.endswith("-shm")}

    with pytest.raises(StoreBroken, match="store repair"):
        contents(folder / store)
    assert main(["store", "check", "--data-dir", str(folder)]) == 1
    assert main(["store", "backup", "--data-dir", str(folder), str(tmp_path / "b")]) == 1
    after = {f.name: f.read_bytes() for f in log.parent.iterdir() if f.is_file() and not f.name.endswith("-shm")}
    assert after == before, "the evidence is untouched"
    capsys.readouterr()
    assert main(["store", "repair", "--data-dir", str(folder)]) == 1
    told = capsys.readouterr().err
    assert "objects are kept" in told
    kept = next(f for f in log.parent.iterdir() if ".damaged-" in f.name and f.name.endswith("-wal"))
    assert kept.read_bytes() == content
    assert main(["store", "check", "--data-dir", str(folder)]) == 0
    shutil.copytree(killed, tmp_path / "whole")
    (revision, objects), (later, saved) = contents(tmp_path / "whole" / store), contents(folder / store)
    assert later > revision
    assert len(objects) - len(saved) < 10, "one bit hits the rows of one page at most"
    assert (len(saved) == len(objects)) == ("lost: nothing" in told)


def frames(content: bytes) -> list[bytes]:
    return [content[at : at + 4120] for at in range(32, len(content), 4120)]


def test_an_unacknowledged_torn_end_is_dropped_silently(killed: Path, tmp_path: Path) -> None:
    """Whatever of the last transaction reached the disk, in any order, as long as nobody was answered: no mark says so."""
    whole = (killed / "store.sqlite-wal").read_bytes()
    parts = frames(whole)
    commits = [n for n, frame in enumerate(parts) if struct.unpack_from(">I", frame, 4)[0]]
    first, last = commits[-2] + 1, commits[-1]
    assert last > first, "the transaction has more than one frame"
    states = []
    for damaged in ({first}, {last}, {first, last}):
        folder = tmp_path / str(sorted(damaged))
        shutil.copytree(killed, folder)
        torn = [b"\0" * 4120 if n in damaged else frame for n, frame in enumerate(parts)]
        (folder / "store.sqlite-wal").write_bytes(whole[:32] + b"".join(torn))
        mark.place(folder / "store.sqlite").unlink()  # as after a loss of power right after the first start
        assert wal.read(folder / "store.sqlite").damage == ""
        states.append(contents(folder / "store.sqlite")[0])
        assert upkeep.check(folder / "store.sqlite").is_sound

    assert len(set(states)) == 1


def test_damage_behind_which_others_have_committed_is_found_without_a_mark(killed: Path, tmp_path: Path) -> None:
    shutil.copytree(killed, tmp_path / "d")
    store = tmp_path / "d" / "store.sqlite"
    mark.place(store).unlink()
    log = store.with_name("store.sqlite-wal")
    whole = log.read_bytes()
    silent_at = []
    commits = [n for n, frame in enumerate(frames(whole)) if struct.unpack_from(">I", frame, 4)[0]]
    for n in range(0, commits[-3], 3):
        content = bytearray(whole)
        content[32 + 4120 * n + 1000] ^= 1
        log.write_bytes(content)
        if not wal.read(store).damage:
            silent_at.append(n)

    assert silent_at == []


def test_a_crash_after_a_torn_end_is_not_damage(killed: Path, tmp_path: Path) -> None:
    """Frames of an end that was dropped must not stay in the log: shorter transactions over them would look like damage."""
    shutil.copytree(killed, tmp_path / "d")
    store = tmp_path / "d" / "store.sqlite"
    log = store.with_name("store.sqlite-wal")
    content = log.read_bytes()
    begun = next(frame for frame in frames(content) if not struct.unpack_from(">I", frame, 4)[0])
    log.write_bytes(content + begun * 3)

    journal = SqliteJournal(store)
    list(journal.entries())
    assert len(frames(log.read_bytes())) < 3
    shutil.copytree(tmp_path / "d", tmp_path / "again")
    journal.close()

    assert contents(tmp_path / "again" / "store.sqlite")[1] == contents(store)[1]


def test_a_store_from_before_there_was_a_mark_is_taken_over(killed: Path, tmp_path: Path) -> None:
    shutil.copytree(killed, tmp_path / "d")
    for name in ("store.sqlite-mark", "keys.sha256"):
        (tmp_path / "d" / name).unlink()
    (tmp_path / "d" / "port").write_text("40123\n")

    _, port, _ = served(tmp_path / "d")

    assert port == 40123
    assert (tmp_path / "d" / "keys.sha256").exists()
    assert mark.read(tmp_path / "d" / "store.sqlite") is not None


@pytest.mark.parametrize("name", ["ca.crt", "ca.key", "tokens.pem"])
async def test_a_key_that_is_damaged_or_gone_is_named(killed: Path, tmp_path: Path, name: str, capsys: pytest.CaptureFixture[str]) -> None:
    shutil.copytree(killed, tmp_path / "d")
    content = bytearray((tmp_path / "d" / name).read_bytes())
    content[100] ^= 1
    (tmp_path / "d" / name).write_bytes(content)
    with pytest.raises(StoreBroken, match=f"{name}: is not as it was written"):
        await serving(tmp_path / "d")
    assert main(["store", "check", "--data-dir", str(tmp_path / "d")]) == 1
    assert name in capsys.readouterr().err
    (tmp_path / "d" / name).unlink()
    with pytest.raises(StoreBroken, match=f"{name}: is missing"):
        await serving(tmp_path / "d")


# ---------------------------------------------------------------------------------------------------------- who may write it


@pytest.mark.parametrize(
    ("place", "mode", "change"),
    [
        ("d", 0o777, "chmod go-w"),
        ("d", 0o770, "chmod go-w"),
        ("", 0o777, "chmod o-w"),
        ("d/workload", 0o777, "chmod go-w"),
        ("d/ca.key", 0o644, "chmod go="),
        ("d/tokens.pem", 0o640, "chmod go="),
        ("d/store.sqlite", 0o666, "chmod go="),
        ("d/workload/clusters.sqlite-wal", 0o622, "chmod go="),
    ],
)
async def test_a_directory_that_others_can_write_is_refused(killed: Path, tmp_path: Path, place: str, mode: int, change: str) -> None:
    shutil.copytree(killed, tmp_path / "d")
    (tmp_path / place).chmod(mode)

    with pytest.raises(StoreBroken, match=f"mode 0{mode:o}.*run: {change} "):
        await serving(tmp_path / "d")


@pytest.mark.parametrize("mode", [0o1777, 0o775, 0o755])
def test_a_folder_as_folders_are_is_fine_around_it(tmp_path: Path, mode: int) -> None:
    (tmp_path / "d").mkdir(mode=0o700)
    tmp_path.chmod(mode)

    datadir.demand_private(tmp_path / "d")


# ---------------------------------------------------------------------------------------------------------------- a full disk


async def test_a_full_disk_at_the_start_is_reported_at_once(killed: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shutil.copytree(killed, tmp_path / "d")

    def full(*_: Any) -> int:
        raise OSError(28, os.strerror(28))

    monkeypatch.setattr(os, "pwrite", full)
    with pytest.raises(StoreBroken, match="No space left"):
        await serving(tmp_path / "d")


async def test_a_broken_store_fails_readiness_and_is_expected(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    running = await serving(tmp_path / "d")
    assert running.journal is not None

    def full(_: Any) -> None:
        raise OSError(28, os.strerror(28))

    setattr(running.journal, "_commit", full)  # noqa: B010
    assert (await send(running.server, "POST", BASE, config_map("a"))).status == 500
    ready, alive = [await running.server.handle(Request(method="GET", path=path)) for path in ("/readyz", "/livez/ping")]
    assert isinstance(ready, Response)
    assert isinstance(alive, Response)
    assert isinstance(running.broken.exception(), OSError)
    await running.stop()
    running.server.close()

    assert (ready.status, alive.status) == (500, 200)
    assert b"[-]etcd failed: the store can no longer be written" in ready.body
    assert [r for r in caplog.records if r.exc_info] == []
    assert any("a write could not be stored" in r.getMessage() for r in caplog.records)


async def test_the_mark_costs_no_sync_while_there_are_writes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    journal = SqliteJournal(tmp_path / "store.sqlite")
    synced = []
    monkeypatch.setattr(os, "fdatasync", synced.append)
    for n in range(1, 50):
        journal._commit([("configmaps", Event("ADDED", Entry(f"default/c{n}", "default", f"c{n}", str(n), n, b"{}"), None))])
    assert synced == []
    journal.close()

    assert len(synced) == 1
    assert mark.read(tmp_path / "store.sqlite") == (49, 49, journal._total)
