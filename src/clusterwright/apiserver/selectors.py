"""Label and field selectors of requests, with the errors of the API server."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, TypeVar

from clusterwright.api import selectors
from clusterwright.api.selectors import FieldRequirement, InvalidSelector, InvalidTerm, Matcher
from clusterwright.apiserver.status import StatusError, bad_request, invalid
from clusterwright.golang.quoting import quote

_MAXIMUM: Final = 1_000_000
"""The longest selector, in characters."""

T = TypeVar("T")


def label_selector(text: str) -> Matcher | None:
    """Return the predicate of a label selector, or None if it selects everything; raises StatusError (400)."""
    selector = _parsed("label", text, selectors.parse_labels)
    return None if selector is selectors.EVERYTHING else selector.matches


def field_requirements(text: str) -> tuple[FieldRequirement, ...]:
    """Parse a field selector; raises StatusError (400)."""
    return _parsed("field", text, selectors.field_requirements)


def _parsed(kind: str, text: str, parse: Callable[[str], T]) -> T:
    if len(text) > _MAXIMUM:
        raise bad_request(f"the {kind} selector is too long")
    try:
        return parse(text)
    except InvalidTerm as e:
        errors = [str(invalid(e.field, e.value, problem)) for problem in e.problems]
        shown = errors[0] if len(errors) == 1 else f"[{', '.join(errors)}]"
        raise bad_request(f"unable to parse requirement: {shown}") from None
    except InvalidSelector as e:
        raise bad_request(str(e)) from None


def field_value(obj: Mapping[str, Any], path: tuple[str, ...]) -> str:
    """Return the value at a path in the form for field selectors: text, `true`/`false`, decimal numbers; absent is empty."""
    value: Any = obj
    for step in path:
        if not isinstance(value, Mapping):
            return ""
        value = value.get(step)
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)


def unsupported_field(label: str, *, plain: bool = False) -> StatusError:
    """Return the error (400) for an unsupported field label; `plain`: a built-in that supports only name and namespace."""
    if plain:
        return bad_request(f'{quote(label)} is not a known field selector: only "metadata.name", "metadata.namespace"')
    return bad_request(f"field label not supported: {label}")
