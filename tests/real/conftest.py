"""Everything here runs on a real kube-apiserver, and says so where there is none."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from real.kube import Kube, assets

MISSING = "KUBEBUILDER_ASSETS names no folder with kube-apiserver and etcd"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.real)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    skipped = [report.nodeid for report in terminalreporter.stats.get("skipped", []) if "tests/real/" in report.nodeid]
    if skipped and assets() is None:
        terminalreporter.section(f"NOT TESTED: {MISSING}", sep="!")
        for name in skipped:
            terminalreporter.line(f"  {name}")


@pytest_asyncio.fixture
async def kube(tmp_path: Path) -> AsyncIterator[Kube]:
    """A fresh kube-apiserver with its etcd."""
    if assets() is None:
        pytest.skip(MISSING)
    async with Kube(tmp_path) as running:
        yield running
