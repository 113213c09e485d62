"""Measure an execution in steps of one to two microseconds. Every function charges its work before it does it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from clusterwright.gotemplate.values import TemplateError, unbox

MAX_STEPS: Final = 12_000
"""The highest cost of one execution: about 20 milliseconds."""
_CHARACTERS: Final = 64
"""How many characters one step copies or reads."""
_ELEMENTS: Final = 8
"""How many list elements, or map entries, one step copies."""

Charge = Callable[[int], None]
"""Subtracts steps from a budget; raises TemplateError if too few are left."""


class Budget:
    """The steps that several executions may use together."""

    def __init__(self, steps: int) -> None:
        self.left = steps

    def charge(self, steps: int) -> None:
        """Subtract steps from the budget; raises TemplateError if it has too few."""
        self.left -= steps
        if self.left < 0:
            raise TemplateError("the templates take too many steps together")


class Meter:
    """The steps of one execution, which are also subtracted from a shared budget."""

    def __init__(self, budget: Budget | None = None) -> None:
        self.steps = 0
        self._limit = MAX_STEPS if budget is None else min(MAX_STEPS, budget.left)

    def charge(self, steps: int) -> None:
        """Count steps; raises TemplateError above the limit."""
        self.steps += steps
        if self.steps > self._limit:
            raise TemplateError("the template takes too many steps")

    def charge_deeply(self, values: list[Any], weight: int) -> None:
        """Charge for work on values and on everything in them."""
        self.charge(weight * deep_steps(values, (self._limit - self.steps) // weight))


def free(steps: int) -> None:
    """Charge nothing, for callers outside of templates."""
    del steps


def flat_steps(values: list[Any], weight: int) -> int:
    """Return the cost of copying or reading values, without the content of their elements."""
    size = 0
    for value in values:
        value = unbox(value)
        if isinstance(value, str):
            size += len(value)
        elif isinstance(value, list | tuple | Mapping):
            size += len(value) * (_CHARACTERS // _ELEMENTS)
    return size * weight // _CHARACTERS


def deep_steps(values: list[Any], limit: int) -> int:
    """Return the cost of reading values and everything in them, or some number above the limit.

    A list that holds another one twice counts it twice, because printing does so, too.
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
