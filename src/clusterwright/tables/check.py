"""Finds what is wrong with a table by trying every truth assignment of its guards."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations, product
from typing import TypeVar

from clusterwright.tables.guard import Guard
from clusterwright.tables.table import Table

S = TypeVar("S")
MOST_GUARDS = 16


class TooManyGuards(Exception):
    """The table has more atoms than can be tried; it wants to be split."""


class Impossible(Exception):
    """The declared groups and assumptions leave no possible world."""


def gaps(
    table: Table[S], *, exactly_one: Sequence[Sequence[Guard[S]]] = (), assuming: Sequence[Guard[S]] = ()
) -> list[tuple[tuple[str, bool], ...]]:
    """The possible worlds for which no row matches; empty for a table that covers everything.

    Worlds that break a group of `exactly_one` or one of `assuming` (given here or with the table) are not possible.
    """
    worlds = _worlds(table, exactly_one, assuming)
    return [w.described() for w in worlds if not any(row.matches(w.values) for row in table.rows)]


def unreachable(table: Table[S], *, exactly_one: Sequence[Sequence[Guard[S]]] = (), assuming: Sequence[Guard[S]] = ()) -> list[str]:
    """The rows that never decide, because those above them match in every possible world where they do."""
    reached = set()
    for world in _worlds(table, exactly_one, assuming):
        for row in table.rows:
            if row.matches(world.values):
                reached.add(row.name)
                break
    return [row.name for row in table.rows if row.name not in reached]


def overlaps(
    table: Table[S], *, exactly_one: Sequence[Sequence[Guard[S]]] = (), assuming: Sequence[Guard[S]] = ()
) -> list[tuple[str, str]]:
    """The pairs of rows that both match in some possible world, so that their order decides."""
    found: dict[tuple[str, str], None] = {}
    for world in _worlds(table, exactly_one, assuming):
        hit = [row.name for row in table.rows if row.matches(world.values)]
        found.update(dict.fromkeys(combinations(hit, 2)))
    return list(found)


class _World:
    __slots__ = ("atoms", "values")

    def __init__(self, atoms: Sequence[Guard[S]], values: dict[int, bool]) -> None:
        self.atoms = atoms
        self.values = values

    def described(self) -> tuple[tuple[str, bool], ...]:
        return tuple((a.text, self.values[id(a)]) for a in self.atoms)


def _worlds(table: Table[S], exactly_one: Sequence[Sequence[Guard[S]]], assuming: Sequence[Guard[S]]) -> Iterator[_World]:
    groups = [*table.exactly_one, *exactly_one]
    assumed = [*table.assuming, *assuming]
    atoms: dict[int, Guard[S]] = {}
    for guards in (*(row.guards() for row in table.rows), *groups, *(a.atoms() for a in assumed)):
        for guard in guards:
            for atom in guard.atoms():
                atoms.setdefault(id(atom), atom)
    grouped = {id(a) for group in groups for g in group for a in g.atoms() if g.operator == "atom"}
    free = [a for a in atoms.values() if id(a) not in grouped]
    tuples = [[a for a in group if a.operator == "atom"] for group in groups]
    if len(free) > MOST_GUARDS:
        raise TooManyGuards(f"table {table.name} asks {len(free)} independent questions")
    possible = False
    for chosen in product(*(range(len(t)) for t in tuples)):
        fixed = {id(a): False for t in tuples for a in t}
        fixed.update({id(tuples[i][n]): True for i, n in enumerate(chosen)})
        for bits in product((False, True), repeat=len(free)):
            values = fixed | {id(a): b for a, b in zip(free, bits, strict=True)}
            if all(sum(g.under(values) for g in group) == 1 for group in groups) and all(a.under(values) for a in assumed):
                possible = True
                yield _World(tuple(atoms.values()), values)
    if not possible:
        raise Impossible(f"table {table.name}: no world satisfies what is assumed")
