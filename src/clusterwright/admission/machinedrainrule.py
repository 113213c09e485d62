"""Admission of MachineDrainRule. Its selectors are checked again before a Machine is drained."""

from __future__ import annotations

from typing import Any, Final

from clusterwright.admission.hook import Hook
from clusterwright.admission.rule import Review, Rule, at
from clusterwright.admission.selectors import valid_selector
from clusterwright.admission.sets import INVALID
from clusterwright.api.core import MachineDrainRule

_UNORDERED: Final = ("Skip", "WaitCompleted")


def _order_of_nothing(review: Review, value: Any) -> bool:
    return value is not None and at(review.new, "spec", "drain", "behavior") in _UNORDERED


MACHINE_DRAIN_RULE: Final = Hook(
    model=MachineDrainRule,
    rules=(
        Rule("DR-1", INVALID, "spec.drain.order", _order_of_nothing, 'order must not be set if drain behavior is "Skip" or "WaitCompleted"'),
        valid_selector("DR-2", "spec.machines[].selector"),
        valid_selector("DR-3", "spec.machines[].clusterSelector"),
        valid_selector("DR-4", "spec.pods[].selector"),
        valid_selector("DR-5", "spec.pods[].namespaceSelector"),
    ),
)  # fmt: skip
