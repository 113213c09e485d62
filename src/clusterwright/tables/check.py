"""Find errors of a table by trying every truth assignment of its guards that the table declares possible."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations, product
from typing import TypeVar

from clusterwright.tables.guard import OTHERWISE, Guard
from clusterwright.tables.table import Row, Table

S = TypeVar("S")
MOST_GUARDS = 16


class TooManyGuards(Exception):
    """The table has too many atoms to try all assignments; split it."""


class Impossible(Exception):
    """The declared groups and assumptions leave no possible assignment."""


def gaps(table: Table[S]) -> list[tuple[tuple[str, bool], ...]]:
    """Return the possible assignments for which no row matches; empty for a complete table."""
    return [w.described() for w in _worlds(table) if not any(row.matches(w.values) for row in table.rows)]


def unreachable(table: Table[S]) -> list[str]:
    """Return the rows that never decide, because earlier rows match wherever they do."""
    reached = set()
    for world in _worlds(table):
        for row in table.rows:
            if row.matches(world.values):
                reached.add(row.name)
                break
    return [row.name for row in table.rows if row.name not in reached]


def overlaps(table: Table[S]) -> list[tuple[str, str]]:
    """Return the pairs of rows that both match for some possible assignment, so that their order decides.

    A row for all the rest (`OTHERWISE`) is not included: it declares that it comes last.
    """
    found: dict[tuple[str, str], None] = {}
    rows = [row for row in table.rows if not (isinstance(row, Row) and row.guard is OTHERWISE)]
    for world in _worlds(table):
        hit = [row.name for row in rows if row.matches(world.values)]
        found.update(dict.fromkeys(combinations(hit, 2)))
    return list(found)


def contradictions(table: Table[S], snapshot: S) -> list[str]:
    """Return the declarations of the table that this snapshot violates; a check is only as good as these declarations."""
    broken = [a.text for a in table.assuming if not a(snapshot)]
    for words, groups, most in (("exactly one", table.exactly_one, 1), ("at most one", table.at_most_one, 0)):
        for group in groups:
            held = [g.text for g in group if g(snapshot)]
            if len(held) > 1 or len(held) < most:
                broken.append(f"{words} of {[g.text for g in group]}, but {held}")
    return broken


class _World:
    __slots__ = ("atoms", "values")

    def __init__(self, atoms: Sequence[Guard[S]], values: dict[int, bool]) -> None:
        self.atoms = atoms
        self.values = values

    def described(self) -> tuple[tuple[str, bool], ...]:
        return tuple((a.text, self.values[id(a)]) for a in self.atoms)


def _worlds(table: Table[S]) -> Iterator[_World]:
    groups = [*table.exactly_one, *table.at_most_one]
    atoms: dict[int, Guard[S]] = {}
    for guards in (*(row.guards() for row in table.rows), *groups, *(a.atoms() for a in table.assuming)):
        for guard in guards:
            for atom in guard.atoms():
                atoms.setdefault(id(atom), atom)
    grouped = {id(a) for group in groups for g in group for a in g.atoms() if g.operator == "atom"}
    free = [a for a in atoms.values() if id(a) not in grouped]
    if len(free) > MOST_GUARDS:
        raise TooManyGuards(f"table {table.name} has {len(free)} independent guards: split it")
    # of the plain guards of a group at most one holds; a composed one, or a group of at most one, may leave none
    choices = [[*(a for a in group if a.operator == "atom"), None] for group in groups]
    possible = False
    for chosen in product(*choices):
        fixed = dict.fromkeys(grouped, False) | {id(a): True for a in chosen if a is not None}
        for bits in product((False, True), repeat=len(free)):
            values = fixed | {id(a): b for a, b in zip(free, bits, strict=True)}
            if (
                all(sum(g.under(values) for g in group) == 1 for group in table.exactly_one)
                and all(sum(g.under(values) for g in group) <= 1 for group in table.at_most_one)
                and all(a.under(values) for a in table.assuming)
            ):
                possible = True
                yield _World(tuple(atoms.values()), values)
    if not possible:
        raise Impossible(f"table {table.name}: the assumptions allow no assignment")
