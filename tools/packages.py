"""Compare the controller packages for docs/architecture.md: the files that each has more or fewer than usual, and why."""

from __future__ import annotations

import ast
import pkgutil
from importlib.util import find_spec
from pathlib import Path

from clusterwright import controllers

USUAL = ("build", "snapshot", "guards", "plan", "conditions", "status", "reconciler")
BEGIN, END = "<!-- controller packages: rendered by make docs -->\n", "<!-- end of controller packages -->\n"

# Why a package lacks a usual file. A test fails for a difference that is not explained here, and for a reason without one.
_WITHOUT = {
    ("clusterclass", "guards"): "few questions; they stand with their tables",
    ("clusterclass", "plan"): "nothing to choose: every template is owned, every variable published",
    ("clusterclass", "status"): "no phase and no counters",
    ("clusterresourceset", "guards"): "few questions; they stand with their table",
    ("clusterresourceset", "plan"): "nothing to choose: every resource is applied to every Cluster that matches",
    ("clusterresourceset", "status"): "no phase and no counters",
    ("clusterresourcesetbinding", "snapshot"): "it is the Cluster; it stands with the one table",
    ("clusterresourcesetbinding", "guards"): "few questions; they stand with their table",
    ("clusterresourcesetbinding", "conditions"): "no status at all",
    ("clusterresourcesetbinding", "status"): "no status at all",
    ("extensionconfig", "guards"): "one question; it stands with its table",
    ("extensionconfig", "status"): "no phase and no counters",
    ("inmemory", "snapshot"): "three kinds in one package: `scene`",
    ("inmemory", "guards"): "three kinds in one package: questions stand with their tables",
    ("inmemory", "plan"): "machines go through stages; pools by `poolplan`",
    ("inmemory", "reconciler"): "three kinds in one package: `devcluster`, `devmachine`, `devmachinepool`",
    ("ipam", "snapshot"): "three kinds in one package: `plan` has the snapshots, `facts` what they are made of",
    ("ipam", "guards"): "three kinds in one package: questions stand with their tables",
    ("ipam", "conditions"): "one condition; it stands with the table that answers a claim",
    ("ipam", "reconciler"): "three kinds in one package: `claims`, `pools`",
    ("ipam", "status"): "no phase; addresses are counted by `pools`",
    ("topology", "guards"): "questions stand with their table",
    ("topology", "plan"): "what there should be is computed by the pure package `clusterwright.topology`",
    ("machinehealthcheck", "status"): "no phase; counters are set with the conditions",
}


def packages() -> tuple[str, ...]:
    """Return the packages of controllers, by name: those that build one."""
    return tuple(sorted(m.name for m in pkgutil.iter_modules(controllers.__path__) if m.ispkg and "build" in modules(m.name)))


def unexplained() -> list[str]:
    """Usual files that a package lacks without a reason, and reasons for files that are there: `package/file`."""
    absent = {(package, name) for package in packages() for name in USUAL if name not in modules(package)}
    return ["/".join(pair) for pair in sorted(absent ^ set(_WITHOUT))]


def modules(package: str) -> tuple[str, ...]:
    """Return the modules and folders of a package, by name."""
    spec = find_spec(f"{controllers.__name__}.{package}")
    assert spec is not None
    return tuple(sorted(m.name for m in pkgutil.iter_modules(spec.submodule_search_locations)))


def section() -> str:
    """Return the comparison as Markdown, between its marks."""
    has = {package: modules(package) for package in packages()}
    lines = ["| Package | " + " | ".join(f"`{name}`" for name in USUAL) + " |", "|---" * (len(USUAL) + 1) + "|"]
    for package, present in has.items():
        cells = ["yes" if name in present else f"no: {_WITHOUT.get((package, name), '?')}" for name in USUAL]
        lines.append(f"| `{package}` | " + " | ".join(cells) + " |")
    lines += ["", "What else a package has:", "", "| Package | Module | What it is |", "|---|---|---|"]
    for package, present in has.items():
        lines += [f"| `{package}` | `{name}` | {_purpose(package, name)} |" for name in present if name not in USUAL]
    return BEGIN + "\n".join(lines) + "\n" + END


def _purpose(package: str, module: str) -> str:
    """Return the first line of a module's docstring, read without importing it."""
    spec = find_spec(f"{controllers.__name__}.{package}.{module}")
    assert spec is not None
    assert spec.origin is not None
    text = ast.get_docstring(ast.parse(Path(spec.origin).read_text())) or ""
    return text.partition("\n\n")[0].replace("\n", " ").replace("|", "\\|")


def replaced(document: str) -> str:
    """Return the document with the section brought up to date; raises ValueError where the marks are missing."""
    head, _, rest = document.partition(BEGIN)
    _, found, tail = rest.partition(END)
    if not found:
        raise ValueError(f"{BEGIN.strip()} and {END.strip()} are expected")
    return head + section() + tail
