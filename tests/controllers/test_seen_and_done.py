"""What a pass read is made once and never replaced; what it did is another type, which derives from it."""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Iterator
from dataclasses import dataclass, fields, is_dataclass
from datetime import UTC, datetime
from pathlib import Path
from types import ModuleType
from typing import Any, get_args, get_origin

import pytest

from clusterwright import controllers, provider
from clusterwright.api.copying import replace
from clusterwright.api.core import Machine
from clusterwright.api.meta import ObjectMeta
from clusterwright.controllers.inmemory.build import declared
from clusterwright.controllers.kit.passing import Pass
from clusterwright.controllers.kit.reconciler import Kind
from clusterwright.controllers.kit.registry import ENTRIES, definition
from clusterwright.controllers.kit.snapshots import Snapshot
from clusterwright.provider import running
from clusterwright.runtime.client import Original

SOURCES = [path for package in (controllers, provider) for path in sorted(Path(package.__path__[0]).rglob("*.py"))]


def subclasses(kind: type[Any]) -> Iterator[type[Any]]:
    """Yield the classes that derive from a class."""
    for one in kind.__subclasses__():
        yield one
        yield from subclasses(one)


def kinds() -> list[tuple[type[Any], type[Any], type[Any]]]:
    """Return the kinds that name their types, with the type of what they read and that of what they do."""
    assert [definition(entry) for entry in ENTRIES]
    assert declared()
    assert isinstance(running, ModuleType)
    found = []
    for kind in subclasses(Kind):
        for base in getattr(kind, "__orig_bases__", ()):
            if get_origin(base) is Kind and kind.__module__.startswith("clusterwright."):
                _, _, seen, done = get_args(base)
                found.append((kind, get_origin(seen) or seen, get_origin(done) or done))
    return found


KINDS = [pytest.param(*one, id=one[0].__name__) for one in kinds()]


@pytest.mark.parametrize(("kind", "seen", "done"), KINDS)
def test_the_outcome_type_of_a_pass_derives_from_its_snapshot_type(kind: type[Any], seen: type[Any], done: type[Any]) -> None:
    for one in (seen, done):
        assert is_dataclass(one)
        assert one.__dataclass_params__.frozen, one  # type: ignore[attr-defined]
    assert issubclass(done, seen)
    if done is not seen:
        package = inspect.getmodule(kind).__package__ or ""
        texts = [path.read_text() for path in SOURCES if ".".join(path.parts[:-1]).endswith(package)]
        assert any(re.search(rf"\bdone={done.__name__}\b", text) for text in texts)
        assert {f.name for f in fields(done)} > {f.name for f in fields(seen)}


def test_all_kinds_are_checked() -> None:
    assert len(KINDS) > 15


def replaced_snapshots(tree: ast.AST) -> Iterator[int]:
    """Yield the lines that put another snapshot into a pass."""
    for node in ast.walk(tree):
        targets = node.targets if isinstance(node, ast.Assign) else [node.target] if isinstance(node, ast.AugAssign | ast.AnnAssign) else []
        yield from (t.lineno for t in targets if ast.unparse(t) in {"run.seen", "run._seen"})


def test_no_step_replaces_the_snapshot() -> None:
    assert {str(path): lines for path in SOURCES if (lines := list(replaced_snapshots(ast.parse(path.read_text()))))} == {}
    assert Path(inspect.getfile(Pass)).read_text().count("self._seen = ") == 1


@pytest.mark.parametrize("code", ["run.seen = x", "run._seen = x", "run.seen += x", "run.seen: int = 1"])
def test_a_replaced_snapshot_is_found(code: str) -> None:
    assert list(replaced_snapshots(ast.parse(code))) == [1]


def unasked(tree: ast.AST) -> Iterator[str]:
    """Yield the optional fields of dataclasses whose None is described as a question that was not asked."""
    for node in ast.walk(tree):
        if not isinstance(node, ast.ClassDef):
            continue
        for field, text in zip(node.body, node.body[1:], strict=False):
            described = isinstance(field, ast.AnnAssign) and isinstance(text, ast.Expr) and isinstance(text.value, ast.Constant)
            if described and re.search(r"None:?[^.]*\b(not|nobody|never)\b[^.]*\basked\b", ast.unparse(text)):
                yield f"{node.name}.{ast.unparse(field).partition(':')[0]}"


def test_no_field_means_not_read_yet() -> None:
    assert {str(path): names for path in SOURCES if (names := list(unasked(ast.parse(path.read_text()))))} == {}


def test_a_field_that_means_not_read_yet_is_found() -> None:
    assert list(unasked(ast.parse('class A:\n    room: int | None = None\n    """None: it was not asked."""'))) == ["A.room"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Done(Snapshot[Machine]):
    count: int = 0


async def nothing(original: Original[Machine], after: Machine) -> None:
    return None


def test_a_pass_keeps_what_it_read() -> None:
    machine = Machine(metadata=ObjectMeta(name="a"))
    other = Machine(metadata=ObjectMeta(name="b"))
    now = datetime.now(UTC)
    seen = Snapshot(now=now, object=machine)
    run = Pass[Machine, Snapshot[Machine], Done](Original(machine, b"{}"), seen, Done(now=now, object=machine), nothing)

    run.become(other)
    run.done = replace(run.done, count=1)

    assert run.seen is seen
    assert (run.seen.object, run.object, run.done.count) == (machine, other, 1)
    with pytest.raises(AttributeError):
        run.seen = seen  # type: ignore[misc]
