"""Remove counters of 0 that their kind does not serialise: a bundle may hold them, but an API server never serves them."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any

import msgspec

from clusterwright.api.codec import field_hints, field_metadata, without_metadata
from clusterwright.api.meta import Always, GroupVersionKind, Json
from clusterwright.api.scheme import SCHEME

Silent = dict[str, "Silent | None"]
"""By field: the counters below it; None: the field is such a counter itself."""


def without_silent_zeros(json: Json) -> Json:
    """Return a copy of the object without such counters, as an API server serves it."""
    gvk = GroupVersionKind.of(str(json.get("apiVersion", "")), str(json.get("kind", "")))
    known = SCHEME.by_gvk(gvk)
    return _without(json, _silent(known.model)) if known is not None else json


def _without(json: Any, silent: Silent) -> Any:
    if not isinstance(json, Mapping):
        return json
    kept: Json = {}
    for name, value in json.items():
        below = silent.get(name, {})
        if below is not None:
            kept[name] = _without(value, below) if below else value
        elif value != 0 or isinstance(value, bool):
            kept[name] = value
    return kept


@cache
def _silent(cls: type[msgspec.Struct], above: tuple[type[msgspec.Struct], ...] = ()) -> Silent:
    """Return the counters that a kind omits when they are 0, except those in lists and in nested schemas."""
    found: Silent = {}
    hints = field_hints(cls)
    for field in msgspec.structs.fields(cls):
        hint = hints[field.name]
        bare = without_metadata(hint)
        if bare is int and field.default == 0 and not any(isinstance(mark, Always) for mark in field_metadata(hint)):
            found[field.encode_name] = None
        elif isinstance(bare, type) and issubclass(bare, msgspec.Struct) and bare not in above and (below := _silent(bare, (*above, cls))):
            found[field.encode_name] = below
    return found
