"""Go (RE2) regular expressions in Python's `re`: what differs is translated, what RE2 does not know is refused."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final

_POSIX: Final = {
    "alnum": "0-9A-Za-z",
    "alpha": "A-Za-z",
    "ascii": "\\x00-\\x7f",
    "blank": "\\t ",
    "cntrl": "\\x00-\\x1f\\x7f",
    "digit": "0-9",
    "graph": "!-~",
    "lower": "a-z",
    "print": " -~",
    "punct": "!-/:-@\\[-`{-~",
    "space": "\\t\\n\\v\\f\\r ",
    "upper": "A-Z",
    "word": "0-9A-Za-z_",
    "xdigit": "0-9A-Fa-f",
}
_UNICODE: Final = {
    "L": "^\\W\\d_",
    "Lu": "A-ZÀ-ÖØ-ÞĀ-Ž",
    "Ll": "a-zß-öø-ÿā-ž",
    "N": "\\d",
    "Nd": "\\d",
    "Z": "\\s",
    "Zs": "\\s",
    "P": "!-/:-@\\[-`{-~",
}


class BadPattern(ValueError):
    """Not a regular expression that RE2 would take."""


@lru_cache(maxsize=2048)
def compile_go(pattern: str) -> re.Pattern[str]:
    """The compiled pattern; raises BadPattern."""
    try:
        translated, unicode = _translate(pattern)
        return re.compile(translated, 0 if unicode else re.ASCII)
    except (re.error, OverflowError, RecursionError) as e:
        raise BadPattern(_explain(pattern, str(e))) from None
    except BadPattern as e:
        raise BadPattern(f"error parsing regexp: {e}") from None


_WORDS: Final = (
    ("missing ), unterminated subpattern", "missing closing ): `{0}`"),
    ("unbalanced parenthesis", "unexpected ): `{0}`"),
    ("nothing to repeat", "missing argument to repetition operator: `{1}`"),
    ("multiple repeat", "invalid nested repetition operator: `{1}`"),
    ("bad character range", "invalid character class range: `{1}`"),
)


def _explain(pattern: str, problem: str) -> str:
    """A problem in Go's words, as far as it has the same."""
    at = re.search(r"at position (\d+)", problem)
    shown = pattern[int(at.group(1)) :][:2] if at else pattern
    for ours, theirs in _WORDS:
        if problem.startswith(ours):
            return "error parsing regexp: " + theirs.format(pattern, shown[:1])
    return f"error parsing regexp: {problem}"


def _translate(pattern: str) -> tuple[str, bool]:
    out: list[str] = []
    unicode = False
    in_class = False
    i, n = 0, len(pattern)
    while i < n:
        c = pattern[i]
        if c == "\\":
            if i + 1 >= n:
                raise BadPattern("trailing backslash at end of expression: ``")
            d = pattern[i + 1]
            if d in "pP":
                name, i = _property(pattern, i + 2)
                unicode = True
                body = _UNICODE.get(name)
                if body is None:
                    raise BadPattern(f"invalid character class range: \\{d}{{{name}}}")
                negated = (d == "P") ^ body.startswith("^")
                body = body.removeprefix("^")
                if in_class:
                    if negated:
                        raise BadPattern("negated property inside a class")
                    out.append(body)
                else:
                    out.append(f"[{'^' if negated else ''}{body}]")
                continue
            if d == "Q":
                end = pattern.find("\\E", i + 2)
                literal = pattern[i + 2 :] if end < 0 else pattern[i + 2 : end]
                out.append(re.escape(literal))
                i = n if end < 0 else end + 2
                continue
            if d == "x" and i + 2 < n and pattern[i + 2] == "{":
                end = pattern.find("}", i)
                if end < 0:
                    raise BadPattern("invalid escape sequence")
                out.append(re.escape(chr(int(pattern[i + 3 : end], 16))))
                i = end + 1
                continue
            if d == "z":
                out.append(r"\Z")
            elif d.isdigit() and d != "0":
                raise BadPattern(f"invalid escape sequence: `\\{d}`")
            elif d == "Z":
                raise BadPattern("invalid escape sequence: `\\Z`")
            else:
                out.append(c + d)
            i += 2
            continue
        if in_class:
            if c == "[" and pattern.startswith("[:", i):
                end = pattern.find(":]", i + 2)
                name = pattern[i + 2 : end] if end > 0 else ""
                if name.lstrip("^") in _POSIX:
                    if name.startswith("^"):
                        raise BadPattern("negated POSIX class inside a class")
                    out.append(_POSIX[name])
                    i = end + 2
                    continue
                out.append("\\[")
            elif c == "[":
                out.append("\\[")
            else:
                if c == "]":
                    in_class = False
                out.append(c)
            i += 1
            continue
        if c == "[":
            in_class = True
            out.append(c)
            i += 1
            if i < n and pattern[i] == "^":
                out.append("^")
                i += 1
            if i < n and pattern[i] == "]":
                out.append("\\]")
                i += 1
            continue
        if c == "$":
            out.append(r"\Z")
        elif c == "(" and pattern.startswith("(?<", i) and not pattern.startswith(("(?<=", "(?<!"), i):
            out.append("(?P<")
            i += 3
            continue
        elif c == "(" and pattern.startswith(("(?=", "(?!", "(?<=", "(?<!", "(?>", "(?#", "(?(", "(?P="), i):
            raise BadPattern(f"invalid or unsupported Perl syntax: `{pattern[i : i + 3]}`")
        else:
            out.append(c)
        i += 1
    if in_class:
        raise BadPattern(f"missing closing ]: `{pattern[pattern.rindex('[') :]}`")
    return "".join(out), unicode


def _property(pattern: str, i: int) -> tuple[str, int]:
    if i < len(pattern) and pattern[i] == "{":
        end = pattern.find("}", i)
        if end < 0:
            raise BadPattern("invalid character class range")
        return pattern[i + 1 : end], end + 1
    return pattern[i : i + 1], i + 1
