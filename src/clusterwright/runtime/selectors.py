"""Label and field selectors, for answers from the cache."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache

Labels = Mapping[str, str]

_REQUIREMENT = re.compile(
    r"\s*(?:"
    r"(?P<not>!)\s*(?P<absent>[^\s=!<>,()]+)"
    r"|(?P<key>[^\s=!<>,()]+)\s*(?:"
    r"(?P<op>==|=|!=)\s*(?P<value>[^\s=!<>,()]*)"
    r"|(?P<order>[<>])\s*(?P<number>-?\d+)"
    r"|\b(?P<set>in|notin)\s*\(\s*(?P<values>[^()]*)\)"
    r")?)\s*(?:,|$)"
)


class InvalidSelector(ValueError):
    """A selector that the API server would refuse, too."""


@dataclass(frozen=True, slots=True)
class Selector:
    """A parsed label selector. `equal` are the requirements `key=value`, which an index can answer."""

    equal: tuple[tuple[str, str], ...]
    others: tuple[Callable[[Labels], bool], ...]

    def matches(self, labels: Labels) -> bool:
        """Whether every requirement holds."""
        return all(labels.get(key) == value for key, value in self.equal) and all(test(labels) for test in self.others)


EVERYTHING = Selector((), ())


def parse_labels(labels: str | Mapping[str, str]) -> Selector:
    """A label selector from text or from a mapping, which means equality; raises InvalidSelector."""
    if isinstance(labels, str):
        return _parse(labels) if labels.strip() else EVERYTHING
    return Selector(tuple(sorted(labels.items())), ())


@lru_cache(maxsize=1024)
def _parse(text: str) -> Selector:
    equal: list[tuple[str, str]] = []
    others: list[Callable[[Labels], bool]] = []
    position = 0
    while position < len(text):
        match = _REQUIREMENT.match(text, position)
        if match is None:
            raise InvalidSelector(f"unable to parse label selector at {text[position : position + 40]!r}")
        position = match.end()
        key, op = match["key"], match["op"]
        if match["absent"]:
            others.append(lambda labels, key=match["absent"]: key not in labels)  # type: ignore[misc]  # mypy cannot infer defaults
        elif op in {"=", "=="}:
            equal.append((key, match["value"]))
        elif op == "!=":
            others.append(lambda labels, key=key, value=match["value"]: labels.get(key) != value)  # type: ignore[misc]
        elif match["order"]:
            others.append(_ordered(key, match["order"], int(match["number"])))
        elif match["set"]:
            values = frozenset(value.strip() for value in match["values"].split(","))
            if match["set"] == "in":
                others.append(lambda labels, key=key, values=values: labels.get(key) in values)  # type: ignore[misc]
            else:
                others.append(lambda labels, key=key, values=values: labels.get(key) not in values)  # type: ignore[misc]
        else:
            others.append(lambda labels, key=key: key in labels)  # type: ignore[misc]
    return Selector(tuple(equal), tuple(others))


def _ordered(key: str, order: str, bound: int) -> Callable[[Labels], bool]:
    def test(labels: Labels) -> bool:
        try:
            value = int(labels[key])
        except (KeyError, ValueError):
            return False
        return value > bound if order == ">" else value < bound

    return test


@lru_cache(maxsize=1024)
def parse_fields(text: str) -> tuple[tuple[tuple[str, ...], str, bool], ...]:
    """A field selector as (path, value, must it be equal); raises InvalidSelector."""
    found: list[tuple[tuple[str, ...], str, bool]] = []
    for part in filter(None, (piece.strip() for piece in text.split(","))):
        name, op, value = re.match(r"([^=!]*)(==|!=|=|)(.*)", part, re.DOTALL).groups()  # type: ignore[union-attr]  # matches anything
        if not name or not op:
            raise InvalidSelector(f"invalid field selector {part!r}: needs a field, an operator and a value")
        found.append((tuple(name.split(".")), value, op != "!="))
    return tuple(found)
