"""How properties are tried: the same examples in every run, and no limit that a busy machine would break."""

from __future__ import annotations

import gc

from hypothesis import HealthCheck, settings

settings.register_profile("repeatable", derandomize=True, deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("repeatable")


def pytest_collection_finish() -> None:
    """What thousands of collected tests and their modules hold will not go: the garbage collector need not look at it again and again."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(20_000, 20, 50)
