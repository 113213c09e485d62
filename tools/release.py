"""`python -m tools.release`: everything that can be tried of a release before it is made. Nothing is published.

Builds sdist and wheel twice, from the last commit, and compares them; compares the wheel with the source; installs it on every Python that
is found, and runs it; writes digests, the bill of materials and a statement of provenance into build/release.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import tomllib
import zipfile
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, Final

from tools import dependencies

TARGET: Final = Path("build") / "release"
PACKAGE: Final = "src/clusterwright/"
PYTHONS: Final = ("python3.11", "python3.12", "python3.13", "python3.14")
_HEADING: Final = re.compile(r"^## ", re.MULTILINE)
_SMOKE: Final = """
import clusterwright
from clusterwright.simulation import samples
from clusterwright.testing import run_virtual, virtual_plane

async def main():
    async with virtual_plane() as plane:
        await plane.apply(samples.cluster("c", has_control_plane_object=True) + samples.control_plane("c", replicas=1))
        await plane.until_available("c", control_plane=1)

run_virtual(main())
print(clusterwright.__version__)
"""
"""A cluster comes up in virtual time: API server, controllers, certificates, templates and data files are used."""


class NotReady(Exception):
    """The release must not be made; the text says why and what to do."""


def versions_differ(project: str, module: str) -> str:
    """Return what is wrong with the version in pyproject.toml and in the module; empty: they agree."""
    wanted = tomllib.loads(project)["project"]["version"]
    found = re.search(r'^__version__ = "([^"]+)"$', module, re.MULTILINE)
    said = found[1] if found else "none"
    return "" if said == wanted else f"pyproject.toml says {wanted}, clusterwright.__version__ {said}: set both to the same"


def changelog(fragments: Iterable[tuple[str, str]], version: str) -> str:
    """Return the section of a release from fragments (file name, text). Raises NotReady for a fragment that cannot be used."""
    lines = [f"## {version}", ""]
    for name, text in fragments:
        if not text.strip() or _HEADING.search(text):
            raise NotReady(f"changelog.d/{name}: a paragraph or a list is expected, without headings")
        lines += [entry if entry.startswith(("- ", "  ")) else f"- {entry}" for entry in text.strip().splitlines()]
    return "\n".join(lines) + "\n"


def missing_in_wheel(tracked: Iterable[str], packed: Collection[str]) -> list[str]:
    """Return the files of the package that a wheel lacks."""
    return sorted(name for path in tracked if (name := path.removeprefix("src/")) not in packed and path.startswith(PACKAGE))


def provenance(commit: str, digests: dict[str, str]) -> dict[str, Any]:
    """Return an in-toto statement about the files, to be signed by the person who releases them."""
    return {
        "_type": "https://in-toto.io/Statement/v1",
        "subject": [{"name": name, "digest": {"sha256": digest}} for name, digest in sorted(digests.items())],
        "predicateType": "https://slsa.dev/provenance/v1",
        "predicate": {
            "buildDefinition": {
                "buildType": "python -m build, twice, compared",
                "externalParameters": {"commit": commit},
                "resolvedDependencies": [{"uri": f"git+commit:{commit}", "digest": {"gitCommit": commit}}],
            },
            "runDetails": {"builder": {"id": "tools/release.py"}},
        },
    }


def _output(*command: str, **options: Any) -> str:
    return subprocess.run(command, check=True, capture_output=True, text=True, **options).stdout.strip()


def _built(commit: str, folder: Path) -> dict[str, bytes]:
    """Return sdist and wheel of a commit, built in a folder of their own."""
    folder.mkdir(parents=True)
    archive = folder / "source.tar"
    subprocess.run(["git", "archive", "--output", str(archive), commit], check=True)
    with tarfile.open(archive) as source:
        source.extractall(folder / "tree", filter="data")
    env = {**os.environ, "SOURCE_DATE_EPOCH": _output("git", "show", "-s", "--format=%ct", commit), "PYTHONDONTWRITEBYTECODE": "1"}
    script = "import sys, setuptools.build_meta as b; to = sys.argv[1]; b.build_sdist(to); b.build_wheel(to)"  # setuptools changes argv
    made = subprocess.run(
        [sys.executable, "-c", script, str(folder)], cwd=folder / "tree", env=env, capture_output=True, text=True, check=False
    )
    if made.returncode:
        raise NotReady(f"the packages cannot be built: {made.stderr.strip().splitlines()[-1]}")
    return {path.name: path.read_bytes() for path in folder.glob("clusterwright-*") if path.suffix in {".whl", ".gz"}}


def _same(first: dict[str, bytes], second: dict[str, bytes]) -> Iterator[str]:
    """Yield the names of files that two builds have in common but for their bytes. The time in the head of gzip does not count."""
    for name, content in first.items():
        if _stable(name, content) != _stable(name, second.get(name, b"")):
            yield name


def _stable(name: str, content: bytes) -> bytes:
    if not name.endswith(".gz") or not content:
        return content
    import gzip
    import io

    with tarfile.open(fileobj=io.BytesIO(gzip.decompress(content))) as packed:
        return b"".join(f"{m.name} {m.mode} {m.size}\n".encode() + (f.read() if (f := packed.extractfile(m)) else b"") for m in packed)


def _install(python: str, wheel: Path, folder: Path, version: str) -> None:
    """Install a wheel with locked dependencies into a new environment, and run it; raises NotReady."""
    subprocess.run([python, "-m", "venv", str(folder)], check=True)
    own = str(folder / "bin" / "python")
    pip = [own, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    steps = (
        [*pip, "--require-hashes", "-r", "requirements/base.txt"],
        [*pip, "--no-deps", str(wheel)],
        [own, "-c", _SMOKE],
        [str(folder / "bin" / "clusterwright"), "version"],
    )
    for step in steps:
        done = subprocess.run(
            step, capture_output=True, text=True, check=False, env={k: v for k, v in os.environ.items() if k != "PYTHONPATH"}
        )
        if done.returncode:
            raise NotReady(f"{python}: {' '.join(step)[:120]}: {done.stderr.strip().splitlines()[-1:]}")
    if version not in done.stdout:
        raise NotReady(f"{python}: `clusterwright version` prints {done.stdout.strip()!r}, not {version}")


def _pythons() -> list[str]:
    """Return the Pythons of this machine that can make environments."""
    found = [name for name in PYTHONS if shutil.which(name)]
    return [n for n in found if subprocess.run([n, "-c", "import ensurepip, venv"], capture_output=True, check=False).returncode == 0]


def run(arguments: argparse.Namespace) -> None:
    """Try the release; raises NotReady."""
    project, commit = Path("pyproject.toml").read_text(), _output("git", "rev-parse", "HEAD")
    version = tomllib.loads(project)["project"]["version"]
    say: Callable[[str], None] = lambda text: print(text, flush=True)  # noqa: E731  one name for all lines
    if _output("git", "status", "--porcelain", "--untracked-files=no"):
        raise NotReady("there are changes that are not committed: commit or undo them, a release is made from a commit")
    if wrong := versions_differ(project, Path("src/clusterwright/__init__.py").read_text()):
        raise NotReady(wrong)
    fragments = [(p.name, p.read_text()) for p in sorted(Path("changelog.d").glob("*.md")) if p.name != "README.md"]
    section = changelog(fragments, version)
    say(f"version {version}, changelog of {len(fragments)} fragments")
    if dependencies.run(["--check"]):
        raise NotReady("dependencies differ from the locks or the bill of materials: see above")
    with tempfile.TemporaryDirectory() as name:
        first, second = _built(commit, Path(name) / "first"), _built(commit, Path(name) / "another" / "place")
        if different := list(_same(first, second)):
            raise NotReady(f"two builds of one commit differ: {', '.join(different)}")
        wheel = next(n for n in first if n.endswith(".whl"))
        with zipfile.ZipFile(Path(name) / "first" / wheel) as packed:
            lacking = missing_in_wheel(_output("git", "ls-files", PACKAGE).splitlines(), set(packed.namelist()))
        if lacking:
            raise NotReady(f"the wheel lacks {', '.join(lacking[:5])}: name them in package-data of pyproject.toml")
        say(f"two builds are equal: {', '.join(sorted(first))}")
        for python in arguments.python or _pythons():
            _install(python, Path(name) / "first" / wheel, Path(name) / python.replace("/", "_"), version)
            say(f"installed and tried on {python}")
        for python in () if arguments.python else (p for p in PYTHONS if p not in _pythons()):
            say(f"NOT TRIED on {python}: it is not there")
    _write(first, section, provenance(commit, {n: hashlib.sha256(c).hexdigest() for n, c in first.items()}))
    say(f"ready to be signed and published: {TARGET}")


def _write(packages: dict[str, bytes], section: str, statement: dict[str, Any]) -> None:
    shutil.rmtree(TARGET, ignore_errors=True)
    TARGET.mkdir(parents=True)
    for name, content in packages.items():
        (TARGET / name).write_bytes(content)
    shutil.copy(dependencies.BILL, TARGET / "sbom.json")
    (TARGET / "CHANGELOG.md").write_text(section)
    (TARGET / "provenance.json").write_text(json.dumps(statement, indent=2) + "\n")
    sums = [f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.name}\n" for path in sorted(TARGET.iterdir())]
    (TARGET / "SHA256SUMS").write_text("".join(sums))


def main(argv: Sequence[str]) -> int:
    """Return the exit status: 0 if the release can be made."""
    parser = argparse.ArgumentParser(prog="python -m tools.release", description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--python", action="append", metavar="PATH", help="a Python to try the wheel on; default: all that are found")
    try:
        run(parser.parse_args(argv))
    except NotReady as error:
        print(f"not ready: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
