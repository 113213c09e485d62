"""How properties are tried: the same examples in every run, and no limit that a busy machine would break."""

from __future__ import annotations

from hypothesis import HealthCheck, settings

settings.register_profile("repeatable", derandomize=True, deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("repeatable")
