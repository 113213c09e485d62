"""`clusterwright move` between two planes, there and back."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from cli.conftest import Run, run_in, start, stop


class Place(NamedTuple):
    run: Run
    kubeconfig: str


@pytest.fixture(scope="module")
def places(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Place, Place]]:
    folders = [tmp_path_factory.mktemp(name) for name in ("here", "there")]
    processes = [start(folder) for folder in folders]
    try:
        here, there = (Place(run_in(folder), str(folder / ".clusterwright" / "kubeconfig")) for folder in folders)
        yield here, there
    finally:
        for process in processes:
            stop(process)


def done(place: Place, *arguments: str) -> str:
    ended = place.run(*arguments)
    assert ended.returncode == 0, ended.stderr
    return ended.stdout


@pytest.mark.parametrize("others", [[], pytest.param(["two"], marks=pytest.mark.soak)])
def test_clusters_move_there_and_back(others: list[str], places: tuple[Place, Place], tmp_path: Path) -> None:
    here, there = places
    names = ["one", *others]
    done(here, "create", "one", "--control-plane-machines", "3" if others else "1", "--wait")
    for name in others:
        done(here, "create", name, "--flavor", "topology", "--wait")
    config = done(here, "get", "kubeconfig", "one")
    machines = sorted(done(here, "get", "machines", "-o", "name").split())

    for source, target in ((here, there), (there, here)):
        dry = done(source, "move", "--to-kubeconfig", target.kubeconfig, "--dry-run")
        assert dry.startswith(f"{len(names)} Cluster{'s' if others else ''} ({', '.join(names)}) with ")
        said = done(source, "move", "--to-kubeconfig", target.kubeconfig)
        assert said.splitlines()[-1].startswith("moved to https://127.0.0.1:")
        assert "No clusters found" in source.run("get", "clusters").stderr
        for name in names:
            done(target, "wait", name)
            done(target, "wait", name, "--for=jsonpath={.status.phase}=Provisioned")
        # the same machines with the same names, reached by the same kubeconfig; nobody made or deleted one
        assert sorted(done(target, "get", "machines", "-o", "name").split()) == machines
        (tmp_path / "one.kubeconfig").write_text(config)
        nodes = json.loads(done(target, "get", "nodes", "-o", "json", "--kubeconfig", str(tmp_path / "one.kubeconfig")))["items"]
        assert {n["metadata"]["name"] for n in nodes} == {m.rpartition("/")[2] for m in machines if "/one-" in m}

    for name in names:
        assert "deleted after" in done(here, "delete", name)


def test_an_impossible_move_is_explained_and_changes_nothing(places: tuple[Place, Place], tmp_path: Path) -> None:
    here, there = places
    nowhere = here.run("move", "--to-kubeconfig", str(tmp_path / "none"))
    assert (nowhere.returncode, len(nowhere.stderr.splitlines())) == (1, 1)
    assert "no kubeconfig found" in nowhere.stderr
    itself = here.run("move", "--to-kubeconfig", here.kubeconfig)
    assert itself.returncode == 2
    assert "the clusters are already there" in itself.stderr
    empty = there.run("move", "-n", "nowhere", "--to-kubeconfig", here.kubeconfig)
    assert (empty.returncode, empty.stderr) == (1, "clusterwright move: there is no Cluster in namespace nowhere\n")

    done(here, "create", "same", "--wait")
    done(there, "create", "same", "--wait")
    taken = here.run("move", "--to-kubeconfig", there.kubeconfig)
    assert taken.returncode == 1
    assert "clusterwright move: Cluster/same already exists there\n" in taken.stderr
    cluster = json.loads(done(here, "get", "cluster", "same", "-o", "json"))
    assert "paused" not in cluster["spec"]
