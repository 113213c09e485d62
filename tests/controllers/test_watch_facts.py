"""A controller starts a pass when what a pass reads has changed: watches compare the types that snapshots hold."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from functools import cache
from typing import Any, get_args, get_origin, get_type_hints

import pytest

from clusterwright.api.meta import GroupVersionKind, Object
from clusterwright.controllers import inmemory, ipam
from clusterwright.controllers.inmemory.build import declared
from clusterwright.controllers.ipam.build import controllers as ipam_controllers
from clusterwright.controllers.kit.reconciler import Kind
from clusterwright.controllers.kit.registry import ENTRIES, definition
from clusterwright.controllers.wiring import ControllerDefinition
from clusterwright.runtime.predicates import Changed
from clusterwright.runtime.reconcile import Watch

CONTROLLERS = [
    *((f"clusterwright.controllers.{entry.package.partition('.')[0]}", definition(entry)) for entry in ENTRIES),
    *((inmemory.__name__, one) for one in declared()),
    *((ipam.__name__, one) for one in ipam_controllers()),
]
WATCHES = [
    pytest.param(package, watch, id=f"{controller.name}-{number}-{getattr(watch.kind, '__name__', watch.kind)}")
    for package, controller in CONTROLLERS
    for number, watch in enumerate(controller.watches)
]


def subclasses(kind: type[Any]) -> Iterator[type[Any]]:
    """Yield the classes that derive from a class."""
    for one in kind.__subclasses__():
        yield one
        yield from subclasses(one)


def parts(annotation: Any) -> Iterator[type[Any]]:
    """Yield the classes that an annotation names, and those that their fields hold, as far as they are dataclasses."""
    origin = get_origin(annotation)
    if origin is not None:
        yield from (found for one in (origin, *get_args(annotation)) for found in parts(one))
    elif isinstance(annotation, type):
        yield annotation
        if dataclasses.is_dataclass(annotation):
            for hint in get_type_hints(annotation).values():
                yield from parts(hint)


@cache
def held(package: str) -> frozenset[type[Any]]:
    """Return the types that the passes of a package read: those of their owners and snapshots."""
    kinds = [one for one in subclasses(Kind) if one.__module__.startswith(f"{package}.")]
    assert kinds, package
    bases = [base for one in kinds for base in getattr(one, "__orig_bases__", ()) if get_origin(base) is Kind]
    return frozenset(part for base in bases for _, *read in [get_args(base)] for one in read for part in parts(one))


def compared(watch: Watch) -> Any:
    """Return the type of the facts that a watch compares; None: it compares none."""
    return get_type_hints(watch.when.facts).get("return") if isinstance(watch.when, Changed) else None


def explained(package: str, watch: Watch) -> bool:
    """Return whether the pass holds what the watch compares, or the whole object, or the watch says what else a change means."""
    facts, types = compared(watch), held(package)
    assert not isinstance(watch.kind, GroupVersionKind)
    if facts is not None and not watch.why:
        return facts in types
    return bool(watch.why) or any(one in types for one in watch.kind.__mro__ if one is not Object)


@pytest.mark.parametrize(("package", "watch"), WATCHES)
def test_a_watch_compares_what_the_snapshot_holds(package: str, watch: Watch) -> None:
    assert explained(package, watch), compared(watch)


@pytest.mark.parametrize(("package", "watch"), WATCHES)
def test_a_watch_with_facts_holds_nothing_more_of_the_object(package: str, watch: Watch) -> None:
    if compared(watch) is not None and not watch.why:
        assert watch.kind not in held(package)


def test_all_controllers_are_looked_at() -> None:
    assert all(isinstance(controller, ControllerDefinition) for _, controller in CONTROLLERS)
    assert len(WATCHES) > 40


def test_facts_that_no_snapshot_holds_are_found() -> None:
    @dataclasses.dataclass(frozen=True)
    class Other:
        name: str

        @staticmethod
        def of(obj: Any) -> Other:
            return Other(obj.metadata.name)

    Other.of.__annotations__["return"] = Other
    package, controller = CONTROLLERS[0]
    watch = dataclasses.replace(controller.watches[0], when=Changed(Other.of))

    assert explained(package, controller.watches[0])
    assert not explained(package, watch)
    assert explained(package, dataclasses.replace(watch, why="a reason"))
