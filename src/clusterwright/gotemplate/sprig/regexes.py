"""Functions on regular expressions, with Go's syntax."""

from __future__ import annotations

import re
from collections.abc import Iterator
from math import prod
from typing import Any, Final

from clusterwright.golang.regex import BadPattern, Match, Pattern, compile_go, program_size
from clusterwright.gotemplate.metering import Charge
from clusterwright.gotemplate.sprig.signatures import Library, Strings
from clusterwright.gotemplate.values import bounded

LIBRARY: Final = Library()
_define = LIBRARY.define
_PER_MATCH: Final = 2
_COUNT: Final = re.compile(r"[{,]([0-9]{1,4})\}")
"""The repetition of a part of a pattern; the size of the compiled pattern grows with it."""
_CLASS: Final = re.compile(r"\\[pP]")
_PER_CLASS: Final = 30
"""The cost of compiling a Unicode class, in steps."""
_PER_STEP: Final = 32
"""How many characters one step searches with a small pattern."""
_SMALL: Final = 32
"""The number of states of a small pattern."""
_REFERENCE: Final = re.compile(r"\$(?:\$|\{(?P<braced>[A-Za-z0-9_]*)\}|(?P<plain>[A-Za-z0-9_]+))")


def _compiled(charge: Charge, pattern: str, text: str) -> Pattern:
    """Return a compiled pattern, and charge for compiling and searching; raises BadPattern."""
    classes, repeated = len(_CLASS.findall(pattern)), min(1000, prod(map(int, _COUNT.findall(pattern))))
    charge(len(pattern) // 2 + _PER_CLASS * classes + repeated * (10 if classes else 1))
    compiled = compile_go(pattern)
    charge(len(text) * max(1, program_size(pattern) // _SMALL) // _PER_STEP)
    return compiled


def _matches(charge: Charge, pattern: str, text: str) -> Iterator[Match]:
    """Yield matches as Go does: an empty match directly after another match does not count."""
    end = -1
    for match in _compiled(charge, pattern, text).finditer(text):
        charge(_PER_MATCH)
        if match.end() > match.start() or match.start() != end:
            yield match
        end = match.end()


def _expanded(charge: Charge, match: Match, template: str) -> str:
    """Return a replacement with its `$1` and `${name}` filled in; a missing group is empty."""

    def group(reference: re.Match[str]) -> str:
        if reference[0] == "$$":
            return "$"
        name: Any = reference["braced"] if reference["braced"] is not None else reference["plain"]
        try:
            return str(match[int(name) if name.isdigit() else name] or "")
        except (IndexError, KeyError):
            return ""

    charge(template.count("$"))
    return _REFERENCE.sub(group, template)


def _replaced(charge: Charge, pattern: str, text: str, replacement: str, *, literally: bool = False) -> str:
    def parts() -> Iterator[str]:
        position = 0
        for match in _matches(charge, pattern, text):
            yield text[position : match.start()]
            yield replacement if literally else _expanded(charge, match, replacement)
            position = match.end()
        yield text[position:]

    return "".join(bounded(parts()))


def _found_all(charge: Charge, pattern: str, text: str, count: int) -> Strings:
    found = [m[0] for m in _matches(charge, pattern, text)]
    return Strings(found if count < 0 else found[:count])


def _split(charge: Charge, pattern: str, text: str, count: int) -> Strings:
    if count == 0:
        return Strings()
    if pattern and not text:
        return Strings([""])
    out: list[str] = []
    start = end = 0
    for match in _matches(charge, pattern, text):
        if 0 < count == len(out) + 1:
            break
        end = match.start()
        if match.end() != 0:
            out.append(text[start:end])
        start = match.end()
    if end != len(text):
        out.append(text[start:])
    return Strings(out)


def _is_match(charge: Charge, pattern: str, text: str) -> bool:
    return _compiled(charge, pattern, text).search(text) is not None


def _is_match_leniently(charge: Charge, pattern: str, text: str) -> bool:
    try:
        return _is_match(charge, pattern, text)
    except BadPattern:
        return False


def _find(charge: Charge, pattern: str, text: str) -> str:
    return next((str(match[0]) for match in _matches(charge, pattern, text)), "")


def _replaced_literally(charge: Charge, pattern: str, text: str, replacement: str) -> str:
    return _replaced(charge, pattern, text, replacement, literally=True)


for _names, _parameters, _function in (
    ("regexMatch", "string string", _is_match_leniently),
    ("mustRegexMatch", "string string", _is_match),
    ("regexFind mustRegexFind", "string string", _find),
    ("regexFindAll mustRegexFindAll", "string string int", _found_all),
    ("regexReplaceAll mustRegexReplaceAll", "string string string", _replaced),
    ("regexReplaceAllLiteral mustRegexReplaceAllLiteral", "string string string", _replaced_literally),
    ("regexSplit mustRegexSplit", "string string int", _split),
):
    _define(_names, _parameters, _function, metered=True)
_define("regexQuoteMeta", "string", lambda s: re.sub(r"[\\.+*?()|\[\]{}^$]", lambda m: f"\\{m[0]}", s), weight=12)
