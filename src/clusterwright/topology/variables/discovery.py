"""Collect the variables of a ClusterClass from all origins: the class itself, and extensions."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final

from clusterwright.api.meta import Json

INLINE: Final = "inline"
_FLAGS: Final = (
    "uniqueItems",
    "exclusiveMaximum",
    "exclusiveMinimum",
    "x-kubernetes-preserve-unknown-fields",
    "x-kubernetes-int-or-string",
)


def collected(origins: Iterable[tuple[str, Sequence[Json]]]) -> tuple[list[Json], list[str]]:
    """Return the entries of `status.variables`, by name, and the names with different definitions. Each origin has a name."""
    entries: dict[str, Json] = {}
    for origin, variables in origins:
        for variable in {v["name"]: v for v in variables}.values():  # within one origin the last one counts
            definition = _definition(origin, variable)
            entry = entries.setdefault(
                variable["name"], {"name": variable["name"], "definitionsConflict": False, "definitions": [definition]}
            )
            if definition is not entry["definitions"][0]:
                entry["definitionsConflict"] = entry["definitionsConflict"] or _differ(entry["definitions"][0], definition)
                entry["definitions"].append(definition)
    ordered = [entries[name] for name in sorted(entries)]
    return ordered, [e["name"] for e in ordered if e["definitionsConflict"]]


def _definition(origin: str, variable: Json) -> Json:
    out: Json = {"from": origin, "required": bool(variable.get("required")) if variable.get("required") is not None else None}
    out["schema"] = variable.get("schema") or {}
    if variable.get("deprecatedV1Beta1Metadata"):
        out["deprecatedV1Beta1Metadata"] = variable["deprecatedV1Beta1Metadata"]
    return {k: v for k, v in out.items() if v is not None}


def _differ(first: Json, other: Json) -> bool:
    if bool(first.get("required")) != bool(other.get("required")):
        return True
    if first.get("deprecatedV1Beta1Metadata") != other.get("deprecatedV1Beta1Metadata"):
        return True
    return bool(_plain(first["schema"].get("openAPIV3Schema") or {}) != _plain(other["schema"].get("openAPIV3Schema") or {}))


def _plain(schema: Any) -> Any:
    """Return a schema without false flags, at every depth."""
    if not isinstance(schema, dict):
        return schema
    out: Json = {k: v for k, v in schema.items() if not (k in _FLAGS and v is False)}
    for key in ("items", "additionalProperties", "not"):
        if key in out:
            out[key] = _plain(out[key])
    for key in ("allOf", "anyOf", "oneOf"):
        if isinstance(out.get(key), list):
            out[key] = [_plain(s) for s in out[key]]
    if isinstance(out.get("properties"), dict):
        out["properties"] = {k: _plain(v) for k, v in out["properties"].items()}
    return out
