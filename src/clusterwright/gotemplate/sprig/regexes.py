"""Functions on regular expressions, which are Go's."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final

from clusterwright.golang.regex import BadPattern, Match, compile_go
from clusterwright.gotemplate.sprig.signatures import Library, Strings
from clusterwright.gotemplate.values import bounded

LIBRARY: Final = Library()
_define = LIBRARY.define
_REFERENCE: Final = re.compile(r"\$(?:\$|\{(?P<braced>[A-Za-z0-9_]*)\}|(?P<plain>[A-Za-z0-9_]+))")


def _matches(pattern: str, text: str) -> Iterator[Match]:
    """As Go finds them: an empty match directly behind another match does not count."""
    end = -1
    for match in compile_go(pattern).finditer(text):
        if match.end() > match.start() or match.start() != end:
            yield match
        end = match.end()


def _expanded(match: Match, template: str) -> str:
    """A replacement with its `$1` and `${name}` filled in; a group that there is not is nothing."""

    def group(reference: re.Match[str]) -> str:
        if reference[0] == "$$":
            return "$"
        name: Any = reference["braced"] if reference["braced"] is not None else reference["plain"]
        try:
            return str(match[int(name) if name.isdigit() else name] or "")
        except (IndexError, KeyError):
            return ""

    return _REFERENCE.sub(group, template)


def _replaced(pattern: str, text: str, replacement: str, *, literally: bool = False) -> str:
    def parts() -> Iterator[str]:
        position = 0
        for match in _matches(pattern, text):
            yield text[position : match.start()]
            yield replacement if literally else _expanded(match, replacement)
            position = match.end()
        yield text[position:]

    return "".join(bounded(parts()))


def _found_all(pattern: str, text: str, count: int) -> Strings:
    found = [m[0] for m in _matches(pattern, text)]
    return Strings(found if count < 0 else found[:count])


def _split(pattern: str, text: str, count: int) -> Strings:
    if count == 0:
        return Strings()
    if pattern and not text:
        return Strings([""])
    out: list[str] = []
    start = end = 0
    for match in _matches(pattern, text):
        if 0 < count == len(out) + 1:
            break
        end = match.start()
        if match.end() != 0:
            out.append(text[start:end])
        start = match.end()
    if end != len(text):
        out.append(text[start:])
    return Strings(out)


def _is_match(pattern: str, text: str) -> bool:
    try:
        return compile_go(pattern).search(text) is not None
    except BadPattern:
        return False


_define("regexMatch", "string string", _is_match)
_define("mustRegexMatch", "string string", lambda p, s: compile_go(p).search(s) is not None)
_define("regexFind mustRegexFind", "string string", lambda p, s: next((m[0] for m in _matches(p, s)), ""))
_define("regexFindAll mustRegexFindAll", "string string int", _found_all)
_define("regexReplaceAll mustRegexReplaceAll", "string string string", _replaced)
_define("regexReplaceAllLiteral mustRegexReplaceAllLiteral", "string string string", lambda p, s, r: _replaced(p, s, r, literally=True))
_define("regexSplit mustRegexSplit", "string string int", _split)
_define("regexQuoteMeta", "string", lambda s: re.sub(r"[\\.+*?()|\[\]{}^$]", lambda m: f"\\{m[0]}", s))
