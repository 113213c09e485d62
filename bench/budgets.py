"""Measure the CPU time that budgets of connections, bodies and users cost the API server: python -m bench.budgets.

Two servers, one as it is and one without any budget, take the same writes in turns, in slices so short that whatever else the machine does
is done to both; in one process, so that they have the same seed of hashes and the same memory. `--serve` is that process.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import ssl
import statistics
import subprocess
import sys
from contextlib import AbstractAsyncContextManager, nullcontext
from pathlib import Path
from typing import Any

import aiohttp
from aiohttp import web

from bench.apiserver import BASE, MERGE, Send, machine, new_server, over_http, status
from clusterwright.apiserver.flows import Flow
from clusterwright.apiserver.identity import ANONYMOUS
from clusterwright.apiserver.requestinfo import RequestInfo
from clusterwright.apiserver.server import ApiServer
from clusterwright.apiserver.serving.http import HttpServer

OBJECTS, SLICE = 40, 40


class Unbounded(HttpServer):
    """Ours on a plain server of aiohttp: no clock runs, bodies are read as they come, nobody waits for a seat."""

    def __init__(self, server: ApiServer) -> None:
        super().__init__(server)
        self.fairness: Any = Everybody(self.fairness.flows.classify(ANONYMOUS, RequestInfo("/", "get")))

    async def start(self, host: str, port: int, context: ssl.SSLContext | None = None) -> int:
        runner = web.ServerRunner(web.Server(self._handle, access_log=None, handler_cancellation=True, auto_decompress=False))
        await runner.setup()
        await web.TCPSite(runner, host, port, ssl_context=context).start()
        address: tuple[str, int] = runner.addresses[0]
        return address[1]

    async def _body(self, http: web.BaseRequest, info: RequestInfo, seen: Any) -> bytes:
        return await http.read()


class Everybody:
    """One flow for all requests, with a seat for everybody."""

    def __init__(self, flow: Flow) -> None:
        self.flows = self
        self._flow = flow

    def classify(self, user: object, info: object) -> Flow:
        return self._flow

    def seat(self, flow: Flow) -> AbstractAsyncContextManager[None]:
        return nullcontext()


async def serve() -> None:
    servers = HttpServer(new_server()), Unbounded(new_server())
    gc.freeze()
    print(*[await server.start("127.0.0.1", 0) for server in servers], flush=True)
    await asyncio.Event().wait()


def spent(pid: int) -> float:
    """Seconds of CPU time that a process has used."""
    return int(Path(f"/proc/{pid}/schedstat").read_text(encoding="ascii").split()[0]) / 1e9


async def write(send: Send, turn: int) -> None:
    async def patch(number: int) -> None:
        code, body = await send("PATCH", f"{BASE}/m-{number % OBJECTS}/status", status(number, turn), MERGE)
        assert code == 200, body[:300]

    for start in range(0, SLICE, 10):
        await asyncio.gather(*(patch(start + n) for n in range(10)))


async def measure(slices: int) -> dict[str, float]:
    """Microseconds of CPU time of a write with and without budgets, and what the budgets are of it, in percent."""
    process = subprocess.Popen([sys.executable, "-m", "bench.budgets", "--serve"], stdout=subprocess.PIPE, text=True)  # noqa: ASYNC220
    costs: list[list[float]] = [[], []]
    try:
        assert process.stdout is not None
        ports = process.stdout.readline().split()
        async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as session:
            sends = [over_http(session, f"http://127.0.0.1:{port}") for port in ports]
            for send in sends:
                for number in range(OBJECTS):
                    code, body = await send("POST", BASE, machine(number), "application/json")
                    assert code == 201, body[:300]
                await write(send, 0)
            for turn in range(slices):
                for which in (0, 1) if turn % 2 else (1, 0):
                    before = spent(process.pid)
                    await write(sends[which], turn + 1)
                    costs[which].append((spent(process.pid) - before) / SLICE * 1e6)
    finally:
        process.terminate()
        process.wait()
    shares = sorted(100 * (1 - b / a) for a, b in zip(*costs, strict=True))
    low, middle, high = statistics.quantiles(shares, n=4)
    return {
        "us of a write with budgets": statistics.median(costs[0]),
        "us of a write without": statistics.median(costs[1]),
        "% that budgets cost (target 5)": middle,
        "  give or take": 1.57 * (high - low) / len(shares) ** 0.5,  # as the notches of a box plot
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--slices", type=int, default=200)
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.serve:
        asyncio.run(serve())
        return
    for name, value in asyncio.run(measure(arguments.slices)).items():
        print(f"{name:32}{value:>19,.1f}")


if __name__ == "__main__":
    main()
