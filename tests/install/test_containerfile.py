"""The Containerfile's steps, as far as they need neither a network nor a daemon."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def steps() -> list[tuple[str, str]]:
    text = re.sub(r"^#.*\n", "", (ROOT / "Containerfile").read_text(), flags=re.MULTILINE).replace("\\\n", " ")
    return [(word, rest.strip()) for line in text.splitlines() if line.strip() for word, _, rest in [line.partition(" ")]]


def test_every_copied_file_exists() -> None:
    sources = [source for word, rest in steps() if word == "COPY" and "--from" not in rest for source in shlex.split(rest)[:-1]]

    assert sources
    assert [source for source in sources if not (ROOT / source).exists()] == []


def test_it_does_not_run_as_root_and_every_dependency_is_locked() -> None:
    assert ("USER", "65532:65532") in steps()
    installs = [rest for word, rest in steps() if word == "RUN" and "pip install" in rest]
    assert all("--require-hashes" in install or "--no-deps" in install for install in installs)
    requirements = (ROOT / "requirements" / "base.txt").read_text()
    assert all("--hash=" in block for block in re.split(r"\n(?=[a-z])", requirements) if "==" in block)


def test_our_own_code_is_installed_and_starts(tmp_path: Path) -> None:
    (install,) = [rest for word, rest in steps() if word == "RUN" and "--no-deps" in rest]
    source, app = tmp_path / "build", tmp_path / "app"
    source.mkdir()
    for name in ("pyproject.toml", "README.md", "LICENSE", "src"):
        os.symlink(ROOT / name, source / name)
    command = [sys.executable if word == "python" else str(app) if word == "/app" else word for word in shlex.split(install)]
    done = subprocess.run([*command, "--no-index", "--quiet"], cwd=source, capture_output=True, text=True, check=False)
    if "No module named" in done.stderr or "BackendUnavailable" in done.stderr:
        pytest.skip("no setuptools here to build with")
    assert done.returncode == 0, done.stderr
    entry = [rest for word, rest in steps() if word == "ENTRYPOINT"]

    # without what is installed here editable, only what was put there
    environ = {**os.environ, "PYTHONPATH": str(app)}
    started = subprocess.run(
        [sys.executable, "-P", "-m", "clusterwright", "manager", "--help"],
        cwd=tmp_path,
        env=environ,
        capture_output=True,
        text=True,
        check=True,
    )
    where = subprocess.run(
        [sys.executable, "-P", "-c", "import clusterwright; print(clusterwright.__file__)"],
        cwd=tmp_path, env=environ, capture_output=True, text=True, check=True,
    )  # fmt: skip

    assert entry == ['["python", "-m", "clusterwright"]']
    assert "--leader-elect" in started.stdout
    assert where.stdout.startswith(str(app))
