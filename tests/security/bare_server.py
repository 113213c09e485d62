"""A server without TLS in a process of its own: `python bare_server.py`. Prints its port; ends when its input does."""

from __future__ import annotations

import asyncio
import resource
import sys
from datetime import UTC, datetime
from random import Random

from clusterwright.apiserver.server import ApiServer
from clusterwright.apiserver.serving.http import HttpServer


async def main() -> None:
    """Serve until standard input ends."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    http = HttpServer(ApiServer(now=lambda: datetime.now(UTC), random=Random(1)))
    print(await http.start("127.0.0.1", 0), flush=True)  # noqa: T201 - this is how it tells
    await asyncio.to_thread(sys.stdin.read)
    await http.stop()


if __name__ == "__main__":
    asyncio.run(main())
