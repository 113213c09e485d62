"""Turn the outcome of a table into a condition of any kind, in both forms. Pure.

Every condition is made to fit the limits of the API (`conditions.limits`): a reason outside the pattern, which some provider
reported, would otherwise make the API server refuse the whole status, forever.
"""

from __future__ import annotations

from datetime import datetime
from functools import cache
from typing import Any, TypeVar, get_type_hints

from clusterwright.api.codec import without_metadata
from clusterwright.api.copying import replace
from clusterwright.api.meta import Condition, Object, V1Beta1Condition
from clusterwright.conditions import set_condition, v1beta1
from clusterwright.conditions.limits import fit, fit_v1beta1
from clusterwright.runtime.models import status_type
from clusterwright.tables import Decision, Outcome, Table

CHECK_LOGS = "Please check controller logs for errors"
"""The message about internal errors in all conditions."""

T = TypeVar("T", bound=Object)


def decided(obj: T, table: Table[Any], decision: Decision, now: datetime) -> T:
    """Return the object with the condition of the table's name, and its v1beta1 twin, as decided."""
    if table.v1beta1:
        return with_v1beta1_outcome(obj, table.v1beta1, decision.outcome, now)
    obj = with_outcome(obj, table.name, decision.outcome, now)
    return with_v1beta1_outcome(obj, table.name, decision.v1beta1, now)


def with_outcome(obj: T, type: str, outcome: Outcome | None, now: datetime) -> T:
    """Return the object with the condition; None leaves it as it is."""
    if outcome is None:
        return obj
    condition = Condition(
        type=type,
        status=outcome.status,
        reason=outcome.reason,
        message=outcome.message,
        last_transition_time=outcome.last_transition_time,
    )
    return with_condition(obj, condition, now)


def with_condition(obj: T, condition: Condition, now: datetime) -> T:
    """Return the object with the condition, for its generation; the very same object if nothing changes."""
    status: Any = _status(obj)
    conditions = set_condition(status.conditions, fit(condition), generation=obj.metadata.generation, now=now)
    return obj if conditions is status.conditions else _with_status(obj, replace(status, conditions=conditions))


def with_v1beta1_outcome(obj: T, type: str, outcome: Outcome | None, now: datetime) -> T:
    """Return the object with the deprecated condition; None leaves it as it is."""
    if outcome is None:
        return obj
    condition = V1Beta1Condition(
        type=type,
        status=outcome.status,
        severity=outcome.severity,
        reason=outcome.reason,
        message=outcome.message,
        last_transition_time=outcome.last_transition_time,
    )
    return with_v1beta1(obj, condition, now)


def with_v1beta1(obj: T, condition: V1Beta1Condition | None, now: datetime) -> T:
    """Return the object with the deprecated condition; None leaves it as it is."""
    present = v1beta1_conditions(obj)
    if condition is None:
        return obj
    conditions = v1beta1.set_condition(present, fit_v1beta1(condition), now=now)
    return obj if conditions == present else with_v1beta1_status(obj, conditions=conditions)


def with_v1beta1_status(obj: T, **changes: Any) -> T:
    """Return the object with these fields of `status.deprecated.v1beta1`."""
    status: Any = _status(obj)
    model: Any = type(status)
    deprecated_type, v1beta1_type = _deprecated_types(model)
    deprecated = status.deprecated or deprecated_type()
    old = deprecated.v1beta1 or v1beta1_type()
    return _with_status(obj, replace(status, deprecated=replace(deprecated, v1beta1=replace(old, **changes))))


def v1beta1_conditions(obj: Object) -> tuple[V1Beta1Condition, ...]:
    """Return the deprecated conditions."""
    deprecated = getattr(getattr(obj, "status", None), "deprecated", None)
    old = deprecated.v1beta1 if deprecated is not None else None
    return tuple(old.conditions) if old is not None else ()


def _status(obj: Object) -> Any:
    return getattr(obj, "status", None) or status_type(type(obj))()


def _with_status(obj: T, status: Any) -> T:
    changes: dict[str, Any] = {"status": status}
    return replace(obj, **changes)


@cache
def _deprecated_types(status: Any) -> tuple[Any, Any]:
    """Return the models of `status.deprecated` and of `v1beta1` in it."""
    deprecated = without_metadata(get_type_hints(status, include_extras=True)["deprecated"])
    return deprecated, without_metadata(get_type_hints(deprecated, include_extras=True)["v1beta1"])
