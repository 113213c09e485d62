"""`python -m tools.dependencies [--check]`: the bill of materials, and what can be audited without a network.

The bill (docs/sbom.json, CycloneDX) is made from the lock file, so that it names what an installation really gets. The audit: all
that we depend on is locked, every lock has hashes, and what is installed is what is locked.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
import tomllib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Any, Final

BILL: Final = Path("docs") / "sbom.json"
LOCK: Final = Path("requirements") / "base.txt"
PROJECT: Final = Path("pyproject.toml")
_LINE: Final = re.compile(r"^([A-Za-z0-9._-]+)==([^\s;\\]+)")
_HASH: Final = re.compile(r"--hash=sha256:[0-9a-f]{64}\b")
_TOOLS: Final = frozenset({"setuptools", "wheel"})
"""Packages that build us and are not part of us."""


@dataclass(frozen=True, slots=True)
class Locked:
    """One package of the lock file."""

    name: str
    version: str
    hashes: int


def locked(text: str) -> list[Locked]:
    """Return the packages of a lock file, by name."""
    found: list[Locked] = []
    for line in text.splitlines():
        if match := _LINE.match(line):
            found.append(Locked(_normal(match[1]), match[2], len(_HASH.findall(line))))
        elif found and (more := len(_HASH.findall(line))):
            found[-1] = Locked(found[-1].name, found[-1].version, found[-1].hashes + more)
    return sorted(found, key=lambda package: package.name)


def bill(packages: Iterable[Locked], project: dict[str, Any]) -> str:
    """Return the bill of materials as CycloneDX."""
    root = f"pkg:pypi/{project['name']}@{project['version']}"
    parts = [p for p in packages if p.name not in _TOOLS]
    components = [{"type": "library", "name": p.name, "version": p.version, "purl": _purl(p), "bom-ref": _purl(p)} for p in parts]
    document = {
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "version": 1,
        "metadata": {"component": {"type": "application", "name": project["name"], "version": project["version"], "bom-ref": root}},
        "components": components,
        "dependencies": [{"ref": root, "dependsOn": [_purl(p) for p in parts]}],
    }
    return json.dumps(document, indent=1) + "\n"


def audit(packages: Sequence[Locked], project: dict[str, Any]) -> list[str]:
    """Return what is wrong with the dependencies, one sentence each."""
    by_name = {p.name: p for p in packages}
    problems = [f"{p.name}: locked without hashes" for p in packages if not p.hashes]
    for wanted in project["dependencies"]:
        name = _normal(re.split(r"[<>=!~ \[;]", wanted, maxsplit=1)[0])
        if name not in by_name:
            problems.append(f"{name}: a dependency of pyproject.toml that {LOCK} does not lock")
    for package in packages:
        try:
            version = metadata.version(package.name)
        except metadata.PackageNotFoundError:
            continue  # not needed on this platform
        if version.split("+")[0] != package.version:
            problems.append(f"{package.name}: {version} is installed, {package.version} is locked")
    return problems


def run(argv: Sequence[str]) -> int:
    """Write the bill; with --check compare it, and audit."""
    parser = argparse.ArgumentParser(prog="clusterwright dependencies", description="Bill of materials and audit of the dependencies.")
    parser.add_argument("--check", action="store_true", help="write nothing; fail where the bill is stale or the audit finds something")
    arguments = parser.parse_args(list(argv))
    packages = locked(LOCK.read_text())
    project = tomllib.loads(PROJECT.read_text())["project"]
    wanted = bill(packages, project)
    if not arguments.check:
        BILL.write_text(wanted)
        return 0
    problems = audit(packages, project)
    if not BILL.exists() or BILL.read_text() != wanted:
        problems.append(f"{BILL} is stale: run `make docs`")
    for problem in problems:
        print(problem, file=sys.stderr)
    return 1 if problems else 0


def _purl(package: Locked) -> str:
    return f"pkg:pypi/{package.name}@{package.version}"


def _normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


if __name__ == "__main__":
    sys.exit(run(sys.argv[1:]))
