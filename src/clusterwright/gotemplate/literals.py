"""Literals of Go's template language: quoted strings, characters, numbers."""

from __future__ import annotations

import re
from dataclasses import dataclass

from clusterwright.golang.numbers import FLOAT, parse_float
from clusterwright.gotemplate.values import Int, TemplateError, concatenate

_ESCAPE = re.compile(
    r"\\(?:(?P<simple>[abfnrtv\\'\"])|x(?P<hex>[0-9a-fA-F]{2})|(?P<octal>[0-7]{3})"
    r"|u(?P<short>[0-9a-fA-F]{4})|U(?P<long>[0-9a-fA-F]{8}))|(?P<plain>[^\\\n])"
)
_SIMPLE = {"a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v", "\\": "\\", "'": "'", '"': '"'}

_INTEGER = re.compile(
    r"(?P<sign>[+-]?)(?:0[xX](?P<b16>(?:_?[0-9a-fA-F])+)|0[bB](?P<b2>(?:_?[01])+)|0[oO](?P<b8>(?:_?[0-7])+)"
    r"|0(?P<old8>(?:_?[0-7])*)|(?P<b10>[1-9](?:_?[0-9])*))"
)
_BASES = {"b16": 16, "b2": 2, "b8": 8, "old8": 8, "b10": 10}
_LONGEST_DECIMAL = 20  # digits of the largest uint64


@dataclass(frozen=True, slots=True)
class Overflow:
    """An unsigned number does not fit an int: it may be written, but not evaluated."""

    text: str


Number = Int | float | complex | Overflow


def unquote(token: str) -> str:
    """Return the value of a "quoted" or `raw` string literal."""
    if token[0] == "`":
        return token[1:-1].replace("\r", "")
    parts: list[str] = []
    position = 1
    while position < len(token) - 1:
        part, _, position = _character(token, position, '"')
        parts.append(part)
    return concatenate(parts)


def number(token: str) -> Number:
    """Return the value of a number with the type of a Go constant without context: int, float64 or complex128."""
    if token[0] == "'":
        _, code, position = _character(token, 1, "'")
        if position != len(token) - 1:
            raise TemplateError(f"malformed character constant: {token}")
        return Int(code)
    if token[-1] == "i":
        real = FLOAT.match(token)
        if real and token[real.end()] in "+-":
            return complex(_float(real[0], token), _float(token[real.end() : -1], token))
        return complex(0, _float(token[:-1], token))
    if match := _INTEGER.fullmatch(token):
        return _integer(token, match)
    value = _float(token, token)
    if not re.search("[.eEpP]", token):
        raise TemplateError(f"integer overflow: {token}")
    return value


def _integer(token: str, match: re.Match[str]) -> Int | float | Overflow:
    group = str(match.lastgroup)
    digits = match[group].replace("_", "") or "0"
    if group == "b10" and len(digits) > _LONGEST_DECIMAL:
        raise TemplateError(f"integer overflow: {token}")
    value = int(digits, _BASES[group])
    if match["sign"] == "-":
        value = -value
    if -(2**63) <= value < 2**63:
        # Go looks for an exponent in the text of a number, and finds one in +0xE, which has no leading 0x.
        return float(value) if match["sign"] and re.search("[eE]", token) else Int(value)
    if match["sign"] or value >= 2**64:
        raise TemplateError(f"integer overflow: {token}")
    return Overflow(token)


def _float(text: str, token: str) -> float:
    if FLOAT.fullmatch(text) is None:
        raise TemplateError(f"illegal number syntax: {token}")
    try:
        return parse_float(text)
    except ValueError:
        raise TemplateError(f"number out of range: {token}") from None


def _character(token: str, position: int, quote: str) -> tuple[str, int, int]:
    """Return the character at a position, its number, and the position after it."""
    match = _ESCAPE.match(token, position)
    if match is None or match["plain"] == quote or (match["simple"] in {"'", '"'} and match["simple"] != quote):
        raise TemplateError(f"invalid syntax in {token}")
    if plain := match["plain"]:
        return plain, ord(plain), match.end()
    if simple := match["simple"]:
        return _SIMPLE[simple], ord(_SIMPLE[simple]), match.end()
    if byte := match["hex"] or match["octal"]:
        code = int(byte, 16 if match["hex"] else 8)
        if code <= 0xFF:
            return bytes([code]).decode("utf-8", "surrogateescape"), code, match.end()
    else:
        code = int(match["short"] or match["long"], 16)
        if code <= 0x10FFFF and not 0xD800 <= code <= 0xDFFF:
            return chr(code), code, match.end()
    raise TemplateError(f"invalid escape {match[0]} in {token}")
