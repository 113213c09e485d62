"""No module imports, through whatever others, itself: neither when it is loaded nor for the type checker."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

import grimp


def knots(graph: Mapping[str, Iterable[str]]) -> list[list[str]]:
    """The strongly connected components of more than one node (Tarjan's algorithm, without recursion)."""
    number: dict[str, int] = {}
    low: dict[str, int] = {}
    stack: list[str] = []
    found: list[list[str]] = []
    for root in graph:
        work = [(root, iter(graph[root]))] if root not in number else []
        while work:
            node, successors = work[-1]
            if node not in number:
                number[node] = low[node] = len(number)
                stack.append(node)
            for successor in successors:
                if successor not in number:
                    work.append((successor, iter(graph[successor])))
                    break
                if successor in stack:
                    low[node] = min(low[node], number[successor])
            else:
                work.pop()
                if work:
                    low[work[-1][0]] = min(low[work[-1][0]], low[node])
                if low[node] == number[node]:
                    knot = stack[stack.index(node) :]
                    del stack[stack.index(node) :]
                    if len(knot) > 1:
                        found.append(sorted(knot))
    return found


def test_an_import_cycle_is_found() -> None:
    graph = {"a": ["b"], "b": ["c"], "c": ["b", "d"], "d": [], "e": ["a", "f"], "f": ["e"]}
    assert sorted(knots(graph)) == [["b", "c"], ["e", "f"]]


def test_no_module_imports_itself_through_others() -> None:
    graph = grimp.build_graph("clusterwright", cache_dir=None)
    modules = sorted(graph.modules)
    assert len(modules) > 300
    assert knots({m: sorted(graph.find_modules_directly_imported_by(m)) for m in modules}) == []


def test_no_module_is_longer_than_one_can_read() -> None:
    sources = Path(__file__).parents[1] / "src" / "clusterwright"
    lengths = {path.relative_to(sources).as_posix(): len(path.read_text().splitlines()) for path in sources.rglob("*.py")}
    assert {name: length for name, length in lengths.items() if length > 500} == {}
