"""The tree of a parsed template."""

from __future__ import annotations

from dataclasses import dataclass, field

from clusterwright.gotemplate.literals import Number


@dataclass(frozen=True, slots=True)
class Literal:
    """A string, number or boolean."""

    value: str | bool | Number


@dataclass(frozen=True, slots=True)
class Nil:
    """The word nil."""


@dataclass(frozen=True, slots=True)
class Dot:
    """The cursor."""


@dataclass(frozen=True, slots=True)
class Field:
    """`.a.b`; `place` is Go's position of `.b`: line and bytes into it."""

    names: tuple[str, ...]
    place: tuple[int, int] = field(default=(0, 0), compare=False)


@dataclass(frozen=True, slots=True)
class Variable:
    """`$x`, or `$x.a.b` with names."""

    variable: str
    names: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Function:
    """The name of a function."""

    name: str


@dataclass(frozen=True, slots=True)
class Chain:
    """Fields of the result of a parenthesised pipeline or a function."""

    origin: Pipeline | Function
    names: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Pipeline:
    """Commands, each with the previous value as input, and the variables that get the last value."""

    commands: tuple[tuple[Operand, ...], ...]
    variables: tuple[str, ...] = ()
    is_assignment: bool = False


Operand = Literal | Nil | Dot | Field | Variable | Function | Chain | Pipeline


@dataclass(frozen=True, slots=True)
class Text:
    """Literal text."""

    text: str


@dataclass(frozen=True, slots=True)
class Action:
    """`{{ pipeline }}`."""

    pipeline: Pipeline


@dataclass(frozen=True, slots=True)
class If:
    """`if` or, with `sets_dot`, `with`."""

    pipeline: Pipeline
    body: Body
    otherwise: Body
    sets_dot: bool


@dataclass(frozen=True, slots=True)
class Range:
    """`range`."""

    pipeline: Pipeline
    body: Body
    otherwise: Body


@dataclass(frozen=True, slots=True)
class Call:
    """`template` or the call of a `block`."""

    name: str
    pipeline: Pipeline | None


@dataclass(frozen=True, slots=True)
class Jump:
    """`break` or, if not, `continue`."""

    is_break: bool


Node = Text | Action | If | Range | Call | Jump
Body = tuple[Node, ...]


def is_blank(body: Body) -> bool:
    """Return whether a body is only white space: such a definition replaces none and is replaced by any."""
    return all(isinstance(node, Text) and all(map(_is_space, node.text)) for node in body)


def _is_space(character: str) -> bool:
    # To Python, unlike Go, the four information separators are space as well.
    return character.isspace() and character not in "\x1c\x1d\x1e\x1f"
