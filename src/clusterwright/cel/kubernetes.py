"""The functions that Kubernetes adds to CEL: quantities, versions, URLs, addresses, formats."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Callable
from decimal import Decimal
from typing import Any, Final

from clusterwright.api.copying import replace
from clusterwright.cel.formats import LONG_NAME, is_cidr, is_uri
from clusterwright.cel.overloads import Cidr, Ip, Library, NamedFormat, Overload
from clusterwright.cel.types import Type
from clusterwright.cel.values import INT_MAX, INT_MIN, NONE, CelError, Optional, parse_semver
from clusterwright.golang.netip import address_problem, prefix_problem
from clusterwright.golang.quantities import Quantity, parse_quantity
from clusterwright.golang.quoting import quote
from clusterwright.golang.urls import RequestUrl, parse_request_uri

LIBRARY: Final = Library()

# ---------------------------------------------------------------- quantities


def _is_quantity(text: str) -> bool:
    try:
        parse_quantity(text)
    except ValueError:
        return False
    return True


def _parsed_quantity(text: str) -> Quantity:
    try:
        return parse_quantity(text)
    except ValueError as e:
        raise CelError(str(e)) from None


def _quantity(value: Quantity | int) -> Quantity:
    return value if isinstance(value, Quantity) else Quantity(Decimal(value))


def _negative(value: Quantity) -> Quantity:
    return Quantity(value.amount.copy_negate(), value.scale)


def _is_integer(value: Quantity) -> bool:
    return value.scale is not None and value.scale >= 0 and INT_MIN <= value.amount <= INT_MAX


def _compare(a: Any, b: Any) -> int:
    return int(a > b) - int(a < b)


def _quantity_int(value: Quantity) -> int:
    if not _is_integer(value):
        raise CelError("cannot convert value to integer")
    return int(value.amount)


LIBRARY.define("quantity(string) quantity", _parsed_quantity)
LIBRARY.define("isQuantity(string) bool", _is_quantity)
LIBRARY.define("sign(quantity) int", lambda q: _compare(q.amount, 0))
LIBRARY.define("quantity.isInteger() bool", _is_integer)
LIBRARY.define("quantity.asInteger() int", _quantity_int)
LIBRARY.define("quantity.asApproximateFloat() double", lambda q: float(q.amount))
LIBRARY.define("quantity.isGreaterThan(quantity) bool", lambda a, b: a.amount > b.amount)
LIBRARY.define("quantity.isLessThan(quantity) bool", lambda a, b: a.amount < b.amount)
LIBRARY.define("quantity.compareTo(quantity) int", lambda a, b: _compare(a.amount, b.amount))
for _other in ("quantity", "int"):
    LIBRARY.define(f"quantity.add({_other}) quantity", lambda a, b: a.added(_quantity(b)))
    LIBRARY.define(f"quantity.sub({_other}) quantity", lambda a, b: a.added(_negative(_quantity(b))))

# ---------------------------------------------------------------- semver


def _is_semver(text: str, normalize: bool = False) -> bool:
    try:
        parse_semver(text, normalize)
    except CelError:
        return False
    return True


def _as_int(value: int) -> int:
    """Return 64 unsigned bits as a signed number."""
    return value if value <= INT_MAX else value - (1 << 64)


LIBRARY.define("semver(string) semver", parse_semver)
LIBRARY.define("semver(string, bool) semver", parse_semver)
LIBRARY.define("isSemver(string) bool", _is_semver)
LIBRARY.define("isSemver(string, bool) bool", _is_semver)
LIBRARY.define("semver.major() int", lambda v: _as_int(v.major))
LIBRARY.define("semver.minor() int", lambda v: _as_int(v.minor))
LIBRARY.define("semver.patch() int", lambda v: _as_int(v.patch))
LIBRARY.define("semver.isGreaterThan(semver) bool", lambda a, b: a.key > b.key)
LIBRARY.define("semver.isLessThan(semver) bool", lambda a, b: a.key < b.key)
LIBRARY.define("semver.compareTo(semver) int", lambda a, b: _compare(a.key, b.key))

# ---------------------------------------------------------------- URLs, IPs


def _url(text: str) -> RequestUrl:
    try:
        checked = parse_request_uri(text)
        plain = text.partition("#")[0]  # requests have no fragments: what is meant is what stands before
        if text.startswith("//"):
            return replace(parse_request_uri(f"x:{plain}"), scheme="", text=text)
        return replace(parse_request_uri(plain), text=text) if plain != text else checked
    except ValueError as e:
        raise CelError(f"URL parse error during conversion from string: {e}") from None


LIBRARY.define("url(string) url", _url)
LIBRARY.define("isURL(string) bool", is_uri)
LIBRARY.define("url.getScheme() string", lambda u: u.scheme)
LIBRARY.define("url.getHost() string", lambda u: u.host)
LIBRARY.define("url.getHostname() string", lambda u: u.hostname)
LIBRARY.define("url.getPort() string", lambda u: u.port)
LIBRARY.define("url.getEscapedPath() string", lambda u: u.escaped_path)
LIBRARY.define("url.getQuery() map<string, list<string>>", lambda u: u.values)


def _ip(text: str) -> Ip:
    problem = address_problem(text)
    if problem:
        raise CelError(f"IP Address {quote(text)} parse error during conversion from string: {problem}")
    if "%" in text:
        raise CelError(f"IP address {quote(text)} with zone value is not allowed")
    address = ipaddress.ip_address(text)
    if isinstance(address, ipaddress.IPv6Address) and address.ipv4_mapped is not None:
        raise CelError(f"IPv4-mapped IPv6 address {quote(text)} is not allowed")
    return Ip(address)


def _is_ip(text: str) -> bool:
    try:
        _ip(text)
    except CelError:
        return False
    return True


def _cidr(text: str) -> Cidr:
    if not is_cidr(text):
        prefix = "network address parse error during conversion from string: "
        raise CelError(f"{prefix}{prefix}{prefix_problem(text)}")
    return Cidr(ipaddress.ip_interface(text))


def _is_canonical(text: str) -> bool:
    return str(_ip(text).value) == text


def _contains_ip(network: Cidr, address: Ip | str) -> bool:
    try:
        ip = _ip(address) if isinstance(address, str) else address
    except CelError:
        raise CelError("no such overload") from None  # a text that is not an address is not accepted
    return ip.value in network.value.network


def _contains_cidr(network: Cidr, inner: Cidr | str) -> bool:
    other: Any = (_cidr(inner) if isinstance(inner, str) else inner).value.network
    outer: Any = network.value.network
    return bool(
        other.version == outer.version
        and outer.network_address <= other.network_address
        and other.broadcast_address <= outer.broadcast_address
    )


LIBRARY.define("ip(string) ip", _ip)
LIBRARY.define("isIP(string) bool", _is_ip)
LIBRARY.add("ip.isCanonical", Overload(False, (Type("string"),), Type("bool"), _is_canonical))
LIBRARY.define("ip.family() int", lambda v: v.value.version)
LIBRARY.define("ip.isUnspecified() bool", lambda v: v.value.is_unspecified)
LIBRARY.define("ip.isLoopback() bool", lambda v: v.value.is_loopback)
LIBRARY.define(
    "ip.isLinkLocalMulticast() bool", lambda v: v.value in ipaddress.ip_network("224.0.0.0/24" if v.value.version == 4 else "ff02::/16")
)
LIBRARY.define("ip.isLinkLocalUnicast() bool", lambda v: v.value.is_link_local)
LIBRARY.define(
    "ip.isGlobalUnicast() bool",
    lambda v: not (v.value.is_multicast or v.value.is_loopback or v.value.is_link_local or v.value.is_unspecified),
)
LIBRARY.define("cidr(string) cidr", _cidr)
LIBRARY.define("isCIDR(string) bool", is_cidr)
for _kind in ("ip", "string"):
    LIBRARY.define(f"cidr.containsIP({_kind}) bool", _contains_ip)
for _kind in ("cidr", "string"):
    LIBRARY.define(f"cidr.containsCIDR({_kind}) bool", _contains_cidr)
LIBRARY.define("cidr.ip() ip", lambda c: Ip(c.value.ip))
LIBRARY.define("cidr.masked() cidr", lambda c: Cidr(ipaddress.ip_interface(str(c.value.network))))
LIBRARY.define("cidr.prefixLength() int", lambda c: c.value.network.prefixlen)

# ---------------------------------------------------------------- formats


def _named(name: str, problem: str, check: Callable[[str], bool]) -> NamedFormat:
    return NamedFormat(name, lambda text: [] if check(text) else [problem])


def _label(text: str) -> bool:
    return len(text) <= 63 and re.fullmatch(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?", text) is not None


FORMATS: Final = {
    "dns1123Label": _named(
        "dns1123Label",
        (
            "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must "
            "start and end with an alphanumeric character"
        ),
        _label,
    ),
    "dns1123Subdomain": _named(
        "dns1123Subdomain",
        (
            "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and "
            "must start and end with an alphanumeric character"
        ),
        lambda t: len(t) <= 253 and LONG_NAME.fullmatch(t) is not None,
    ),
    "dns1035Label": _named(
        "dns1035Label",
        (
            "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an "
            "alphabetic character, and end with an alphanumeric character"
        ),
        lambda t: len(t) <= 63 and re.fullmatch(r"[a-z]([-a-z0-9]*[a-z0-9])?", t) is not None,
    ),
    "qualifiedName": _named(
        "qualifiedName",
        "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character",
        lambda t: (
            re.fullmatch(
                r"(?:[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?([A-Za-z0-9][-A-Za-z0-9_.]{0,61})?[A-Za-z0-9]", t
            )
            is not None
        ),
    ),
    "labelValue": _named(
        "labelValue",
        (
            "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and "
            "must start and end with an alphanumeric character"
        ),
        lambda t: len(t) <= 63 and re.fullmatch(r"(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?", t) is not None,
    ),
    "uri": _named("uri", "invalid URI for request", is_uri),
    "uuid": _named(
        "uuid",
        "does not match the UUID format",
        lambda t: re.fullmatch(r"(?i)[0-9a-f]{8}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{12}", t) is not None,
    ),
    "byte": _named(
        "byte", "invalid base64", lambda t: re.fullmatch(r"(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?", t) is not None
    ),
    "date": _named("date", "invalid date", lambda t: re.fullmatch(r"\d{4}-\d{2}-\d{2}", t) is not None),
    "datetime": _named(
        "datetime",
        "invalid datetime",
        lambda t: re.fullmatch(r"\d{4}-\d{2}-\d{2}[Tt]\d{2}:\d{2}:\d{2}(\.\d+)?([Zz]|[+-]\d{2}:\d{2})", t) is not None,
    ),
}


def _problems(named: NamedFormat, text: str) -> Optional:
    found = named.check(text)
    return Optional(found, True) if found else NONE


for _name, _named_format in FORMATS.items():
    LIBRARY.define(f"format.{_name}() format", lambda f=_named_format: f)
LIBRARY.define("format.named(string) optional<format>", lambda n: Optional(FORMATS[n], True) if n in FORMATS else NONE)
LIBRARY.add(
    "validate",
    Overload(True, (Type("format"), Type("string")), Type("optional", (Type("list", (Type("string"),)),)), _problems),
)

LIBRARY.define("jsonpatch.escapeKey(string) string", lambda key: key.replace("~", "~0").replace("/", "~1"))
