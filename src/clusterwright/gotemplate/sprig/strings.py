"""Functions on texts."""

from __future__ import annotations

import base64
import hashlib
import posixpath
import re
import unicodedata
import zlib
from collections.abc import Callable, Sequence
from typing import Any, Final

from clusterwright.golang.encodings import decode_base32, decode_base64
from clusterwright.golang.quoting import quote
from clusterwright.gotemplate.printing import sprint, sprintf
from clusterwright.gotemplate.sprig.cases import dashed, pascal
from clusterwright.gotemplate.sprig.signatures import Library, StringMap, Strings
from clusterwright.gotemplate.values import MAX_TEXT, Opaque, from_bytes, to_bytes

LIBRARY: Final = Library()
_define = LIBRARY.define


def text_of(value: Any) -> str:
    """Return a value as a text: unchanged, or as it prints."""
    if isinstance(value, str):
        return value
    return str(value) if isinstance(value, Opaque) else sprint([value])


def texts_of(value: Any) -> list[str]:
    """Return the elements of a list as texts, without nil; anything else is a list of one."""
    if value is None:
        return []
    if isinstance(value, (list, tuple)):
        return [text_of(v) for v in value if v is not None]
    return [text_of(value)]


def _cut(text: str, start: int, end: int) -> str:
    raw = to_bytes(text)
    if not 0 <= start <= end <= len(raw):
        raise ValueError(f"slice bounds out of range [{start}:{end}]")
    return from_bytes(raw[start:end])


def _trunc(count: int, text: str) -> str:
    length = len(to_bytes(text))
    if count < 0 and length + count > 0:
        return _cut(text, length + count, length)
    return _cut(text, 0, count) if 0 <= count < length else text


def _substring(start: int, end: int, text: str) -> str:
    length = len(to_bytes(text))
    if start < 0:
        return _cut(text, 0, end)
    return _cut(text, start, length if end < 0 or end > length else end)


def _abbreviated(text: str, offset: int, width: int) -> str:
    raw = to_bytes(text)
    if not raw or len(raw) <= width:
        return text
    offset = min(offset, len(raw))
    if len(raw) - offset < width - 3:
        offset = len(raw) - (width - 3)
    if offset <= 4:
        return from_bytes(raw[: width - 3]) + "..."
    if offset + width - 3 < len(raw):
        return "..." + _abbreviated(from_bytes(raw[offset:]), 0, width - 3)
    return "..." + from_bytes(raw[len(raw) - (width - 3) :])


def _abbreviate(width: int, text: str) -> str:
    return text if width < 4 else _abbreviated(text, 0, width)


def _abbreviate_both(left: int, right: int, text: str) -> str:
    return text if right < 4 or (left > 0 and right < 7) else _abbreviated(text, left, right)


def _initials(text: str) -> str:
    return "".join(word[0] for word in text.split())


def _swap_case(text: str) -> str:
    return "".join(c.lower() if unicodedata.category(c) in ("Lu", "Lt") else c.upper() for c in text)


def _wrap(width: int, line_break: str, text: str) -> str:
    width = max(width, 1)
    raw, offset = to_bytes(text), 0
    lines: list[str] = []
    while len(raw) - offset > width:
        if raw[offset : offset + 1] == b" ":
            offset += 1
            continue
        blank = raw.rfind(b" ", offset, offset + width + 1)
        end = blank if blank >= offset else offset + width
        check_length(len(lines) * len(line_break))
        lines.append(from_bytes(raw[offset:end]) + (line_break or "\n"))
        offset = end + (blank >= offset)
    return "".join(lines) + from_bytes(raw[offset:])


def _quoted(*values: Any) -> str:
    return " ".join(quote(text_of(v)) for v in values if v is not None)


def _indent(spaces: int, text: str) -> str:
    if spaces < 0:
        raise ValueError("strings: negative Repeat count")
    pad = _repeat(spaces, " ")
    return pad + replaced("\n", f"\n{pad}", text)


def _repeat(count: int, text: str) -> str:
    if count < 0:
        raise ValueError("strings: negative Repeat count")
    check_length(count * len(text))
    return text * count


def check_length(length: int) -> None:
    """Raise ValueError for a result longer than the limit, before creating it."""
    if length > MAX_TEXT:
        raise ValueError("the text becomes too long")


def replaced(old: str, new: str, text: str) -> str:
    """Return Go's strings.ReplaceAll."""
    check_length(len(text) + (text.count(old) if old else len(text) + 1) * (len(new) - len(old)))
    return text.replace(old, new)


def _joined(separator: str, value: Any) -> str:
    parts = texts_of(value)
    check_length(sum(map(len, parts)) + len(separator) * (len(parts) - 1))
    return separator.join(parts)


def _shuffled(text: str) -> str:
    """Return the characters in an order that depends only on the text."""
    seed = hashlib.sha256(f"{text}/".encode(errors="replace"))

    def place(character: str) -> bytes:
        own = seed.copy()
        own.update(character.encode(errors="replace"))
        return own.digest()

    return "".join(sorted(text, key=place))


def split(text: str, separator: str, count: int = -1) -> list[str]:
    """Return Go's strings.SplitN."""
    if count == 0:
        return []
    if separator:
        return text.split(separator, count - 1 if count > 0 else -1)
    characters = list(text)
    return characters if not 0 < count < len(characters) else [*characters[: count - 1], "".join(characters[count - 1 :])]


def _numbered(parts: Sequence[str]) -> StringMap:
    return StringMap({f"_{i}": part for i, part in enumerate(parts)})


def _title(text: str) -> str:
    return re.sub(r"(?<![\w'])[^\W\d_]", lambda m: m[0].upper(), text)


def _decoded(decode: Callable[[bytes], bytes], encoded: str) -> str:
    """Return the decoded value; for invalid input, the error is the result."""
    try:
        return from_bytes(decode(to_bytes(encoded)))
    except ValueError as e:
        return str(e)


def _clean(path: str) -> str:
    cleaned = posixpath.normpath(path) if path else "."
    return cleaned.replace("//", "/", 1) if cleaned.startswith("//") else cleaned


def _base(path: str) -> str:
    if not path:
        return "."
    return path.rstrip("/").rpartition("/")[2] or "/"


def _dir(path: str) -> str:
    return _clean(path[: path.rfind("/") + 1])


def _extension(path: str) -> str:
    name = path.rpartition("/")[2]
    return name[name.rindex(".") :] if "." in name else ""


_define("hello", "", lambda: "Hello!")
_define("trim", "string", lambda s: s.strip())
_define("upper", "string", lambda s: s.upper())
_define("lower", "string", lambda s: s.lower())
_define("title", "string", _title, weight=10)
_define("untitle", "string", lambda s: re.sub(r"(^|(?<=\s))\S", lambda m: m[0].lower(), s), weight=10)
_define("trunc", "int string", _trunc)
_define("substr", "int int string", _substring)
_define("repeat", "int string", _repeat)
_define("trimAll trimall", "string string", lambda cutset, s: s.strip(cutset) if cutset else s)
_define("trimSuffix", "string string", lambda suffix, s: s.removesuffix(suffix))
_define("trimPrefix", "string string", lambda prefix, s: s.removeprefix(prefix))
_define("nospace", "string", lambda s: re.sub(r"\s", "", s), weight=4)
_define("initials", "string", _initials, weight=4)
_define("swapcase", "string", _swap_case, weight=10)
_define("shuffle", "string", _shuffled, weight=30)
_define("snakecase", "string", lambda s: dashed(s, "_"), weight=24)
_define("kebabcase", "string", lambda s: dashed(s, "-"), weight=24)
_define("camelcase", "string", pascal, weight=10)
_define("wrap", "int string", lambda width, s: _wrap(width, "\n", s), weight=4)
_define("wrapWith", "int string string", _wrap, weight=4)
_define("contains", "string string", lambda part, s: part in s)
_define("hasPrefix", "string string", lambda prefix, s: s.startswith(prefix))
_define("hasSuffix", "string string", lambda suffix, s: s.endswith(suffix))
_define("quote", "any...", _quoted, deep=True, weight=6)
_define("squote", "any...", lambda *v: " ".join(f"'{sprint([x])}'" for x in v if x is not None), deep=True, weight=1)
_define(
    "cat", "any...", lambda *v: sprintf(" ".join("%v" for x in v if x is not None), [x for x in v if x is not None]), deep=True, weight=2
)
_define("indent", "int string", _indent)
_define("nindent", "int string", lambda spaces, s: "\n" + _indent(spaces, s))
_define("replace", "string string string", replaced)
_define("plural", "string string int", lambda one, many, count: one if count == 1 else many)
_define("toString", "any", text_of, deep=True, weight=1)
_define("toStrings", "any", lambda v: Strings(texts_of(v)), deep=True, weight=1)
_define("join", "string any", _joined, deep=True, weight=1)
_define("split", "string string", lambda separator, s: _numbered(split(s, separator)), weight=6)
_define("splitn", "string int string", lambda separator, n, s: _numbered(split(s, separator, n)), weight=6)
_define("splitList", "string string", lambda separator, s: Strings(split(s, separator)), weight=1)
_define("abbrev", "int string", _abbreviate)
_define("abbrevboth", "int int string", _abbreviate_both)
_define("b64enc", "string", lambda s: base64.b64encode(to_bytes(s)).decode())
_define("b64dec", "string", lambda s: _decoded(decode_base64, s), weight=6)
_define("b32enc", "string", lambda s: base64.b32encode(to_bytes(s)).decode(), weight=2)
_define("b32dec", "string", lambda s: _decoded(decode_base32, s), weight=6)
_define("sha1sum", "string", lambda s: hashlib.sha1(to_bytes(s), usedforsecurity=False).hexdigest())
_define("sha256sum", "string", lambda s: hashlib.sha256(to_bytes(s)).hexdigest())
_define("sha512sum", "string", lambda s: hashlib.sha512(to_bytes(s)).hexdigest())
_define("adler32sum", "string", lambda s: str(zlib.adler32(to_bytes(s))))
_define("base osBase", "string", _base, weight=2)
_define("dir osDir", "string", _dir, weight=2)
_define("clean osClean", "string", _clean, weight=2)
_define("ext osExt", "string", _extension, weight=2)
_define("isAbs osIsAbs", "string", lambda path: path.startswith("/"), weight=2)
