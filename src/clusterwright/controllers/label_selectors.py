"""LabelSelectors as Kubernetes prints and reads them. Pure."""

from __future__ import annotations

from clusterwright.api.meta import LabelSelector
from clusterwright.runtime.selectors import Selector, parse_labels


class UnsupportedSelector(ValueError):
    """A selector that cannot be used here; the text says why."""


def selector_text(selector: LabelSelector) -> str:
    """The selector as text, terms by key; empty for one that selects everything. Raises UnsupportedSelector for one that is none."""
    terms = [(key, f"{key}={value}") for key, value in selector.match_labels.items()]
    for expression in selector.match_expressions:
        key, values = expression.key, ",".join(sorted(expression.values))
        match expression.operator:
            case "In" | "NotIn":
                if not expression.values:
                    raise UnsupportedSelector(f"{key}: for 'in', 'notin' operators, values set can't be empty")
                terms.append((key, f"{key} {expression.operator.lower()} ({values})"))
            case "Exists" | "DoesNotExist":
                if expression.values:
                    raise UnsupportedSelector(f"{key}: values set must be empty for exists and does not exist")
                terms.append((key, key if expression.operator == "Exists" else f"!{key}"))
            case unknown:
                raise UnsupportedSelector(f"{unknown!r} is not a valid label selector operator")
    return ",".join(text for _, text in sorted(terms, key=lambda term: term[0]))


def parsed(selector: LabelSelector) -> Selector:
    """The selector, ready to be asked. Raises UnsupportedSelector."""
    return parse_labels(selector_text(selector))


def as_labels(selector: LabelSelector) -> dict[str, str]:
    """The labels that the selector asks for, where it is nothing but equality: a MachineSet is found by the labels it gives.

    Raises UnsupportedSelector for any other.
    """
    labels = dict(selector.match_labels)
    for expression in selector.match_expressions:
        if expression.operator != "In" or len(expression.values) != 1:
            raise UnsupportedSelector(f"operator {expression.operator!r} of key {expression.key!r} cannot be converted into labels")
        labels[expression.key] = expression.values[0]
    return labels


def is_empty(selector: LabelSelector) -> bool:
    """Whether it selects everything."""
    return not selector.match_labels and not selector.match_expressions
