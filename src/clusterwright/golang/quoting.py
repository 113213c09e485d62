"""Quote texts like Go's %q."""

from __future__ import annotations

import re
import unicodedata
from typing import Final

_PLAIN: Final = re.compile(r"[\x20\x21\x23-\x5b\x5d-\x7e]*")
_ESCAPES: Final = {"\a": "\\a", "\b": "\\b", "\f": "\\f", "\n": "\\n", "\r": "\\r", "\t": "\\t", "\v": "\\v"}


def is_printable(character: str) -> bool:
    """Return whether Go writes the character unchanged in a quoted string: graphic, and of spaces only the ASCII one."""
    return character == " " or unicodedata.category(character)[0] in "LMNPS"


def quote(text: str, delimiter: str = '"', *, only_ascii: bool = False) -> str:
    """Return a Go string or character literal. Invalid UTF-8 bytes are surrogates, as from Python's `surrogateescape`."""
    if delimiter == '"' and _PLAIN.fullmatch(text):
        return f'"{text}"'
    parts = [delimiter]
    for character in text:
        code = ord(character)
        if character in {delimiter, "\\"}:
            parts.append("\\" + character)
        elif is_printable(character) and not (only_ascii and code > 0x7F):
            parts.append(character)
        elif character in _ESCAPES:
            parts.append(_ESCAPES[character])
        elif 0xDC80 <= code <= 0xDCFF:
            parts.append(f"\\x{code - 0xDC00:02x}")
        elif code < 0x80:
            parts.append(f"\\x{code:02x}")
        else:
            parts.append(f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}")
    return "".join([*parts, delimiter])
