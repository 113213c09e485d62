"""Pseudo-terminals for tests."""

from __future__ import annotations

import pty

import pytest


def openpty() -> tuple[int, int]:
    """Open a pseudo-terminal, or skip the test on a machine that has none."""
    try:
        return pty.openpty()
    except OSError as error:
        pytest.skip(f"this machine has no pseudo-terminals: {error}")
