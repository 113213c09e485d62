"""Describe invalid JSON as Go does."""

from __future__ import annotations

import json
import re
from typing import Any, Final

from clusterwright.golang.quoting import quote

_ENDED: Final = "unexpected end of JSON input"
_VALUE: Final = "looking for beginning of value"
_PLACES: Final = {
    "Extra data": "after top-level value",
    "Expecting value": _VALUE,
    "Expecting property name enclosed in double quotes": "looking for beginning of object key string",
    "Expecting ':' delimiter": "after object key",
    "Invalid control character at": "in string literal",
    "Invalid \\escape": "in string escape code",
}
_LITERALS: Final = (b"true", b"false", b"null")
_LOOKED_AT: Final = 65536
"""How far back the bracket around a position is searched."""
_STRING: Final = re.compile(rb'"(?:[^"\\]|\\.)*"')


def explain(body: bytes) -> str:
    """Return the error of Go's scanner for a text; empty if Python finds no error."""
    if not body.strip():
        return _ENDED
    try:
        json.loads(body.decode("latin-1"), parse_constant=_refuse, parse_int=str, parse_float=str)
    except _Constant as e:
        at = body.find(str(e).encode())
        return f"invalid character {_shown(body[at])} {_VALUE}"
    except json.JSONDecodeError as e:
        return _explain(body, e)
    except RecursionError:
        return "exceeded max depth"
    return ""


class _Constant(Exception):
    """A NaN or infinity, which Python accepts."""


def _refuse(name: str) -> Any:
    raise _Constant(name)


def _explain(body: bytes, error: json.JSONDecodeError) -> str:
    at = error.pos
    if error.msg.startswith("Unterminated string") or at >= len(body):
        return _ENDED
    if error.msg == "Invalid \\escape":
        at += 1
    place = _PLACES.get(error.msg)
    if place is None:
        place = "after array element" if _is_in_array(body[:at]) else "after object key:value pair"
    elif place == _VALUE:
        for literal in _LITERALS:
            same = next((i for i, c in enumerate(literal) if body[at + i : at + i + 1] != bytes([c])), len(literal))
            if same:
                at += same
                if at >= len(body):
                    return _ENDED
                place = f"in literal {literal.decode()} (expecting {_shown(literal[same])})"
                break
    return f"invalid character {_shown(body[at])} {place}"


def _is_in_array(before: bytes) -> bool:
    """Return whether the innermost open bracket is that of an array."""
    depth = 0
    for bracket in reversed(re.findall(rb"[\[\]{}]", _STRING.sub(b"", before[-_LOOKED_AT:]))):
        if bracket in b"]}":
            depth += 1
        elif depth:
            depth -= 1
        else:
            return bool(bracket == b"[")
    return False


def _shown(byte: int) -> str:
    if byte == ord("'"):
        return r"'\''"
    return "'\"'" if byte == ord('"') else f"'{quote(chr(byte))[1:-1]}'"
