"""Read YAML safely, with libyaml if PyYAML has it (ten times as fast), and at a bounded cost for untrusted text.

Two things make YAML dangerous: aliases, a few hundred bytes of which can expand to gigabytes, and depth, which overflows libyaml's stack.
So the events of an untrusted text are checked before anything is built from them; that costs a fifth of the reading. Files on the user's
own command line may be larger, and have aliases (`trusted`), but are still checked.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import yaml

_T = TypeVar("_T")

SafeLoader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
"""The loader to use, or to derive from."""

MAX_DEPTH = 100
"""The deepest nesting of collections: far more than in any object, far less than the stack allows."""
MAX_NODES = 200_000
MAX_TRUSTED_NODES = 20_000_000


class Refused(yaml.YAMLError):
    """The text may be YAML, but not of the kind that is accepted from untrusted sources. The message says why, without quotes."""


def load(text: str | bytes, *, trusted: bool = False) -> Any:
    """Return the one document of a text; raises yaml.YAMLError for any error."""
    characters = _examined(text, trusted=trusted)
    return _bounded(lambda: yaml.load(characters, SafeLoader))  # noqa: S506 - it is a safe loader


def load_all(text: str | bytes, *, trusted: bool = False, loader: Any = SafeLoader) -> list[Any]:
    """Return the documents of a text; raises yaml.YAMLError for any error."""
    characters = _examined(text, trusted=trusted)
    return _bounded(lambda: list(yaml.load_all(characters, loader)))


def _examined(text: str | bytes, *, trusted: bool) -> str:
    return examine(text, nodes=MAX_TRUSTED_NODES, aliases=True) if trusted else examine(text)


def examine(text: str | bytes, *, depth: int = MAX_DEPTH, nodes: int = MAX_NODES, aliases: bool = False) -> str:
    """Return the text as characters, after checking that reading it is cheap; raises Refused or another YAMLError.

    With `aliases` these are allowed, and their expansions count.
    """
    try:
        characters = text if isinstance(text, str) else text.decode()
    except UnicodeDecodeError:
        raise Refused("the text is not UTF-8") from None
    _bounded(lambda: _examine(characters, depth, nodes, aliases))
    return characters


def _examine(text: str, max_depth: int, max_nodes: int, aliases: bool) -> None:
    nodes = 0
    opened: list[tuple[str | None, int]] = []
    sizes: dict[str, int] = {}
    """The number of values of each anchor."""
    for event in yaml.parse(text, SafeLoader):
        kind = type(event)
        if kind is yaml.ScalarEvent:
            nodes += 1
            if event.anchor:
                sizes[event.anchor] = 1
        elif kind in _STARTS:
            nodes += 1
            opened.append((event.anchor, nodes - 1))
            if len(opened) > max_depth:
                raise Refused(f"more than {max_depth} levels are nested")
        elif kind in _ENDS:
            anchor, before = opened.pop()
            if anchor:
                sizes[anchor] = nodes - before
        elif kind is yaml.AliasEvent:
            if not aliases:
                raise Refused("aliases are not allowed")
            if any(anchor == event.anchor for anchor, _ in opened):
                raise Refused("an alias is part of what it stands for")
            nodes += sizes.get(event.anchor, 1)
        if nodes > max_nodes:
            raise Refused(f"more than {max_nodes} values")


_STARTS = frozenset({yaml.SequenceStartEvent, yaml.MappingStartEvent})
_ENDS = frozenset({yaml.SequenceEndEvent, yaml.MappingEndEvent})


def _bounded(read: Callable[[], _T]) -> _T:
    try:
        return read()
    except RecursionError:
        raise Refused(f"more than {MAX_DEPTH} levels are nested") from None
    except (ValueError, OverflowError, AttributeError) as error:
        # a date of the 13th month, a number of 5,000 digits: PyYAML lets the conversion's own error through
        raise Refused(f"a scalar has no value: {type(error).__name__}") from None
