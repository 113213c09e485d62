"""Templates with `${VARIABLES}` in clusterctl's syntax. Pure.

`${V}`, `${V:=d}`, `${V:-d}`, `${V=d}` (a default may hold variables itself), `${#V}`, `${V^}`, `${V^^}`, `${V,}`, `${V,,}`,
`${V:from}`, `${V:from:length}`, `${V#glob}`, `${V##glob}`, `${V%glob}`, `${V%%glob}`, `${V/old/new}`, `${V//old/new}`,
`${V/#old/new}`, `${V/%old/new}`. `$$` is a dollar sign. A value that is empty counts as none.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from fnmatch import translate

_LEGACY = re.compile(r"\$\{\s*([A-Za-z0-9_$]+)\s*\}")
_NAME = re.compile(r"\w+")
_OPERATOR = re.compile(r":[=\-?+]|=|,,?|\^\^?|//|/#|/%|/|##?|%%?|:")
_NUMBER = re.compile(r"[+-]?[0-9]+")
_DEFAULTS = {":=", ":-", ":?", ":+", "="}


class BadTemplate(ValueError):
    """The text is not a template; the message names line and rule."""


@dataclass(frozen=True, slots=True)
class Expansion:
    """One `${...}`."""

    name: str
    operator: str = ""
    arguments: tuple[Template, ...] = ()


Template = tuple["str | Expansion", ...]


def parse(text: str) -> Template:
    """Return a parsed template; raises BadTemplate."""
    # blanks around a name are of old, and fine
    return _Parser(_LEGACY.sub(r"${\1}", text)).template()


def variables(template: Template) -> dict[str, str]:
    """Return the variables with their defaults; empty: a value is required. The first occurrence counts."""
    found: dict[str, str] = {}
    for part in template:
        if isinstance(part, Expansion):
            default = "".join(_shown(p) for argument in part.arguments for p in argument) if part.operator in _DEFAULTS else ""
            found.setdefault(part.name, default)
    return found


def substitute(template: Template, values: Mapping[str, str]) -> str:
    """Return the text with values in place of variables; missing ones are empty."""
    return "".join(part if isinstance(part, str) else _expanded(part, values) for part in template)


def _shown(part: str | Expansion) -> str:
    return part if isinstance(part, str) else f"${{{part.name}}}"


def _expanded(part: Expansion, values: Mapping[str, str]) -> str:
    value, arguments = values.get(part.name, ""), [substitute(a, values) for a in part.arguments]
    if part.operator in _DEFAULTS or not part.operator:
        return value or "".join(arguments)
    return _FUNCTIONS[part.operator](value, *arguments)


class _Parser:
    """Parses a text from the left."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0

    def template(self) -> Template:
        return tuple(self._parts("", {"$": "$"}))

    def _parts(self, end: str, escapes: Mapping[str, str]) -> Iterator[str | Expansion]:
        """Yield texts and expansions up to one of the characters in `end`; `escapes` maps a character to those that it escapes."""
        plain: list[str] = []
        while self._at < len(self._text):
            here, after = self._text[self._at], self._text[self._at + 1 : self._at + 2]
            if here == "$" and after == "{":
                if plain:
                    yield "".join(plain)
                    plain = []
                yield self._expansion()
                continue
            if after and after in escapes.get(here, ""):
                plain.append(after)
                self._at += 2
                continue
            if here in end:
                break
            plain.append(here)
            self._at += 1
        if plain:
            yield "".join(plain)

    def _expansion(self) -> Expansion:
        began = self._at
        self._at += 2
        if self._text[self._at : self._at + 1] == "#":
            self._at += 1
            made = Expansion(self._name(began), "length")
        else:
            name = self._name(began)
            found = _OPERATOR.match(self._text, self._at)
            made = Expansion(name) if found is None else self._operation(name, found)
        if self._text[self._at : self._at + 1] != "}":
            raise self._bad(began, "a closing brace is expected")
        self._at += 1
        return made

    def _operation(self, name: str, found: re.Match[str]) -> Expansion:
        operator = found.group()
        self._at = found.end()
        if operator in {",", ",,", "^", "^^"}:
            return Expansion(name, operator)
        if operator == ":":
            return Expansion(name, operator, self._separated(":", {}))
        if operator.startswith("/"):
            made = Expansion(name, operator, self._separated("/", {"$": "$", "\\": "/\\"}))
            if len(made.arguments) == 1:
                raise self._bad(found.start(), "what replaces it is expected, after a slash")
            return made
        return Expansion(name, operator, (tuple(self._parts("}", {})),))

    def _separated(self, by: str, escapes: Mapping[str, str]) -> tuple[Template, ...]:
        first = tuple(self._parts(f"{by}}}", escapes))
        if self._text[self._at : self._at + 1] != by:
            return (first,)
        self._at += 1
        return first, tuple(self._parts("}", escapes))

    def _name(self, began: int) -> str:
        found = _NAME.match(self._text, self._at)
        if found is None:
            raise self._bad(began, "the name of a variable is expected")
        self._at = found.end()
        return found.group()

    def _bad(self, began: int, expected: str) -> BadTemplate:
        line = self._text.count("\n", 0, began) + 1
        shown = self._text[began : began + 30].partition("\n")[0]
        return BadTemplate(f"line {line}: {shown}: {expected}")


def _substring(value: str, start: str, length: str | None = None) -> str:
    if not _NUMBER.fullmatch(start) or (length is not None and not _NUMBER.fullmatch(length)):
        return value
    first, size = int(start), None if length is None else int(length)
    first = max(0, len(value) + first) if first < 0 else first
    return value[first:] if size is None else value[first : max(first, first + size)]


def _trimmed(value: str, glob: str, *, shortest: bool) -> str:
    matches = [n for n in range(1, len(value) + 1) if re.fullmatch(translate(glob), value[:n])]
    return value[(min if shortest else max)(matches) :] if matches else value


def _trimmed_end(value: str, glob: str, *, shortest: bool) -> str:
    matches = [n for n in range(len(value)) if re.fullmatch(translate(glob), value[n:])]
    return value[: (max if shortest else min)(matches)] if matches else value


_FUNCTIONS: Mapping[str, Callable[..., str]] = {
    "length": lambda value: str(len(value.encode())),
    ",": lambda value: value[:1].lower() + value[1:],
    ",,": lambda value: value.lower(),
    "^": lambda value: value[:1].upper() + value[1:],
    "^^": lambda value: value.upper(),
    ":": _substring,
    "#": lambda value, glob: _trimmed(value, glob, shortest=True),
    "##": lambda value, glob: _trimmed(value, glob, shortest=False),
    "%": lambda value, glob: _trimmed_end(value, glob, shortest=True),
    "%%": lambda value, glob: _trimmed_end(value, glob, shortest=False),
    "/": lambda value, old, new="": value.replace(old, new, 1) if old else value,
    "//": lambda value, old, new="": value.replace(old, new) if old else value,
    "/#": lambda value, old, new="": new + value[len(old) :] if value.startswith(old) else value,
    "/%": lambda value, old, new="": value[: len(value) - len(old)] + new if value.endswith(old) else value,
}
