"""Values of variables: set defaults, and validate against definitions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal
from typing import Any, Final

import msgspec

from clusterwright.api.copying import replace
from clusterwright.api.meta import Json
from clusterwright.apiserver.schema.structural import apply_defaults, copy_json, unknown_fields
from clusterwright.apiserver.schema.validation import find_errors
from clusterwright.apiserver.status import ErrorType, FieldError, invalid, required, type_invalid
from clusterwright.golang.numbers import to_double
from clusterwright.golang.quoting import quote
from clusterwright.topology.variables.schema import VALUE, compiled

_EXACT: Final = 1e21
"""The number from which whole numbers are written with an exponent."""


def joined(errors: Sequence[FieldError]) -> str:
    """Return field errors as one text, without duplicates."""
    return _once(map(str, errors))


def _once(texts: Iterable[str]) -> str:
    texts = list(dict.fromkeys(texts))
    return texts[0] if len(texts) == 1 else f"[{', '.join(texts)}]"


class BadValues(Exception):
    """Values cannot be defaulted. `errors` says why."""

    def __init__(self, errors: Sequence[FieldError]) -> None:
        super().__init__("; ".join(map(str, errors)))
        self.errors = tuple(errors)


def default_values(values: Sequence[Json], definitions: Sequence[Json], field: str, *, create: bool) -> list[Json]:
    """Return the values with defaults: the given ones first, in their order, then new defaults, in the order of the definitions.

    `create`: whether missing variables with a default are added (cluster-wide values, not overrides). Raises BadValues.
    """
    given, known = _values(values, field), _definitions(definitions, field)
    missing = [d["name"] for d in definitions if d["name"] not in given] if create else []
    errors, out = [], []
    for name in (*map(_name, values), *missing):
        if name not in known:
            errors.append(_undefined(given[name], field))
            continue
        schema = compiled(known[name])
        if name not in given and not schema.node.has_default:
            continue
        carrier = {VALUE: _as_double(given[name].get("value")) if name in given else None}
        apply_defaults(carrier, schema.wrapped)
        out.append({"name": name, "value": carrier[VALUE]})
    if errors:
        raise BadValues(errors)
    return out


def validate_values(
    values: Sequence[Json], old_values: Sequence[Json], definitions: Sequence[Json], field: str, *, complete: bool, null: str = ""
) -> list[FieldError]:
    """Return all errors of values. `complete`: required variables must be present. `old_values` are `oldSelf` in rules.

    `null` is the text for a null value in errors.
    """
    try:
        given = _values(values, field)
        old = _values(old_values, field)
        known = _definitions(definitions, field)
    except BadValues as e:
        return list(e.errors)
    errors: list[FieldError] = []
    if complete:
        missing = sorted(name for name, d in known.items() if d.get("required") and name not in given)
        errors.extend(required(field, f"required variable {quote(name)} must be set") for name in missing)
    for value in values:
        name = _name(value)
        if name not in known:
            errors.append(_undefined(value, field))
        else:
            errors.extend(_validate(value, old.get(name), known[name], f"{field}[{name}]", null))
    return errors


def _validate(value: Json, old: Json | None, definition: Json, field: str, null: str) -> list[FieldError]:
    """Return the errors of schema, else unknown fields, else rules: the first group with errors counts."""
    schema, content, shown, where = compiled(definition), value.get("value"), _text(value) or null, f"{field}.value"
    errors = find_errors(schema.node, content, prefix=where, ranges=False)
    if errors:
        return [replace(e, value=shown, detail=e.detail.removeprefix(" in body ")) for e in errors]
    unknown = [path.removeprefix(f"{VALUE}.") for path in unknown_fields(content, schema.node, VALUE)]
    if unknown:
        names = quote(",".join(unknown))
        text = f"failed validation: {names} field(s) are not specified in the variable schema of variable {quote(value['name'])}"
        return [invalid(field, shown, text)]
    if not schema.wrapped.has_rules:
        return []
    before = {VALUE: copy_json(old["value"])} if old is not None and old.get("value") is not None else None
    found = schema.rules.validate({VALUE: copy_json(content)}, before)
    return [replace(e, value=shown, field=where + e.field.removeprefix(VALUE)) for e in found]


def _values(values: Sequence[Json], field: str) -> dict[str, Json]:
    index: dict[str, Json] = {}
    errors = []
    for value in values:
        name = _name(value)
        if name in index:
            errors.append(invalid(f"{field}[{name}]", _text(value), f"variable {quote(name)} is set more than once"))
        index[name] = value
    if errors:
        raise BadValues(errors)
    return index


def _definitions(definitions: Sequence[Json], field: str) -> dict[str, Json]:
    """Return the definition of each variable: the first one, because all must be equal."""
    problems = []
    for variable in definitions:
        if not variable.get("definitions"):
            problems.append(f"variable {quote(variable['name'])} has no definitions")
        if variable.get("definitionsConflict"):
            problems.append(f"variable {quote(variable['name'])} has conflicting definitions")
    if problems:
        names = ",".join(f"Name: {v['name']}" for v in definitions)
        text = f"variable definitions in the ClusterClass not valid: {_once(problems)}"
        raise BadValues([type_invalid(field, f"[{names}]", text)])
    return {v["name"]: v["definitions"][0] for v in definitions}


def _name(value: Json) -> str:
    """Return the name of a value, which may be missing, because admission runs before schema validation."""
    return value.get("name") or ""


def _undefined(value: Json, field: str) -> FieldError:
    return FieldError(ErrorType.INVALID, f"{field}[{_name(value)}]", _text(value), "variable is not defined")


def _text(value: Mapping[str, Any]) -> str:
    """Return the value as JSON text for errors; null is empty."""
    content = value.get("value")
    return "" if content is None else msgspec.json.encode(content, order="sorted").decode()


def _as_double(value: Any) -> Any:
    """Return a value whose numbers are doubles, as in every JSON tool between a user and the store: 2.0 is 2."""
    if isinstance(value, dict):
        return {k: _as_double(v) for k, v in value.items()}
    if isinstance(value, list):
        return [_as_double(v) for v in value]
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        double = to_double(value)
        return int(Decimal(repr(double))) if double.is_integer() and abs(double) < _EXACT else double
    return value
