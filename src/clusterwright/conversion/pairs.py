"""Two types of the same object, and the conversion in both directions.

Fields of the same name are converted by their types. Fields with another name or place, or with a decision, are a `Row`. `up` converts to
the hub and may read the same place in the annotation; `down` converts from it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from clusterwright.api.copying import replace
from clusterwright.conversion import values
from clusterwright.conversion.types import Field, Go, Leaf, List, Map, Struct, Type
from clusterwright.conversion.values import Unreadable


@dataclass(frozen=True, slots=True)
class Context:
    """The facts that a conversion needs besides the object."""

    namespace: str
    api_version: Callable[[str, str], str]
    """Returns the `apiVersion` for group and kind of a provider object; raises NoVersion."""


UpHook = Callable[[Go, Go, "Go | None", Context], None]
"""A function of (spoke, hub, restored, context) that changes the hub after everything else was converted."""
DownHook = Callable[[Go, Go, Context], None]
"""A function of (hub, spoke, context) that changes the spoke after everything else was converted."""
Match = Callable[[Sequence[Any], Sequence[Any]], Sequence["Go | None"]]
"""Returns, for each item of a list, its counterpart in the annotation, if any."""


@dataclass(frozen=True, slots=True)
class Codec:
    """Two functions for a shape that differs. Neither is called for an absent value."""

    up: Callable[[Any, Context], Any]
    down: Callable[[Any, Context], Any]


@dataclass(frozen=True, slots=True)
class Row:
    """An old field, its place in the hub, and the conversion in both directions. Paths are dotted."""

    spoke: str
    hub: str = ""
    """The path in the hub; empty: the same path."""
    how: Codec | None = None
    rows: tuple[Row, ...] = ()
    """The rows of the struct, or of the items, at that path."""
    match: Match | None = None
    """The function that finds the items of a list in the annotation."""
    intent: bool = False
    """Whether zero is absent in the hub, unless the annotation has a zero (CV-10, CV-11)."""
    plain: bool = False
    """Whether a zero is also set in the hub (CV-12)."""
    rebuilt: bool = False
    """Whether an empty list becomes absent (CV-3)."""
    lost: bool = False
    """Whether the field exists only on one side and is never converted; `hub` alone names a field of the hub."""
    up: UpHook | None = None
    down: DownHook | None = None

    @property
    def target(self) -> str:
        """The path in the hub."""
        return self.hub or self.spoke


def by(*keys: str) -> Match:
    """Return the annotation's item with the same values of `keys`: at the same position if they match, else the first."""

    def key(item: Go) -> tuple[Any, ...]:
        return tuple(item.get(name, "") for name in keys)

    def match(items: Sequence[Any], restored: Sequence[Any]) -> Sequence[Go | None]:
        first: dict[tuple[Any, ...], Go] = {}
        for item in restored:
            first.setdefault(key(item), item)
        there = by_position(items, restored)
        return [one if one is not None and key(one) == key(item) else first.get(key(item)) for item, one in zip(items, there, strict=True)]

    return match


def by_position(items: Sequence[Any], restored: Sequence[Any]) -> Sequence[Go | None]:
    """Return the item at the same position, if any."""
    return [restored[position] if position < len(restored) else None for position in range(len(items))]


def by_equal_position(items: Sequence[Any], restored: Sequence[Any]) -> Sequence[Go | None]:
    """Return the item at the same position, if both lists have the same length."""
    return list(restored) if len(items) == len(restored) else [None] * len(items)


_Up = Callable[[Any, Any, Context], Any]
_Down = Callable[[Any, Context], Any]


@dataclass(slots=True)
class _Step:
    spoke: tuple[str, ...]
    hub: tuple[str, ...]
    spoke_field: Field
    hub_field: Field
    up: _Up | None
    down: _Down | None
    nested: Pair | None
    row: Row
    eager: bool = False

    def __post_init__(self) -> None:
        self.simple = len(self.spoke) == 1 == len(self.hub)
        self.kept_in_hub, self.kept_in_spoke = self.hub_field.kept, self.spoke_field.kept
        self.special = self.row.intent or self.row.plain

    simple: bool = False
    """Whether both are direct fields of the structs."""
    kept_in_hub: bool = False
    kept_in_spoke: bool = False
    special: bool = False


@dataclass(slots=True, eq=False)
class Pair:
    """A struct of an old version and its counterpart in the hub."""

    spoke: Struct
    hub: Struct
    rows: tuple[Row, ...] = ()
    up_hooks: tuple[UpHook, ...] = ()
    down_hooks: tuple[DownHook, ...] = ()
    _steps: list[_Step] | None = None
    _eager: bool | None = None
    _memo: dict[tuple[int, int, tuple[Row, ...]], Pair] = field(default_factory=dict)

    @property
    def steps(self) -> list[_Step]:
        """The steps, same-named fields first, because moved values come after them."""
        if self._steps is None:
            self._steps = list(self._compile())
            for step in self._steps:
                step.eager = not step.spoke_field.optional and step.nested is not None and step.nested.eager
        return self._steps

    @property
    def eager(self) -> bool:
        """Whether an empty spoke may set a value in the hub."""
        if self._eager is None:
            self._eager = False  # for a type inside itself
            self._eager = bool(self.up_hooks) or any(step.row.intent or step.row.plain or step.eager for step in self.steps)
        return self._eager

    # ------------------------------------------------------------------------------------ running

    def to_hub(self, source: Go, restored: Go | None, context: Context) -> Go:
        """Return the hub's form."""
        found: Go = {}
        for step in self._steps or self.steps:
            value = source.get(step.spoke[0]) if step.simple else _at(source, step.spoke)
            if value is None or step.special:
                if step.special:
                    _decide(step, value, found, restored, context)
                    continue
                if not step.eager:
                    continue
                value = {}
            if step.up is not None:
                try:
                    value = step.up(value, None if restored is None else _at(restored, step.hub), context)
                except Unreadable as error:
                    raise error.under(".".join(step.spoke)) from None
            if value or (step.kept_in_hub and value is not None):
                if step.simple:
                    found[step.hub[0]] = value
                else:
                    _put(found, step.hub, value)
        for hook in self.up_hooks:
            hook(source, found, restored, context)
        return found

    def to_spoke(self, source: Go, context: Context) -> Go:
        """Return the old form."""
        found: Go = {}
        for step in self._steps or self.steps:
            value = source.get(step.hub[0]) if step.simple else _at(source, step.hub)
            if value is None:
                continue
            if step.down is not None:
                value = step.down(value, context)
            if value or (step.kept_in_spoke and value is not None):
                if step.simple:
                    found[step.spoke[0]] = value
                else:
                    _put(found, step.spoke, value)
        for hook in self.down_hooks:
            hook(source, found, context)
        return found

    # ---------------------------------------------------------------------------------- compiling

    def _compile(self) -> Sequence[_Step]:
        rows = _gathered(self.rows)
        old = {row.spoke for row in rows}
        new = {row.target for row in rows}
        same = [name for name in self.spoke.fields if name in self.hub.fields and name not in old and name not in new]
        moved = [row for row in rows if not row.lost]
        order = [Row(name) for name in same] + sorted(moved, key=lambda row: row.target.count("."))
        return [self._step(row) for row in order]

    def _step(self, row: Row) -> _Step:
        spoke, hub = tuple(row.spoke.split(".")), tuple(row.target.split("."))
        old, new = _field(self.spoke, spoke), _field(self.hub, hub)
        if row.how is not None:
            up, down = row.how.up, row.how.down
            return _Step(spoke, hub, old, new, lambda value, _, context: up(value, context), down, None, row)
        nested: Pair | None = None
        if isinstance(old.type, Struct) and isinstance(new.type, Struct):
            nested = self._pair(old.type, new.type, row)
        to_hub, to_spoke = self._between(old.type, new.type, row)
        return _Step(spoke, hub, old, new, to_hub, to_spoke, nested, row)

    def _pair(self, spoke: Struct, hub: Struct, row: Row) -> Pair:
        key = (id(spoke), id(hub), row.rows)
        found = self._memo.get(key)
        if found is None:
            hooks = ((row.up,) if row.up else (), (row.down,) if row.down else ())
            found = self._memo[key] = Pair(spoke, hub, row.rows, *hooks, _memo=self._memo)
        return found

    def _between(self, old: Type, new: Type, row: Row) -> tuple[_Up | None, _Down | None]:
        match old, new:
            case Struct(), Struct():
                pair = self._pair(old, new, row)
                return pair.to_hub, pair.to_spoke
            case List(), List():
                return _lists(*self._between(old.item, new.item, row), old, new, row)
            case Map(), Map():
                return _maps(*self._between(old.value, new.value, row))
            case Leaf(kind="duration"), Leaf(kind="int"):
                return (lambda value, _, __: values.seconds(value)), (lambda value, _: value * values.SECOND)
            case Leaf(kind="int"), Leaf(kind="int") if old is not new:
                return (lambda value, _, __: new.parse(value)), None
            case Leaf(), Leaf() if old.kind == new.kind:
                return None, None
        raise TypeError(f"no way from {row.spoke} to {row.target}")


def _decide(step: _Step, value: Any, found: Go, restored: Go | None, context: Context) -> None:
    """Decide, for a field that is a pointer only in the hub, whether to write a zero."""
    if value:
        value = value if step.up is None else step.up(value, None, context)
    elif step.row.plain:
        value = step.hub_field.type.zero()
    else:
        value = None if restored is None else _at(restored, step.hub)
        if value is None or value:  # only what was zero on purpose
            return
    _put(found, step.hub, value)


def _lists(up: _Up | None, down: _Down | None, old: List, new: List, row: Row) -> tuple[_Up | None, _Down | None]:
    if up is None and down is None and not row.rebuilt and old.pointers == new.pointers:
        return None, None
    find = row.match

    def to_hub(items: list[Any], restored: Any, context: Context) -> Any:
        if row.rebuilt and not items:
            return None
        found = find(items, restored) if find is not None and restored else [None] * len(items)
        given = [new.item.zero() if item is None and not new.pointers else item for item in items]
        return [item if up is None else up(item, one, context) for item, one in zip(given, found, strict=True)]

    def to_spoke(items: list[Any], context: Context) -> Any:
        if row.rebuilt and not items:
            return None
        return [None if old.pointers and not item else item if down is None else down(item, context) for item in items]

    return to_hub, to_spoke


def _maps(up: _Up | None, down: _Down | None) -> tuple[_Up | None, _Down | None]:
    if up is None or down is None:
        return None, None

    def to_hub(items: Mapping[str, Any], restored: Any, context: Context) -> Any:
        known = restored or {}
        return {key: up(item, known.get(key), context) for key, item in items.items()}

    return to_hub, (lambda items, context: {key: down(item, context) for key, item in items.items()})


def _gathered(rows: tuple[Row, ...]) -> list[Row]:
    """Return rows where longer paths, equal on both sides, became rows of the struct on the way."""
    found: dict[tuple[str, str], Row] = {}
    for row in rows:
        head, _, rest = row.spoke.partition(".")
        if rest and not row.lost and row.target.partition(".")[0] == head and row.target != head:
            row = Row(head, rows=(replace(row, spoke=rest, hub=row.target.partition(".")[2]),))
        key = (row.spoke, row.target)
        if key in found:
            before = found[key]
            row = replace(before, rows=before.rows + row.rows, up=before.up or row.up, down=before.down or row.down)
        found[key] = row
    return list(found.values())


def _field(struct: Struct, path: tuple[str, ...]) -> Field:
    found: Field | None = None
    at: Type = struct
    for step in path:
        if not isinstance(at, Struct) or step not in at.fields:
            raise TypeError(f"no field {'.'.join(path)}")
        found = at.fields[step]
        at = found.type
    assert found is not None
    return found


def _at(value: Any, path: tuple[str, ...]) -> Any:
    for step in path:
        if value is None:
            return None
        value = value.get(step)
    return value


def _put(target: Go, path: tuple[str, ...], value: Any) -> None:
    for step in path[:-1]:
        target = target.setdefault(step, {})
    target[path[-1]] = value
