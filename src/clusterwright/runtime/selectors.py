"""Label and field selectors, as Kubernetes prints and reads them. Pure."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache

from clusterwright.api.meta import LabelSelector

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


# ------------------------------------------------------------------------------------------ metav1.LabelSelector

_NAME = re.compile(r"[A-Za-z0-9]([A-Za-z0-9_.-]*[A-Za-z0-9])?")
_SUBDOMAIN = re.compile(r"[a-z0-9]([a-z0-9-]*[a-z0-9])?(\.[a-z0-9]([a-z0-9-]*[a-z0-9])?)*")


def selector_text(selector: LabelSelector) -> str:
    """The selector as text, terms by key; empty for one that selects everything. Raises InvalidSelector for one that is none."""
    terms = [(key, f"{key}={value}") for key, value in selector.match_labels.items()]
    _check_keys(selector.match_labels)
    _check_values(selector.match_labels.values())
    for expression in selector.match_expressions:
        key, values = expression.key, ",".join(sorted(expression.values))
        match expression.operator:
            case "In" | "NotIn":
                if not expression.values:
                    raise InvalidSelector(f"{key}: for 'in', 'notin' operators, values set can't be empty")
                terms.append((key, f"{key} {expression.operator.lower()} ({values})"))
            case "Exists" | "DoesNotExist":
                if expression.values:
                    raise InvalidSelector(f"{key}: values set must be empty for exists and does not exist")
                terms.append((key, key if expression.operator == "Exists" else f"!{key}"))
            case unknown:
                raise InvalidSelector(f"{unknown!r} is not a valid label selector operator")
    _check_keys(e.key for e in selector.match_expressions)
    _check_values(v for e in selector.match_expressions for v in e.values)
    return ",".join(text for _, text in sorted(terms, key=lambda term: term[0]))


def _check_keys(keys: Iterable[str]) -> None:
    for key in keys:
        prefix, slash, name = key.rpartition("/")
        if slash and (len(prefix) > 253 or not _SUBDOMAIN.fullmatch(prefix)):
            raise InvalidSelector(f"{key!r}: the prefix of a label key must be a DNS subdomain")
        if len(name) > 63 or not _NAME.fullmatch(name):
            raise InvalidSelector(f"{key!r} is no label key")


def _check_values(values: Iterable[str]) -> None:
    for value in values:
        if value and (len(value) > 63 or not _NAME.fullmatch(value)):
            raise InvalidSelector(f"{value!r} is no label value")


def parsed(selector: LabelSelector) -> Selector:
    """The selector, ready to be asked. Raises InvalidSelector."""
    return parse_labels(selector_text(selector))


def matches(selector: LabelSelector | None, labels: Labels) -> bool:
    """Whether the selector selects the labels; none, or an empty one, selects everything. Raises InvalidSelector."""
    return selector is None or parsed(selector).matches(labels)


def as_labels(selector: LabelSelector) -> dict[str, str]:
    """The labels that the selector asks for, where it is nothing but equality: a MachineSet is found by the labels it gives.

    Raises InvalidSelector for any other.
    """
    labels = dict(selector.match_labels)
    for expression in selector.match_expressions:
        if expression.operator != "In" or len(expression.values) != 1:
            raise InvalidSelector(f"operator {expression.operator!r} of key {expression.key!r} cannot be converted into labels")
        labels[expression.key] = expression.values[0]
    return labels


def is_empty(selector: LabelSelector) -> bool:
    """Whether it selects everything."""
    return not selector.match_labels and not selector.match_expressions
