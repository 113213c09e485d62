"""Each page of the book is a story whose commands work, in the order in which they stand."""

from __future__ import annotations

import pytest

from clusterwright.simulation.loop import run_virtual
from clusterwright.testing import virtual_plane
from documentation.story import Story

PAGES = (
    "upgrade.md",
    "health-checks.md",
    "add-ons.md",
    "autoscaling.md",
    "certificates.md",
    "external-etcd.md",
    "deletion.md",
    "gitops.md",
)


@pytest.mark.parametrize("page", PAGES)
def test_the_commands_of_a_page_work(page: str) -> None:
    async def main() -> None:
        async with virtual_plane() as plane:
            await Story(plane).play(page)

    run_virtual(main())
