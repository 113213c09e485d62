"""Functions on any value: defaults, JSON, types, URLs."""

from __future__ import annotations

import json
import math
from typing import Any, Final
from urllib.parse import quote as escape
from urllib.parse import unquote, urlsplit

from clusterwright.gotemplate.sprig.lists import same
from clusterwright.gotemplate.sprig.signatures import Library, go_type
from clusterwright.gotemplate.values import Kind, Opaque, bounded, is_true, kind_of, without_surrogates

LIBRARY: Final = Library()
_define = LIBRARY.define
_LINES: Final = str.maketrans({"\u2028": "\\u2028", "\u2029": "\\u2029"})
_HTML: Final = str.maketrans({"<": "\\u003c", ">": "\\u003e", "&": "\\u0026"}) | _LINES
_KINDS: Final = {Kind.NIL: "invalid", Kind.SLICE: "slice", Kind.MAP: "map", Kind.STRUCT: "struct"}


def _number(value: float) -> str:
    if not math.isfinite(value):
        raise ValueError("json: unsupported value")
    size = abs(value)
    if value == 0 or 1e-6 <= size < 1e21:
        text = f"{int(value)}" if value.is_integer() else _positional(value)
        return "-0" if value == 0 and math.copysign(1, value) < 0 else text
    mantissa, _, exponent = repr(value).partition("e")
    if not exponent:
        mantissa, _, exponent = f"{value:e}".partition("e")
        mantissa = mantissa.rstrip("0").rstrip(".")
    number = int(exponent)
    return f"{mantissa.removesuffix('.0')}e{'-' if number < 0 else '+'}{abs(number):02d}".replace("e-0", "e-")


def _positional(value: float) -> str:
    text = repr(value)
    if "e" not in text:
        return text
    mantissa, _, exponent = text.partition("e")
    places = len(mantissa.partition(".")[2]) - int(exponent)
    return f"{value:.{places}f}"


def _write(value: Any, out: list[str], indent: str | None, escaped: bool, depth: int = 0) -> None:
    if isinstance(value, bool) or value is None:
        out.append({True: "true", False: "false", None: "null"}[value])
    elif isinstance(value, int):
        out.append(str(int(value)))
    elif isinstance(value, float):
        out.append(_number(value))
    elif isinstance(value, (str, Opaque)):
        text = json.dumps(without_surrogates(str(value)), ensure_ascii=False)
        out.append(text.translate(_HTML if escaped else _LINES))
    else:
        is_list = isinstance(value, (list, tuple))
        line = "\n" + indent * (depth + 1) if indent is not None and value else ""
        before = ("[" if is_list else "{") + line
        for key, item in enumerate(value) if is_list else sorted(value.items()):
            out.append(before)
            if not is_list:
                _write(key, out, None, escaped)
                out.append(": " if indent is not None else ":")
            _write(item, out, indent, escaped, depth + 1)
            before = f",{line}"
        out.append(("" if value else before) + line[: len(line) - len(indent or "")] + ("]" if is_list else "}"))


def to_json(value: Any, *, indent: str | None = None, escaped: bool = True) -> str:
    """Return a value in the format of Go's JSON encoder."""
    out: list[str] = []
    _write(value, out, indent, escaped)
    return "".join(bounded(out))


def _leniently(write: Any, otherwise: Any) -> Any:
    def attempt(value: Any) -> Any:
        try:
            return write(value)
        except (ValueError, RecursionError):
            return otherwise

    return attempt


def from_json(text: str) -> Any:
    """Return the value of a JSON text; all its numbers are floats. Raises ValueError."""
    return json.loads(text, parse_int=float, parse_constant=_refuse)


def _refuse(word: str) -> Any:
    raise ValueError(f"invalid character in {word}")


def _pretty(value: Any) -> str:
    return to_json(value, indent="  ")


def _raw(value: Any) -> str:
    return to_json(value, escaped=False)


def _default(default: Any, *given: Any) -> Any:
    return given[0] if given and is_true(given[0]) else default


def _ternary(yes: Any, no: Any, which: bool) -> Any:
    return yes if which else no


def _kind(value: Any) -> str:
    if isinstance(value, Opaque):
        return value.go_kind
    kind = kind_of(value)
    return _KINDS.get(kind, kind.value)


def _type(value: Any) -> str:
    return "<nil>" if value is None else go_type(value)


def _parsed_url(text: str) -> dict[str, Any]:
    parts = urlsplit(text)
    opaque = bool(parts.scheme) and not parts.netloc and parts.path and not parts.path.startswith("/")
    userinfo, at, host = parts.netloc.rpartition("@")
    return {
        "scheme": parts.scheme,
        "host": host,
        "hostname": parts.hostname or "",
        "path": "" if opaque else unquote(parts.path),
        "query": parts.query,
        "opaque": parts.path if opaque else "",
        "fragment": unquote(parts.fragment),
        "userinfo": userinfo if at else "",
    }


def _joined_url(parts: dict[str, Any]) -> str:
    for key, value in parts.items():
        if not isinstance(value, str):
            raise TypeError(f"unable to parse {key} key, must be of type string, but {_kind(value)} found")
    get = parts.get
    out = f"{get('scheme')}:" if get("scheme") else ""
    if get("opaque"):
        out += str(get("opaque"))
    else:
        authority = f"{get('userinfo')}@" if get("userinfo") else ""
        if get("scheme") or get("host") or authority:
            out += f"//{authority}{get('host', '')}" if get("host") or get("path") or authority else ""
        path = escape(str(get("path", "")), safe="/:@!$&'()*+,;=-_.~")
        out += f"/{path}" if path and path[0] != "/" and get("host") else path
    out += f"?{get('query')}" if get("query") else ""
    return out + (f"#{escape(str(get('fragment')), safe='/:@!$&()*+,;=?-_.~')}" if get("fragment") else "")


def _raise(text: str) -> Any:
    raise ValueError(text)


_define("default", "any any...", _default)
_define("empty", "any", lambda v: not is_true(v))
_define("coalesce", "any...", lambda *v: next((x for x in v if is_true(x)), None))
_define("all", "any...", lambda *v: all(map(is_true, v)))
_define("any", "any...", lambda *v: any(map(is_true, v)))
_define("ternary", "any any bool", _ternary)
_define("fail", "string", _raise)
_define("toJson", "any", _leniently(to_json, ""), deep=True, weight=2)
_define("mustToJson", "any", to_json, deep=True, weight=2)
_define("toPrettyJson", "any", _leniently(_pretty, ""), deep=True, weight=2)
_define("mustToPrettyJson", "any", _pretty, deep=True, weight=2)
_define("toRawJson mustToRawJson", "any", _raw, deep=True, weight=2)
_define("fromJson", "string", _leniently(from_json, None), weight=4)
_define("mustFromJson", "string", from_json, weight=4)
_define("typeOf", "any", _type)
_define("typeIs", "string any", lambda name, v: name == _type(v))
_define("typeIsLike", "string any", lambda name, v: _type(v) in (name, f"*{name}"))
_define("kindOf", "any", _kind)
_define("kindIs", "string any", lambda name, v: name == _kind(v))
_define("deepEqual", "any any", same, deep=True)
_define("urlParse", "string", _parsed_url, weight=2)
_define("urlJoin", "dict", _joined_url, deep=True, weight=4)
