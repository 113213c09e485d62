"""How tests run: properties with the same examples every time and no limit that a busy machine would break; and no work done twice."""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Generator
from functools import partial
from pathlib import Path
from types import FunctionType

import pytest
import yaml
from _pytest.runner import runtestprotocol
from hypothesis import HealthCheck, settings

settings.register_profile("repeatable", derandomize=True, deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("repeatable")

# modules are compiled once, for the workers and for the many processes that tests start, also where nothing may be written beside them
_COMPILED = str(Path(sys.prefix) / "pycache")
sys.dont_write_bytecode, sys.pycache_prefix = False, _COMPILED
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
os.environ["PYTHONPYCACHEPREFIX"] = _COMPILED

# what tests and replayers read as YAML, libyaml reads for them: ten times as fast, and the product has readers of its own
_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
yaml.safe_load, yaml.safe_load_all = partial(yaml.load, Loader=_LOADER), partial(yaml.load_all, Loader=_LOADER)


@pytest.hookimpl(tryfirst=True)
def pytest_pycollect_makeitem(collector: pytest.Module | pytest.Class, obj: object) -> list[pytest.Item] | None:
    """Where long seeded runs are left out, their thousands of seeds are not even counted."""
    if not isinstance(obj, FunctionType) or "not soak" not in collector.config.getoption("markexpr"):
        return None
    return [] if any(mark.name == "soak" for mark in getattr(obj, "pytestmark", ())) else None


def pytest_make_parametrize_id(val: object, argname: str) -> str | None:
    """Bytes that cannot be read are no name: what is packed or signed holds the time, and workers must agree on names."""
    return argname if isinstance(val, bytes) and not (val.isascii() and val.decode().isprintable()) else None


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """What thousands of collected tests and their modules hold will not go: the garbage collector need not look at it again and again."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.collect()
        gc.freeze()
        gc.set_threshold(20_000, 20, 50)
        gc.enable()


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item, nextitem: pytest.Item | None) -> bool | None:
    """A worker tells of a test once, and not also that it began, that all was ready for it and that all was put away."""
    if not hasattr(item.config, "workerinput") or item.config.option.durations is not None:
        return None
    for report in runtestprotocol(item, log=False, nextitem=nextitem):
        if report.when == "call" or not report.passed:
            item.ihook.pytest_runtest_logreport(report=report)
    return True
