"""Go's regular expressions, by RE2 itself: in linear time whatever the pattern, and what RE2 does not know is refused in Go's words."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import Any, Final, Protocol

import re2  # type: ignore[import-untyped]


class Match(Protocol):
    """Where a pattern matched; positions are of characters."""

    def start(self, group: int | str = 0) -> int:
        """Return where a group begins; -1: it took no part."""

    def end(self, group: int | str = 0) -> int:
        """Return where a group ends."""

    def span(self, group: int | str = 0) -> tuple[int, int]:
        """Return both."""

    def group(self, *groups: int | str) -> Any:
        """Return what groups matched."""

    def groups(self, default: Any = None) -> tuple[Any, ...]:
        """Return what all groups matched."""

    def __getitem__(self, group: int | str) -> Any:
        """Return what a group matched."""


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
    """Not a regular expression that RE2 would take."""


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
"""RE2's error texts in C++, with their texts in Go."""


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
    """Return how many states the program of a pattern has; raises BadPattern.

    A search may visit all of them at every character: counted repetitions such as `a.{900}c` make it thousands of times as slow.
    """
    return compile_go(pattern).programsize


@lru_cache(maxsize=512)
def matcher(pattern: str) -> Callable[[str], bool]:
    """Return whether a text has a match: five times as fast as looking where; raises BadPattern."""
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
    """As `matcher`, for short texts that come again and again, as names, reasons and versions do with every write of an object."""
    return lru_cache(maxsize=256)(matcher(pattern))


def _go_words(said: str) -> str:
    code, colon, argument = said.partition(": ")
    for theirs, ours in _WORDS:
        if code == theirs:
            code, colon = ours.removesuffix(": "), ": " if ours.endswith(": ") else colon
            break
    return f"{code}: `{argument}`" if colon else code
