"""Decide how many Machines may be unhealthy before remediation stops: when many fail at once, the cause is elsewhere. Pure."""

from __future__ import annotations

import re
from dataclasses import dataclass

from clusterwright.api.core import MachineHealthCheck
from clusterwright.controllers.intstr import scaled

_RANGE = re.compile(r"\[([0-9]+)-([0-9]+)\]")


class InvalidLimit(ValueError):
    """The limit cannot be parsed; nothing is remediated without a valid limit."""


@dataclass(frozen=True, slots=True)
class Limit:
    """Remediation is allowed while the number of unhealthy Machines is at least `least` and at most `most`.

    `text` is the limit as written; `is_range`: it was written as a range.
    """

    least: int = 0
    most: int = 0
    text: str = ""
    is_range: bool = False

    def allows(self, not_healthy: int) -> bool:
        """Return whether Machines may be remediated now."""
        return self.least <= not_healthy <= self.most

    def left(self, not_healthy: int) -> int:
        """Return how many more may fail before remediation stops."""
        return self.most - not_healthy if self.allows(not_healthy) else 0


def limit_of(check: MachineHealthCheck, expected: int) -> Limit:
    """Return the limit for a number of Machines; raises InvalidLimit.

    A percentage is rounded down; without a limit everything is allowed.
    """
    trigger = check.spec.remediation.trigger_if if check.spec.remediation else None
    if trigger is None:
        return Limit(most=expected)
    if trigger.unhealthy_in_range:
        return _range(trigger.unhealthy_in_range)
    value = trigger.unhealthy_less_than_or_equal_to
    if value is None:
        return Limit(most=expected)
    try:
        return Limit(most=scaled(value, expected, round_up=False), text=str(value))
    except ValueError as error:
        raise InvalidLimit(f"spec.remediation.triggerIf.unhealthyLessThanOrEqualTo: {error}") from error


def _range(text: str) -> Limit:
    match = _RANGE.fullmatch(text)
    if match is None:
        raise InvalidLimit(f"spec.remediation.triggerIf.unhealthyInRange must look like [1-3], not {text!r}")
    least, most = int(match[1]), int(match[2])
    if least > most:
        raise InvalidLimit(f"spec.remediation.triggerIf.unhealthyInRange {text}: the first number is greater than the second")
    return Limit(least, most, text, is_range=True)
