"""Go's template text as tokens. Text between actions is trimmed as `{{-` and `-}}` ask; comments are removed."""

from __future__ import annotations

import re
from collections.abc import Generator, Iterator
from dataclasses import dataclass
from enum import Enum, auto

from clusterwright.golang.quoting import quote
from clusterwright.gotemplate.values import TemplateError, is_word_character

_SPACES = " \t\r\n"
_LEFT = re.compile(r"\{\{(?:-(?=[ \t\r\n]))?")
_RIGHT = re.compile(r"[ \t\r\n]-\}\}[ \t\r\n]*|\}\}")
_COMMENT = re.compile(r"/\*.*?\*/", re.DOTALL)
_NUMBER_START = re.compile(r"[+0-9-]|\.[0-9]")
_NUMBER = re.compile(
    r"[+-]?(?:0[xX][0-9a-fA-F_]*(?:\.[0-9a-fA-F_]*)?(?:[pP][+-]?[0-9_]*)?|0[oO][0-7_]*(?:\.[0-7_]*)?|0[bB][01_]*(?:\.[01_]*)?"
    r"|[0-9_]*(?:\.[0-9_]*)?(?:[eE][+-]?[0-9_]*)?)i?"
)


class Type(Enum):
    """The kind of a token."""

    TEXT = auto()
    LEFT = auto()
    RIGHT = auto()
    SPACE = auto()
    ASSIGN = auto()
    DECLARE = auto()
    PIPE = auto()
    OPEN = auto()
    CLOSE = auto()
    STRING = auto()
    NUMBER = auto()
    BOOL = auto()
    VARIABLE = auto()
    FIELD = auto()
    DOT = auto()
    IDENTIFIER = auto()
    KEYWORD = auto()
    CHARACTER = auto()
    END = auto()


KEYWORDS = frozenset({"block", "break", "continue", "define", "else", "end", "if", "nil", "range", "template", "with"})

# What an action is made of, by the first alternative that matches; names and numbers are looked at by themselves.
_PIECES = (
    (Type.SPACE, re.compile(r"[ \t\r\n]+(?=[ \t\r\n]-\}\})|[ \t\r\n]+")),
    (Type.DECLARE, re.compile(":=")),
    (Type.ASSIGN, re.compile("=")),
    (Type.PIPE, re.compile(r"\|")),
    (Type.OPEN, re.compile(r"\(")),
    (Type.CLOSE, re.compile(r"\)")),
    (Type.STRING, re.compile(r'"(?:\\[^\n]|[^"\\\n])*"|`[^`]*`')),
    (Type.NUMBER, re.compile(r"'(?:\\[^\n]|[^'\\\n])*'")),
    (Type.CHARACTER, re.compile(r"[!#%&*,/;<>?@\[\\\]^{}~]")),
)


@dataclass(frozen=True, slots=True)
class Token:
    """A token and its first line; for words also the number of bytes before it."""

    type: Type
    text: str
    line: int
    column: int = 0


class _Columns:
    """The byte columns of positions, which must be requested from left to right."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._position = 0
        self._column = 0

    def at(self, position: int) -> int:
        """Return the column of a position, which is not left of the previous one."""
        passed = self._text[self._position : position]
        line_break = passed.rfind("\n")
        self._column = (self._column if line_break < 0 else 0) + len(passed[line_break + 1 :].encode())
        self._position = position
        return self._column


def tokens(text: str, keywords: frozenset[str] = KEYWORDS) -> Iterator[Token]:
    """Yield the tokens of a template, ended by an END; raises TemplateError where Go's lexer stops."""
    position, line, columns = 0, 1, _Columns(text)
    while (left := _LEFT.search(text, position)) is not None:
        before = text[position : left.start()]
        is_trimmed = left.end() - left.start() == 3
        if shown := before.rstrip(_SPACES) if is_trimmed else before:
            yield Token(Type.TEXT, shown, line)
        line += before.count("\n")
        # The blank behind a trim marker belongs to the marker.
        start = left.end() + is_trimmed
        if text.startswith("/*", start):
            end = _after_comment(text, start, line)
        else:
            yield Token(Type.LEFT, "{{", line)
            end = yield from _action(text, start, line + text.count("\n", left.end(), start), keywords, columns)
        line += text.count("\n", left.start(), end)
        position = end
    if position < len(text):
        yield Token(Type.TEXT, text[position:], line)
    yield Token(Type.END, "end of the template", line)


def _after_comment(text: str, start: int, line: int) -> int:
    comment = _COMMENT.match(text, start)
    if comment is None:
        raise TemplateError(f"line {line}: unclosed comment")
    right = _RIGHT.match(text, comment.end())
    if right is None:
        raise TemplateError(f"line {line}: comment ends before closing delimiter")
    return right.end()


def _action(text: str, position: int, line: int, keywords: frozenset[str], columns: _Columns) -> Generator[Token, None, int]:
    """Yield the tokens of one action; return the position after it, for `yield from`."""
    parentheses = 0
    while (right := _RIGHT.match(text, position)) is None:
        token = _piece(text, position, line, keywords, columns)
        parentheses += (token.type is Type.OPEN) - (token.type is Type.CLOSE)
        if parentheses < 0:
            raise TemplateError(f"line {line}: unexpected right paren")
        yield token
        position += len(token.text)
        line += token.text.count("\n")
    if parentheses:
        raise TemplateError(f"line {line}: unclosed left paren")
    yield Token(Type.RIGHT, "}}", line)
    return right.end()


def _piece(text: str, position: int, line: int, keywords: frozenset[str], columns: _Columns) -> Token:
    first = text[position : position + 1]
    if not first:
        raise TemplateError(f"line {line}: unclosed action")
    if _NUMBER_START.match(text, position):
        return Token(Type.NUMBER, _number(text, position, line), line)
    if first in ".$" or is_word_character(first):
        word = _word(text, position, line)
        return Token(_type_of_word(word, keywords), word, line, columns.at(position))
    for type_, pattern in _PIECES:
        if match := pattern.match(text, position):
            return Token(type_, match[0], line)
    raise TemplateError(f"line {line}: unexpected {first!r} in action")


def _word(text: str, position: int, line: int) -> str:
    end = position + 1
    while end < len(text) and is_word_character(text[end]):
        end += 1
    if end < len(text) and text[end] not in _SPACES + ".,|:)(" and not text.startswith("}}", end):
        shown = quote(text[end], delimiter="'")
        raise TemplateError(f"line {line}: bad character U+{ord(text[end]):04X} {shown}")
    return text[position:end]


def _type_of_word(word: str, keywords: frozenset[str]) -> Type:
    if word[0] == "$":
        return Type.VARIABLE
    if word[0] == ".":
        return Type.FIELD if len(word) > 1 else Type.DOT
    if word in keywords:
        return Type.KEYWORD
    return Type.BOOL if word in {"true", "false"} else Type.IDENTIFIER


def _number(text: str, position: int, line: int) -> str:
    """Return the text of a number; parsing its value finds out whether it is valid."""
    end = _number_end(text, position, line)
    if text[end : end + 1] in {"+", "-"}:
        end = _number_end(text, end, line)
        if text[end - 1] != "i":
            raise TemplateError(f"line {line}: bad number syntax: {text[position:end]!r}")
    return text[position:end]


def _number_end(text: str, position: int, line: int) -> int:
    match = _NUMBER.match(text, position)
    end = match.end() if match else position
    if end < len(text) and is_word_character(text[end]):
        raise TemplateError(f"line {line}: bad number syntax: {text[position : end + 1]!r}")
    return end
