"""The values of inline patches: literal, from variables, or rendered from templates."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any, Final

from clusterwright import gotemplate
from clusterwright.api.meta import Json
from clusterwright.golang.numbers import to_double
from clusterwright.golang.quoting import quote
from clusterwright.golang.yaml import BadYaml, to_json
from clusterwright.gotemplate import Budget
from clusterwright.gotemplate.metering import MAX_STEPS, deep_steps
from clusterwright.gotemplate.sprig import FUNCTIONS

_SEGMENT: Final = re.compile(r"(?P<name>[^\[\]]*)(?:\[(?P<index>[^\[\]]*)\])?")

_COPIED: Final = 8
"""How many copied values cost as much as one step of a template."""
_READ: Final = 16
"""How many characters of YAML cost as much as one step."""
_NODES: Final = 20_000
"""The most values in the YAML of a template."""


class BadValue(ValueError):
    """A value cannot be computed. The text says why."""


def value_of(patch: Json, variables: Json, budget: Budget | None = None) -> Any:
    """Return the value of an `add` or `replace`; raises BadValue."""
    given, source = patch.get("value"), patch.get("valueFrom")
    if given is None and source is None:
        raise BadValue("failed to calculate value: neither .value nor .valueFrom are set")
    if given is not None and source is not None:
        raise BadValue("failed to calculate value: both .value and .valueFrom are set")
    if source is None:
        return given
    variable, template = source.get("variable"), source.get("template")
    if not variable and not template:
        raise BadValue("failed to calculate value: .valueFrom is set, but neither .valueFrom.variable nor .valueFrom.template are set")
    if variable and template:
        raise BadValue("failed to calculate value: .valueFrom is set, but both .valueFrom.variable and .valueFrom.template are set")
    try:
        return variable_value(variables, variable) if variable else rendered(template, variables, budget)
    except BadValue as error:
        raise BadValue(f"failed to calculate value{'' if variable else ' for template'}: {error}") from None


def is_enabled(condition: str, variables: Json, budget: Budget | None = None) -> bool:
    """Return whether to apply a patch: its `enabledIf` is true; raises BadValue."""
    if not condition:
        return True
    try:
        return rendered(condition, variables, budget) is True
    except BadValue as error:
        raise BadValue(f"failed to calculate value for enabledIf: {error}") from None


def rendered(template: str, variables: Json, budget: Budget | None = None) -> Any:
    """Return the YAML value of a rendered Go template; raises BadValue. The budget also pays for copying and reading."""
    budget = budget or Budget(MAX_STEPS)
    try:
        parsed = _parsed(template)
    except gotemplate.TemplateError as error:
        raise BadValue(f"failed to parse template: {quote(template)}: {error}") from None
    try:
        budget.charge(deep_steps([variables], budget.left) // _COPIED)
        text = parsed.render(_doubles(variables), strict=False, budget=budget)
        budget.charge(len(text) // _READ)
    except gotemplate.TemplateError as error:
        raise BadValue(f"failed to render template: {quote(template)}: {error}") from None
    try:
        return to_json(text, nodes=_NODES)
    except BadYaml as error:
        raise BadValue(f"failed to unmarshal rendered template: {quote(text)}: {error}") from None


@lru_cache(maxsize=4096)
def _parsed(template: str) -> gotemplate.Template:
    return gotemplate.parse(template, FUNCTIONS)


def _doubles(value: Any) -> Any:
    """Return a copy, because templates may change their input, in which every number is a float."""
    if isinstance(value, dict):
        return {k: _doubles(v) for k, v in value.items()}
    if isinstance(value, list):
        return [_doubles(v) for v in value]
    if isinstance(value, int) and not isinstance(value, bool):
        return to_double(value)
    return value


def variable_value(variables: Json, path: str) -> Any:
    """Return the value at a path like `net.cidrs[0].name`; raises BadValue."""
    first, *rest = path.split(".")
    try:
        name, index = _segment(first)
    except BadValue as error:
        raise BadValue(f"variable {quote(path)} is invalid: {error}") from None
    if name not in variables:
        raise BadValue(f"variable {quote(name)} does not exist")
    value = _element(variables[name], name, index, path)
    for segment in rest:
        try:
            name, index = _segment(segment)
        except BadValue as error:
            raise BadValue(f"variable {quote(path)} has invalid syntax: {error}") from None
        value = _element(_member(value, name, segment, path), name, index, path)
    return value


def _segment(segment: str) -> tuple[str, int | None]:
    match = _SEGMENT.fullmatch(segment)
    if match is None:
        raise BadValue(f"failed to parse path segment {quote(segment)}")
    index = match["index"]
    if index is None:
        return match["name"], None
    if re.fullmatch(r"[+-]?[0-9]+", index) is None:
        raise BadValue(f"failed to parse array index in path segment {quote(segment)}: invalid syntax")
    if int(index) < 0:
        raise BadValue(f"invalid array index {int(index)} in path segment {quote(segment)}")
    return match["name"], int(index)


def _member(value: Any, name: str, segment: str, path: str) -> Any:
    if isinstance(value, dict) and name in value:
        return value[name]
    if isinstance(value, list) and name.isascii() and name.isdigit() and int(name) < len(value):
        return value[int(name)]
    raise BadValue(f"variable {quote(path)} does not exist: failed to lookup segment {quote(segment)}")


def _element(value: Any, name: str, index: int | None, path: str) -> Any:
    if index is None:
        return value
    if not isinstance(value, list):
        raise BadValue(f"variable {quote(path)} is invalid: failed to get array {quote(name)}: value is not an array")
    if index >= len(value):
        raise BadValue(f"variable {quote(path)} is invalid: array does not have index {index}")
    return value[index]
