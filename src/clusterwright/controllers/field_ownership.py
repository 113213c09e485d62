"""Field ownership: decide whether an apply is needed, and repair managedFields. Pure.

An apply costs a request even when it changes nothing, so skip it if the stored object already has its outcome: the values are those of the
intent, and our manager owns nothing beyond the intent.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Mapping, Sequence
from copy import deepcopy
from typing import Any

import msgspec

from clusterwright.api.meta import Json

BEFORE_FIRST_APPLY = "before-first-apply"
_METADATA = ("labels", "annotations")


def digest(intent: Mapping[str, Any]) -> str:
    """Return a digest that is equal for equal intents."""
    return hashlib.sha256(msgspec.json.encode(intent, order="deterministic")).hexdigest()


def contains(live: Mapping[str, Any], intent: Mapping[str, Any]) -> bool:
    """Return whether the object has every value of the intent."""
    return _contains(live, {k: v for k, v in intent.items() if k not in {"apiVersion", "kind"}})


def is_in_force(live: Mapping[str, Any], intent: Mapping[str, Any], manager: str) -> bool:
    """Return whether applying `intent` as `manager` would have no visible effect.

    If an object has no field owners, we own nothing that would have to be removed.
    """
    if not contains(live, intent):
        return False
    if not (live.get("metadata") or {}).get("managedFields"):
        return True
    entry = _entry(live, manager)
    if entry is None:
        return False
    owned = entry.get("fieldsV1") or {}
    return _owns_no_more(owned.get("f:metadata") or {}, intent.get("metadata") or {}) and _owns_no_more(
        owned.get("f:spec") or {}, intent.get("spec") or {}
    )


def _entry(live: Mapping[str, Any], manager: str) -> Mapping[str, Any] | None:
    entries = (live.get("metadata") or {}).get("managedFields") or ()
    return next((e for e in entries if e.get("manager") == manager and _is_applied(e)), None)


def _is_applied(entry: Mapping[str, Any]) -> bool:
    return entry.get("operation") == "Apply" and not entry.get("subresource")


def _contains(live: Any, intent: Any) -> bool:
    """Return whether the object has every value of the intent; lists must be equal, except ownerReferences, which others share."""
    if isinstance(intent, Mapping):
        if not isinstance(live, Mapping):
            return False
        for key, value in intent.items():
            if key == "ownerReferences":
                if not all(r in (live.get(key) or ()) for r in value):
                    return False
            elif (key not in live or not _contains(live[key], value)) and not (value == {} and live.get(key) is None):
                return False
        return True
    return bool(live == intent)


def _owns_no_more(owned: Mapping[str, Any], intent: Mapping[str, Any]) -> bool:
    """Return whether every owned field is in the intent; the content of lists was compared by value."""
    for key, below in owned.items():
        if not key.startswith("f:"):
            continue
        name = key[2:]
        if name not in intent:
            return False
        value = intent[name]
        if isinstance(value, Mapping) and isinstance(below, Mapping) and not _owns_no_more(below, value):
            return False
    return True


def is_held(live: Mapping[str, Any], intent: Mapping[str, Any], giver: str, taker: str, kept: Collection[str]) -> bool:
    """Return whether the object has the labels and annotations of `intent` and no others, though the taker never applied them.

    They still belong to the giver, who created the object with them; of its other fields, only `kept` is not in the intent.
    """
    if _entry(live, taker) is not None or not contains(live, intent):
        return False
    owned = ((_entry(live, giver) or {}).get("fieldsV1") or {}).get("f:metadata") or {}
    wanted = intent.get("metadata") or {}
    return all({*_names(owned, field)} - {*kept} == {*(wanted.get(field) or ())} for field in _METADATA)


def handed_over(live: Mapping[str, Any], giver: str, taker: str, kept: Collection[str]) -> list[Json] | None:
    """Return a JSON patch that makes labels and annotations the taker's, as if it had applied them; the giver keeps only `kept`.

    None if the giver owns none, or the taker has taken over before. Afterwards, the taker can remove them.
    """
    metadata = live.get("metadata") or {}
    entries: list[Json] = [deepcopy(dict(e)) for e in metadata.get("managedFields") or ()]
    mine = next((e for e in entries if e.get("manager") == giver and _is_applied(e)), None)
    owned = ((mine or {}).get("fieldsV1") or {}).get("f:metadata")
    if mine is None or not isinstance(owned, dict) or _entry(live, taker) is not None:
        return None
    given: Json = {}
    for field in _METADATA:
        below = owned.get(f"f:{field}")
        if not isinstance(below, dict):
            continue
        given[f"f:{field}"] = {f"f:{name}": below.pop(f"f:{name}") for name in _names(owned, field) if name not in kept}
        if not set(below) - {"."}:
            del owned[f"f:{field}"]
    if not any(given.values()):
        return None
    entries.append({**mine, "manager": taker, "fieldsV1": {"f:metadata": given}})
    return _patch(entries, metadata)


def _names(owned: Mapping[str, Any], field: str) -> list[str]:
    """Return the labels or annotations among the owned fields of the metadata."""
    below = owned.get(f"f:{field}")
    return [key[2:] for key in below if key.startswith("f:")] if isinstance(below, Mapping) else []


def repaired(live: Mapping[str, Any], manager: str) -> list[Json] | None:
    """Return a JSON patch that repairs managedFields that were lost and then guessed by the API server; None if they are intact.

    `before-first-apply` owns all earlier fields, so that they could never be removed.
    """
    metadata = live.get("metadata") or {}
    entries: Sequence[Mapping[str, Any]] = metadata.get("managedFields") or ()
    if not any(e.get("manager") == BEFORE_FIRST_APPLY for e in entries):
        return None
    kept: list[Json] = [dict(e) for e in entries if e.get("manager") != BEFORE_FIRST_APPLY]
    if not any(e.get("manager") == manager and e.get("operation") == "Apply" for e in kept):
        kept.append(
            {
                "manager": manager,
                "operation": "Apply",
                "apiVersion": live.get("apiVersion", ""),
                "time": metadata.get("creationTimestamp"),
                "fieldsType": "FieldsV1",
                "fieldsV1": {"f:metadata": {"f:name": {}}},
            }
        )
    return _patch(kept, metadata)


def _patch(managed_fields: list[Json], metadata: Mapping[str, Any]) -> list[Json]:
    return [
        {"op": "replace", "path": "/metadata/managedFields", "value": managed_fields},
        {"op": "replace", "path": "/metadata/resourceVersion", "value": metadata.get("resourceVersion", "")},
    ]
