"""Everything here runs on a real kube-apiserver, and says so where there is none."""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from clusterwright.engine import Engine
from real import upstream
from real.kube import Kube, assets
from real.nodes import IMAGE, Nodes, nodes
from real.upstream import Upstream
from support import engines

MISSING = "KUBEBUILDER_ASSETS names no folder with kube-apiserver and etcd"
NO_NODES = "CLUSTERWRIGHT_NODE_IMAGE names no node image: NO REAL NODES were tried"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    here = f"{Path(__file__).parent}/"
    for item in items:
        if str(item.path).startswith(here):
            item.add_marker(pytest.mark.real)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """What was not tested is said last, and loudly."""
    reasons: dict[str, list[str]] = {}
    for report in terminalreporter.stats.get("skipped", []):
        if "tests/real/" in report.nodeid:
            *_, reason = report.longrepr
            reasons.setdefault(str(reason).removeprefix("Skipped: "), []).append(report.nodeid)
    for reason, names in reasons.items():
        terminalreporter.section(f"NOT TESTED: {reason}", sep="!")
        for name in names:
            terminalreporter.line(f"  {name}")


@pytest_asyncio.fixture
async def kube(tmp_path: Path) -> AsyncIterator[Kube]:
    """A fresh kube-apiserver with its etcd."""
    if assets() is None:
        pytest.skip(MISSING)
    async with Kube(tmp_path) as running:
        yield running


VERSIONS: list[Path | None] = [*upstream.folders()]


@pytest_asyncio.fixture(params=VERSIONS or [None], ids=lambda folder: folder.name if folder else "no-managers")
async def others(kube: Kube, request: pytest.FixtureRequest) -> AsyncIterator[Upstream]:
    """Upstream's managers in each version that there is, not started yet."""
    if request.param is None:
        pytest.skip(upstream.MISSING)
    found = Upstream(kube, request.param)
    try:
        yield found
    finally:
        await found.close()


@pytest_asyncio.fixture
async def plane(tmp_path: Path, request: pytest.FixtureRequest, capsys: pytest.CaptureFixture[str]) -> AsyncIterator[Nodes]:
    """A plane whose machines are real nodes; its parameters are further flags of `up`. What its steps took is printed at the end."""
    if not IMAGE:
        pytest.skip(NO_NODES)
    if reason := engines.why_not():
        pytest.skip(reason)
    engine = Engine(engines.found()[0])
    try:
        await engines.have_haproxy(engine)
        if not await engine.has_image(engines.IMAGE):
            await engine.import_image(engines.IMAGE, engines.files())
        async with nodes(tmp_path, engine, engines.HAPROXY_IMAGE, getattr(request, "param", ())) as made:
            yield made
            with capsys.disabled():
                sys.stdout.write("\n".join(["", *map(str, made.steps), ""]))
    finally:
        await engine.close()
