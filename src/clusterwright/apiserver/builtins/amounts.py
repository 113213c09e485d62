"""Rules for values that several built-in kinds have: label selectors, counts or percentages, addresses."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterator
from typing import Any, Final

from clusterwright.api.meta import Json
from clusterwright.api.names import label_value, qualified_name
from clusterwright.apiserver.metadata import validate_labels
from clusterwright.apiserver.status import FieldError, forbidden, invalid, required

AT_LEAST_ZERO: Final = "must be greater than or equal to 0"
PORT_RANGE: Final = "must be between 1 and 65535, inclusive"
_PERCENT: Final = (
    "a valid percent string must be a numeric string followed by an ending '%' (e.g. '1%',  or '93%', regex used for validation "
    "is '[0-9]+%')"
)
_WITH_VALUES: Final = ("In", "NotIn")
_WITHOUT_VALUES: Final = ("Exists", "DoesNotExist")


def count_or_share(value: Any, path: str) -> Iterator[FieldError]:
    """Check a count, or a share as a percentage."""
    if isinstance(value, int) and value < 0:
        yield invalid(path, value, AT_LEAST_ZERO)
    elif isinstance(value, str) and re.fullmatch(r"[0-9]+%", value) is None:
        yield invalid(path, value, _PERCENT)


def at_most_all(value: Any, path: str) -> Iterator[FieldError]:
    """Check that a share is at most 100 %."""
    if isinstance(value, str) and re.fullmatch(r"[0-9]+%", value) and int(value[:-1]) > 100:
        yield invalid(path, value, "must not be greater than 100%")


def label_selector(selector: Json, path: str) -> Iterator[FieldError]:
    """Check a LabelSelector: its labels, and whether the values of expressions fit their operators."""
    yield from validate_labels(selector.get("matchLabels") or {}, f"{path}.matchLabels")
    for i, expression in enumerate(selector.get("matchExpressions") or ()):
        here = f"{path}.matchExpressions[{i}]"
        operator, values = expression.get("operator") or "", expression.get("values") or ()
        if operator in _WITH_VALUES:
            if not values:
                yield required(f"{here}.values", "must be specified when `operator` is 'In' or 'NotIn'")
        elif operator in _WITHOUT_VALUES:
            if values:
                yield forbidden(f"{here}.values", "may not be specified when `operator` is 'Exists' or 'DoesNotExist'")
        else:
            yield invalid(f"{here}.operator", operator, "not a valid selector operator")
        yield from (invalid(f"{here}.key", expression.get("key") or "", p) for p in qualified_name(expression.get("key") or ""))
        for n, value in enumerate(values):
            yield from (invalid(f"{here}.values[{n}]", value, p) for p in label_value(value))


def ip_address(value: str, path: str) -> Iterator[FieldError]:
    """Check an IP address of either family."""
    try:
        ipaddress.ip_address(value)
    except ValueError:
        yield invalid(path, value, "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)")


def network(value: str, path: str) -> Iterator[FieldError]:
    """Check an IP network."""
    try:
        ipaddress.ip_network(value if "/" in value else "", strict=False)
    except ValueError:
        yield invalid(path, value, "must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)")
