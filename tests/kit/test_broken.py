"""The broken providers are what they say: one fault each, in definitions that an API server accepts."""

from __future__ import annotations

from datetime import UTC, datetime
from random import Random

import pytest

from clusterwright.apiserver.server import ApiServer
from kit.broken import RUNNING, STATIC, Broken
from kit.definitions import definitions


def test_every_broken_provider_is_told_apart() -> None:
    rows = (*STATIC, *RUNNING)
    assert len(rows) >= 60
    assert len({(row.role, row.name, row.contract) for row in rows}) == len(rows)


@pytest.mark.parametrize("row", STATIC, ids=lambda row: f"{row.role}-{row.name}-{row.contract}")
def test_an_api_server_accepts_the_broken_definitions(row: Broken) -> None:
    kind, template = definitions(row.role, contract=row.contract)
    assert row.change is not None
    row.change(kind, template)
    assert (kind, template) != definitions(row.role, contract=row.contract)
    server = ApiServer(now=lambda: datetime(2026, 1, 1, tzinfo=UTC), random=Random(1))
    try:
        server.ensure([kind, template])
    finally:
        server.close()
