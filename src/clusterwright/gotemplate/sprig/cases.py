"""Change the case of names: words are separated by capitals, digits, punctuation and connectors."""

from __future__ import annotations

import unicodedata
from enum import Enum, auto


class _Word(Enum):
    NONE = auto()
    NUMBER = auto()
    UPPER = auto()
    LOWER = auto()
    CONNECTOR = auto()
    PUNCTUATION = auto()
    OTHER = auto()


def _is_connector(character: str) -> bool:
    return character in "-_" or character.isspace()


def _kind(character: str) -> _Word:
    category = unicodedata.category(character)
    if _is_connector(character):
        return _Word.CONNECTOR
    if category[0] == "P":
        return _Word.PUNCTUATION
    if category == "Lu":
        return _Word.UPPER
    if category in ("Ll", "Lt"):
        return _Word.LOWER
    return _Word.NUMBER if category[0] == "N" else _Word.OTHER


def _run(text: str, start: int, kind: _Word) -> int:
    while start < len(text) and _kind(text[start]) is kind:
        start += 1
    return start


def _next(text: str, start: int) -> tuple[_Word, str, int]:
    """Return the kind of the word at a position, the word, and its end. A capital belongs to the lower-case letters after it."""
    if start == len(text):
        return _Word.NONE, "", start
    kind = _kind(text[start])
    end = _run(text, start, kind)
    if kind is _Word.UPPER and end < len(text) and _kind(text[end]) is _Word.LOWER:
        end = _run(text, end, _Word.LOWER) if end == start + 1 else end - 1
    return kind, text[start:end], end


def dashed(text: str, connector: str) -> str:
    """Return `FirstName` as `first_name` or `first-name`. Digits stay with adjacent letters if possible."""
    out: list[str] = []

    def write(kind: _Word, word: str) -> None:
        if kind is _Word.CONNECTOR:
            word = connector * len(word)
        out.append(word.lower() if kind is _Word.UPPER else word)

    def follow(kind: _Word, *, silent: tuple[_Word, ...]) -> None:
        if kind not in silent:
            out.append(connector)

    quiet = (_Word.CONNECTOR, _Word.PUNCTUATION)
    length = len(text)
    kind, word, at = _next(text, 0)
    while at < length:
        if kind is not _Word.CONNECTOR:
            write(kind, word)
        before, last = kind, word
        kind, word, at = _next(text, at)
        if before is _Word.NUMBER:
            while kind in (_Word.LOWER, _Word.NUMBER):
                write(kind, word)
                kind, word, at = _next(text, at)
            follow(kind, silent=(*quiet, _Word.NONE))
        elif before is _Word.CONNECTOR:
            write(before, last)
        elif before is not _Word.PUNCTUATION:
            if kind is not _Word.NUMBER:
                follow(kind, silent=quiet)
                continue
            if at == length:
                continue
            digits = word
            kind, word, at = _next(text, at)
            if kind is not _Word.LOWER:
                write(_Word.NUMBER, digits)
                follow(kind, silent=quiet)
                continue
            out.append(connector)
            write(_Word.NUMBER, digits)
            while kind in (_Word.LOWER, _Word.NUMBER):
                write(kind, word)
                kind, word, at = _next(text, at)
            follow(kind, silent=(*quiet, _Word.NONE))
    write(kind, word)
    return "".join(out)


def pascal(text: str) -> str:
    """Return `http_server` as `HttpServer`; connectors at the ends, and all but one of several, stay."""
    start = next((i for i, c in enumerate(text) if not _is_connector(c)), len(text))
    if start == len(text):
        return text
    out = [text[:start]]
    current = text[start].upper()
    for character in text[start + 1 :]:
        if _is_connector(current) and not _is_connector(character):
            current = character.upper()
            continue
        out.append(current)
        current = character
    return "".join([*out, current])
