"""Conditions of objects of unknown kinds. Their shape may be anything."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from clusterwright.api.meta import Condition, Unstructured
from clusterwright.golang.times import parse_rfc3339

NO_REASON = "NoReasonReported"


class InvalidConditions(ValueError):
    """The object's conditions are malformed; the text says why, suitable for a condition's message."""


def conditions_of(obj: Unstructured | Mapping[str, Any]) -> tuple[Condition, ...]:
    """Return the conditions that an object of any kind reports; raises InvalidConditions.

    `status.v1beta2.conditions` takes precedence if it is a list, even an empty one; else `status.conditions`; if neither is a list, there
    are none. One bad item makes the whole list invalid, because other items may be wrong, too.
    """
    source = obj if isinstance(obj, Unstructured) else Unstructured(obj)
    for path in (("status", "v1beta2", "conditions"), ("status", "conditions")):
        items = source.at(*path)
        if isinstance(items, list | tuple):
            try:
                return parse_conditions(items)
            except InvalidConditions as e:
                raise InvalidConditions(f"failed to convert {'.'.join(path)} from {source.kind} to []metav1.Condition: {e}") from None
    return ()


def parse_conditions(items: list[Any] | tuple[Any, ...]) -> tuple[Condition, ...]:
    """Return JSON items as conditions, of the new or the old form (severity is dropped); items that are not objects are skipped."""
    return tuple(_condition(item) for item in items if isinstance(item, Mapping))


def _condition(item: Mapping[str, Any]) -> Condition:
    type_ = _text(item, "type", "")
    if not type_:
        raise InvalidConditions("type must be set for all conditions")
    status = _text(item, "status", type_)
    if not status:
        raise InvalidConditions(f"status must be set for the {type_} condition")
    if status not in {"True", "False", "Unknown"}:
        raise InvalidConditions(f"status for the {type_} condition must be one of True, False, Unknown")
    generation = item.get("observedGeneration")
    if (
        isinstance(generation, bool)
        or not isinstance(generation, int | float | None)
        or (generation is not None and generation != int(generation))
    ):
        raise InvalidConditions(f"observedGeneration for the {type_} condition must be a number")
    return Condition(
        type=type_,
        status=status,
        observed_generation=int(generation or 0),
        last_transition_time=_time(item.get("lastTransitionTime")),
        reason=_text(item, "reason", type_) or NO_REASON,
        message=_text(item, "message", type_),
    )


def _text(item: Mapping[str, Any], field: str, type_: str) -> str:
    value = item.get(field)
    if value is None:
        return ""
    if not isinstance(value, str):
        where = f" for the {type_} condition" if type_ else " for all conditions"
        raise InvalidConditions(f"{field}{where} must be a string")
    return value


def parse_time(value: Any) -> datetime | None:
    """Return an RFC 3339 text as a time; None for anything else."""
    return parse_rfc3339(value) if isinstance(value, str) else None


def _time(value: Any) -> datetime | None:
    if value is None or value == "":
        return None
    parsed = parse_time(value)
    if parsed is None:
        raise InvalidConditions(f"failed to unmarshal lastTransitionTime value: {value}: not an RFC 3339 time")
    return parsed
