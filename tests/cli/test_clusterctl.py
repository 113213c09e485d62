"""clusterctl, unchanged, against our planes. CLUSTERCTL names the program; without it these tests say that it is not there."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from cli.conftest import Run, environment, run_in, start, stop

CLUSTERCTL = os.environ.get("CLUSTERCTL") or shutil.which("clusterctl")
pytestmark = pytest.mark.skipif(CLUSTERCTL is None, reason="clusterctl is not installed: set CLUSTERCTL")


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Path, Path]]:
    folders = tmp_path_factory.mktemp("here"), tmp_path_factory.mktemp("there")
    processes = [start(folder) for folder in folders]
    try:
        ours = run_in(folders[0])
        for name, flavor in (("c", "plain"), ("t", "topology")):
            made = ours("create", name, "--flavor", flavor, "--wait")
            assert made.returncode == 0, made.stderr
        yield folders
    finally:
        for process in processes:
            stop(process)


def clusterctl(folder: Path, *arguments: str, **more: str) -> str:
    """What it prints, which is all right."""
    done = subprocess.run(
        [str(CLUSTERCTL), *arguments, "--kubeconfig", str(_kubeconfig(folder))],
        env=environment(folder, XDG_CONFIG_HOME=str(folder), CLUSTERCTL_DISABLE_VERSIONCHECK="true", **more),
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def _kubeconfig(folder: Path) -> Path:
    return folder / ".clusterwright" / "kubeconfig"


def ran(run: Run, *arguments: str) -> str:
    done = run(*arguments)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_describe_shows_the_tree(folders: tuple[Path, Path]) -> None:
    shown = clusterctl(folders[0], "describe", "cluster", "c")

    assert "ControlPlane - KubeadmControlPlane/c" in shown
    assert "MachineDeployment/c-md-0" in shown


def test_the_kubeconfig_is_the_same(folders: tuple[Path, Path]) -> None:
    assert yaml.safe_load(clusterctl(folders[0], "get", "kubeconfig", "c")) == yaml.safe_load(
        ran(run_in(folders[0]), "get", "kubeconfig", "c")
    )


@pytest.mark.parametrize(("kind", "name"), [("machinedeployment", "c-md-0"), ("kubeadmcontrolplane", "c")])
def test_a_rollout_is_restarted(kind: str, name: str, folders: tuple[Path, Path]) -> None:
    run = run_in(folders[0])
    machines = "get", "machines", "-c", "c", "-o", "name"
    before = set(ran(run, *machines).split())

    clusterctl(folders[0], "alpha", "rollout", "restart", f"{kind}/{name}")

    ran(run, "wait", f"{kind}/{name}", "--for", "condition=RollingOut=True")
    ran(run, "wait", f"{kind}/{name}", "--for", "condition=RollingOut=False")
    assert len(before - set(ran(run, *machines).split())) == 1


def test_a_rollout_is_paused_and_resumed(folders: tuple[Path, Path]) -> None:
    run = run_in(folders[0])
    clusterctl(folders[0], "alpha", "rollout", "pause", "machinedeployment/c-md-0")
    ran(run, "wait", "md/c-md-0", "--for", "jsonpath={.spec.paused}=true")
    clusterctl(folders[0], "alpha", "rollout", "resume", "machinedeployment/c-md-0")
    ran(run, "wait", "md/c-md-0")


def test_our_templates_are_its_templates(folders: tuple[Path, Path], tmp_path: Path) -> None:
    template = tmp_path / "template.yaml"
    template.write_text(
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: '${CLUSTER_NAME}', namespace: '${NAMESPACE:=default}'}\ndata: {a: '${A:=b}'}\n"
    )

    theirs = clusterctl(folders[0], "generate", "cluster", "x", "--from", str(template))
    ours = ran(run_in(folders[0]), "generate", "cluster", "x", "--from", str(template))

    assert yaml.safe_load(theirs) == yaml.safe_load(ours)


def test_clusters_move_there_and_back(folders: tuple[Path, Path]) -> None:
    machines = sorted(ran(run_in(folders[0]), "get", "machines", "-o", "name").split())

    for source, target in (folders, folders[::-1]):
        clusterctl(source, "move", "--to-kubeconfig", str(_kubeconfig(target)))
        run = run_in(target)
        for name in ("c", "t"):
            ran(run, "wait", name)
        assert "No clusters found" in run_in(source)("get", "clusters").stderr
        assert sorted(ran(run, "get", "machines", "-o", "name").split()) == machines
