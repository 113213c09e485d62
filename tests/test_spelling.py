"""One operation has one name in the whole source."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import msgspec
import pytest

from clusterwright.api.copying import replace

SOURCES = Path(__file__).parents[1] / "src" / "clusterwright"
HOME = "api/copying.py"
LIBRARIES = ("dataclasses", "msgspec.structs", "copy")


def other_spellings(tree: ast.AST) -> Iterator[int]:
    """Yield the lines that copy a value with other fields, but not by the `replace` of api/copying."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module in LIBRARIES:
            yield from (node.lineno for name in node.names if name.name == "replace")
        elif isinstance(node, ast.ImportFrom):
            yield from (node.lineno for name in node.names if name.name == "replace" and name.asname)
        elif isinstance(node, ast.Attribute) and (
            node.attr == "__replace__" or (node.attr == "replace" and ast.unparse(node.value) in LIBRARIES)
        ):
            yield node.lineno


def other_failures(tree: ast.AST) -> Iterator[int]:
    """Yield the lines that put an error into the list of a pass, but not by `fail`."""
    for node in ast.walk(tree):
        target: ast.AST | None = None
        if isinstance(node, ast.AugAssign):
            target = node.target
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in ("append", "extend"):
            target = node.func.value
        if isinstance(target, ast.Attribute) and ast.unparse(target) == "run.errors":
            yield target.lineno


@dataclass(frozen=True)
class Plain:
    a: int
    b: int = 0


class Wire(msgspec.Struct, frozen=True):
    a: int
    b: int = 0


@pytest.mark.parametrize("kind", [Plain, Wire])
def test_replace_copies_dataclasses_and_structs(kind: type[Plain] | type[Wire]) -> None:
    before = kind(1, 2)

    after = replace(before, b=3)

    assert (type(after), after.a, after.b) == (kind, 1, 3)
    assert before.b == 2


@pytest.mark.parametrize("kind", [Plain, Wire])
def test_replace_refuses_fields_that_do_not_exist(kind: type[Plain] | type[Wire]) -> None:
    with pytest.raises(TypeError):
        replace(kind(1), c=3)  # type: ignore[call-arg]


@pytest.mark.parametrize(
    "code",
    [
        "from dataclasses import replace",
        "from msgspec.structs import replace as with_",
        "from clusterwright.api.copying import replace as changed",
        "msgspec.structs.replace(a, b=1)",
        "dataclasses.replace(a, b=1)",
        "copy.replace(a, b=1)",
    ],
)
def test_other_spellings_of_replace_are_found(code: str) -> None:
    assert list(other_spellings(ast.parse(code))) == [1]


def test_replace_has_one_spelling() -> None:
    found = {
        path.relative_to(SOURCES).as_posix(): list(other_spellings(ast.parse(path.read_text()))) for path in sorted(SOURCES.rglob("*.py"))
    }
    assert found.pop(HOME)
    assert {name: lines for name, lines in found.items() if lines} == {}


@pytest.mark.parametrize("code", ["run.errors.append(e)", "run.errors += es", "run.errors.extend(es)"])
def test_other_spellings_of_a_failure_are_found(code: str) -> None:
    assert list(other_failures(ast.parse(code))) == [1]


def test_a_pass_fails_by_one_method() -> None:
    found = {
        path.relative_to(SOURCES).as_posix(): list(other_failures(ast.parse(path.read_text()))) for path in sorted(SOURCES.rglob("*.py"))
    }
    assert {name: lines for name, lines in found.items() if lines} == {}
