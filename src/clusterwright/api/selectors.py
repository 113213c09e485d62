"""Label and field selectors: parsed once, then matched against many objects. Pure.

The grammar and the error texts are those of Kubernetes.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final

from clusterwright.api.meta import LabelSelector
from clusterwright.api.names import label_value, qualified_name

Labels = Mapping[str, str]
Matcher = Callable[[Labels], bool]
Requirement = tuple[str, str, tuple[str, ...]]
"""The key, operator (`in`, `notin`, `=`, `!=`, `<`, `>`, `exists`, `!`) and values of one term."""
FieldRequirement = tuple[str, bool, str]
"""The field, whether it must be equal (else unequal), and the value."""

_SPECIAL: Final = frozenset("=!(),><")
_OPERATORS: Final = "in, notin, =, ==, !=, gt, lt"
_SHORT: Final = 4096
"""The longest selector that is cached in its parsed form; longer ones would let a tenant fill the memory."""
_NAMES: Final = {"In": "in", "NotIn": "notin", "Exists": "exists", "DoesNotExist": "!"}
"""The operators of a LabelSelector object and of a query."""


class InvalidSelector(ValueError):
    """The API server would also refuse this selector."""


class InvalidTerm(InvalidSelector):
    """A key or value in a selector violates the rules for labels."""

    def __init__(self, field: str, value: str, problems: tuple[str, ...]) -> None:
        super().__init__(f"{field}: invalid value {value!r}: {'; '.join(problems)}")
        self.field = field
        self.value = value
        self.problems = problems


@dataclass(frozen=True, slots=True)
class Selector:
    """A parsed label selector. `equal` holds the requirements `key=value`, which an index can answer."""

    equal: tuple[tuple[str, str], ...]
    others: tuple[Matcher, ...]

    def matches(self, labels: Labels) -> bool:
        """Return whether the labels meet every requirement."""
        return all(labels.get(key) == value for key, value in self.equal) and all(test(labels) for test in self.others)


EVERYTHING: Final = Selector((), ())


def parse_labels(labels: str | Mapping[str, str]) -> Selector:
    """Parse a label selector from text, or from a mapping, which means equality; raises InvalidSelector."""
    if isinstance(labels, str):
        return _parsed_text(labels) if len(labels) <= _SHORT else _selector(_Parser(labels).parse())
    return Selector(tuple(sorted(labels.items())), ())


@lru_cache(maxsize=1024)
def _parsed_text(text: str) -> Selector:
    return _selector(_Parser(text).parse())


def _selector(requirements: Iterable[Requirement]) -> Selector:
    equal: list[tuple[str, str]] = []
    others: list[Matcher] = []
    for key, operator, values in requirements:
        if operator in {"=", "in"} and len(values) == 1:
            equal.append((key, values[0]))
        else:
            others.append(_matcher(key, operator, frozenset(values)))
    return Selector(tuple(equal), tuple(others)) if equal or others else EVERYTHING


def _matcher(key: str, operator: str, values: frozenset[str]) -> Matcher:
    if operator in {"=", "in"}:
        return lambda labels: key in labels and labels[key] in values
    if operator in {"!=", "notin"}:
        return lambda labels: labels.get(key) not in values
    if operator == "exists":
        return lambda labels: key in labels
    if operator == "!":
        return lambda labels: key not in labels
    (only,) = values
    bound = int(only)

    def compare(labels: Labels) -> bool:
        text = labels.get(key) or ""
        return _is_integer(text) and (int(text) > bound if operator == ">" else int(text) < bound)

    return compare


def _is_integer(text: str) -> bool:
    return re.fullmatch(r"[+-]?[0-9]{1,63}", text) is not None


# --------------------------------------------------------------------------------------------------- label selectors as text


def _tokens(text: str) -> list[tuple[str, str]]:
    """Return (kind, text) pairs, where kind is `id` or the symbol itself; the last pair is ("", "")."""
    found: list[tuple[str, str]] = []
    position, end = 0, len(text)
    while position < end:
        c = text[position]
        if c in " \t\r\n":
            position += 1
        elif c in _SPECIAL:
            symbol = c
            pair = text[position : position + 2]
            if pair in {"==", "!="}:
                symbol = pair
            found.append((symbol, symbol))
            position += len(symbol)
        else:
            start = position
            while position < end and text[position] not in _SPECIAL and text[position] not in " \t\r\n":
                position += 1
            word = text[start:position]
            found.append((word if word in {"in", "notin"} else "id", word))
    found.append(("", ""))
    return found


class _Parser:
    def __init__(self, text: str) -> None:
        self.tokens = _tokens(text)
        self.at = 0

    def peek(self, *, values: bool = False) -> tuple[str, str]:
        kind, text = self.tokens[self.at]
        if values and kind in {"in", "notin"}:
            kind = "id"
        return kind, text

    def take(self, *, values: bool = False) -> tuple[str, str]:
        token = self.peek(values=values)
        if self.at < len(self.tokens) - 1:
            self.at += 1
        return token

    def parse(self) -> list[Requirement]:
        requirements: list[Requirement] = []
        while True:
            kind, text = self.peek(values=True)
            if kind in {"id", "!"}:
                requirements.append(self.requirement())
                kind, text = self.take()
                if kind == "":
                    return requirements
                if kind != ",":
                    raise InvalidSelector(f"found '{text}', expected: ',' or 'end of string'")
                kind, text = self.peek(values=True)
                if kind not in {"id", "!"}:
                    raise InvalidSelector(f"found '{text}', expected: identifier after ','")
            elif kind == "":
                return requirements
            else:
                raise InvalidSelector(f"found '{text}', expected: !, identifier, or 'end of string'")

    def requirement(self) -> Requirement:
        kind, key = self.take(values=True)
        negated = kind == "!"
        if negated:
            kind, key = self.take(values=True)
        if kind != "id":
            raise _unparsable(f"found '{key}', expected: identifier")
        _check("<nil>", key, qualified_name(key))
        kind, text = self.peek()
        if negated:
            return key, "!", ()
        if kind in {"", ","}:
            return key, "exists", ()
        self.take()
        if kind in {"in", "notin"}:
            values = self._set()
        elif kind in {"=", "==", "!=", ">", "<"}:
            values = [self._value()]
            kind = "=" if kind == "==" else kind
        else:
            raise _unparsable(f"found '{text}', expected: {_OPERATORS}")
        if kind in {">", "<"} and not _is_integer(values[0]):
            raise InvalidTerm("values[0]", values[0], ("for 'Gt', 'Lt' operators, the value must be an integer",))
        for index, value in enumerate(values):
            _check(f"values[{index}][{key}]", value, label_value(value))
        return key, kind, tuple(values)

    def _set(self) -> list[str]:
        kind, text = self.take()
        if kind != "(":
            raise _unparsable(f"found '{text}' expected: '('")
        kind, _ = self.peek(values=True)
        values: list[str] = []
        if kind == ")":
            self.take()
            return [""]
        if kind == ",":
            values.append("")
        while True:
            kind, text = self.take(values=True)
            if kind == "id":
                values.append(text)
                kind, text = self.peek(values=True)
                if kind == ",":
                    continue
                if kind == ")":
                    self.take()
                    return values
                raise _unparsable(f"found '{text}', expected: ',' or ')'")
            if kind == ",":
                after, text = self.peek(values=True)
                if after == ")":
                    self.take()
                    return [*values, ""]
                if after == ",":
                    values.append("")
                continue
            raise _unparsable(f"found '{text}', expected: ',', or identifier")

    def _value(self) -> str:
        kind, text = self.peek(values=True)
        if kind in {"", ","}:
            return ""
        self.take()
        if kind != "id":
            raise _unparsable(f"found '{text}', expected: identifier")
        return text


def _unparsable(problem: str) -> InvalidSelector:
    return InvalidSelector(f"unable to parse requirement: {problem}")


def _check(field: str, value: str, problems: tuple[str, ...]) -> None:
    if problems:
        raise InvalidTerm(field, value, problems)


# ------------------------------------------------------------------------------------------ metav1.LabelSelector


def _validate(selector: LabelSelector) -> None:
    """Raise InvalidSelector if a key, a value or an operator violates the rules."""
    for key, value in selector.match_labels.items():
        _check("key", key, qualified_name(key))
        _check(f"values[0][{key}]", value, label_value(value))
    for term in selector.match_expressions:
        if term.operator not in _NAMES:
            raise InvalidSelector(f"{term.operator!r} is not a valid label selector operator")
        if bool(term.values) is not (term.operator in {"In", "NotIn"}):
            rule = "must be empty for exists and does not exist" if term.values else "can't be empty for 'in', 'notin' operators"
            raise InvalidSelector(f"{term.key}: values set {rule}")
        _check("key", term.key, qualified_name(term.key))
        for index, value in enumerate(term.values):
            _check(f"values[{index}][{term.key}]", value, label_value(value))


def selector_text(selector: LabelSelector) -> str:
    """Return the selector as text, terms by key; empty if it selects everything. Raises InvalidSelector."""
    _validate(selector)
    return _text(selector.match_labels, ((t.key, t.operator, t.values) for t in selector.match_expressions))


def _text(labels: Labels, expressions: Iterable[tuple[str, str, Iterable[str]]]) -> str:
    terms = [(key, f"{key}={value}") for key, value in labels.items()]
    for key, operator, values in expressions:
        listed = ",".join(sorted(values))
        shown = {"In": f"{key} in ({listed})", "NotIn": f"{key} notin ({listed})", "Exists": key, "DoesNotExist": f"!{key}"}
        terms.append((key, shown.get(operator, "")))
    return ",".join(text for _, text in sorted(terms, key=lambda term: term[0]))


def parsed(selector: LabelSelector) -> Selector:
    """Return the parsed selector. Raises InvalidSelector."""
    _validate(selector)
    equal: list[Requirement] = [(key, "=", (value,)) for key, value in selector.match_labels.items()]
    return _selector([*equal, *((term.key, _NAMES[term.operator], tuple(term.values)) for term in selector.match_expressions)])


def matches(selector: LabelSelector | None, labels: Labels) -> bool:
    """Return whether the selector selects the labels; None and an empty one select everything. Raises InvalidSelector."""
    return selector is None or parsed(selector).matches(labels)


def selects(selector: LabelSelector, labels: Labels) -> bool:
    """Return whether a selector matches the labels; an invalid one matches nothing."""
    try:
        return parsed(selector).matches(labels)
    except InvalidSelector:
        return False


def as_labels(selector: LabelSelector) -> dict[str, str]:
    """Return the labels that a selector with only equalities requires, which identify a MachineSet.

    Raises InvalidSelector for any other selector.
    """
    labels = dict(selector.match_labels)
    for expression in selector.match_expressions:
        if expression.operator == "In" and len(expression.values) != 1:
            raise InvalidSelector('operator "In" without a single value cannot be converted into the old label selector format')
        if expression.operator != "In":
            known = expression.operator in _NAMES
            problem = "cannot be converted into the old label selector format" if known else "is not a valid label selector operator"
            raise InvalidSelector(f'{"operator " if known else ""}"{expression.operator}" {problem}')
        labels[expression.key] = expression.values[0]
    return labels


def is_empty(selector: LabelSelector) -> bool:
    """Return whether the selector selects everything."""
    return not selector.match_labels and not selector.match_expressions


# ------------------------------------------------------------------------- LabelSelectors in the JSON of stored objects


def object_selector(selector: Mapping[str, Any] | None) -> Matcher:
    """Return the predicate of a LabelSelector in JSON; None selects nothing, an empty one everything. Nothing is validated."""
    if selector is None:
        return lambda labels: False
    requirements: list[Requirement] = [(k, "=", (v,)) for k, v in (selector.get("matchLabels") or {}).items()]
    requirements.extend(
        (e.get("key", ""), _NAMES.get(e.get("operator", ""), "in"), tuple(e.get("values") or ()))
        for e in selector.get("matchExpressions") or ()
    )
    return _selector(requirements).matches


def object_selector_text(selector: Mapping[str, Any] | None) -> str:
    """Return a LabelSelector in JSON as text, terms by key. Nothing is validated."""
    given = selector or {}
    expressions = ((e.get("key", ""), e.get("operator", ""), e.get("values") or ()) for e in given.get("matchExpressions") or ())
    return _text(given.get("matchLabels") or {}, expressions)


# ---------------------------------------------------------------------------------------------------------- field selectors


@lru_cache(maxsize=1024)  # the API server needs it up to three times per request: authorisation, options, selection
def field_requirements(text: str) -> tuple[FieldRequirement, ...]:
    """Parse a field selector; raises InvalidSelector."""
    found: list[FieldRequirement] = []
    for term in _split_terms(text):
        if not term:
            continue
        match = re.fullmatch(r"((?:[^=!\\]|\\.|!(?!=))*?)(!=|==|=)((?:[^\\]|\\.)*)", term, re.DOTALL)
        if match is None:
            raise InvalidSelector(f"invalid selector: '{text}'; can't understand '{term}'")
        value = _unescape(match[3], text)
        if match[1] or value:  # upstream drops a term without both
            found.append((match[1], match[2] != "!=", value))
    return tuple(found)


def _split_terms(text: str) -> list[str]:
    terms: list[str] = []
    current: list[str] = []
    escaped = False
    for c in text:
        if escaped:
            escaped = False
        elif c == "\\":
            escaped = True
        elif c == ",":
            terms.append("".join(current))
            current = []
            continue
        current.append(c)
    terms.append("".join(current))
    return terms


def _unescape(value: str, text: str) -> str:
    if "\\" not in value and "=" not in value:
        return value
    shown, position = [], 0
    while position < len(value):
        c = value[position]
        if c == "\\":
            position += 1
            if position >= len(value) or value[position] not in "\\,=":
                raise InvalidSelector(f"invalid field selector: invalid escape sequence: {value[position - 1 : position + 1]}")
            c = value[position]
        elif c == "=":
            raise InvalidSelector(f"invalid field selector: unescaped character in value: {ord(c)}" if text else "")
        shown.append(c)
        position += 1
    return "".join(shown)
