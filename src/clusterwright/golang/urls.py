"""URLs of requests, parsed like net/url: either absolute, or a path that begins with a slash."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Final
from urllib.parse import quote as percent
from urllib.parse import unquote_plus, unquote_to_bytes

from clusterwright.api.copying import replace
from clusterwright.golang.netip import address_problem
from clusterwright.golang.quoting import quote

_CONTROL: Final = re.compile(r"[\x00-\x1f\x7f]")
_ESCAPE: Final = re.compile(r"%[0-9A-Fa-f]{2}")
_HOST: Final = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.~!$&'()*+,;=:[]<>\"")
_USER: Final = re.compile(r"[A-Za-z0-9\-._:~!$&'()*+,;=%@]*")
_DIGITS: Final = re.compile(r"[0-9]*")
_ENCODED: Final = re.compile(r"[A-Za-z0-9\-_.~!$&'()*+,;=:@\[\]/%]*")
_BAD_ESCAPE: Final = re.compile(r"%(?![0-9A-Fa-f]{2})")
_PORT: Final = re.compile(r"(:[0-9]*)?")


@dataclass(frozen=True, slots=True)
class RequestUrl:
    """The used parts of a URL."""

    scheme: str
    host: str
    path: str
    query: str = ""
    user: str = ""
    text: str = field(default="", compare=False)
    """The whole URL."""

    @property
    def hostname(self) -> str:
        """The host without its port, and without the brackets of an address."""
        host = self.host.partition("]")[0][1:] if self.host.startswith("[") else self.host
        return host if self.host.startswith("[") else host.removesuffix(f":{self.port}") if ":" in host else host

    @property
    def port(self) -> str:
        """The port, if it is a number."""
        _, colon, port = self.host.rpartition("]")[2].rpartition(":")
        return port if colon and _DIGITS.fullmatch(port) else ""

    @property
    def escaped_path(self) -> str:
        """The path as written, or escaped where necessary."""
        return self.path if _ENCODED.fullmatch(self.path) else percent(unquote_to_bytes(self.path), safe="$&+,/:;=@")

    @property
    def values(self) -> dict[str, list[str]]:
        """The values of the query by their names; malformed ones are left out."""
        found: dict[str, list[str]] = {}
        for part in self.query.split("&"):
            if not part or ";" in part or _BAD_ESCAPE.search(part):
                continue
            name, _, value = part.partition("=")
            found.setdefault(unquote_plus(name), []).append(unquote_plus(value))
        return found


def parse_request_uri(text: str) -> RequestUrl:
    """Return an absolute URL or an absolute path; raises ValueError with Go's message."""
    try:
        return replace(_parse(text), text=text)
    except ValueError as error:
        raise ValueError(f"parse {quote(text)}: {error}") from None


def _parse(text: str) -> RequestUrl:
    if _CONTROL.search(text):
        raise ValueError("net/url: invalid control character in URL")
    if not text:
        raise ValueError("empty url")
    if text == "*":
        return RequestUrl("", "", "*")
    scheme, rest = _scheme(text)
    rest, _, query = rest.partition("?")
    if not rest.startswith("/"):
        if scheme:
            return RequestUrl(scheme, "", "", query)  # opaque
        raise ValueError("invalid URI for request")
    host = user = ""
    if scheme and rest.startswith("//"):
        authority, slash, path = rest[2:].partition("/")
        rest = slash + path
        user, host = authority.rpartition("@")[0], _authority(authority, scheme)
    _require_escapes(rest)
    return RequestUrl(scheme, host, rest, query, user)


def _scheme(text: str) -> tuple[str, str]:
    for position, char in enumerate(text):
        if char.isascii() and char.isalpha():
            continue
        if char in "0123456789+-.":
            if position == 0:
                return "", text
        elif char == ":":
            if position == 0:
                raise ValueError("missing protocol scheme")
            return text[:position].lower(), text[position + 1 :]
        else:
            return "", text
    return "", text


def _authority(authority: str, scheme: str) -> str:
    user, at, host = authority.rpartition("@")
    if at and not _USER.fullmatch(user):
        raise ValueError("net/url: invalid userinfo")
    if at:
        _require_escapes(user)
    if host.rfind("[") > 0:
        raise ValueError("invalid IP-literal")
    if host.startswith("["):
        end = host.rfind("]")
        if end < 0:
            raise ValueError("missing ']' in host")
        _require_port(host[end + 1 :])
        _require_address(host[1:end])
    elif ":" in host:
        # elsewhere several hosts, each with its port, may stand in one
        _require_port(host[host.find(":") if scheme in {"http", "https"} else host.rfind(":") :])
    position = 0
    while position < len(host):
        char = host[position]
        if char == "%":
            escape = host[position : position + 3]
            # in a host only what is not ASCII may be escaped (and a percent sign in a zone)
            if not _ESCAPE.fullmatch(escape) or (int(escape[1], 16) < 8 and escape != "%25"):
                raise ValueError(f"invalid URL escape {quote(escape)}")
            position += 3
            continue
        if ord(char) < 0x80 and char not in _HOST:
            raise ValueError(f"invalid character {quote(char)} in host name")
        position += 1
    return host


def _require_address(literal: str) -> None:
    address, zone, name = literal.partition("%25")
    problem = address_problem(address)
    if problem:
        raise ValueError(f"invalid host: {problem}")
    if zone and not name:
        raise ValueError(f"invalid host: ParseAddr({quote(literal)}): zone must be a non-empty string")


def _require_port(port: str) -> None:
    if not _PORT.fullmatch(port):
        raise ValueError(f"invalid port {quote(port)} after host")


def _require_escapes(text: str) -> None:
    position = text.find("%")
    while position >= 0:
        if not _ESCAPE.match(text, position):
            raise ValueError(f"invalid URL escape {quote(text[position : position + 3])}")
        position = text.find("%", position + 3)
