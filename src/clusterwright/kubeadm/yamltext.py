"""YAML as text that every reader understands the same way: ours (YAML 1.1), cloud-init's and Go's.

A scalar is plain if all of them read it as the same string, else quoted. The emitter supports mappings, sequences, strings, numbers,
booleans, None and aware datetimes, which are all types in the documents on a node.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

_NUMBER = re.compile(
    r"[-+]?(?:0b[01_]+|0o?[0-7_]+|0x[0-9a-fA-F_]+"
    r"|[0-9][0-9_]*(?::[0-5]?[0-9])*(?:\.[0-9_]*)?(?:[eE][-+]?[0-9]+)?"
    r"|\.[0-9][0-9_]*(?:[eE][-+]?[0-9]+)?|\.(?:inf|Inf|INF))|\.(?:nan|NaN|NAN)"
)
_TIMESTAMP = re.compile(r"[0-9]{4}-[0-9]{1,2}-[0-9]{1,2}")
_WORDS = frozenset(
    form for word in ("y", "n", "yes", "no", "on", "off", "true", "false", "null") for form in (word, word.capitalize(), word.upper())
) | {"~", "=", "<<", ""}
# a first character that starts something else than a plain scalar; - ? : only do so before a space or alone
_INDICATOR = frozenset(",[]{}#&*!|>'\"%@`")
_UNPRINTABLE = re.compile("[^\t\n\x20-\x7e\xa0-\u2027\u202a-\ud7ff\ue000-\ufefe\uff00-\ufffd\U00010000-\U0010ffff]")
_ESCAPES = {
    "\\": "\\\\", '"': '\\"', "\0": "\\0", "\a": "\\a", "\b": "\\b", "\t": "\\t", "\n": "\\n", "\v": "\\v", "\f": "\\f", "\r": "\\r",
}  # fmt: skip
_ESCAPED = re.compile('[\\\\"\t\n]|' + _UNPRINTABLE.pattern)


def _escape(match: re.Match[str]) -> str:
    char = match[0]
    known = _ESCAPES.get(char)
    if known is not None:
        return known
    code = ord(char)
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def quoted(text: str) -> str:
    """Return the double-quoted form, with escapes for quotes, backslashes and unprintable characters."""
    return '"' + _ESCAPED.sub(_escape, text) + '"'


def is_printable(text: str) -> bool:
    """Return whether the text may be in a block scalar unchanged: no control characters, and newline as its only line break."""
    return _UNPRINTABLE.search(text) is None


def scalar(text: str) -> str:
    """Return the string as one YAML scalar on one line: plain if that keeps it, single-quoted if that does, else double-quoted."""
    if is_plain(text):
        return text
    if "\n" in text or "\t" in text or not is_printable(text):
        return quoted(text)
    return "'" + text.replace("'", "''") + "'"


def is_plain(text: str) -> bool:
    """Return whether a plain scalar in block context is read back as the same string, in YAML 1.1, 1.2 and Go's parsers."""
    if text in _WORDS or text[0] in _INDICATOR or text[0] == " " or text[-1] in " :":
        return False
    if text[0] in "-?:" and (len(text) == 1 or text[1] == " " or text.startswith("---")):
        return False
    if ": " in text or " #" in text or "\n" in text or "\t" in text or text.startswith("..."):
        return False
    return _NUMBER.fullmatch(text) is None and _TIMESTAMP.match(text) is None and is_printable(text)


def rfc3339(time: datetime) -> str:
    """Return the time in UTC, in whole seconds."""
    return time.strftime("%Y-%m-%dT%H:%M:%SZ")


def dump(value: Mapping[str, Any]) -> str:
    """Return a document in block style with sorted keys, sequences not indented below their key; ends with one newline."""
    lines: list[str] = []
    _mapping(value, "", lines)
    return "\n".join(lines) + "\n"


def _leaf(value: Any) -> str | None:
    """Return the one-line form of a value; None for a filled mapping or sequence."""
    if isinstance(value, str):
        return scalar(value)
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return str(value)
    if isinstance(value, datetime):
        return f'"{rfc3339(value)}"'
    if isinstance(value, Mapping):
        return None if value else "{}"
    if isinstance(value, Sequence):
        return None if value else "[]"
    raise TypeError(f"no YAML for {type(value).__name__}")


def _mapping(value: Mapping[str, Any], indent: str, lines: list[str]) -> None:
    if not value:
        lines.append(f"{indent}{{}}")
    for key in sorted(value):
        item = value[key]
        leaf = _leaf(item)
        if leaf is not None:
            lines.append(f"{indent}{scalar(key)}: {leaf}")
        elif isinstance(item, Mapping):
            lines.append(f"{indent}{scalar(key)}:")
            _mapping(item, indent + "  ", lines)
        else:
            lines.append(f"{indent}{scalar(key)}:")
            _sequence(item, indent, lines)


def _sequence(value: Sequence[Any], indent: str, lines: list[str]) -> None:
    for item in value:
        leaf = _leaf(item)
        if leaf is not None:
            lines.append(f"{indent}- {leaf}")
            continue
        start = len(lines)
        if isinstance(item, Mapping):
            _mapping(item, indent + "  ", lines)
        else:
            _sequence(item, indent + "  ", lines)
        lines[start] = f"{indent}- {lines[start][len(indent) + 2 :]}"
