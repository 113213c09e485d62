"""How long tests of processes, sockets and real time wait for what may never come."""

from __future__ import annotations

PATIENCE = 600.0
"""Seconds: a net, not a measurement, so wide that no load can miss it."""
