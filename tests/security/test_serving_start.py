"""What a server checks and protects when it starts: its audit log, and its certificates against the clock."""

from __future__ import annotations

import logging
import os
import stat
from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random

import pytest

from clusterwright.api.wire import Request, Response
from clusterwright.apiserver.serving.serve import ServeOptions, start

NOW = datetime(2026, 5, 1, tzinfo=UTC)


@pytest.mark.parametrize("exists", [False, True])
async def test_the_audit_log_is_readable_by_its_owner_only_whatever_the_umask(tmp_path: Path, exists: bool) -> None:
    path = tmp_path / "audit.log"
    before = os.umask(0)
    try:
        if exists:
            path.touch(0o666)
        running = await start(ServeOptions(listen="127.0.0.1:0", audit_log=path, now=lambda: NOW, random=Random(1)))
    finally:
        os.umask(before)
    await running.stop()

    assert stat.S_IMODE(path.stat().st_mode) == 0o600


async def test_a_clock_that_went_back_is_reported(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    time = NOW

    async def readyz(path: str = "/readyz") -> Response:
        answer = await running.server.handle(Request(method="GET", path=path))
        assert isinstance(answer, Response)
        return answer

    options = ServeOptions(listen="127.0.0.1:0", data_dir=tmp_path, now=lambda: time, random=Random(1))
    running = await start(options)
    assert (await readyz()).body == b"ok"
    await running.stop()

    time = NOW - timedelta(days=2)
    with caplog.at_level(logging.ERROR):
        running = await start(options)
    answer, single = await readyz(), await readyz("/readyz/certificates")
    await running.stop()

    assert "clients will refuse the certificates of this server: the authority (ca.crt) is valid from" in caplog.text
    assert (answer.status, single.status) == (500, 500)
    assert b"[-]certificates failed: the authority (ca.crt) is valid from 2026-04-30T" in answer.body
    assert b"but the clock says 2026-04-29T00:00:00Z: set the clock" in single.body
    time = NOW
