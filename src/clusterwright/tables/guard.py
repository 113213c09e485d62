"""Named questions about a snapshot, and named messages from one."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, Literal, NamedTuple, TypeVar, overload

S = TypeVar("S")
S_contra = TypeVar("S_contra", contravariant=True)


class Subject(NamedTuple):
    """An object that a guard reads, in any version: explanations follow it."""

    group: str
    kind: str
    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{self.kind} {self.namespace}/{self.name}" if self.namespace else f"{self.kind} {self.name}"


About = Callable[[S], Sequence[Subject]]
"""Returns the objects that a guard reads, other than the table's own object."""


@dataclass(frozen=True, eq=False, repr=False)
class Guard(Generic[S_contra]):
    """A named question about snapshot S; it must be total: no snapshot makes it raise.

    `text` is the seed's own wording; `about` returns the other objects that the answer depends on, so that an explanation can follow them.
    Guards compose with `&`, `|` and `~`; what was composed is kept, so that tables can be checked and explained by their atoms. Two guards
    are the same only if they are the same object. A guard on a type is a guard on the types that derive from it.
    """

    text: str
    test: Callable[[S_contra], bool]
    operator: Literal["atom", "and", "or", "not", "true"] = "atom"
    parts: tuple[Guard[S_contra], ...] = ()
    about: About[S_contra] | None = None

    def __call__(self, snapshot: S_contra) -> bool:
        """Return the truth value for a snapshot."""
        return self.test(snapshot)

    def __and__(self, other: Guard[S_contra]) -> Guard[S_contra]:
        mine, its = self.test, other.test
        parts = (self.parts if self.operator == "and" else (self,)) + (other.parts if other.operator == "and" else (other,))
        return Guard(" && ".join(_bracketed(p, "or") for p in parts), lambda s: mine(s) and its(s), "and", parts)

    def __or__(self, other: Guard[S_contra]) -> Guard[S_contra]:
        mine, its = self.test, other.test
        parts = (self.parts if self.operator == "or" else (self,)) + (other.parts if other.operator == "or" else (other,))
        return Guard(" || ".join(_bracketed(p, "and") for p in parts), lambda s: mine(s) or its(s), "or", parts)

    if TYPE_CHECKING:  # Python never calls these for two guards; a type checker takes them where the other guard has the wider type

        def __rand__(self, other: Guard[S_contra]) -> Guard[S_contra]: ...
        def __ror__(self, other: Guard[S_contra]) -> Guard[S_contra]: ...

    def __invert__(self) -> Guard[S_contra]:
        mine = self.test
        simple = self.operator == "atom" and " " not in self.text
        text = self.text.removeprefix("!") if simple and self.text.startswith("!") else f"!{self.text}" if simple else f"!({self.text})"
        return Guard(text, lambda s: not mine(s), "not", (self,))

    def atoms(self) -> tuple[Guard[S_contra], ...]:
        """Return the atomic guards of this guard, each once, in order."""
        if self.operator == "atom":
            return (self,)
        found: dict[int, Guard[S_contra]] = {}
        for part in self.parts:
            for atom in part.atoms():
                found.setdefault(id(atom), atom)
        return tuple(found.values())

    def subjects(self, snapshot: S_contra) -> tuple[Subject, ...]:
        """Return the objects that the guard's atoms read, each once, in order."""
        return tuple(dict.fromkeys(s for atom in self.atoms() if atom.about is not None for s in atom.about(snapshot)))

    def under(self, values: Mapping[int, bool]) -> bool:
        """Return the truth value when the atoms, by `id`, have these values."""
        if self.operator == "atom":
            return values[id(self)]
        if self.operator == "and":
            return all(p.under(values) for p in self.parts)
        if self.operator == "or":
            return any(p.under(values) for p in self.parts)
        if self.operator == "not":
            return not self.parts[0].under(values)
        return True

    def __repr__(self) -> str:
        return f"Guard({self.text})"


def _bracketed(part: Guard[Any], inner: str) -> str:
    return f"({part.text})" if part.operator == inner else part.text


OTHERWISE: Guard[Any] = Guard("otherwise", lambda _: True, "true")
"""The guard that always holds, for the last row of a complete table."""


@overload
def guard(text: str) -> Callable[[Callable[[S], bool]], Guard[S]]: ...
@overload
def guard(text: str, *, about: About[S]) -> Callable[[Callable[[S], bool]], Guard[S]]: ...
def guard(text: str, *, about: Any = None) -> Any:
    """Make a predicate over a snapshot a guard with the given wording; `about` returns the objects that it reads."""

    def make(test: Callable[[S], bool]) -> Guard[S]:
        return Guard(text, test, about=about)

    return make


@dataclass(frozen=True, eq=False, repr=False)
class Message(Generic[S_contra]):
    """A text that depends on the snapshot. `text` is its form, with `<placeholders>`, for documents."""

    text: str
    make: Callable[[S_contra], str]

    def __call__(self, snapshot: S_contra) -> str:
        """Return the text for this snapshot."""
        return self.make(snapshot)

    def __repr__(self) -> str:
        return f"Message({self.text})"


def message(text: str) -> Callable[[Callable[[S], str]], Message[S]]:
    """Make a function of a snapshot a message with the form `text`."""
    return lambda make: Message(text, make)
