"""Functions on directed graphs that explanations need: reachable nodes, sinks, reversal."""

from __future__ import annotations

from collections.abc import Mapping, Sequence


def sinks(graph: Mapping[str, Sequence[str]]) -> list[list[str]]:
    """Return the strongly connected components that no edge leaves, each sorted: where every path ends, cycles included."""
    components = _components(graph)
    place = {node: n for n, component in enumerate(components) for node in component}
    return [
        sorted(component)
        for n, component in enumerate(components)
        if all(place[target] == n for node in component for target in graph.get(node, ()))
    ]


def _components(graph: Mapping[str, Sequence[str]]) -> list[list[str]]:
    """Yield strongly connected components (Tarjan) without recursion, because graphs may be deep."""
    index: dict[str, int] = {}
    low: dict[str, int] = {}
    stack: list[str] = []
    on_stack: set[str] = set()
    found: list[list[str]] = []
    for root in graph:
        if root in index:
            continue
        work: list[tuple[str, int]] = [(root, 0)]
        while work:
            node, position = work.pop()
            if position == 0:
                index[node] = low[node] = len(index)
                stack.append(node)
                on_stack.add(node)
            targets = graph.get(node, ())
            for n in range(position, len(targets)):
                target = targets[n]
                if target not in index:
                    work += [(node, n + 1), (target, 0)]
                    break
                if target in on_stack:
                    low[node] = min(low[node], index[target])
            else:
                if low[node] == index[node]:
                    component = []
                    while True:
                        member = stack.pop()
                        on_stack.discard(member)
                        component.append(member)
                        if member == node:
                            break
                    found.append(component)
                if work:
                    parent = work[-1][0]
                    low[parent] = min(low[parent], low[node])
    return found


def reachable(graph: Mapping[str, Sequence[str]], start: str) -> set[str]:
    """Return the nodes that paths from the start lead to, itself included."""
    seen, queue = {start}, [start]
    for current in queue:
        for following in graph.get(current, ()):
            if following not in seen:
                seen.add(following)
                queue.append(following)
    return seen


def reverse(graph: Mapping[str, Sequence[str]]) -> dict[str, list[str]]:
    """Return the edges in the opposite direction."""
    turned: dict[str, list[str]] = {}
    for node, targets in graph.items():
        for target in targets:
            turned.setdefault(target, []).append(node)
    return turned
