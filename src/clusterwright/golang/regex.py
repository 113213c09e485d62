"""Go's regular expressions, run by RE2: in linear time for every pattern; unsupported syntax is refused with Go's messages."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import Any, Final, Protocol

import re2  # type: ignore[import-untyped]


class Match(Protocol):
    """A match of a pattern; positions count characters."""

    def start(self, group: int | str = 0) -> int:
        """Return the start of a group; -1 if it did not match."""

    def end(self, group: int | str = 0) -> int:
        """Return the end of a group."""

    def span(self, group: int | str = 0) -> tuple[int, int]:
        """Return start and end."""

    def group(self, *groups: int | str) -> Any:
        """Return the texts of groups."""

    def groups(self, default: Any = None) -> tuple[Any, ...]:
        """Return the texts of all groups."""

    def __getitem__(self, group: int | str) -> Any:
        """Return the text of a group."""


class Pattern(Protocol):
    """A compiled expression."""

    groups: int
    groupindex: Any
    programsize: int

    def search(self, text: str) -> Match | None:
        """Return the first match."""

    def fullmatch(self, text: str) -> Match | None:
        """Return the match of the whole text."""

    def finditer(self, text: str) -> Iterator[Match]:
        """Return all matches, from left to right."""


class BadPattern(ValueError):
    """RE2 does not accept the regular expression."""


_WORDS: Final = (
    ("missing )", "missing closing )"),
    ("missing ]", "missing closing ]"),
    ("no argument for repetition operator", "missing argument to repetition operator"),
    ("bad repetition operator", "invalid nested repetition operator"),
    ("invalid repetition size", "invalid repeat count"),
    ("invalid perl operator", "invalid or unsupported Perl syntax"),
    ("invalid named capture group", "invalid named capture"),
    ("trailing \\", "trailing backslash at end of expression: "),
    ("pattern too large - compile failed", "expression too large"),
)
"""RE2's error texts in C++, with their counterparts in Go."""


def _options() -> re2.Options:
    options = re2.Options()
    options.log_errors = False
    options.max_mem = 4 << 20  # of one pattern, its memory of states included
    return options


_OPTIONS: Final = _options()


@lru_cache(maxsize=512)
def compile_go(pattern: str) -> Pattern:
    """Return the compiled pattern; raises BadPattern."""
    try:
        compiled: Pattern = re2.compile(pattern, _OPTIONS)
    except re2.error as e:
        said = e.args[0] if e.args else ""
        raise BadPattern(
            f"error parsing regexp: {_go_words(said.decode('utf-8', 'replace') if isinstance(said, bytes) else str(said))}"
        ) from None
    except UnicodeEncodeError:
        raise BadPattern("error parsing regexp: invalid UTF-8") from None
    return compiled


def program_size(pattern: str) -> int:
    """Return the number of states of a compiled pattern; raises BadPattern.

    A search may visit all of them at every character: counted repetitions such as `a.{900}c` make it thousands of times slower.
    """
    return compile_go(pattern).programsize


@lru_cache(maxsize=512)
def matcher(pattern: str) -> Callable[[str], bool]:
    """Return a function that checks for a match, five times as fast as finding its position; raises BadPattern."""
    compiled = compile_go(pattern)
    quick = re2.Set.SearchSet(_OPTIONS)
    quick.Add(pattern)
    quick.Compile()
    match, search = quick.Match, compiled.search

    def has_match(text: str) -> bool:
        # a set that runs out of memory says no: the last word has the search, which does not
        return bool(match(text)) or search(text) is not None

    return has_match


@lru_cache(maxsize=512)
def remembering(pattern: str) -> Callable[[str], bool]:
    """Return the same with a cache, for repeated short texts such as names, reasons and versions in every write of an object."""
    return lru_cache(maxsize=256)(matcher(pattern))


def _go_words(said: str) -> str:
    code, colon, argument = said.partition(": ")
    for theirs, ours in _WORDS:
        if code == theirs:
            code, colon = ours.removesuffix(": "), ": " if ours.endswith(": ") else colon
            break
    return f"{code}: `{argument}`" if colon else code
