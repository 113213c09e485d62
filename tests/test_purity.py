"""A module that calls itself pure, or decides by its name, is pure: it imports nothing that reads, writes, waits, logs or tells the time, and asks for neither time nor chance."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

import clusterwright

SOURCES = Path(clusterwright.__file__).parent
IMPURE = {
    "aiohttp", "asyncio", "glob", "http", "logging", "multiprocessing", "os", "secrets", "selectors", "shutil", "signal", "socket",
    "sqlite3", "ssl", "subprocess", "sys", "tempfile", "threading", "time", "urllib.request", "uuid",
}  # fmt: skip
ASKED = {("datetime", "now"), ("datetime", "utcnow"), ("datetime", "today"), ("date", "today"), ("random", "random"), ("random", "choice")}


def calls_itself_pure(tree: ast.Module) -> bool:
    said = (ast.get_docstring(tree) or "").replace("(pure)", "Pure.")
    return any(sentence.strip() == "Pure" or sentence.strip().startswith("Pure,") for sentence in said.replace("\n", " ").split("."))


def decides(path: Path) -> bool:
    package, *_ = path.relative_to(SOURCES).parts
    return package in PACKAGES or (package == "controllers" and path.stem in {"guards", "plan", "conditions", "status"})


PACKAGES = {"tables", "conditions", "conversion", "cel", "gotemplate", "golang", "topology", "kubeadm"}


EDGES = {"topology/extensions.py"}
"""Carries the questions that a computation yields to whoever answers them."""
PURE = {
    path.relative_to(SOURCES).as_posix(): tree
    for path in sorted(SOURCES.rglob("*.py"))
    if calls_itself_pure(tree := ast.parse(path.read_text())) or decides(path)
    if path.relative_to(SOURCES).as_posix() not in EDGES
}


def _is_protocol(node: ast.ClassDef) -> bool:
    return any(isinstance(base, ast.Name) and base.id == "Protocol" for base in node.bases)


def faults(tree: ast.Module) -> set[str]:
    found = set()
    promised = {part for node in ast.walk(tree) if isinstance(node, ast.ClassDef) and _is_protocol(node) for part in node.body}
    for node in ast.walk(tree):
        if node in promised:
            continue  # what others do
        match node:
            case ast.Import(names=names):
                found |= {alias.name for alias in names if alias.name in IMPURE or alias.name.partition(".")[0] in IMPURE}
            case ast.ImportFrom(module=str(module), level=0) if module in IMPURE or module.partition(".")[0] in IMPURE:
                found.add(module)
            case ast.AsyncFunctionDef(name=name) | ast.AsyncFor(target=ast.Name(id=name)):
                found.add(f"async {name}")
            case ast.Call(func=ast.Attribute(value=ast.Name(id=owner), attr=attribute)) if (owner, attribute) in ASKED:
                found.add(f"{owner}.{attribute}()")
            case ast.Call(func=ast.Name(id="open" | "print" | "input" as name)):
                found.add(f"{name}()")
    return found


def test_what_is_impure_is_found() -> None:
    text = "import time\nfrom os.path import join\nasync def f(): pass\nnow = datetime.now(UTC)\nprint(open('x'))\n"
    assert faults(ast.parse(text)) == {"time", "os.path", "async f", "datetime.now()", "print()", "open()"}
    assert calls_itself_pure(ast.parse('"""Chooses. Pure."""'))
    assert not calls_itself_pure(ast.parse('"""Pure functions are elsewhere."""'))


def test_there_are_many() -> None:
    assert len(PURE) > 150
    assert {"controllers/machine/plan.py", "controllers/cluster/guards.py", "controllers/kit/conditions.py"} <= PURE.keys()


@pytest.mark.parametrize("name", PURE)
def test_what_decides_is_pure(name: str) -> None:
    assert faults(PURE[name]) == set()
