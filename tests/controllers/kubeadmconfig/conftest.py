from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from typing import Any

import pytest


def _harness() -> Any:
    """The harness, loaded once: tests are not a package."""
    name = "kubeadmconfig_harness"
    if name not in sys.modules:
        spec = importlib.util.spec_from_file_location(name, Path(__file__).with_name("harness.py"))
        assert spec is not None
        assert spec.loader is not None
        sys.modules[name] = module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
    return sys.modules[name]


@pytest.fixture
async def world() -> Any:
    """A management and a workload cluster with a reconciler between them."""
    return await _harness().a_world()


@pytest.fixture
def new_world() -> Any:
    """Makes a world with options."""
    return _harness().a_world
