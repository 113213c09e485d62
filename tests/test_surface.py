"""The public names. A change of this file is a promise made or broken: it needs a line in the changelog."""

from __future__ import annotations

import inspect
import subprocess
import sys
import types

import pytest

import clusterwright

NAMES = {
    "Bundle", "Manager", "RestClient", "Result", "api", "build_manager", "conditions", "crds", "decide", "explain", "parse", "plan", "provider",
    "tables", "testing",
}  # fmt: skip
TESTING = {
    "NAMESPACE", "START", "Overdue", "Plane", "Stalled", "VirtualLoop", "judge", "plane", "run_virtual", "samples", "virtual_plane", "with_plane",
}  # fmt: skip


PROVIDER = {
    "BootstrapData", "Gone", "InfraCluster", "InfraClusters", "InfraMachine", "InfraMachineSpec", "InfraMachines", "Pending", "ProvisionFailed", "Server",
    "Site", "add", "order", "run",
}  # fmt: skip


def test_the_public_names_are_listed() -> None:
    assert set(clusterwright.__all__) == NAMES
    assert set(dir(clusterwright)) >= NAMES
    assert set(clusterwright.testing.__all__) == TESTING
    assert set(clusterwright.provider.__all__) == PROVIDER


@pytest.mark.parametrize("name", sorted(NAMES))
def test_a_public_name_exists_and_has_a_docstring(name: str) -> None:
    found = getattr(clusterwright, name)
    module = found.__name__ if isinstance(found, types.ModuleType) else found.__module__
    assert module == "clusterwright" or module.startswith("clusterwright.")
    if name != "api":
        assert inspect.getdoc(found)


def test_unlisted_names_are_not_public() -> None:
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        _ = clusterwright.nonsense


def test_a_name_costs_nothing_until_it_is_asked_for() -> None:
    code = "import sys, clusterwright; print([m for m in sys.modules if m.startswith('clusterwright.') or m in ('asyncio', 'aiohttp', 'msgspec')])"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip() == "[]"


def test_the_version_is_that_of_the_package() -> None:
    from importlib.metadata import version

    assert clusterwright.__version__ == version("clusterwright")
