"""Label selectors as Kubernetes reads them. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from clusterwright.api.meta import LabelSelector

_NAME = re.compile(r"[A-Za-z0-9]([A-Za-z0-9_.-]*[A-Za-z0-9])?")
_SUBDOMAIN = re.compile(r"[a-z0-9]([a-z0-9-]*[a-z0-9])?(\.[a-z0-9]([a-z0-9-]*[a-z0-9])?)*")


class SelectorError(ValueError):
    """A selector that no API server would accept."""


def validate(selector: LabelSelector) -> None:
    """Raise SelectorError unless the selector can be evaluated."""
    for key, value in selector.match_labels.items():
        _check_key(key)
        _check_values((value,))
    for expression in selector.match_expressions:
        _check_key(expression.key)
        match expression.operator:
            case "In" | "NotIn":
                if not expression.values:
                    raise SelectorError(f"{expression.key}: values must be given for operator {expression.operator}")
            case "Exists" | "DoesNotExist":
                if expression.values:
                    raise SelectorError(f"{expression.key}: values must not be given for operator {expression.operator}")
            case unknown:
                raise SelectorError(f"{expression.key}: {unknown!r} is no operator")
        _check_values(expression.values)


def matches(selector: LabelSelector | None, labels: Mapping[str, str]) -> bool:
    """Whether a valid selector selects the labels; none, or an empty one, selects everything."""
    if selector is None:
        return True
    return all(labels.get(k) == v for k, v in selector.match_labels.items()) and all(
        _holds(e.operator, e.key, e.values, labels) for e in selector.match_expressions
    )


def _holds(operator: str, key: str, values: Iterable[str], labels: Mapping[str, str]) -> bool:
    match operator:
        case "In":
            return key in labels and labels[key] in values
        case "NotIn":
            return key not in labels or labels[key] not in values
        case "Exists":
            return key in labels
        case "DoesNotExist":
            return key not in labels
        case _:
            raise SelectorError(f"{key}: {operator!r} is no operator")


def _check_key(key: str) -> None:
    prefix, slash, name = key.rpartition("/")
    if slash and (len(prefix) > 253 or not _SUBDOMAIN.fullmatch(prefix)):
        raise SelectorError(f"{key!r}: the prefix of a label key must be a DNS subdomain")
    if len(name) > 63 or not _NAME.fullmatch(name):
        raise SelectorError(f"{key!r} is no label key")


def _check_values(values: Iterable[str]) -> None:
    for value in values:
        if value and (len(value) > 63 or not _NAME.fullmatch(value)):
            raise SelectorError(f"{value!r} is no label value")
