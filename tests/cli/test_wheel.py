"""The wheel: all of the package, nothing else, and it runs alone."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
import zipfile
from email import message_from_string
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from cli.conftest import environment

ROOT = Path(__file__).parents[2]
LARGEST = 3 * 1024 * 1024


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Built from a copy, without a network."""
    pytest.importorskip("setuptools")
    source, out = tmp_path_factory.mktemp("source"), tmp_path_factory.mktemp("out")
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, source)
    shutil.copytree(ROOT / "src", source / "src", ignore=shutil.ignore_patterns("__pycache__", "*.egg-info"))
    command = [
        sys.executable,
        "-m",
        "pip",
        "wheel",
        "--quiet",
        "--disable-pip-version-check",
        "--no-build-isolation",
        "--no-deps",
        "--no-index",
    ]
    subprocess.run([*command, "-w", str(out), str(source)], check=True, capture_output=True, timeout=600)
    (built,) = out.glob("*.whl")
    return built


def test_it_holds_the_package_and_is_small(wheel: Path) -> None:
    package = ROOT / "src" / "clusterwright"
    expected = {f"clusterwright/{p.relative_to(package)}" for p in package.rglob("*") if p.is_file() and "__pycache__" not in p.parts}

    with zipfile.ZipFile(wheel) as archive:
        held = {name for name in archive.namelist() if ".dist-info/" not in name}

    assert held == expected
    assert wheel.stat().st_size < LARGEST


def test_it_says_what_it_is(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        folder = next(name.partition("/")[0] for name in archive.namelist() if ".dist-info/" in name)
        metadata = message_from_string(archive.read(f"{folder}/METADATA").decode())
        scripts = archive.read(f"{folder}/entry_points.txt").decode()

    assert "clusterwright = clusterwright.cli.main:main" in scripts
    urls = {line.rpartition(", ")[2] for line in metadata.get_all("Project-URL", [])}
    # hosts that somebody answers for
    assert {urlsplit(url).hostname for url in urls} == {"cluster-api.sigs.k8s.io", "github.com"}
    assert "Typing :: Typed" in metadata.get_all("Classifier", [])
    assert metadata["Requires-Python"] == ">=3.11"


def _installed(wheel: Path, tmp_path: Path) -> dict[str, str]:
    """The environment of a user who has nothing but the wheel."""
    installed, home = tmp_path / "installed", tmp_path / "home"
    home.mkdir()
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(installed)
    return environment(home, PYTHONPATH=str(installed), PYTHONDONTWRITEBYTECODE="1")


def test_it_runs_alone(wheel: Path, tmp_path: Path) -> None:
    """With what it depends on, and without the sources beside it."""
    env = _installed(wheel, tmp_path)
    for words in (["-c", "import clusterwright; print(clusterwright.__file__)"], ["-m", "clusterwright", "crds"]):
        ended = subprocess.run([sys.executable, *words], cwd=tmp_path / "home", env=env, capture_output=True, text=True, check=True)
        assert ended.stdout.startswith((str(tmp_path / "installed"), "---", "apiVersion"))


@pytest.mark.soak
def test_its_demo_comes_up(wheel: Path, tmp_path: Path) -> None:
    env = _installed(wheel, tmp_path)
    home = tmp_path / "home"
    out = home / "out"
    with out.open("w") as stdout:
        process = subprocess.Popen(
            [sys.executable, "-m", "clusterwright", "up", "--demo"], cwd=home, env=env, stdout=stdout, stderr=subprocess.STDOUT
        )
    try:
        deadline = time.monotonic() + 600  # a net, not a measurement
        while "Ctrl-C ends it" not in out.read_text():
            assert process.poll() is None, out.read_text()
            assert time.monotonic() < deadline, out.read_text()
            time.sleep(0.2)
        os.kill(process.pid, signal.SIGTERM)
        assert process.wait(timeout=600) == 0
    finally:
        process.kill()
        process.wait()
    assert "control plane 3/3 ready  workers 3/3 ready" in out.read_text()
