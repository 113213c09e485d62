"""Label and field selectors: parsed once, then asked for each object."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any, Final

from clusterwright.apiserver.names import label_value, qualified_name
from clusterwright.apiserver.status import StatusError, bad_request, invalid
from clusterwright.golang.quoting import quote

Matcher = Callable[[Mapping[str, str]], bool]

_SPECIAL: Final = frozenset("=!(),><")
_OPERATORS: Final = "in, notin, =, ==, !=, gt, lt"
_MAXIMUM: Final = 1_000_000
"""Longer selectors are refused before they are parsed."""


def _tokens(text: str) -> list[tuple[str, str]]:
    """(kind, text) where kind is `id` or the symbol itself; ends with ("", "")."""
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

    def parse(self) -> list[tuple[str, str, frozenset[str]]]:
        requirements: list[tuple[str, str, frozenset[str]]] = []
        while True:
            kind, text = self.peek(values=True)
            if kind in {"id", "!"}:
                requirements.append(self.requirement())
                kind, text = self.take()
                if kind == "":
                    return requirements
                if kind != ",":
                    raise bad_request(f"found '{text}', expected: ',' or 'end of string'")
                kind, text = self.peek(values=True)
                if kind not in {"id", "!"}:
                    raise bad_request(f"found '{text}', expected: identifier after ','")
            elif kind == "":
                return requirements
            else:
                raise bad_request(f"found '{text}', expected: !, identifier, or 'end of string'")

    def requirement(self) -> tuple[str, str, frozenset[str]]:
        try:
            return self._requirement()
        except ValueError as e:
            raise bad_request(f"unable to parse requirement: {e}") from None

    def _requirement(self) -> tuple[str, str, frozenset[str]]:
        kind, key = self.take(values=True)
        negated = kind == "!"
        if negated:
            kind, key = self.take(values=True)
        if kind != "id":
            raise ValueError(f"found '{key}', expected: identifier")
        _check("<nil>", key, qualified_name(key))
        kind, text = self.peek()
        if negated:
            return key, "!", frozenset()
        if kind in {"", ","}:
            return key, "exists", frozenset()
        self.take()
        if kind in {"in", "notin"}:
            values = self._set()
        elif kind in {"=", "==", "!=", ">", "<"}:
            values = [self._value()]
            kind = "=" if kind == "==" else kind
        else:
            raise ValueError(f"found '{text}', expected: {_OPERATORS}")
        if kind in {">", "<"} and not re.fullmatch(r"[+-]?\d+", values[0]):
            error = invalid("values[0]", values[0], "for 'Gt', 'Lt' operators, the value must be an integer")
            raise ValueError(str(error))
        for index, value in enumerate(values):
            _check(f"values[{index}][{key}]", value, label_value(value))
        return key, kind, frozenset(values)

    def _set(self) -> list[str]:
        kind, text = self.take()
        if kind != "(":
            raise ValueError(f"found '{text}' expected: '('")
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
                raise ValueError(f"found '{text}', expected: ',' or ')'")
            if kind == ",":
                after, text = self.peek(values=True)
                if after == ")":
                    self.take()
                    return [*values, ""]
                if after == ",":
                    values.append("")
                continue
            raise ValueError(f"found '{text}', expected: ',', or identifier")

    def _value(self) -> str:
        kind, text = self.peek(values=True)
        if kind in {"", ","}:
            return ""
        self.take()
        if kind != "id":
            raise ValueError(f"found '{text}', expected: identifier")
        return text


def _check(field: str, value: str, problems: tuple[str, ...]) -> None:
    if problems:
        raise ValueError(
            ", ".join(str(invalid(field, value, p)) for p in problems) if len(problems) == 1 else _several(field, value, problems)
        )


def _several(field: str, value: str, problems: tuple[str, ...]) -> str:
    return "[" + ", ".join(str(invalid(field, value, p)) for p in problems) + "]"


def _integer(text: str | None) -> int | None:
    return int(text) if text is not None and re.fullmatch(r"[+-]?\d+", text) else None


def _matcher(key: str, operator: str, values: frozenset[str]) -> Matcher:
    if operator in {"=", "in"}:
        if len(values) == 1:
            (only,) = values
            return lambda labels: labels.get(key) == only
        return lambda labels: key in labels and labels[key] in values
    if operator in {"!=", "notin"}:
        return lambda labels: labels.get(key) not in values
    if operator == "exists":
        return lambda labels: key in labels
    if operator == "!":
        return lambda labels: key not in labels
    (only,) = values
    bound = int(only)

    def compare(labels: Mapping[str, str]) -> bool:
        number = _integer(labels.get(key))
        return number is not None and (number > bound if operator == ">" else number < bound)

    return compare


@lru_cache(maxsize=512)
def label_selector(text: str) -> Matcher | None:
    """The predicate that a label selector means, or None if it selects everything; raises StatusError (400)."""
    if len(text) > _MAXIMUM:
        raise bad_request("the label selector is too long")
    requirements = _Parser(text).parse()
    if not requirements:
        return None
    matchers = [_matcher(*r) for r in requirements]
    if len(matchers) == 1:
        return matchers[0]
    return lambda labels: all(m(labels) for m in matchers)


def object_selector(selector: Mapping[str, Any] | None) -> Matcher:
    """The predicate of a metav1.LabelSelector object; an absent one selects nothing, an empty one everything."""
    if selector is None:
        return lambda labels: False
    matchers: list[Matcher] = [_matcher(k, "=", frozenset({v})) for k, v in (selector.get("matchLabels") or {}).items()]
    names = {"In": "in", "NotIn": "notin", "Exists": "exists", "DoesNotExist": "!"}
    matchers.extend(
        _matcher(e.get("key", ""), names.get(e.get("operator", ""), "in"), frozenset(e.get("values") or ()))
        for e in selector.get("matchExpressions") or ()
    )
    return lambda labels: all(m(labels) for m in matchers)


FieldRequirement = tuple[str, bool, str]
"""Label, whether it must be equal (else unequal), value."""


@lru_cache(maxsize=512)  # one request asks for it up to three times: authorisation, options, selection
def field_requirements(text: str) -> tuple[FieldRequirement, ...]:
    """A field selector taken apart; raises StatusError (400)."""
    if len(text) > _MAXIMUM:
        raise bad_request("the field selector is too long")
    found: list[FieldRequirement] = []
    for term in _split_terms(text):
        if not term:
            continue
        match = re.fullmatch(r"((?:[^=!\\]|\\.|!(?!=))*?)(!=|==|=)((?:[^\\]|\\.)*)", term, re.DOTALL)
        if match is None:
            raise bad_request(f"invalid selector: '{text}'; can't understand '{term}'")
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
                raise bad_request(f"invalid field selector: invalid escape sequence: {value[position - 1 : position + 1]}")
            c = value[position]
        elif c == "=":
            raise bad_request(f"invalid field selector: unescaped character in value: {ord(c)}" if text else "")
        shown.append(c)
        position += 1
    return "".join(shown)


def field_value(obj: Mapping[str, Any], path: tuple[str, ...]) -> str:
    """The value at a path as field selectors compare it: text, `true`/`false`, numbers in decimal; absent is empty."""
    value: Any = obj
    for step in path:
        if not isinstance(value, Mapping):
            return ""
        value = value.get(step)
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)


def unsupported_field(label: str, *, plain: bool = False) -> StatusError:
    """400 for a field label the kind does not offer; `plain`: a built-in that offers nothing but name and namespace."""
    if plain:
        return bad_request(f'{quote(label)} is not a known field selector: only "metadata.name", "metadata.namespace"')
    return bad_request(f"field label not supported: {label}")


def selector_text(selector: Mapping[str, Any] | None) -> str:
    """A metav1.LabelSelector object in the words of a query, by key."""
    if not selector:
        return ""
    terms = [(key, f"{key}={value}") for key, value in (selector.get("matchLabels") or {}).items()]
    for expression in selector.get("matchExpressions") or ():
        key, values = expression.get("key", ""), ",".join(sorted(expression.get("values") or ()))
        shown = {"In": f"{key} in ({values})", "NotIn": f"{key} notin ({values})", "Exists": key, "DoesNotExist": f"!{key}"}
        terms.append((key, shown.get(expression.get("operator", ""), "")))
    return ",".join(text for _, text in sorted(terms, key=lambda t: t[0]))
