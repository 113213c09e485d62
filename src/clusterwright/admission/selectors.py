"""Label selectors in rules: whether they are valid, empty, and match labels; with apimachinery's messages."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from clusterwright.admission.rule import Fault, Review, Rule, at
from clusterwright.admission.sets import INVALID
from clusterwright.api.names import label_value, qualified_name
from clusterwright.api.selectors import object_selector, object_selector_text
from clusterwright.apiserver.status import FieldError, invalid
from clusterwright.golang.quoting import quote

_NEED_VALUES: Final = frozenset({"In", "NotIn"})
_WITHOUT_VALUES: Final = frozenset({"Exists", "DoesNotExist"})


def problem(selector: Any) -> str:
    """Return the error of the first invalid requirement; empty if all are valid."""
    for key, value in sorted((at(selector, "matchLabels") or {}).items()):
        if text := _requirement(key, [value or ""], []):
            return text
    for expression in at(selector, "matchExpressions") or ():
        key, operator, values = expression.get("key") or "", expression.get("operator") or "", expression.get("values")
        found: list[FieldError] = []
        if operator in _NEED_VALUES:
            if not values:
                found.append(invalid("values", values, "for 'in', 'notin' operators, values set can't be empty"))
        elif operator in _WITHOUT_VALUES:
            if values:
                found.append(invalid("values", values, "values set must be empty for exists and does not exist"))
        else:
            return f"{quote(operator)} is not a valid label selector operator"
        if text := _requirement(key, values or [], found):
            return text
    return ""


def _requirement(key: str, values: list[str], found: list[FieldError]) -> str:
    errors = [invalid("key", key, "; ".join(texts))] if (texts := qualified_name(key)) else []
    errors += found
    for index, value in enumerate(values):
        if wrong := label_value(value or ""):
            errors.append(invalid(f"values[{index}][{key}]", value, "; ".join(wrong)))
    texts = tuple(dict.fromkeys(map(str, errors)))
    return "" if not texts else texts[0] if len(texts) == 1 else f"[{', '.join(texts)}]"


def is_empty(selector: Any) -> bool:
    """Return whether it has no requirements, and so selects everything."""
    return not at(selector, "matchLabels") and not at(selector, "matchExpressions")


def is_valid(selector: Any) -> bool:
    """Return whether apimachinery can parse it."""
    return not problem(selector)


def fits(selector: Any, labels: Any) -> bool:
    """Return whether it matches these labels."""
    return object_selector(selector or {})(labels or {})


def as_text(selector: Any) -> str:
    """Return the selector in the syntax of a query."""
    return object_selector_text(selector)


def valid_selector(ids: str, field: str, **options: Any) -> Rule:
    """Return the row that checks a selector."""

    def guard(review: Review, value: Any) -> Iterator[Fault]:
        del review
        if text := problem(value):
            yield Fault(text=text)

    return Rule(ids, INVALID, field, guard, "{text}", **options)
