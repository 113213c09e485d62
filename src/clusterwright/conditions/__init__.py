"""The algebra of conditions: get, set, mirror, aggregate, summarize, merge, three-way patch. Pure.

Conditions are tuples of `api.meta.Condition`; every function returns a new tuple or a new condition. An object with conditions is a
`Reporter` (kind, name, conditions); `reporter(obj)` makes one of a typed object or an `Unstructured`. The usual calls:

    conditions = set_condition(conditions, Condition(type="Ready", ...), generation=cluster.metadata.generation, now=now)
    is_true(conditions, "Available")
    mirror(foreign.conditions_of(infra), "Ready", target="InfrastructureReady", fallback=Fallback("False", "NotReady", "..."))
    aggregate([reporter(m) for m in machines], "Ready", strategy=Strategy(reasons=Reasons("NotReady", "ReadyUnknown", "Ready")))
    summary(reporter(machine), ["Deleting", "InfrastructureReady"], target="Ready", negative=["Deleting"])

The deprecated v1beta1 conditions, with severities, have the same verbs in `conditions.v1beta1`.
"""

from clusterwright.conditions.combine import Fallback, NothingToMerge, aggregate, mirror, summary
from clusterwright.conditions.foreign import InvalidConditions, conditions_of, parse_conditions
from clusterwright.conditions.lists import (
    delete_condition,
    get,
    has,
    is_false,
    is_true,
    is_unknown,
    message_of,
    reason_of,
    set_condition,
    sort_conditions,
)
from clusterwright.conditions.merge import (
    Named,
    Priority,
    Reasons,
    Reporter,
    Strategy,
    default_priority,
    group_control_plane_components,
    merge,
    reporter,
)
from clusterwright.conditions.patching import ConditionConflict, patch_conditions
from clusterwright.conditions.words import names_with_limit, plural

__all__ = [
    "ConditionConflict",
    "Fallback",
    "InvalidConditions",
    "Named",
    "NothingToMerge",
    "Priority",
    "Reasons",
    "Reporter",
    "Strategy",
    "aggregate",
    "conditions_of",
    "default_priority",
    "delete_condition",
    "get",
    "group_control_plane_components",
    "has",
    "is_false",
    "is_true",
    "is_unknown",
    "merge",
    "message_of",
    "mirror",
    "names_with_limit",
    "parse_conditions",
    "patch_conditions",
    "plural",
    "reason_of",
    "reporter",
    "set_condition",
    "sort_conditions",
    "summary",
]
