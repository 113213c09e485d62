"""Check whether a value fits a structural schema: a tree of closures that returns a boolean in a few microseconds.

`validation.find_errors` returns the errors in kube-apiserver's words; both agree.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from clusterwright.apiserver.effort import spend
from clusterwright.apiserver.schema.structural import Node
from clusterwright.cel.formats import format_check
from clusterwright.golang.regex import BadPattern, matcher, program_size, remembering

_SHORT: Final = 1024
_FEW_STATES: Final = 100
"""The number of states up to which searching a pattern is fast."""
_CHARACTER: Final = 0.05
"""The cost of a character of a long text."""
_STATE: Final = 0.005
"""The cost of a character for every state of a pattern with many states."""
"""Texts of at most so many characters are remembered with what came of them."""
Check = Callable[[Any], bool]

RANGES: Final = {"int32": (-(2**31), 2**31 - 1), "int64": (-(2**63), 2**63 - 1)}
FLOAT_MAXIMUM: Final = 3.4028234663852886e38


def _yes(_: Any) -> bool:
    return True


def is_valid(node: Node) -> Check:
    """Return a closure that checks whether a value fits the schema (except CEL rules and embedded resources). Compiled once."""
    if node.ok is None:
        node.ok = _compile(node)
    check: Check = node.ok
    return check


def _compile(node: Node) -> Check:
    source = node.source
    parts: list[Check] = []
    if node.types == ("object",):
        base = _object_check(node)
    elif node.types == ("array",):
        base = _array_check(node)
    elif node.types == ("string",):
        base = _string_check(node)
    elif node.types == ("boolean",):
        base = lambda v: v is True or v is False  # noqa: E731
    elif node.types in (("integer",), ("number",)):
        base = _number_check(node)
    elif node.int_or_string:
        text, num = _string_check(node), _number_check(node)
        base = lambda v: text(v) if type(v) is str else num(v)  # noqa: E731
    else:
        base = _untyped_check(node)
    if node.enum is not None:
        if all(type(e) is str for e in node.enum):
            values = frozenset(node.enum)
            inner = base
            base = lambda v: type(v) is str and v in values and inner(v)  # noqa: E731
        else:
            enum = node.enum
            inner2 = base
            base = lambda v: in_enum(v, enum) and inner2(v)  # noqa: E731
    parts.append(base)
    parts.extend(is_valid(sub) for sub in node.all_of)
    if node.any_of:
        choices = [is_valid(s) for s in node.any_of]
        parts.append(lambda v: any(c(v) for c in choices))
    if node.one_of:
        alternatives = [is_valid(s) for s in node.one_of]
        parts.append(lambda v: sum(c(v) for c in alternatives) == 1)
    if node.not_ is not None:
        negated = is_valid(node.not_)
        parts.append(lambda v: not negated(v))
    if node.nullable or not node.types:
        nullable = node.nullable or not node.types
        checks = tuple(parts)
        enum_ok = node.enum is None or None in node.enum
        return lambda v: (nullable and enum_ok) if v is None else all(c(v) for c in checks)
    if len(parts) == 1:
        return parts[0]
    several = tuple(parts)
    del source
    return lambda v: all(c(v) for c in several)


def _object_check(node: Node) -> Check:
    source = node.source
    properties = {k: is_valid(c) for k, c in node.properties.items()}
    # a child whose check can never fail need not be called
    additional = is_valid(node.additional) if node.additional is not None else None
    closed = source.get("additionalProperties") is False
    need = node.required
    least, most = source.get("minProperties"), source.get("maxProperties")
    low, high = least if least is not None else 0, most if most is not None else 1 << 62
    get = properties.get

    def check(value: Any) -> bool:
        if type(value) is not dict:
            return False
        if need:
            for key in need:
                if key not in value:
                    return False
        if not low <= len(value) <= high:
            return False
        for key, item in value.items():
            child = get(key)
            if child is None:
                if additional is not None:
                    if not additional(item):
                        return False
                elif closed:
                    return False
            elif not child(item):
                return False
        return True

    return check


def _array_check(node: Node) -> Check:
    source = node.source
    least, most = source.get("minItems"), source.get("maxItems")
    low, high = least if least is not None else 0, most if most is not None else 1 << 62
    item = is_valid(node.items) if node.items is not None else _yes
    unique = _unique_check(node)

    def check(value: Any) -> bool:
        if type(value) is not list or not low <= len(value) <= high:
            return False
        for v in value:
            if not item(v):
                return False
        return unique is None or len(value) < 2 or unique(value)

    return check


def _unique_check(node: Node) -> Callable[[list[Any]], bool] | None:
    if node.list_type == "set" or node.source.get("uniqueItems"):
        return lambda value: not duplicates(value)
    if node.list_type == "map" and node.keys:
        if len(node.keys) == 1:
            key = node.keys[0]
            return lambda value: len({v.get(key) if type(v) is dict else None for v in value}) == len(value)
        keys = node.keys
        return lambda value: len({tuple(v.get(k) for k in keys) if type(v) is dict else () for v in value}) == len(value)
    return None


def _string_check(node: Node) -> Check:
    source = node.source
    least, most = source.get("minLength"), source.get("maxLength")
    low, high = least if least is not None else 0, most if most is not None else 1 << 62
    pattern = go_pattern(source.get("pattern"), at_most=high)
    fits = format_check(node.format) if node.format else None
    if pattern is None and fits is None and low == 0 and most is None:
        return lambda v: type(v) is str

    def check(value: Any) -> bool:
        return type(value) is str and low <= len(value) <= high and (pattern is None or pattern(value)) and (fits is None or fits(value))

    return check


def go_pattern(pattern: Any, *, at_most: int = 1 << 62) -> Callable[[str], bool] | None:
    """Return a check whether texts of at most `at_most` characters match a pattern; None without a valid pattern.

    The check charges for long texts, and for patterns with many states: a search may visit all of them.
    """
    if not isinstance(pattern, str) or not pattern:
        return None
    try:
        match = remembering(pattern) if at_most <= _SHORT else matcher(pattern)
        states = program_size(pattern)
    except BadPattern:
        return None
    has_many_states = states > _FEW_STATES
    if at_most <= _SHORT and not has_many_states:
        return match
    rate = _STATE * states if has_many_states else _CHARACTER

    def charged(text: str) -> bool:
        if has_many_states or len(text) > _SHORT:
            spend(rate * len(text))
        return match(text)

    return charged


def _number_check(node: Node) -> Check:
    source = node.source
    whole = "integer" in node.types
    bounds = RANGES.get(node.format) or ((-FLOAT_MAXIMUM, FLOAT_MAXIMUM) if node.format == "float" and not whole else None)
    limited = bounds is not None or any(source.get(k) is not None for k in ("minimum", "maximum", "multipleOf"))

    def plain(value: Any) -> bool:
        kind = type(value)
        return kind is int or (kind is float and (not whole or is_whole(value)))

    if not limited:
        return plain
    minimum, maximum, multiple = source.get("minimum"), source.get("maximum"), source.get("multipleOf")
    over, under = bool(source.get("exclusiveMinimum")), bool(source.get("exclusiveMaximum"))

    if any(is_fraction(node, limit) for limit in (minimum, maximum, multiple)):
        return lambda v: False
    least, most = truncated(minimum), truncated(maximum)

    def check(value: Any) -> bool:
        if not plain(value):
            return False
        if bounds is not None and not bounds[0] <= value <= bounds[1]:
            return False
        low, high = (least, most) if type(value) is int else (minimum, maximum)
        if low is not None and (value < low or (over and value == low)):
            return False
        if high is not None and (value > high or (under and value == high)):
            return False
        return multiple is None or is_multiple(value, multiple)

    return check


def is_whole(value: float) -> bool:
    """Return whether a number with a point or an exponent counts as an integer: if a double holds it exactly."""
    return abs(value) < 1 << 53 and value.is_integer()


def truncated(limit: Any) -> Any:
    """Return a limit for integers: without its fraction."""
    return int(limit) if type(limit) is float else limit


def is_fraction(node: Node, limit: Any) -> bool:
    """Return whether a limit cannot be that of an integer: then no value is valid."""
    return node.types == ("integer",) and type(limit) is float and not limit.is_integer()


def is_multiple(value: Any, multiple: Any) -> bool:
    """Return whether a number is a multiple of a factor; for integers, of the factor's integer part."""
    if type(value) is int:
        factor = int(multiple)
        return factor > 0 and value % factor == 0
    quotient = value / multiple
    return bool(abs(quotient - round(quotient)) < 1e-9)


def _untyped_check(node: Node) -> Check:
    obj, array, text, num = _object_check(node), _array_check(node), _string_check(node), _number_check(node)

    def check(value: Any) -> bool:
        kind = type(value)
        if kind is dict:
            return obj(value)
        if kind is list:
            return array(value)
        if kind is str:
            return text(value)
        if kind is int or kind is float:
            return num(value)
        return True

    return check


def in_enum(value: Any, enum: list[Any]) -> bool:
    """Return whether a value is one of an enumeration; true is not 1."""
    is_bool = isinstance(value, bool)
    return any(value == e and isinstance(e, bool) == is_bool for e in enum)


def frozen(value: Any) -> Any:
    """Return a hashable form of a JSON value: equal for equal values."""
    if type(value) is dict:
        return ("{", *sorted((k, frozen(v)) for k, v in value.items()))
    if type(value) is list:
        return ("[", *(frozen(v) for v in value))
    return (type(value) if type(value) is bool else None, value)


def duplicates(values: list[Any]) -> list[int]:
    """Return the indices at which a value occurs for the second time."""
    seen: dict[Any, int] = {}
    found = []
    for i, value in enumerate(values):
        key = frozen(value)
        seen[key] = seen.get(key, 0) + 1
        if seen[key] == 2:
            found.append(i)
    return found
