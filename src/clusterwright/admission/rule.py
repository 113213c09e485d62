"""A rule as a row: id, kind of error, field, guard, message; and a table of rules for one write. Pure.

A row reads a field, written as a path: `spec.taints`, `spec.files[].path` (each item, by index),
`spec.workers.machineDeployments[class].naming` (each item, named by its `class`). Its guard is asked for every value found
there, None where there is nothing, and answers whether the rule is broken, or a `Fault` for each way in which it is.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Final, Literal

from clusterwright.admission.showing import as_written
from clusterwright.api.meta import Json, Object
from clusterwright.apiserver.status import OMITTED, ErrorType, FieldError, Verbatim

CREATE: Final = frozenset({"CREATE"})
UPDATE: Final = frozenset({"UPDATE"})
WRITE: Final = CREATE | UPDATE
DELETE: Final = frozenset({"DELETE"})

_STEP: Final = re.compile(r"([^.\[]+)|\[([^\]]*)\]")
_SHOWN: Final = object()

Guard = Callable[["Review", Any], "bool | Iterable[Fault]"]
Step = str | tuple[str]
"""A key, or (in a tuple) the field that names list items; empty: their index."""


@dataclass(frozen=True, kw_only=True)
class Review:
    """One write, as input of the rules. `facts` are those read beforehand, of the type that the kind's rules expect."""

    operation: Literal["CREATE", "UPDATE", "DELETE"]
    new: Json
    """The new object; empty on delete."""
    old: Json | None = None
    gates: Mapping[str, bool] = field(default_factory=dict)
    dry_run: bool = False
    facts: Any = None
    model: type[Object] | None = None
    namespace: str = ""
    name: str = ""

    def enabled(self, gate: str) -> bool:
        """Return whether a feature gate is on."""
        return self.gates.get(gate, False)

    @cached_property
    def annotations(self) -> Mapping[str, str]:
        """The annotations of the new object."""
        return at(self.new, "metadata", "annotations") or {}


class Fault:
    """One violation of a rule: the value, further keys of the path, and words of the message."""

    __slots__ = ("at", "value", "words")

    def __init__(self, value: Any = _SHOWN, at: tuple[object, ...] = (), **words: object) -> None:
        self.value = value
        self.at = at
        self.words = words


class Rule:
    """A row. `ids` are separated by spaces: the kind's own, then that of the shared rule.

    `path` is the reported field, if it differs from the one that is read; each `{}` takes a key: those of the list items on the way, then
    the fault's own. `when` selects the writes to which the row applies. `stop` ends the table: later rows would only repeat the error.
    """

    __slots__ = ("field", "guard", "ids", "message", "on", "path", "steps", "stop", "type", "when")

    def __init__(
        self,
        ids: str,
        type: ErrorType,
        field: str,
        guard: Guard,
        message: str,
        *,
        on: frozenset[str] = WRITE,
        path: str | None = None,
        stop: bool = False,
        when: Callable[[Review], bool] | None = None,
    ) -> None:
        self.ids = tuple(ids.split())
        self.type = type
        self.field = field
        self.guard = guard
        self.message = message
        self.on = on
        self.path = re.sub(r"\[[^\]]*\]", "[{}]", field) if path is None else path
        self.stop = stop
        self.when = when
        self.steps = steps(field)

    def __repr__(self) -> str:
        return f"Rule({' '.join(self.ids)}, {self.path})"

    def errors(self, review: Review) -> Iterator[FieldError]:
        """Yield the write's violations of this rule."""
        for keys, value in walk(review.new, self.steps):
            found = self.guard(review, value)
            if found is False:
                continue
            for fault in (Fault(),) if found is True else found:
                yield self._error(review, keys, value, fault)

    def _error(self, review: Review, keys: tuple[object, ...], value: Any, fault: Fault) -> FieldError:
        path = self.path.format(*keys, *fault.at) if "{" in self.path else self.path
        detail = self.message.format(**fault.words) if fault.words else self.message
        if self.type in _WITHOUT_VALUE:
            return FieldError(self.type, path, OMITTED, detail)
        bad = value if fault.value is _SHOWN else fault.value
        if fault.value is _SHOWN and (bad is None or isinstance(bad, (dict, list))) and review.model is not None:
            bad = Verbatim(as_written(review.new, review.model, self.steps, keys))
        return FieldError(self.type, path, bad, detail)


class Delegated(Rule):
    """Rows in another module: a function that returns all violated ones."""

    __slots__ = ("_errors",)

    def __init__(self, ids: str, field: str, errors: Callable[[Review], Iterable[FieldError]], **options: Any) -> None:
        super().__init__(ids, ErrorType.INVALID, field, lambda *_: False, "", **options)
        self._errors = errors

    def errors(self, review: Review) -> Iterator[FieldError]:
        """Yield the write's violations of these rules."""
        yield from self._errors(review)


_WITHOUT_VALUE: Final = frozenset({ErrorType.REQUIRED, ErrorType.FORBIDDEN, ErrorType.TOO_LONG, ErrorType.INTERNAL})


def judge(rules: Iterable[Rule], review: Review) -> list[FieldError]:
    """Return all violations of a table, in its order."""
    errors: list[FieldError] = []
    for rule in rules:
        if review.operation not in rule.on or (rule.when is not None and not rule.when(review)):
            continue
        before = len(errors)
        errors.extend(rule.errors(review))
        if rule.stop and len(errors) > before:
            break
    return errors


class Default:
    """A row of defaulting: ids, the field that it sets, and how. `fill` changes only the object that it receives."""

    __slots__ = ("field", "fill", "ids")

    def __init__(self, ids: str, field: str, fill: Callable[[Json, Review], None]) -> None:
        self.ids = tuple(ids.split())
        self.field = field
        self.fill = fill

    def __repr__(self) -> str:
        return f"Default({' '.join(self.ids)}, {self.field})"


class Refused(Exception):
    """Defaulting cannot continue; the text says why. The answer is a bare denial."""


# ----------------------------------------------------------------------------------------- places in objects


def at(value: Any, *path: str) -> Any:
    """Return the value at these keys; None if there is none."""
    for step in path:
        value = value.get(step) if isinstance(value, Mapping) else None
    return value


def items(value: Any, *path: str) -> list[Json]:
    """Return the objects in the list at these keys."""
    found = at(value, *path)
    return [item for item in found if isinstance(item, dict)] if isinstance(found, list) else []


def steps(path: str) -> tuple[Step, ...]:
    """Return the steps of a path."""
    return tuple(key or (name,) for key, name in _STEP.findall(path))


def walk(value: Any, path: tuple[Step, ...], keys: tuple[object, ...] = ()) -> Iterator[tuple[tuple[object, ...], Any]]:
    """Yield every value at a path, with the keys of the list items on the way."""
    for position, step in enumerate(path):
        if isinstance(step, str):
            value = value.get(step) if isinstance(value, dict) else None
            continue
        for index, item in enumerate(value) if isinstance(value, list) else ():
            key = index if not step[0] else at(item, step[0]) or ""
            yield from walk(item, path[position + 1 :], (*keys, key))
        return
    yield keys, value
