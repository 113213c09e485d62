"""What holds for every controller that is registered."""

from __future__ import annotations

from pathlib import Path

import pytest

from clusterwright import controllers
from clusterwright.controllers.kit import registry
from clusterwright.runtime.mapping import itself


@pytest.mark.parametrize("entry", registry.ENTRIES, ids=lambda e: e.name)
def test_an_entry_names_what_its_package_builds(entry: registry.Entry) -> None:
    definition = registry.definition(entry)

    assert (definition.name, definition.kind.__name__) == (entry.name, entry.kind)


@pytest.mark.parametrize("entry", registry.ENTRIES, ids=lambda e: e.name)
def test_no_controller_watches_its_own_kind_twice(entry: registry.Entry) -> None:
    """A controller is woken by changes of its kind anyway: a watch of its own would run every pass twice."""
    definition = registry.definition(entry)

    assert [w for w in definition.watches if w.kind is definition.kind and w.map is itself] == []


def test_names_of_controllers_are_unique() -> None:
    assert len({e.name for e in registry.ENTRIES}) == len(registry.ENTRIES)


def test_the_first_controller_of_a_kind_is_meant_where_none_is_named() -> None:
    assert registry.find("Cluster") == registry.Entry("cluster", "Cluster", "cluster")
    assert registry.find("Cluster", "cluster") == registry.find("Cluster")
    assert registry.find("Cluster", "machine") is None
    assert registry.find("Pod") is None


def test_no_controller_has_a_pass_of_its_own() -> None:
    package = Path(controllers.__file__).parent
    own = [p.relative_to(package).as_posix() for p in package.rglob("*.py") if "async def reconcile(self, " in p.read_text()]

    assert own == ["kit/reconciler.py"]
