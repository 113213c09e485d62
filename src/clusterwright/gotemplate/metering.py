"""Measure an execution in steps of one to two microseconds. Every function charges its work before it does it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from clusterwright.gotemplate.values import TemplateError, unbox

MAX_STEPS: Final = 12_000
"""The highest cost of one execution: about 20 milliseconds."""
_CHARACTERS: Final = 64
"""Characters that one step copies or looks through."""
_ELEMENTS: Final = 8
"""Elements of a list, or entries of a map, that one step copies."""

Charge = Callable[[int], None]
"""Takes steps from what may be spent; raises TemplateError where there are not enough left."""


class Budget:
    """The steps that several executions may spend together."""

    def __init__(self, steps: int) -> None:
        self.left = steps

    def charge(self, steps: int) -> None:
        """Take steps from the budget; raises TemplateError if it has fewer."""
        self.left -= steps
        if self.left < 0:
            raise TemplateError("the templates take too many steps together")


class Meter:
    """The steps of one execution, which also come out of a common budget."""

    def __init__(self, budget: Budget | None = None) -> None:
        self.steps = 0
        self._limit = MAX_STEPS if budget is None else min(MAX_STEPS, budget.left)

    def charge(self, steps: int) -> None:
        """Count steps; raises TemplateError if they become too many."""
        self.steps += steps
        if self.steps > self._limit:
            raise TemplateError("the template takes too many steps")

    def charge_deeply(self, values: list[Any], weight: int) -> None:
        """Charge for work on values and on everything in them."""
        self.charge(weight * deep_steps(values, (self._limit - self.steps) // weight))


def free(steps: int) -> None:
    """Charge nothing, for callers that no template drives."""
    del steps


def flat_steps(values: list[Any], weight: int) -> int:
    """Return what it costs to copy or look through values, but not what is in their elements."""
    size = 0
    for value in values:
        value = unbox(value)
        if isinstance(value, str):
            size += len(value)
        elif isinstance(value, list | tuple | Mapping):
            size += len(value) * (_CHARACTERS // _ELEMENTS)
    return size * weight // _CHARACTERS


def deep_steps(values: list[Any], limit: int) -> int:
    """Return what it costs to look at values and at everything in them, or more than the limit if it is more.

    A list that holds another one twice counts it twice, because printing it does so, too.
    """
    steps, waiting = 0, list(values)
    while waiting and steps + len(waiting) <= limit:
        value = unbox(waiting.pop())
        steps += 1
        if isinstance(value, str):
            steps += len(value) // _CHARACTERS
        elif isinstance(value, Mapping):
            waiting.extend(value)
            waiting.extend(value.values())
        elif isinstance(value, list | tuple):
            waiting.extend(value)
    return steps + len(waiting)
